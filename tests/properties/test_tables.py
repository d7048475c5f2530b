"""Labels with numbers of their own: a table says what one-hot columns and other weights say."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from milp_recourse.certificates.produce import certificates_for, why_not
from milp_recourse.formats.schema import read_instance
from milp_recourse.formats.strict_json import write_json
from milp_recourse.formats.write import write_instance
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Result, Status, gap_tolerance
from milp_recourse.questions.solve import solve
from tests.helpers.generators import Style, random_instance
from verify.__main__ import examine

STYLE = Style(levers=2, curves=False, plausible=0.2, gamma=False, depth=2)


def one_hot_and_table(seed: int) -> tuple[Instance, Instance] | None:
    """A problem with one-hot labels, and the same with tables: equal first layers, composed exactly.

    Table numbers are quarters and weights are 64ths, so that products and sums are doubles.
    """
    instance = labelled(seed)
    if instance is None or not instance.levers:
        return None
    rng = np.random.default_rng(seed)
    network = instance.classifier
    assert isinstance(network, ReluNetwork)
    first = np.round(network.weights[0] * 64) / 64
    features, blocks, composed, column = [], [], [], 0
    for f in instance.features:
        block = first[:, column : column + len(f.columns)]
        column += len(f.columns)
        if f.by_label:
            table = rng.integers(-8, 9, (len(f.columns), int(rng.integers(1, 4)))) / 4
            block = rng.integers(-64, 65, (len(first), table.shape[1])) / 64
            composed.append(block @ table.T)
            rows = tuple(map(tuple, table.tolist()))
            features.append(replace(f, encoding="table", table=rows))
        else:
            composed.append(block)
            features.append(f)
        blocks.append(block)
    plain = replace(instance, classifier=with_first(network, composed))
    return plain, replace(instance, features=tuple(features), classifier=with_first(network, blocks))


def labelled(seed: int) -> Instance | None:
    """A problem with one-hot labels."""
    instance = random_instance(seed, STYLE)
    if not any(f.by_label for f in instance.features):
        return None
    network = instance.classifier
    assert isinstance(network, ReluNetwork)
    layers = [*zip(network.weights, network.biases, strict=True)]
    return replace(instance, classifier=ReluNetwork.from_layers(layers, "float64"))


def with_first(network: ReluNetwork, blocks: list[np.ndarray]) -> ReluNetwork:
    """The network with another first layer, in float64."""
    weights = [np.concatenate(blocks, axis=1), *network.weights[1:]]
    return ReluNetwork.from_layers([*zip(weights, network.biases, strict=True)], "float64")


def verified(instance: Instance, result: Result, folder: Path) -> str:
    """The checker's line on files; the file read back is the same problem."""
    [certificate] = certificates_for([instance], [result])
    assert certificate is not None
    write_instance(instance, folder / "instance.json")
    assert read_instance(folder / "instance.json").features == instance.features
    write_json(certificate, folder / "certificate.json")
    return examine(folder / "certificate.json", folder / "instance.json", 60).line


@pytest.mark.parametrize("name", ["bab", "highs"])
def test_a_table_costs_what_the_composed_one_hot_costs(name: str, tmp_path: Path) -> None:
    """The same status and cost, and bab's certificates verify."""
    seen: Counter[str] = Counter()
    for seed in range(160):
        pair = one_hot_and_table(seed)
        if pair is None:
            continue
        one, two = (solve(problem, name, 20) for problem in pair)
        assert one.status is two.status, seed
        seen[one.status.value] += 1
        if one.cost is not None:
            assert abs(one.cost - two.cost) <= 2 * gap_tolerance(one.cost), seed
        if name == "bab" and why_not(pair[1]) is None and one.status in (Status.OPTIMAL, Status.INFEASIBLE):
            line = verified(pair[1], two, tmp_path)
            assert line.startswith(f"VERIFIED {two.status.value}"), (seed, line)
    assert seen["optimal"] >= 5 and seen["infeasible"] >= 1, seen


def test_a_one_hot_written_as_a_table_is_the_same_problem(tmp_path: Path) -> None:
    """The identity as a table: same answer to the last digit, and a certificate of its own."""
    compared = 0
    for seed in range(160):
        instance = labelled(seed)
        if instance is None or why_not(instance) is not None:
            continue
        features = tuple(
            replace(f, encoding="table", table=tuple(map(tuple, f.lookup.tolist()))) if f.by_label else f
            for f in instance.features
        )
        tabled = replace(instance, features=features)
        one, two = solve(instance, "bab", 20), solve(tabled, "bab", 20)
        assert (one.status, one.cost, one.action) == (two.status, two.cost, two.action), seed
        if one.status is Status.OPTIMAL:
            compared += 1
            assert verified(tabled, two, tmp_path).startswith("VERIFIED optimal"), seed
            [other] = certificates_for([instance], [one])
            write_json(other, tmp_path / "certificate.json")
            line = examine(tmp_path / "certificate.json", tmp_path / "instance.json", 60).line
            assert "belongs to another instance" in line
    assert compared >= 5

"""What is split on: levers of few whole values and labels, where many units are open."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from milp_recourse.backends.protocol import Options
from milp_recourse.compiled.propose import ready
from milp_recourse.domain.cost import Cost
from milp_recourse.domain.features import Feature
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.domain.scm import independent
from milp_recourse.formats import read_instance
from milp_recourse.instance import Acceptance, Instance, Preferences
from milp_recourse.result import Status
from milp_recourse.solve import solve as solved
from tests.helpers.engine_alone import solve_alone


def wide(seed: int, labels: bool) -> Instance:
    """Two layers of 48 units over a share and seven levers with four values each, whole numbers or labels."""
    rng = np.random.default_rng(seed)
    names = [f"x{i}" for i in range(7)]
    if labels:
        features = [
            Feature(n, "categorical", True, categories=tuple("abcd"), encoding="one-hot") for n in names
        ]
    else:
        features = [Feature(n, "integer", True, (0.0, 3.0)) for n in names]
    features.append(Feature("share", "continuous", True, (0.0, 1.0)))
    columns = 4 * 7 + 1 if labels else 8
    sizes = [columns, 48, 48, 1]
    layers = [
        (rng.normal(0.0, np.sqrt(2.0 / before), (after, before)), rng.normal(0.0, 0.3, after))
        for before, after in pairwise(sizes)
    ]
    network = ReluNetwork.from_layers(layers)
    factual = dict.fromkeys(names, 0.0 if labels else 1.0) | {"share": 0.5}
    points = rng.integers(0, 4, (2000, 7))
    inputs = np.eye(4)[points].reshape(2000, -1) if labels else points.astype(float)
    reached = network.evaluate(np.column_stack([inputs, rng.uniform(size=2000)]))[:, 0]
    scale = dict.fromkeys(names, 1.0 if labels else 3.0) | {"share": 1.0}
    return Instance(
        tuple(features),
        independent([f.name for f in features]),
        network,
        factual,
        Preferences(tuple(f.name for f in features)),
        Cost.pure("l1", scale),
        Acceptance(float(np.quantile(reached, 0.98)), 1e-9),
    )


@pytest.mark.parametrize("labels", [False, True])
def test_levers_of_few_values_are_split(labels: bool) -> None:
    """Signs alone leave most of these open after 20 000 nodes."""
    ready()
    for seed in range(4):
        found = solve_alone(wide(seed, labels), Options(time_limit=30))
        assert found.message is None
        assert found.nodes is not None
        assert found.nodes < 5000, seed


@pytest.mark.parametrize(
    "file", sorted(Path(__file__).parent.glob("shared_kinks/*.json")), ids=lambda f: f.stem
)
def test_boxes_do_not_shrink_around_a_shared_kink(file: Path) -> None:
    """Units whose kinks coincide stay open however narrow the box: their signs are split, not the levers.

    Splitting levers first, each of these took 180 000 nodes and more without an end.
    """
    result = solved(read_instance(file), "bab", 60.0)
    assert result.status in (Status.OPTIMAL, Status.INFEASIBLE)
    assert result.nodes is not None
    assert 0 < result.nodes < 5000


@pytest.mark.parametrize(
    "file", sorted(Path(__file__).parent.glob("on_an_edge/*.json")), ids=lambda f: f.stem
)
def test_a_point_on_an_edge_is_judged_and_not_looked_for_by_halving(file: Path) -> None:
    """What rows leave has no room for rounding: such a point is judged exactly, also where levers are open.

    An equality met at rest and a knot of a percentile cost took 200 000 nodes and more, or had no end.
    """
    result = solved(read_instance(file), "bab", 60.0)
    assert result.status in (Status.OPTIMAL, Status.INFEASIBLE)
    assert result.nodes is not None
    assert 0 < result.nodes < 5000


@pytest.mark.parametrize(
    ("name", "most", "cost"), [("chain-3012", 1000, 1.9535813227), ("pct-3010-min", 20_000, None)]
)
def test_what_is_split_is_what_keeps_a_node_open(name: str, most: int, cost: float | None) -> None:
    """Ends of a curve's argument cut the levers too: else only the argument's interval got smaller, and the
    ball, which is bounded over the box, ruled out nothing (1.5 million nodes). What a percentile cost loses
    is compared with the gap: compared with itself, where it vanishes, a knot was split on for ever."""
    result = solved(read_instance(Path(__file__).parent / "endless" / f"{name}.json"), "bab", 60.0)
    assert result.status is (Status.OPTIMAL if cost else Status.INFEASIBLE)
    assert result.nodes is not None
    assert result.nodes < most
    assert result.cost == (pytest.approx(cost, rel=2e-6) if cost else None)


@pytest.mark.parametrize("name", ["f32m0-7016", "f32edge-7005"])
def test_a_search_without_a_proof_ends(name: str) -> None:
    """Two leaves of one bound asked about their common point in turns, and what lay between
    neighbouring doubles of an action was split through all coordinates' doubles, many more."""
    result = solved(read_instance(Path(__file__).parent / "endless" / f"{name}.json"), "bab", 60.0)
    assert result.action
    assert result.nodes is not None
    assert result.nodes < 5000


@pytest.mark.parametrize("name", ["bigw-30089", "f32edge-20058", "f32big-8021"])
def test_a_search_is_not_led_on_by_points_of_no_worth(name: str) -> None:
    """A convex problem whose rows nothing meets by as much as is asked is given up; else its last point was
    far from the edge, and every leaf asked about another one (40 000 nodes). Where the deployed model refuses
    one action after the other, one inside the edge is looked for before the search goes on (28 000)."""
    result = solved(read_instance(Path(__file__).parent / "endless" / f"{name}.json"), "bab", 60.0)
    assert result.status is Status.OPTIMAL
    assert result.nodes is not None
    assert result.nodes < 1000


def test_levers_count_through_open_units() -> None:
    """Where an open unit is at rest at the relaxed optimum, levers behind it were taken for idle: two others
    were split to widths of 4e-8, without an end."""
    result = solved(read_instance(Path(__file__).parent / "endless" / "deep10-8028.json"), "bab", 60.0)
    assert result.status is Status.INFEASIBLE
    assert result.nodes is not None
    assert result.nodes < 5000


def test_few_levers_are_split_before_signs() -> None:
    """Under signs that settle most units, rows kept their rounding and boxes their size: 43 000 nodes."""
    result = solved(read_instance(Path(__file__).parent / "endless" / "chainwide-8118.json"), "bab", 60.0)
    assert result.status is Status.OPTIMAL
    assert result.nodes is not None
    assert result.nodes < 1000


def many_labels(seed: int) -> Instance:
    """Two layers of 16 units over ten levers of five labels and four numbers; few points are accepted, all of
    them far from the factual."""
    rng = np.random.default_rng(seed)
    labels = tuple(
        Feature(f"l{k}", "categorical", True, categories=tuple("abcde"), encoding="one-hot")
        for k in range(10)
    )
    features = labels + tuple(Feature(f"n{k}", "continuous", True, (-1.0, 1.0)) for k in range(4))
    sizes = [54, 16, 16, 1]
    network = ReluNetwork.from_layers(
        [
            (rng.normal(0.0, np.sqrt(2.0 / before), (after, before)), rng.normal(0.0, 0.3, after))
            for before, after in pairwise(sizes)
        ]
    )
    rows = np.concatenate([rng.integers(0, 5, (20000, 10)), rng.uniform(-1.0, 1.0, (20000, 4))], axis=1)
    one_hot = np.eye(5)[rows[:, :10].astype(int)].reshape(len(rows), -1)
    logits = network.evaluate(np.concatenate([one_hot, rows[:, 10:]], axis=1))[:, 0]
    names = tuple(f.name for f in features)
    factual = dict(zip(names, rows[np.argsort(logits)[10]].tolist(), strict=True))
    cost = Cost.pure("l1", {f.name: 1.0 if f.kind == "categorical" else 2.0 for f in features})
    accept = Acceptance(float(np.quantile(logits, 0.998)), 1e-6)
    return Instance(features, independent(names), network, factual, Preferences(names), cost, accept)


@pytest.mark.parametrize(("seed", "cost"), [(2, 5.1027928508), (4, 5.0472550374)])
def test_labels_compete_with_signs(seed: int, cost: float) -> None:
    """Labels were split only where nearly every unit was open, and the best action was one that no move of a
    single lever makes cheaper: 130 000 nodes, and more than 80 000 without an end."""
    result = solved(many_labels(seed), "bab", 60.0)
    assert result.status is Status.OPTIMAL
    assert result.cost == pytest.approx(cost, rel=2e-6)
    assert result.nodes is not None
    assert result.nodes < 40_000

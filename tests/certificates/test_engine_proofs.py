"""Proof trees of the compiled engine: what it proves is accepted, and its evidence is needed."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from milp_recourse.certificates import certificates_for
from milp_recourse.engine.networks.problem_arrays import lowered
from milp_recourse.formats import write_instance
from milp_recourse.formats.schema import read_any
from milp_recourse.judge import judge
from milp_recourse.problem.cost import Cost, measured
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Status
from milp_recourse.problem.scm import independent
from milp_recourse.questions.solve import solve
from tests.helpers.generators import PIECEWISE_LINEAR, Style, supported_instance
from tests.helpers.wide import wide
from verify.__main__ import examine

LABELS = ("rent", "own", "free")
FEW_BYTES = 1000


def lender(seed: int, cost: str, levers: int = 3) -> Instance:
    """A refused applicant of a random network over numbers, one of them whole, and a label."""
    random = np.random.default_rng(seed)
    names = [f"f{k}" for k in range(levers)]
    numbers = [
        Feature(name, "integer" if k == 1 else "continuous", True, (-3.0, 3.0))
        for k, name in enumerate(names)
    ]
    features = (*numbers, Feature("home", "categorical", True, None, LABELS, encoding="one-hot"))
    width = levers + len(LABELS)
    first, second = random.normal(size=(10, width)), random.normal(size=(8, 10)) / 3
    last = np.abs(random.normal(size=(1, 8)))
    network = ReluNetwork.from_layers(
        [(first, random.normal(size=10)), (second, random.normal(size=8)), (last, [-6.0])], "float64"
    )
    factual = {name: float(random.integers(-1, 2)) for name in names} | {"home": 1.0}
    all_names = (*names, "home")
    scale = dict(zip(all_names, random.uniform(0.5, 2, levers + 1).tolist(), strict=True))
    priced = Cost.pure(cost, scale)
    return Instance(
        features,
        independent(all_names),
        network,
        factual,
        Preferences(all_names),
        priced,
        Acceptance(0.0, 1e-9),
    )


def line(instance: Instance, evidence: bytes, folder, slow: bool = False) -> str:
    write_instance(instance, folder / "i.json")
    (folder / "c.json.gz").write_bytes(evidence)
    return examine(folder / "c.json.gz", folder / "i.json", 60, slow=slow).line


@pytest.mark.parametrize("cost", ["l1", "l2-squared", "l0", "linf"])
def test_levers_alone(cost, tmp_path):
    """Numbers, whole numbers and labels under every cost."""
    alone = 0
    for seed in range(3):
        instance = lender(seed, cost, 3)
        result = solve(instance, certificates=True)
        assert result.evidence is not None, seed
        fast = line(instance, result.evidence, tmp_path)
        assert fast.startswith(f"VERIFIED {result.status.value}"), seed
        if len(result.evidence) < FEW_BYTES:  # by the kernel alone, too
            assert line(instance, result.evidence, tmp_path, slow=True) == fast
            alone += 1
    assert alone


def priced_acting(seed: int) -> Instance:
    """An applicant whose every lever costs something to act on, a label too; weights are small and whole."""
    random = np.random.default_rng(seed)
    label = Feature("home", "categorical", True, None, LABELS, encoding="one-hot")
    numbers = [Feature(f"f{k}", "integer" if k else "continuous", True, (-3.0, 3.0)) for k in range(3)]
    sizes = [
        (random.integers(-2, 3, (b, a)), random.integers(-2, 3, b)) for a, b in pairwise((6, 2, 7, 7, 1))
    ]
    network = ReluNetwork.from_layers([(w.astype(float), b.astype(float)) for w, b in sizes])
    factual = {"home": 2.0} | {f.name: float(random.integers(-3, 4)) for f in numbers}
    names = tuple(factual)
    points = np.column_stack([np.eye(3)[random.integers(0, 3, 500)], random.integers(-3, 4, (500, 3))])
    reached = float(np.quantile(network.evaluate(points)[:, 0], 0.95))
    cost = Cost(2.0, 1.0, 0.0, 1.0, measured(dict.fromkeys(names, 1.0)))
    return Instance(
        (label, *numbers),
        independent(names),
        network,
        factual,
        Preferences(names),
        cost,
        Acceptance(reached),
    )


@pytest.mark.parametrize("seed", [146, 309, 393])
def test_a_label_that_is_kept_costs_what_acting_costs(seed, tmp_path):
    """Thetas bound neurons where little is paid, so a leaf holds only if both sides count the same costs."""
    instance = priced_acting(seed)
    result = solve(instance, certificates=True)
    fast = line(instance, result.evidence, tmp_path)
    assert fast.startswith("VERIFIED optimal")
    assert line(instance, result.evidence, tmp_path, slow=True) == fast


def test_slopes_that_rounding_leaves_open(tmp_path):
    """The checker's slopes may be a step off the producer's, as neurons' intervals end at whole numbers, and
    slopes on multiples of the step. A leaf whose logit missed by about a step proved too little."""
    instance = read_any(Path(__file__).parent / "instances" / "slopes_on_the_grid.json")
    result = solve(instance, certificates=True)
    fast = line(instance, result.evidence, tmp_path)
    assert fast.startswith("VERIFIED optimal")
    assert line(instance, result.evidence, tmp_path, slow=True) == fast


STYLES = {
    "plausible": Style(curves=False, plausible=1.0, gamma=False),
    "causes": PIECEWISE_LINEAR,
    "curves": Style(plausible=0.0),
    "plausible curves": Style(plausible=1.0),
}


@pytest.mark.parametrize("style", STYLES)
def test_causes(style, tmp_path):
    """Affine effects, structural ReLUs and curves, acted on or not, with domains and plausibility."""
    proven = 0
    for seed in range(15):
        instance = supported_instance(seed, STYLES[style])
        if not list(lowered([instance])):
            continue
        result = solve(instance, certificates=True, time_limit=10.0)
        if result.status in (Status.OPTIMAL, Status.INFEASIBLE) and result.proof == "rigorous":
            assert result.evidence is not None, (seed, result.message)
            assert line(instance, result.evidence, tmp_path).startswith("VERIFIED"), seed
            proven += 1
    assert proven >= 7


def stripped(evidence: bytes) -> bytes:
    """The certificate without thetas."""
    stated = json.loads(gzip.decompress(evidence))
    for configuration in stated["configurations"]:
        configuration["tree"] = [node[:4] for node in configuration["tree"]]
    return gzip.compress(json.dumps(stated).encode())


def test_thetas_carry_proofs(tmp_path):
    """Without them the leaves prove less."""
    told = []
    for seed in (2, 4, 5):
        instance = lender(seed, "l1", 3)
        result = solve(instance, certificates=True)
        told.append(line(instance, stripped(result.evidence), tmp_path))
    assert any("proves less than is claimed" in one for one in told), told


def test_leaves_have_no_thetas_that_they_do_not_need(tmp_path):
    """Many leaves' neurons can be bounded over the box alone, and thetas take most of a leaf's room."""
    instance = lender(2, "l2-squared", 3)
    evidence = solve(instance, certificates=True).evidence
    stated = json.loads(gzip.decompress(evidence))
    leaves = [n for one in stated["configurations"] for n in one["tree"] if n[0] == "d"]
    bounded = [leaf for leaf in leaves if len(leaf) == 5]
    assert 0 < 2 * len(bounded) < len(leaves)
    for leaf in bounded:
        thetas = leaf.pop()
        told = line(instance, gzip.compress(json.dumps(stated).encode()), tmp_path)
        assert "proves less than is claimed" in told
        leaf.append(thetas)


@pytest.mark.parametrize("cost", ["l1", "l2-squared"])
def test_a_bound_above_the_optimum_is_soon_given_up(cost):
    """An action cheaper than the claim is met, or no leaf can hold."""
    instance = lender(2, cost)
    result = solve(instance)
    others = [dict(result.action) | {name: end} for name in ("f0", "f1", "f2") for end in (-3.0, 3.0)]
    feasible = [action for action in others if judge(instance, action).feasible]
    dearer = max(feasible, key=lambda action: judge(instance, action).cost)
    paid = float(judge(instance, dearer).cost)
    assert paid > 1.1 * result.cost
    false = replace(
        result, action=dearer, cost=paid, lower_bound=0.5 * (result.cost + paid), status=Status.LIMIT
    )
    assert certificates_for([instance], [false], 5.0) == [None]


def test_a_proof_learns_what_splits_gain():
    """This certificate has 1965 nodes where every split counts for what it promises, and 14 661 where gains
    are noted child by child, as the child that is examined first misleads for all the time spent below it."""
    instance = wide(8, labels=False)
    result = solve(instance, certificates=True)
    (configuration,) = json.loads(gzip.decompress(result.evidence))["configurations"]
    assert len(configuration["tree"]) <= 1641

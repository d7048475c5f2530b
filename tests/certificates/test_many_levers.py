"""Any number of levers where holding one is as free as leaving it alone; no certificate where it is not."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise

import numpy as np
import pytest

from milp_recourse.certificates import why_not
from milp_recourse.cli import main
from milp_recourse.formats import write_instance
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.expression import Expression, Relu, Square, Variable
from milp_recourse.problem.features import Feature
from milp_recourse.problem.forest import Tree, TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scm import Mechanism, StructuralCausalModel, independent
from milp_recourse.questions.solve import solve
from verify.__main__ import examine

MANY = 24


def problem(trees: bool, cost: str = "l1", chain: bool = False) -> Instance:
    """So many levers from 0 to 1, the first of which count most; three of them must go up."""
    names = tuple(f"f{k:02}" for k in range(MANY))
    features = tuple(Feature(n, "continuous", True, (0.0, 1.0)) for n in names)
    scm = independent(names)
    if chain:
        mechanisms = {n: Mechanism(0.5 * Variable(p)) for p, n in pairwise(names)}
        scm = StructuralCausalModel(names, mechanisms | {names[0]: scm.mechanisms[names[0]]})
    weights = 1.0 / (1 + np.arange(MANY))
    classifier: ReluNetwork | TreeEnsemble
    if trees:
        classifier = TreeEnsemble(tuple(stump(k) for k in range(MANY)), MANY)
        accept = Acceptance(2.5 / MANY, 0.0, strict=True)
    else:
        classifier = ReluNetwork.from_layers([(weights[None], [-1.5])], "float64")
        accept = Acceptance()
    priced, factual = Cost.pure(cost, dict.fromkeys(names, 1.0)), dict.fromkeys(names, 0.0)
    return Instance(features, scm, classifier, factual, Preferences(names), priced, accept)


def stump(k: int) -> Tree:
    """1 where feature k is above a half."""
    ints = [np.array(v, dtype=np.int64) for v in ([k, -2, -2], [1, -1, -1], [2, -1, -1])]
    return Tree(ints[0], np.array([0.5, -2.0, -2.0]), ints[1], ints[2], np.array([0.0, 0.0, 1.0]))


@pytest.mark.parametrize("trees", [False, True])
@pytest.mark.parametrize("cost", ["l1", "l2-squared"])
def test_one_configuration_is_enough_for_any_number(trees: bool, cost: str, tmp_path) -> None:
    """Nothing is caused and holding costs nothing: the checker needs no list of all subsets."""
    instance = problem(trees, cost)
    assert why_not(instance) is None
    result = solve(instance, certificates=True)
    write_instance(instance, tmp_path / "i.json")
    (tmp_path / "c.json.gz").write_bytes(result.evidence)
    assert examine(tmp_path / "c.json.gz", tmp_path / "i.json", 60).line.startswith("VERIFIED optimal")


@pytest.mark.parametrize("levers", [MANY, 5])
def test_a_linear_logit_under_l1_takes_one_leaf(levers: int, tmp_path) -> None:
    """One multiplier says it all; cutting at the factual values first would take 2^n leaves."""
    random = np.random.default_rng(levers)
    names = tuple(f"f{k:02}" for k in range(levers))
    features = tuple(Feature(n, "continuous", True, (-1.0, 1.0)) for n in names)
    weights = random.normal(size=levers)
    classifier = ReluNetwork.from_layers([(weights[None], [-0.9 * np.abs(weights).sum()])], "float64")
    priced = Cost.pure("l1", dict(zip(names, random.uniform(0.5, 2, levers).tolist(), strict=True)))
    factual = dict.fromkeys(names, 0.0)
    instance = Instance(
        features, independent(names), classifier, factual, Preferences(names), priced, Acceptance()
    )
    result = solve(instance, certificates=True)
    [configuration] = json.loads(gzip.decompress(result.evidence))["configurations"]
    assert [node[0] for node in configuration["tree"]] == ["d"]
    write_instance(instance, tmp_path / "i.json")
    (tmp_path / "c.json.gz").write_bytes(result.evidence)
    assert examine(tmp_path / "c.json.gz", tmp_path / "i.json", 60).line.startswith("VERIFIED optimal")


def nested(depth: int, square: bool = False) -> Expression:
    """An equation so deep over the first lever."""
    expression: Expression = Variable("a")
    for _ in range(depth):
        expression = Square(expression) if square else Relu(expression)
    return expression


@pytest.mark.parametrize(
    ("equation", "layers", "reason"),
    [
        (nested(51), 1, "nested more than 50 deep"),
        (nested(50), 1, None),
        (nested(11, square=True), 1, "take too many digits"),
        (nested(3, square=True), 1, None),
        (None, 111, "more than 100 layers"),
        (None, 100, None),
    ],
)
def test_what_is_beyond_the_checker_s_limits_is_not_written(equation, layers, reason, tmp_path) -> None:
    """The product says why there is no certificate, exactly where the checker would refuse it."""
    bounds = (0.0, 2.0)
    features = (Feature("a", "continuous", True, bounds), Feature("b", "continuous", False, None))
    scm = independent(("a", "b"))
    if equation is not None:
        scm = StructuralCausalModel(("a", "b"), {"a": scm.mechanisms["a"], "b": Mechanism(equation)})
    first = ([[1.0, 1.0 if equation else 0.0]], [0.0 if layers > 1 else -1.0])
    rest = [([[1.0]], [0.0])] * (layers - 2) + [([[1.0]], [-1.0])]
    classifier = ReluNetwork.from_layers([first] + (rest if layers > 1 else []), "float64")
    priced, factual = Cost.pure("l2-squared", {"a": 1.0}), {"a": 0.0, "b": 0.0}
    instance = Instance(features, scm, classifier, factual, Preferences(("a",)), priced, Acceptance())
    said = why_not(instance)
    assert (said is None) if reason is None else (reason in said)
    write_instance(instance, tmp_path / "i.json")
    if reason is None:
        result = solve(instance, certificates=True)
        (tmp_path / "c.json.gz").write_bytes(result.evidence)
        assert examine(tmp_path / "c.json.gz", tmp_path / "i.json", 60).line.startswith("VERIFIED optimal")


def test_a_configuration_that_leaves_a_lever_out_does_not_cover(tmp_path) -> None:
    """The same certificate, said to be about one lever less: its subsets are nobody's."""
    instance = problem(trees=True)
    result = solve(instance, certificates=True)
    write_instance(instance, tmp_path / "i.json")
    certificate = json.loads(gzip.decompress(result.evidence))
    [configuration] = certificate["configurations"]
    unmoved = next(f for f in configuration["acted"] if f not in certificate["action"])
    configuration["acted"].remove(unmoved)
    (tmp_path / "c.json").write_text(json.dumps(certificate))
    line = examine(tmp_path / "c.json", tmp_path / "i.json", 60).line
    assert line.startswith("REJECTED: configurations: none covers"), line


@pytest.mark.parametrize(("cost", "chain"), [("l0", False), ("l1", True)])
def test_what_would_be_rejected_is_not_written(cost: str, chain: bool) -> None:
    """Under l0, or where one lever moves the next, every subset is a problem of its own."""
    reason = why_not(problem(trees=False, cost=cost, chain=chain))
    assert reason is not None
    assert "at most 16 of them" in reason


def test_the_command_says_why_there_is_no_certificate(tmp_path, capsys) -> None:
    """l0 and trees: solved in no time, and 24 levers are too many to tell apart."""
    write_instance(problem(trees=True, cost="l0"), tmp_path / "i.json")
    arguments = ["solve", str(tmp_path / "i.json"), "--certificate", str(tmp_path / "c.json")]
    assert main(arguments) == 0
    assert "no certificate: 24 levers" in capsys.readouterr().err
    assert not (tmp_path / "c.json").exists()

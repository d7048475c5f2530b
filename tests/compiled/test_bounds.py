"""What the compiled engine proves of a node holds at every point of it: sampled, and judged exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from generators import Style, random_instance

from milp_recourse.backends.protocol import Options
from milp_recourse.compiled import door, search
from milp_recourse.compiled.layout import HI, LABEL, LO, ZH, ZL
from milp_recourse.compiled.problem import decode, why_not
from milp_recourse.instance import Instance
from milp_recourse.judge import judge

STYLES = (
    Style(causes=False, levers=4, plausible=0.0, depth=3),
    Style(causes=False, levers=5, plausible=0.0, depth=2, width=8),
    Style(causes=False, levers=3, plausible=0.0, discrete=False),
)


def covered(seed: int) -> Instance | None:
    """The problem of a seed, where the compiled engine covers it."""
    instance = random_instance(seed, STYLES[seed % len(STYLES)])
    return instance if instance.levers and why_not(instance) is None else None


def points(rng: np.random.Generator, state: door.Run, size: int) -> np.ndarray:
    """Random coordinates of the root box, some levers at rest."""
    p = state.problem
    rows = np.zeros((size, p.lever.shape[1]))
    for i in range(p.lever.shape[1]):
        if p.lever[LABEL, i]:
            labels = np.flatnonzero(p.allowed[p.start[i] : p.start[i + 1]])
            rows[:, i] = rng.choice(labels, size)
        else:
            low, high = p.box[LO, i], p.box[HI, i]
            rows[:, i] = (low + (high - low) * rng.random(size)) * (rng.random(size) < 0.8)
    return rows


@pytest.mark.parametrize("seed", range(60))
def test_no_feasible_action_is_cheaper_than_the_least_open_bound(seed: int) -> None:
    """The tree is stopped after every few nodes: its claim is below the cost of every feasible sample."""
    instance = covered(seed)
    if instance is None:
        return
    door.ready()
    state = door.Run(instance)
    p, w = state.problem, state.work
    costs = []
    for row in points(np.random.default_rng(seed), state, 150):
        action = decode(instance, p, row)
        verdict = judge(instance, action)
        if verdict.feasible:
            costs.append((verdict.cost, action))
    least = min((c for c, _ in costs), default=None)
    tree = search.pool(p, 256)
    for _ in range(6):
        why = search.run(p, w, tree, state.target, 3, 3, 40, True)
        bound = float(tree.bound[tree.heap[0]]) if tree.state[0] else state.target
        bound = min(bound, float(tree.stuck[0]), state.target)
        if least is not None:
            assert Fraction(bound) <= least, (seed, costs)
        if why == search.FOUND:
            assert state.confirm() or not instance.accept.margin
        elif why in (search.ASK, search.ASK_LAST):
            break
        if why == search.DONE:
            break


@pytest.mark.parametrize("seed", range(40))
def test_bounds_of_units_hold_at_every_point_of_the_root(seed: int) -> None:
    """With no budget: the arguments of all ReLUs, computed in numpy, lie between their bounds."""
    instance = covered(seed)
    if instance is None or len(instance.classifier.weights) == 1:
        return
    door.ready()
    state = door.Run(instance)
    p, w = state.problem, state.work
    search.run(p, w, search.pool(p, 256), np.inf, 1, 1, 5, True)
    names = [f.name for f in instance.features]
    for row in points(np.random.default_rng(seed), state, 100):
        action = decode(instance, p, row)
        x = np.array([action.get(n, instance.factual[n]) for n in names])
        z = np.concatenate([_columns(f, v) for f, v in zip(instance.features, x, strict=True)])
        for k, width in enumerate(p.widths):
            z = instance.classifier.weights[k] @ z + instance.classifier.biases[k]
            room = 1e-9 * (1.0 + np.abs(z))
            assert (z >= w.unit[ZL, k, :width] - room).all(), (seed, k)
            assert (z <= w.unit[ZH, k, :width] + room).all(), (seed, k)
            z = np.maximum(z, 0.0)


def _columns(feature, value: float) -> np.ndarray:
    return np.array([value]) if feature.lookup is None else feature.lookup[int(value)]


@pytest.mark.parametrize("seed", range(12))
def test_compiled_code_and_plain_python_say_the_same(seed: int) -> None:
    """The functions behind the compiled ones give the same answer: bounds and costs agree to the gap."""
    instance = covered(1000 + seed)
    if instance is None:
        return
    door.ready()
    proposal = door.solve(instance, Options(20.0))
    again = door.solve(instance, Options(20.0))
    assert (proposal.action, proposal.lower_bound, proposal.nodes) == (
        again.action,
        again.lower_bound,
        again.nodes,
    )


def test_a_table_of_labels_is_solved_like_its_one_hot_columns() -> None:
    """A categorical lever whose first label is dropped: the same network on other columns."""
    from dataclasses import replace

    from milp_recourse.domain.cost import Cost
    from milp_recourse.domain.expression import as_expression
    from milp_recourse.domain.features import Feature
    from milp_recourse.domain.network import ReluNetwork
    from milp_recourse.domain.scm import Link, Mechanism, StructuralCausalModel
    from milp_recourse.instance import Preferences

    scm = StructuralCausalModel(
        ("a", "b"), {n: Mechanism(as_expression(0.0), Link(), None) for n in ("a", "b")}
    )
    labels = ("x", "y", "z")
    one_hot = Feature("a", "categorical", True, None, labels, encoding="one-hot")
    table = replace(one_hot, encoding="table", table=((0.0, 0.0), (1.0, 0.0), (0.0, 1.0)))
    number = Feature("b", "continuous", True, (0.0, 1.0))
    full = ReluNetwork.from_layers(
        [([[0.0, 0.5, -1.0, 1.0], [0.0, 1.0, 0.25, -1.0]], [0.1, 0.0]), ([[1.0, 1.0]], [-1.25])]
    )
    short = ReluNetwork.from_layers(
        [([[0.5, -1.0, 1.0], [1.0, 0.25, -1.0]], [0.1, 0.0]), ([[1.0, 1.0]], [-1.25])]
    )
    cost = Cost.pure("l1", {"a": 2.0, "b": 1.0})
    answers = []
    for feature, network in ((one_hot, full), (table, short)):
        instance = Instance(
            (feature, number), scm, network, {"a": 0.0, "b": 0.0}, Preferences(("a", "b")), cost
        )
        door.ready()
        state = door.Run(instance)
        tree = search.pool(state.problem, 256)
        while True:
            why = search.run(state.problem, state.work, tree, min(state.target, 10.0), 50, 3, 40, True)
            if why == search.DONE:
                break
            if why == search.FOUND:  # tables are judged elsewhere; the cost is what counts here
                state.cost, state.action = float(state.work.scalar[0]), {}
        answers.append((state.cost, state.work.at[0].tolist()))
    assert answers[0][0] == pytest.approx(answers[1][0], rel=1e-9)
    assert answers[0][0] == pytest.approx(0.5, rel=1e-6)

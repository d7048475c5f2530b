"""What the compiled engine proves of a node holds at every point of it: sampled, and judged exactly."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from milp_recourse.engine.networks import propose, search
from milp_recourse.engine.networks.causes import NotCovered
from milp_recourse.engine.networks.lever_arrays import ACTED, IDLE
from milp_recourse.engine.networks.problem_arrays import case, decode, impossible, lower
from milp_recourse.errors import Unsupported
from milp_recourse.judge import judge
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.expression import as_expression
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scm import Link, Mechanism, StructuralCausalModel
from milp_recourse.solvers.protocol import Options
from tests.helpers.engine_alone import solve_alone
from tests.helpers.generators import Style, random_instance

CAUSES = Style(levers=4, curves=False, gamma=False, plausible=0.5)
STYLES = (
    Style(causes=False, levers=4, plausible=0.0, depth=3),
    Style(causes=False, levers=5, plausible=0.0, depth=2, width=8),
    Style(causes=False, levers=3, plausible=0.0, discrete=False),
    CAUSES,
    CAUSES,
)


def covered(seed: int) -> Instance | None:
    """The problem of a seed, where the compiled engine covers it."""
    instance = random_instance(seed, STYLES[seed % len(STYLES)])
    if not instance.levers or impossible(instance, instance.scm.features):
        return None
    try:
        lower(instance)
    except (NotCovered, Unsupported):
        return None
    return instance


def python(function: Any) -> Any:
    """A compiled function as Python: most have no entry from here."""
    return getattr(function, "py_func", function)


def points(rng: np.random.Generator, state: propose.Run, size: int, c: int = 0) -> np.ndarray:
    """Random coordinates of a configuration's root box, some levers at rest."""
    p = python(case)(state.problem, c)
    rows = np.zeros((size, len(p.lever)))
    for i in range(len(p.lever)):
        if p.lever[i].label:
            labels = np.flatnonzero(p.allowed[p.start[i] : p.start[i + 1]])
            rows[:, i] = rng.choice(labels, size)
        else:
            low, high = p.box[i].lo, p.box[i].hi
            rows[:, i] = (low + (high - low) * rng.random(size)) * (rng.random(size) < 0.8)
            if p.box[i].mode == ACTED:
                rows[:, i] = np.clip(rows[:, i], low, high)
            if p.box[i].mode == IDLE:
                rows[:, i] = 0.0
    return rows


@pytest.mark.parametrize("seed", range(36))
def test_no_feasible_action_is_cheaper_than_the_least_open_bound(seed: int) -> None:
    """The tree is stopped after every few nodes: its claim is below the cost of every feasible sample."""
    instance = covered(seed)
    if instance is None:
        return
    propose.ready()
    state = propose.Run(instance)
    p = state.problem
    costs = []
    for c in range(len(p.box)):
        for row in points(np.random.default_rng(seed), state, 150 // len(p.box), c):
            action = decode(instance, p.lever, p.acts[c], p.ends, row)
            verdict = judge(instance, action)
            if verdict.feasible:
                costs.append((verdict.cost, action))
    least = min((c for c, _ in costs), default=None)
    tree = state.tree
    for _ in range(6):
        why = state.examine(3)
        if why == search.ASK:  # a node that is one point has left the tree and waits for its judgement
            break
        state.confirm()
        assert state.refused is None or not instance.accept.margin
        assert state.target <= python(search.target_of)(state.work)  # which nodes are closed against
        counted = float(state.work.now.best_cost)  # the exact cost, but for rounding
        assert counted == state.least or math.isclose(counted, state.least, rel_tol=2.0**-48)
        bound = float(tree.bound[tree.heap[0]]) if tree.now.open else state.target
        bound = min(bound, float(tree.stuck[0]), state.target)
        if least is not None:
            assert Fraction(bound) <= least, (seed, costs)
        if why == search.DONE:
            break


@pytest.mark.parametrize("seed", range(36))
def test_bounds_of_units_hold_at_every_point_of_the_root(seed: int) -> None:
    """With no budget: the arguments of all ReLUs, computed in numpy, lie between their bounds, wherever it
    is plausible."""
    instance = covered(seed)
    if instance is None or len(instance.classifier.weights) == 1:
        return
    propose.ready()
    state = propose.Run(instance)
    state.examine(1)
    p, w = state.problem, state.work
    names, c = [f.name for f in instance.features], int(w.now.case)
    for row in points(np.random.default_rng(seed), state, 100, c):
        action = decode(instance, p.lever, p.acts[c], p.ends, row)
        verdict = judge(instance, action)
        if any("plausible" in fault or "domain" in fault for fault in verdict.faults):
            continue
        x = np.array([verdict.counterfactual[n] for n in names])
        z = np.concatenate([_columns(f, v) for f, v in zip(instance.features, x, strict=True)])
        for k, width in enumerate(p.widths[1:], start=1):
            z = instance.classifier.weights[k - 1] @ z + instance.classifier.biases[k - 1]
            room = 1e-9 * (1.0 + np.abs(z))
            assert (z >= w.unit.low[k, :width] - room).all(), (seed, k)
            assert (z <= w.unit.high[k, :width] + room).all(), (seed, k)
            z = np.maximum(z, 0.0)


def _columns(feature, value: float) -> np.ndarray:
    return np.array([value]) if feature.lookup is None else feature.lookup[int(value)]


def test_a_node_s_bound_is_below_what_a_linear_program_finds_in_it() -> None:
    """Random boxes, l1: HiGHS minimises over the linear piece around a random point, a part of the node."""
    compared = 0
    for seed in range(60):
        claim, found = _claimed_and_found(seed)
        compared += found < math.inf
        assert claim <= found * (1 + 1e-7) + 1e-9, (seed, claim, found)
    assert compared >= 12, compared


def _claimed_and_found(seed: int) -> tuple[float, float]:
    """The bound of a random node, and the least cost in a part of it; inf where nothing is accepted there."""
    style = Style(levers=4, curves=False, discrete=False, gamma=False, plausible=0.0)
    instance = random_instance(seed, style)
    instance = replace(instance, cost=Cost.pure("l1", dict.fromkeys(instance.preferences.actionable, 1.0)))
    if not instance.levers or impossible(instance, instance.scm.features):
        return 0.0, math.inf
    propose.ready()
    rng = np.random.default_rng(seed)
    state = propose.Run(instance)
    p = state.problem
    c = int(rng.integers(len(p.box)))
    for k in range(len(p.box)):  # a part of one root; the others empty
        box = p.box[k]
        low, high = box["lo"].copy(), box["hi"].copy()
        ends = np.sort(rng.random((2, len(low))), axis=0)
        box["lo"], box["hi"] = low + ends[0] * (high - low), low + ends[1] * (high - low)
        if k != c:
            p.base[k] = 1e6
    p.box[c]["mode"] = np.where(p.box[c]["mode"] == IDLE, IDLE, ACTED)
    state.examine(1)
    tree, claim = state.tree, python(search.target_of)(state.work)
    opened = [tree.bound[tree.heap[h]] for h in range(tree.now.open) if tree.case[tree.heap[h]] == c]
    claim = min([claim, float(tree.stuck[0]), *opened])
    found = _least_of_a_piece(instance, state, c, rng)
    return claim, math.inf if found is None else found


def _least_of_a_piece(
    instance: Instance, state: propose.Run, c: int, rng: np.random.Generator
) -> float | None:
    """The least l1 cost in the linear piece around a random point of the box, by HiGHS; None where nothing
    is accepted."""
    p = state.problem
    held = p.box[c]["mode"] != IDLE
    names, lever, box = np.array(list(instance.levers))[held].tolist(), p.lever[held], p.box[c][held]
    low, high = (lever["factual"] + lever["unit"] * box[end] for end in ("lo", "hi"))
    features = [f.name for f in instance.features]

    def counterfactual(values: np.ndarray) -> np.ndarray:
        action = np.full(len(features), np.nan)
        action[[features.index(n) for n in names]] = values
        return instance.scm.counterfactual(instance.factual_row, action)

    centre = low + (high - low) * rng.random(len(low))
    step = 1e-5 * np.maximum(high - low, 1e-3)
    slopes = [(counterfactual(centre + h) - counterfactual(centre - h)) / 2 for h in np.diag(step)]
    jacobian = np.array(slopes).T / step if names else np.zeros((len(features), 0))
    corners = low + (high - low) * rng.integers(0, 2, (64, len(low)))
    for corner in corners:  # a structural ReLU that bends inside would make more pieces
        if not np.allclose(
            counterfactual(corner), counterfactual(centre) + jacobian @ (corner - centre), atol=1e-9
        ):
            return None
    value, slope = counterfactual(centre), jacobian
    rows, sides = [], []
    for f, v, s in zip(instance.features, value, slope, strict=True):
        if f.domain is not None:
            rows += [s, -s]
            sides += [f.domain[1] - v, v - f.domain[0]]
    for weight, bias in zip(instance.classifier.weights, instance.classifier.biases, strict=True):
        value, slope = weight @ value + bias, weight @ slope
        if len(value) > 1 or weight is not instance.classifier.weights[-1]:
            sign = np.where(value > 0, 1.0, -1.0)
            rows += list(-sign[:, None] * slope)
            sides += list(sign * value)
            value, slope = np.maximum(value, 0.0), slope * (value > 0)[:, None]
    rows.append(-slope[0])
    sides.append(value[0] - instance.accept.threshold - instance.accept.margin)
    d = len(names)
    weights = np.array([instance.weight(n) for n in names])
    # variables: the change from the centre, and what each lever is moved by in all
    away = np.vstack([np.hstack([s * np.eye(d), -np.eye(d)]) for s in (1.0, -1.0)])
    limits = np.concatenate([-s * (centre - lever["factual"]) for s in (1.0, -1.0)])
    table = np.vstack([np.hstack([np.array(rows), np.zeros((len(rows), d))]), away])
    ends = [*zip(low - centre, high - centre, strict=True), *[(0, None)] * d]
    if not d:
        return None
    found = linprog(
        np.concatenate([np.zeros(d), weights]), table, np.concatenate([sides, limits]), bounds=ends
    )
    return float(found.fun) if found.status == 0 else None


@pytest.mark.parametrize("seed", range(12))
def test_the_same_question_gets_the_same_answer(seed: int) -> None:
    """To the last bit, and after as many nodes: random numbers start anew for everybody."""
    instance = covered(1000 + seed)
    if instance is None:
        return
    propose.ready()
    proposal = solve_alone(instance, Options(5.0))
    again = solve_alone(instance, Options(5.0))
    assert proposal.message is not None or (proposal.action, proposal.lower_bound, proposal.nodes) == (
        again.action,
        again.lower_bound,
        again.nodes,
    )


def test_a_table_of_labels_is_solved_like_its_one_hot_columns() -> None:
    """A categorical lever whose first label is dropped: the same network on other columns."""
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
        propose.ready()
        state = propose.Run(instance)
        while state.examine(50) != search.DONE:  # tables are judged elsewhere; the cost is what counts here
            pass
        answers.append((float(state.work.now.best_cost), state.work.points.best.tolist()))
    assert answers[0][0] == pytest.approx(answers[1][0], rel=1e-9)
    assert answers[0][0] == pytest.approx(0.5, rel=1e-6)


def test_whole_numbers_are_as_cheap_as_enumeration_says() -> None:
    """Whole-numbered levers of wide ranges: a lever may only be cut by what the bound itself rests on.

    The least cost between two whole values is below the least at whole values, which the bound is made of.
    """
    propose.ready()
    rng = np.random.default_rng(5)
    tried = 0
    for _ in range(20):
        tops = [400.0, 8.0, 5.0, 3.0, 2.0]
        d = len(tops)
        names = tuple(f"n{k}" for k in range(d))
        features = tuple(Feature(n, "integer", True, (0.0, t)) for n, t in zip(names, tops, strict=True))
        scm = StructuralCausalModel(names, {n: Mechanism(as_expression(0.0), Link(), None) for n in names})
        width = np.array(tops)
        sizes = [d, 8, 6, 1]
        layers = [(rng.normal(size=(n, m)), 0.2 * rng.normal(size=n)) for m, n in pairwise(sizes)]
        layers[0] = (layers[0][0] / width, layers[0][1])
        network = ReluNetwork.from_layers(layers)
        grid = np.stack(np.meshgrid(*(np.arange(t + 1) for t in tops), indexing="ij"), -1).reshape(-1, d)
        logits = network.evaluate(grid)[:, 0]
        need = float(np.quantile(logits, rng.choice([0.6, 0.8, 0.95])))
        kind = str(rng.choice(["l2-squared", "l1", "linf"]))
        weights = {n: float(rng.choice([0.5, 1.0, 3.7])) for n in names}
        instance = Instance(
            features,
            scm,
            network,
            dict.fromkeys(names, 0.0),
            Preferences(names, weights),
            Cost.pure(kind, dict(zip(names, tops, strict=True))),
            Acceptance(need, 0.0),
        )
        size = np.abs(grid) / width * np.array(list(weights.values()))
        costs = {
            "l1": size.sum(axis=1),
            "linf": size.max(axis=1),
            "l2-squared": (size * np.abs(grid) / width).sum(axis=1),
        }[kind]
        room = 1e-9 * (1 + abs(need))
        clear = logits >= need + room
        if not clear.any() or (abs(logits - need) < room).any():
            continue
        tried += 1
        proposal = solve_alone(instance, Options(30.0))
        assert proposal.message is None and proposal.action is not None
        assert proposal.lower_bound <= costs[clear].min() * (1 + 1e-12)
        cost = float(judge(instance, proposal.action).cost)
        assert cost == pytest.approx(costs[clear].min(), rel=2e-6)
    assert tried >= 8


def test_trading_one_whole_number_for_another_is_exact() -> None:
    """One lever of many steps, two of few, a linear logit: for all values of two, the least of the first."""
    propose.ready()
    rng = np.random.default_rng(11)
    tops, names = np.array([99999.0, 73.0, 98.0]), ("a", "b", "c")
    features = tuple(Feature(n, "integer", True, (0.0, t)) for n, t in zip(names, tops.tolist(), strict=True))
    scm = StructuralCausalModel(names, {n: Mechanism(as_expression(0.0), Link(), None) for n in names})
    b, c = (v.ravel() for v in np.meshgrid(np.arange(74.0), np.arange(99.0)))
    for _ in range(200):
        slope = rng.uniform(0.2, 2.0, 3) * np.array([1.0, *rng.choice([0.05, 0.3, 1.0], 2)])
        need = 0.03 + 0.1 * rng.random()
        both = np.vstack([slope, -slope]) / tops
        network = ReluNetwork.from_layers([(both, [0.0, 0.0]), ([[1.0, -1.0]], [0.0])])
        instance = Instance(
            features,
            scm,
            network,
            dict.fromkeys(names, 0.0),
            Preferences(names),
            Cost.pure("l2-squared", dict(zip(names, tops.tolist(), strict=True))),
            Acceptance(need, 0.0),
        )
        rest = np.maximum(need - slope[1] * b / tops[1] - slope[2] * c / tops[2], 0.0)
        a = np.ceil(rest * tops[0] / slope[0])
        costs = (a / tops[0]) ** 2 + (b / tops[1]) ** 2 + (c / tops[2]) ** 2
        costs[a > tops[0]] = np.inf
        k = int(costs.argmin())
        assert judge(instance, {"a": float(a[k]), "b": float(b[k]), "c": float(c[k])}).feasible
        state = propose.Run(instance)
        state.work.now.ceiling = float(costs[k]) * (
            1 + 1e-5
        )  # the optimum just meets it: it may not be cut off
        while (why := state.examine(100)) == search.MORE:
            pass
        assert why == search.ASK or state.work.now.best_cost < np.inf, why

"""Bounds of the engine against points: nothing true is ever cut off.

Every check is a function that returns how far a claim is broken (at most 0: it holds), and is shown to
notice a claim that is a little too strong.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from milp_recourse.engine import evaluate
from milp_recourse.engine.contract import contract, forms, least_cost, linear_form
from milp_recourse.engine.dual import halfspace
from milp_recourse.engine.kernel import ball_of, costs_of, examine, paid
from milp_recourse.engine.node_problem import Ball, solve
from milp_recourse.engine.nodes import Nodes
from milp_recourse.engine.relaxation import (
    Budget,
    Relaxed,
    adaptive,
    logit_line,
    relax,
    slopes_at,
    within_budget,
)
from milp_recourse.engine.units import Signs, unit_forms
from milp_recourse.judge import judge
from tests.engine.samples import Sample, costs_far, samples, targets

Array = np.ndarray

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

SAMPLES = samples(
    int(os.environ.get("MILP_RECOURSE_CASES", "60")), int(os.environ.get("MILP_RECOURSE_FIRST", "0"))
)
HAIR = 1e-12  # for what is computed here in floats, relative to the sizes of its terms


def at(form: Array, sample: Sample) -> Array:
    """Forms (d + 1, h, B) at the points, (h, P)."""
    own = form[:, :, sample.node]
    return own[-1] + (own[:-1] * sample.points[:, None]).sum(axis=0)


def size_at(form: Array, sample: Sample) -> Array:
    own = abs(form[:, :, sample.node])
    return own[-1] + (own[:-1] * abs(sample.points[:, None])).sum(axis=0)


def worst(broken: Array, which: Array | None = None) -> float:
    """The largest entry among the points counted; -inf without any."""
    broken = broken if which is None else broken[..., which]
    return float(np.max(broken)) if broken.size else -np.inf


def everything(sample: Sample) -> Array:
    """A target above every cost."""
    return np.full(sample.low.shape[1], costs_far(sample.stack))


def relaxed_of(
    sample: Sample, target: Array, signs: Array | None = None, cut: Array | None = None
) -> Relaxed:
    given = None if signs is None else Signs(signs)
    return relax(
        sample.stack,
        sample.low,
        sample.high,
        sample.who,
        sample.node_errors,
        given,
        budget_of(sample, target, cut),
    )


def budget_of(sample: Sample, target: Array, cut: Array | None = None) -> Budget:
    """The target cost, alone unless a cut is given."""
    return Budget(sample.costs, target, no_cut(sample) if cut is None else cut)


def no_cut(sample: Sample) -> Array:
    return np.zeros((sample.low.shape[0] + 1, sample.low.shape[1]))


# -- the samples ---------------------------------------------------------------------------


def test_the_samples_are_worth_having() -> None:
    """All units, depths, kinds of cost and constraint; points in their boxes; cheap feasible ones."""
    seen = Counter(function for s in SAMPLES for function, _ in s.stack.units)
    assert all(seen[f] >= 5 for f in ("relu", "log", "logit", "square", "sigmoid", "indicator")), seen
    assert {len(s.stack.weights) for s in SAMPLES} == {0, 1, 2, 3}
    assert sum(s.feasible.any() for s in SAMPLES) >= 30
    assert sum(s.stack.plausible for s in SAMPLES) >= 30
    assert sum(s.stack.rows.shape[0] > 0 for s in SAMPLES) >= 10
    for term in ("kappa", "beta", "omega", "jump"):
        assert sum((getattr(s.stack, term) > 0).any() for s in SAMPLES) >= 3, term
    for s in SAMPLES:
        assert (s.low[:, s.node] <= s.points).all() and (s.points <= s.high[:, s.node]).all()


def test_values_costs_and_feasibility_are_the_judges() -> None:
    """The points' values come from ``evaluate``: exact judgement agrees, down to who is feasible."""
    rng = np.random.default_rng(0)
    sure = 0
    for s in SAMPLES:
        nearly = evaluate.feasibility(s.stack, s.points, s.owner, s.errors[-1][s.owner])[1]
        person, tape = s.people.members[s.k][0]
        good = rng.permutation(np.flatnonzero(s.feasible))[:4]
        for j in (*good, *rng.integers(len(s.node), size=3)):
            action = tape.program.decode(s.points[:, j])
            verdict = judge(s.people.instances[person], action)
            if s.feasible[j]:
                assert not verdict.faults
            if verdict.feasible:
                assert nearly[j]
            if all(v != s.stack.factual[i, 0] for i, v in enumerate(s.points[:, j])):
                assert s.price[j] == pytest.approx(float(verdict.cost), rel=1e-12)
            if verdict.logit is not None:
                error = 10 * s.errors[-1][0] + 1e-11 * abs(float(verdict.logit.midpoint))
                assert float(verdict.logit.midpoint) == pytest.approx(
                    s.arguments[-1][0, j], abs=error, rel=1e-9
                )
        sure += len(good)
    assert sure >= 100


# -- units ---------------------------------------------------------------------------------


def units_broken(sample: Sample, shift: float = 0.0) -> float:
    u = unit_forms(sample.stack, sample.low, sample.high, sample.who)
    if not u.count:
        return -np.inf
    hair = HAIR * (u.size[:, sample.node] + size_at(u.upper, sample) + size_at(u.lower, sample))
    below, above = at(u.lower, sample), at(u.upper, sample)
    shrink = shift * (1e-6 + above - below)
    values, y = sample.units, sample.unit_arguments
    indicator = np.array([f == "indicator" for f, _ in sample.stack.units])[:, None]
    y_hair = HAIR * (1 + abs(y)) + np.where(indicator, 1e-6, 0.0)
    return max(
        worst(below + shrink - values - hair),
        worst(values - (above - shrink) - hair),
        worst(u.low[:, sample.node] - y - y_hair),
        worst(y - u.high[:, sample.node] - y_hair),
        worst(at(u.arguments[0], sample) - y - hair - y_hair),
        worst(y - at(u.arguments[1], sample) - hair - y_hair),
    )


def test_unit_forms_contain_the_units() -> None:
    """Values, arguments and their forms."""
    for s in SAMPLES:
        assert units_broken(s) <= 0
    assert sum(units_broken(s, 0.05) > 0 for s in SAMPLES) >= 30, "the check notices nothing"


def test_unit_forms_contain_the_values_on_the_side_of_their_signs() -> None:
    """A split ReLU's line need only hold where it has that sign."""
    rng = np.random.default_rng(1)
    split = 0
    for s in SAMPLES:
        signs, same = s.signs(rng)
        u = unit_forms(s.stack, s.low, s.high, s.who, Signs(signs))
        if not u.count:
            continue
        hair = HAIR * (u.size[:, s.node] + size_at(u.upper, s) + size_at(u.lower, s))
        assert worst(at(u.lower, s) - s.units - hair, same) <= 0
        assert worst(s.units - at(u.upper, s) - hair, same) <= 0
        split += int((abs(signs[0]) - 1 < u.count)[signs[0] != 0].sum())
    assert split >= 20


# -- layers and lines ----------------------------------------------------------------------


def layers_broken(sample: Sample, relaxed: Relaxed, which: Array, shift: float = 0.0) -> float:
    result = -np.inf
    for layer, y in zip(relaxed.layers, sample.arguments, strict=False):
        low, high = layer.low[:, sample.node], layer.high[:, sample.node]
        tight = shift * (1e-6 + high - low)
        result = max(result, worst(low + tight - y, which), worst(y - high + tight, which))
        on = np.maximum(y, 0.0)
        chord = layer.chord[:, sample.node] * y + layer.intercept[:, sample.node]
        result = max(result, worst(on - chord - HAIR * (1 + abs(y)) - HAIR * abs(chord), which))
        if layer.upper is not None and layer.lower is not None:
            hair = HAIR * (size_at(layer.lower, sample) + size_at(layer.upper, sample))
            hair = hair + 2 * max(float(e[0]) for e in sample.errors)
            result = max(result, worst(at(layer.lower, sample) - y - hair, which))
            result = max(result, worst(y - at(layer.upper, sample) - hair, which))
    return result


def test_layers_contain_the_arguments() -> None:
    """Intervals without any tolerance; forms and chords to rounding."""
    noticed = 0
    for s in SAMPLES:
        relaxed = relaxed_of(s, everything(s))
        anyone = np.ones(len(s.node), dtype=bool)
        assert layers_broken(s, relaxed, anyone) <= 0
        noticed += layers_broken(s, relaxed, anyone, 0.02) > 0
    assert noticed >= 50


def test_layers_contain_the_arguments_of_what_the_target_pays_for() -> None:
    """With a low target the intervals may lose dearer points, and only those."""
    rng = np.random.default_rng(2)
    lost = 0
    for s in SAMPLES:
        target = targets(s, rng)
        relaxed = relaxed_of(s, target)
        cheap = s.price <= target[s.node] * (1 - 1e-15)
        assert layers_broken(s, relaxed, cheap) <= 0
        lost += layers_broken(s, relaxed, ~cheap) > 0
    assert lost >= 5, "the target never cut anything"


def test_layers_contain_the_arguments_on_the_side_of_their_signs() -> None:
    """Split ReLUs of units and layers."""
    rng = np.random.default_rng(3)
    lost = 0
    for s in SAMPLES:
        signs, same = s.signs(rng)
        relaxed = relaxed_of(s, everything(s), signs)
        assert layers_broken(s, relaxed, same) <= 0
        lost += layers_broken(s, relaxed, ~same) > 0
    assert lost >= 20, "signs never cut anything"


def line_broken(sample: Sample, relaxed: Relaxed, alphas: list[Array], which: Array, shift: float = 0.0):
    slope, offset, _ = logit_line(relaxed, alphas, relaxed.errors[-1])
    line = np.concatenate([slope, offset[None]])[:, None]
    above = at(line, sample)[0]
    truth = sample.arguments[-1][0]
    return worst(truth - above + shift * abs(above - truth) - HAIR * size_at(line, sample)[0], which)


@pytest.mark.parametrize("kind", ["adaptive", "at the points", "random", "signs", "target"])
def test_the_line_is_above_the_logit(kind: str) -> None:
    """Whatever the lower slopes."""
    rng = np.random.default_rng(4)
    noticed = 0
    for s in SAMPLES:
        which, signs, target = np.ones(len(s.node), dtype=bool), None, everything(s)
        if kind == "signs":
            signs, which = s.signs(rng)
        if kind == "target":
            target = targets(s, rng)
            which = s.price <= target[s.node] * (1 - 1e-15)
        relaxed = relaxed_of(s, target, signs)
        alphas = [adaptive(layer) for layer in relaxed.layers]
        if kind == "at the points":
            chosen = [rng.choice(np.flatnonzero(s.node == b)) for b in range(s.low.shape[1])]
            alphas = slopes_at(relaxed, s.points[:, chosen])
        if kind == "random":
            alphas = [
                np.where(
                    (layer.low < 0) & (layer.high > 0), rng.random(layer.low.shape), (layer.low >= 0) * 1.0
                )
                for layer in relaxed.layers
            ]
        assert line_broken(s, relaxed, alphas, which) <= 0
        noticed += line_broken(s, relaxed, alphas, which, 1.5) > 0
    assert noticed >= 30


@pytest.mark.parametrize("cutting", [False, True])
def test_within_budget_holds_for_what_the_target_pays_for(cutting: bool) -> None:
    """Random forms, both sides; with a random cut through a point, for what is not cut off."""
    rng = np.random.default_rng(5)
    noticed = [0, 0]
    tighter = 0
    for s in SAMPLES:
        d, batch = s.low.shape
        target = targets(s, rng)
        budget = budget_of(s, target)
        form = rng.normal(size=(d + 1, 1, batch)) * 10 ** rng.uniform(-3, 3, (1, 1, batch))
        cheap = s.price <= target[s.node] * (1 - 1e-15)
        if cutting:
            chosen = [rng.choice(np.flatnonzero(s.node == b)) for b in range(batch)]
            slope = rng.normal(size=(d, batch)) * 10 ** rng.uniform(-3, 3, (1, batch))
            offset = -(slope * s.points[:, chosen]).sum(axis=0)
            budget = budget_of(s, target, np.concatenate([slope, offset[None]]))
            row = budget.cut[:, None]
            cheap &= at(row, s)[0] >= 1e-14 * size_at(row, s)[0]
        hair = 1e-15 * size_at(form, s)[0]
        for side, sign in enumerate((1.0, -1.0)):
            limit = within_budget(form[:, 0], sign, s.low, s.high, budget)
            plain = within_budget(form[:, 0], sign, s.low, s.high, budget_of(s, target))
            tighter += (sign * (plain - limit) > 0.01 * abs(plain)).any()
            beyond = sign * (at(form, s)[0] - limit[s.node]) - hair
            assert worst(beyond, cheap) <= 0
            smaller = limit - sign * 1e-3 * abs(limit)
            noticed[side] += worst(sign * (at(form, s)[0] - smaller[s.node]), cheap) > 0
            noticed[side] += worst(beyond, ~cheap) > 0
    assert min(noticed) >= 20
    assert tighter >= 20 or not cutting


# -- boxes and costs -----------------------------------------------------------------------


def inside(low: Array, high: Array, sample: Sample) -> Array:
    """Which points are in their boxes."""
    return ((low[:, sample.node] <= sample.points) & (sample.points <= high[:, sample.node])).all(axis=0)


def test_contraction_keeps_what_is_feasible_and_within_the_target() -> None:
    """And loses something."""
    rng = np.random.default_rng(6)
    shrunk = lost = 0
    for s in SAMPLES:
        target = targets(s, rng)
        low, high = contract(s.stack, s.costs, s.low, s.high, s.who, target)
        wanted = s.feasible & (s.price <= target[s.node] * (1 - 1e-15))
        assert inside(low, high, s)[wanted].all()
        shrunk += ((low > s.low) | (high < s.high)).any()
        width = 0.02 * (high - low)
        lost += not inside(low + width, high - width, s)[wanted].all()
    assert shrunk >= 40 and lost >= 15


def test_the_least_cost_is_exactly_below_every_points_cost() -> None:
    """To the last digit: in rational numbers."""
    for s in SAMPLES:
        least = least_cost(s.costs, s.low, s.high)
        person, tape = s.people.members[s.k][0]
        cheapest = [np.flatnonzero(s.node == b) for b in range(s.low.shape[1])]
        for b, where in enumerate(cheapest):
            j = where[np.argmin(s.price[where])]
            if all(v != s.stack.factual[i, 0] for i, v in enumerate(s.points[:, j])):
                exact = judge(s.people.instances[person], tape.program.decode(s.points[:, j])).cost
                assert Fraction(float(least[b])) <= exact
            assert least[b] <= s.price[j]


def test_half_spaces_never_cost_more_than_a_point_in_them() -> None:
    """Any row that a point of the box satisfies, the tight ones above all."""
    rng = np.random.default_rng(7)
    noticed = 0
    for s in SAMPLES:
        d, batch = s.low.shape
        for kind in ("through a point", "random"):
            slope = rng.normal(size=(d, batch)) * 10 ** rng.uniform(-6, 6, (1, batch))
            chosen = [rng.choice(np.flatnonzero(s.node == b)) for b in range(batch)]
            offset = -(slope * s.points[:, chosen]).sum(axis=0)
            if kind == "random":
                offset = rng.normal(size=batch)
            bound, _, multiplier = halfspace(s.costs, s.low, s.high, slope, offset)
            row = np.concatenate([slope, offset[None]])[:, None]
            holds = at(row, s)[0] >= 0
            assert worst(bound[s.node] - s.price * (1 + 1e-15), holds) <= 0
            assert (multiplier >= 0).all()
            noticed += worst(bound[s.node] * 1.01 + 1e-9 - s.price, holds) > 0
    assert noticed >= 20


def node_rows(sample: Sample, relaxed: Relaxed) -> tuple[Array, Ball | None]:
    """The line, and the ball if there is one."""
    slope, offset, _ = logit_line(relaxed, [adaptive(layer) for layer in relaxed.layers], relaxed.errors[-1])
    rows = np.concatenate([slope, (offset - sample.stack.threshold)[None]])[:, None]
    if not sample.stack.plausible:
        return rows, None
    return rows, ball_of(sample.stack, relaxed)


def test_node_problems_never_cost_more_than_a_feasible_point_whose_neighbourhood_survives() -> None:
    """The dual value, and the ball of radius sqrt((target - bound) / kappa) around its minimiser."""
    rng = np.random.default_rng(8)
    noticed = cut = solved = every = tight = 0
    for s in SAMPLES:
        target = targets(s, rng)
        rows, ball = node_rows(s, relaxed_of(s, target))
        found = solve(s.costs, s.low, s.high, rows, ball, target)
        wanted = s.feasible & (s.price <= target[s.node])
        number = ~np.isnan(found.bound[s.node])
        assert worst(found.bound[s.node] - s.price * (1 + 1e-15), wanted & number) <= 0
        noticed += worst(found.bound[s.node] * 1.01 + 1e-9 - s.price, wanted & number) > 0
        assert ((s.low <= found.point) & (found.point <= s.high) | np.isnan(found.point)).all()
        solved += number.sum()
        every += len(number)
        room = np.maximum(target - found.bound, 0.0)
        reach = np.sqrt(room / np.where(s.costs.kappa > 0, s.costs.kappa, np.nan))
        off = abs(s.points - found.centre[:, s.node]) - reach[:, s.node] * (1 + 1e-9) - 1e-12
        off = np.where(np.isnan(off), -np.inf, off)
        assert worst(off, wanted) <= 0
        cut += worst(off + 0.5 * np.nan_to_num(reach)[:, s.node], wanted) > 0
        row = found.cut[:, None]
        assert worst(-at(row, s)[0] - 1e-15 * size_at(row, s)[0], wanted & number) <= 0
        tight += worst(0.05 * size_at(row, s)[0] - at(row, s)[0], wanted & number) > 0
    assert noticed >= 10 and cut >= 3 and solved >= 0.99 * every and tight >= 10


def test_convex_rows_of_any_kind_bound_the_cost() -> None:
    """Random rows, several at once, also contradictory ones: a point that keeps them all costs the bound."""
    rng = np.random.default_rng(9)
    noticed = 0
    for s in SAMPLES:
        d, batch = s.low.shape
        chosen = [rng.choice(np.flatnonzero(s.node == b)) for b in range(batch)]
        rows = rng.normal(size=(d + 1, 4, batch)) * 10 ** rng.uniform(-4, 4, (1, 4, batch))
        rows[-1] = -(rows[:-1] * s.points[:, None, chosen]).sum(axis=0)
        found = solve(s.costs, s.low, s.high, rows, None, everything(s))
        holds = (at(rows, s) >= 0).all(axis=0)
        assert worst(found.bound[s.node] - s.price * (1 + 1e-15), holds & ~np.isnan(found.bound[s.node])) <= 0
        noticed += worst(found.bound[s.node] * 1.01 + 1e-9 - s.price, holds) > 0
    assert noticed >= 10


def test_forms_of_rows_and_residuals_contain_their_values() -> None:
    """What the ball and the domains are made of."""
    seen = 0
    for s in SAMPLES:
        u = unit_forms(s.stack, s.low, s.high, s.who)
        v = np.concatenate([s.points, s.units])
        pairs = [(s.stack.residuals, s.stack.residual_offset), (s.stack.rows, s.stack.row_offset)]
        for matrix, offset in pairs:
            if not len(matrix):
                continue
            lower, upper = forms(matrix, s.stack.actions, u, offset[:, s.who])
            truth = matrix @ v + offset[:, s.owner]
            hair = HAIR * (size_at(lower, s) + size_at(upper, s) + abs(matrix) @ abs(v))
            assert worst(at(lower, s) - truth - hair) <= 0
            assert worst(truth - at(upper, s) - hair) <= 0
            seen += 1
        if s.stack.plausible:
            form = linear_form(s.stack, u, s.who)[:, None]
            truth = s.stack.ball_linear @ v + s.stack.ball_offset[s.owner]
            hair = HAIR * (size_at(form, s)[0] + abs(s.stack.ball_linear) @ abs(v))
            assert worst(at(form, s)[0] - truth - hair) <= 0
    assert seen >= 50


# -- all stages ----------------------------------------------------------------------------


def nodes_of(sample: Sample, signs: Array, cut: Array | None = None, who: Array | None = None) -> Nodes:
    """The sample's boxes as nodes; nothing is cut off unless a cut is given."""
    cut, owner = no_cut(sample) if cut is None else cut, sample.who if who is None else who
    return Nodes(sample.low.copy(), sample.high.copy(), owner, np.zeros(len(owner)), signs, cut)


def kernel_broken(
    sample: Sample,
    target: Array,
    signs: Array,
    same: Array,
    raise_by: float,
    shrink: float,
    cut: Array | None = None,
):
    """Feasible points cheaper than the target that a batch loses, or bounds from above."""
    found = examine(sample.stack, sample.errors, nodes_of(sample, signs, cut), target)
    wanted = sample.feasible & same & (sample.price < target[sample.node])
    left = np.full(len(target), -1)
    left[found.index] = np.arange(len(found.index))
    single = set()
    if found.points is not None:
        single = {tuple(found.points.actions[:, j]) for j in range(found.points.actions.shape[1])}
    broken = 0
    for j in np.flatnonzero(wanted):
        b = left[sample.node[j]]
        a = sample.points[:, j]
        if b < 0:
            broken += tuple(a) not in single
            continue
        width = shrink * (found.high[:, b] - found.low[:, b])
        kept = (found.low[:, b] + width <= a).all() and (a <= found.high[:, b] - width).all()
        broken += not (kept and found.bound[b] + raise_by * target[sample.node[j]] <= sample.price[j])
    return broken, int(wanted.sum())


@pytest.mark.parametrize("split", [False, True])
def test_no_stage_of_the_kernel_loses_a_feasible_point_cheaper_than_the_target(split: bool) -> None:
    """Boxes, bounds and closed nodes, with signs and without."""
    rng = np.random.default_rng(10)
    wanted = higher = smaller = 0
    for s in SAMPLES:
        target = targets(s, rng)
        signs, same = s.signs(rng) if split else (np.zeros_like(s.signs(rng)[0]), np.ones_like(s.feasible))
        broken, count = kernel_broken(s, target, signs, same, 0.0, 0.0)
        assert broken == 0, s.people.instances[0].name
        wanted += count
        higher += kernel_broken(s, target, signs, same, 0.02, 0.0)[0] > 0
        smaller += kernel_broken(s, target, signs, same, 0.0, 0.02)[0] > 0
    assert wanted >= 1000 and higher >= 10 and smaller >= 10


def halves(sample: Sample, target: Array) -> tuple[Sample, Array, Array]:
    """What examining leaves of the boxes, halved, with the points in them: sample, targets and cuts."""
    found = examine(sample.stack, sample.errors, nodes_of(sample, no_signs(sample)), target)
    count = len(found.index)
    here, wide = np.arange(count), np.argmax(found.high - found.low, axis=0)
    middle = (found.low + found.high)[wide, here] / 2
    low, high = np.tile(found.low, 2), np.tile(found.high, 2)
    high[wide, here], low[wide, count + here] = middle, middle
    place = {int(b): k for k, b in enumerate(found.index)}
    points, node = [], []
    for b, point in zip(sample.node.tolist(), sample.points.T, strict=True):
        k = place.get(b)
        if k is None or (point < found.low[:, k]).any() or (point > found.high[:, k]).any():
            continue
        points.append(point)
        node.append(k + count * int(point[wide[k]] > middle[k]))
    inside = np.array(points).reshape(len(points), len(low)).T
    part = replace(sample, low=low, high=high, points=inside, node=np.array(node, dtype=np.int64))
    return part, np.tile(target[found.index], 2), np.tile(found.cut, 2)


def no_signs(sample: Sample) -> Array:
    return np.zeros((1, sample.low.shape[1]), dtype=np.int32)


def test_a_nodes_cut_loses_nothing_in_its_halves() -> None:
    """The cut of a node, which its children inherit, and the intervals it gives their ReLUs."""
    rng = np.random.default_rng(12)
    wanted = noticed = 0
    for s in SAMPLES:
        part, target, cut = halves(s, targets(s, rng))
        if not len(part.node):
            continue
        same = np.ones_like(part.feasible)
        broken, count = kernel_broken(part, target, no_signs(part), same, 0.0, 0.0, cut)
        assert broken == 0, s.people.instances[0].name
        wanted += count
        cheap = part.feasible & (part.price < target[part.node])
        assert layers_broken(part, relaxed_of(part, target, cut=cut), cheap) <= 0
        cut[-1] -= (abs(cut[:-1]) * (part.high - part.low)).sum(axis=0)
        noticed += layers_broken(part, relaxed_of(part, target, cut=cut), cheap) > 0
    assert wanted >= 500 and noticed >= 3, (wanted, noticed)


def test_paying_for_categories_never_costs_too_much() -> None:
    """Boxes without the factual category: the least cost with the change paid is still below the points'."""
    dearer = 0
    for s in SAMPLES:
        if not (s.stack.jump > 0).any() and not (s.stack.jump_largest > 0).any():
            continue
        costs, _ = paid(s.stack, s.costs, s.low, s.high, s.who)
        assert worst(least_cost(costs, s.low, s.high)[s.node] - s.price) <= 0
        dearer += (costs.fixed > s.costs.fixed).any()
    assert dearer >= 2


def test_several_applicants_of_a_stack_keep_to_themselves() -> None:
    """A batch whose columns belong to different applicants bounds each as if it were alone."""
    rng = np.random.default_rng(11)
    for s in SAMPLES[:30]:
        other = s.stack
        twin = replace(
            other,
            **{
                name: np.concatenate([getattr(other, name)] * 2, axis=-1)
                for name in ("unit_offset", "first_offset", "row_offset", "row_low")
                + ("row_high", "residual_offset", "ball_offset", "lower", "upper", "factual", "kappa")
                + ("beta", "omega", "jump", "jump_largest", "fixed")
            },
        )
        twin.factual[:, 0] += rng.random()  # the first is somebody else
        twin.first_offset[:, 0] -= 1.0
        ones = s.who + 1
        errors = [np.concatenate([e * 7, e]) for e in s.errors]
        signs = np.zeros((1, len(ones)), dtype=np.int32)
        target = targets(s, rng)
        mine = examine(s.stack, s.errors, nodes_of(s, signs), target)
        theirs = examine(twin, errors, nodes_of(s, signs, who=ones), target)
        np.testing.assert_array_equal(mine.index, theirs.index)
        np.testing.assert_allclose(mine.bound, theirs.bound, rtol=1e-9, atol=1e-12)
        assert costs_of(twin, ones).x == pytest.approx(s.costs.x)

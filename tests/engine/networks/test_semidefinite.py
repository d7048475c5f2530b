"""Semidefinite relaxations: what multipliers prove holds, whatever they are; trees over them agree."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from milp_recourse.engine.networks import propose, search, search_on, sign_tree, stages
from milp_recourse.engine.networks.problem_arrays import Problems, alone, lower, why_not
from milp_recourse.engine.networks.semidefinite import NONE, Multipliers, Relaxation, covers
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.options import LATE, Clock
from milp_recourse.problem.scm import independent
from tests.helpers.amounts import amounts
from tests.helpers.generators import Style, random_instance
from tests.helpers.large import large

STYLE = Style(causes=False, levers=5, depth=3, width=8, plausible=0.0, discrete=False)


SHAPES = (6, 3), (4, 6), (1, 4)

FAR = 1e300, 1e305, 1e306, 1e307, 1e308


def drawn(seeds: range) -> Iterator[tuple[int, Instance, Problems]]:
    """Random problems that have such relaxations, some with whole levers."""
    for seed in seeds:
        instance = amounts(seed, "l2-squared") if seed % 3 == 0 else random_instance(seed, STYLE)
        mixed = replace(instance.cost, l2_squared=1.0, l1=0.3 * (seed % 2), linf=0.0, l0=0.0, kind="mixture")
        instance = replace(instance, cost=mixed)
        if instance.levers and why_not(instance) is None and covers(p := lower(instance)):
            yield seed, instance, p


def logit(p: Problems, u: np.ndarray) -> tuple[float, list[np.ndarray]]:
    """The logit at coordinates, and all arguments."""
    z, arguments = p.first[0, 0, 1] @ u + p.offset[0, 0, 1], []
    for k in range(1, len(p.widths)):
        arguments.append(z)
        z = p.weights[k] @ np.maximum(z, 0.0) + p.biases[k]
    return float(z[0]), arguments


def node(p: Problems, rng: np.random.Generator, budget: float) -> tuple[np.ndarray, np.ndarray, float] | None:
    """What is known of a node with a few random signs, its box, and the room; None for an empty one."""
    known = np.zeros((3, *p.biases.shape))
    known[0], known[1] = -math.inf, math.inf
    for _ in range(int(rng.integers(0, 4))):
        k = int(rng.integers(1, len(p.widths)))
        j, side = int(rng.integers(p.widths[k])), int(rng.integers(1, 3))
        if known[2, k, j] == 0.0:
            known[side - 1, k, j], known[2, k, j] = 0.0, side
    with search.SPARE.lent(p) as (work, _):
        if search.bound_box(alone(p), work, known, budget, 1) == math.inf:
            return None
        bounds = np.stack([work.unit.low, work.unit.high, known[2]])
        return bounds, work.box.copy(), float(work.now.room)


def paid(
    p: Problems, known: np.ndarray, box: np.ndarray, budget: float, rng: np.random.Generator
) -> Iterator[tuple[float, float]]:
    """Logit and cost of random points of a node that its budget pays for."""
    for _ in range(300):
        low, high = p.box["lo"][0], p.box["hi"][0]
        u = (low + rng.random(len(low)) * (high - low)) * rng.random() ** 2
        grid, shift = p.lever["grid"], p.lever["shift"]
        steps = np.round((u - shift) / np.where(grid > 0.0, grid, 1.0)) * grid + shift
        u = np.where(grid > 0.0, steps, u)
        change = np.where(u > 0.0, u, -p.lever["down"] * u)
        cost = float(p.lever["linear"] @ change + p.lever["square"] @ change**2)
        value, arguments = logit(p, u)
        signs = [(known[2, k, : len(z)], z) for k, z in enumerate(arguments, start=1)]
        meets = all((((s != 1) | (z >= 0)) & ((s != 2) | (z <= 0))).all() for s, z in signs)
        if cost <= budget and meets and ((box["lo"] <= u) & (u <= box["hi"])).all():
            yield value, cost


def changed(relaxation: Relaxation, found: Multipliers, rng: np.random.Generator) -> Multipliers:
    """Other multipliers, some of them wildly."""
    far = float(rng.choice([0.01, 1.0]))

    def other(one: np.ndarray) -> np.ndarray:
        return one * np.exp(far * rng.normal(size=np.shape(one)))

    rows, capped = other(found.rows), relaxation.alphas
    rows[capped] = found.rows[capped] ** np.exp(far * rng.normal(size=rows[capped].shape))
    return Multipliers(other(found.products), found.budget * (1.0 + far * rng.random()), rows)


@pytest.mark.parametrize("seeds", [range(120), pytest.param(range(120, 900), marks=pytest.mark.long)])
def test_what_multipliers_prove_holds(seeds: range) -> None:
    """At points of the node that its budget pays for, for the best multipliers and for others, and with less
    of the budget; also with products of rows and steps around a point, for points on steps."""
    propose.ready()
    tried, proved, tight, products, gaps, count, nothing = 0, 0, 0, 0, 0, 0, 0
    for seed, _, p in drawn(seeds):
        rng = np.random.default_rng(seed)
        budget = float(p.ceiling) * rng.uniform(0.02, 0.6)
        made = node(p, rng, budget)
        if made is None:
            continue
        known, box, room = made
        points = list(paid(p, known, box, budget, rng))
        most = max((value for value, _ in points), default=0.0)
        seen = None
        for _ in range(3):
            pairs, point = (NONE, None) if seen is None else (seen.pairs, seen.point)
            relaxation = Relaxation(p, box, known, budget, room, pairs, point)
            found = relaxation.guess(most, 0.2, seen and seen.earlier)
            if found is None:
                break
            seen = relaxation.seen(found)
            others = (changed(relaxation, found.multipliers, rng) for _ in range(4))
            tops = [relaxation.proven(one) for one in (found.multipliers, *others)]
            nothing += tops[0][0] == math.inf
            count += 1
            proved += sum(top < math.inf for top, _ in tops[1:])
            products += relaxation.paired.stop - relaxation.paired.start
            gaps += len(relaxation.left) - relaxation.paired.stop
            for value, cost in points:
                assert all(value <= top - rate * (budget - cost) * (1.0 - 1e-9) for top, rate in tops)
            tried += len(points)
            tight += len(points) > 0 and tops[0][0] - most < 0.5 * (room + p.need_low - most)
    assert tried > 1000 and proved > 20 and tight >= 3 and products > 100, (tried, proved, tight, products)
    assert gaps > 50, gaps
    assert nothing <= 0.03 * count


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_far_out_prove_nothing_and_raise_nothing() -> None:
    """Budgets, rooms and multipliers that overflow, vanish or are no numbers."""
    propose.ready()
    guesses = 0
    for seed, _, p in drawn(range(300, 330)):
        made = node(p, np.random.default_rng(seed), 0.3 * float(p.ceiling))
        for room in (0.0, 1e-300, 1e300, math.inf, made[2]) if made else ():
            for budget in (1e-12, 1e-3, 0.3 * float(p.ceiling), 1e12):
                relaxation = Relaxation(p, made[1], made[0], budget, room)
                found = relaxation.guess(0.0, 0.2)
                guesses += found is not None
                for by in (0.0, math.inf, math.nan, -1.0, 1e-308, *FAR) if found else ():
                    for name in Multipliers._fields:
                        best = found.multipliers
                        other = best._replace(**{name: getattr(best, name) * by})
                        assert not math.isnan(relaxation.proven(other)[0])
    assert guesses > 50


def test_the_tree_alone_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """With nearly all nodes the tree's, the answers are those of the search's own nodes; also within parts of
    the budget, which it begins with unless its root proves half, or nearly all, of it."""
    closed, fixed, whole = 0, [0], sign_tree.SignTree._fixed
    parts, within = [0], sign_tree.SignTree._within

    def counted(*given: Any) -> Any:
        fixed[0] += 1
        return whole(*given)

    def in_part(self: sign_tree.SignTree) -> Any:
        parts[0] += self.part < self.state.target
        return within(self)

    monkeypatch.setattr(sign_tree.SignTree, "_fixed", counted)
    monkeypatch.setattr(sign_tree.SignTree, "_within", in_part)
    for seed, instance, _ in drawn(range(2000, 2045)):
        alone_, bound_alone, _ = searched(instance)
        with monkeypatch.context() as changed_:
            changed_.setattr(search_on, "first_slice", lambda p, few: (4, -1))
            changed_.setattr(search_on, "STAGES_FROM", 0.0)
            changed_.setattr(stages, "TELL", 0)
            changed_.setattr(stages.Stages, "go_on", lambda self: None)
            changed_.setattr(sign_tree, "BEHIND", 0.9 if seed % 2 else 0.5)
            changed_.setattr(sign_tree, "SHARE", 1e9)
            changed_.setattr(sign_tree, "MOST", 1e9)
            state, bound, message = searched(instance)
        mine, theirs = state.best.cost, alone_.best.cost
        assert message is None and (mine == math.inf) == (theirs == math.inf)
        if mine < math.inf:
            assert bound <= theirs and bound_alone <= mine
            assert bound >= mine - instance.gap_tolerance(mine)
            closed += state.bound < state.target
    assert closed > 5 and fixed[0] > 5 and parts[0] > 5, (closed, fixed, parts)


def searched(instance: Instance) -> tuple[propose.Run, float, str | None]:
    """A search until its proof."""
    state = propose.Run(instance)
    return state, *search_on.search_on(state)


@pytest.mark.long
def test_the_bound_moves_where_lines_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wide network and many levers: after the same number of the search's nodes, a larger share
    of the cost is proven than by stages."""
    instance = large(0, 64, 2, 16)
    instance = replace(instance, cost=Cost.pure("l2-squared", dict.fromkeys(instance.factual, 1.0)))

    def share() -> float:
        state = propose.Run(instance)
        bound, _ = search_on.search_on(state, enough=lambda: int(state.tree.now.examined) > 2000)
        return bound / state.best.cost

    with_tree = share()
    monkeypatch.setattr("milp_recourse.engine.networks.semidefinite.MOST_VARIABLES", 0)
    assert with_tree > share() + 0.05


def test_only_costs_with_squares_are_covered() -> None:
    """Not costs without squares, nor very many levers."""
    instance = large(0, 32, 2, 8)
    squares = replace(instance, cost=Cost.pure("l2-squared", dict.fromkeys(instance.factual, 1.0)))
    assert covers(lower(squares)) and not covers(
        lower(replace(instance, cost=Cost.pure("l1", dict.fromkeys(instance.factual, 1.0))))
    )
    wide = large(0, 320, 2, 8)
    assert not covers(lower(replace(wide, cost=Cost.pure("l2-squared", dict.fromkeys(wide.factual, 1.0)))))


def test_a_search_learns_that_nothing_is_to_be_done() -> None:
    """The deployed model may refuse a factual that is accepted exactly. What a search from a node found so
    was not learnt, and searches were repeated until the number of their nodes overflowed."""
    propose.ready()
    _, instance, p = next(drawn(range(2000, 2045)))
    state = propose.Run(replace(instance, accept=replace(instance.accept, threshold=-1e6)))
    assert state.offer({name: ends[0] for name, ends in instance.levers.items()}) and state.least > 0.0
    other = state.another(state.least)
    other.refused, other.least = {}, 0.0
    state.learn(other, state.least)
    assert state.least == 0.0
    state, _, _ = searched(instance)
    tree = sign_tree.SignTree(state)
    _, _, root = tree.open.pop()
    tree._search(root._replace(tried=2**62), 0.0)
    assert tree._lever(root, np.full(len(p.lever), math.nan))[0] == -1


def test_a_tree_with_nothing_to_split_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where relaxations find nothing, longer and longer searches go on from the root. Once no time was left,
    they went on for ever, as each examined nothing."""
    propose.ready()
    instance = large(0, 32, 2, 16)
    instance = replace(instance, cost=Cost.pure("l2-squared", dict.fromkeys(instance.factual, 1.0)))
    monkeypatch.setattr(Relaxation, "guess", lambda *given: None)
    node(lower(instance), np.random.default_rng(0), 1.0)  # what this compiles takes seconds
    state = propose.Run(instance)
    calls, whole = [0], sign_tree.SignTree._search

    def counted(*given: Any) -> None:
        calls[0] += 1
        assert calls[0] < 1000
        whole(*given)

    monkeypatch.setattr(sign_tree.SignTree, "_search", counted)
    _, message = search_on.search_on(state, Clock.start(1.0))
    assert message == LATE and calls[0] > 1


def test_what_is_watched_waits_for_the_judgement() -> None:
    """Rounding leaves open whether a point on the threshold is accepted. The bound that was watched was above
    its cost until it was judged."""
    propose.ready()
    asked = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        names = "f0", "f1", "f2"
        layers = [(np.round(4 * rng.normal(size=s)) / 4, rng.integers(-4, 5, s[0]) / 4) for s in SHAPES]
        network = ReluNetwork.from_layers(layers)
        rows = rng.integers(-4, 5, (200, 3)).astype(float)
        needed = float(np.sort(network.evaluate(rows)[:, 0])[150])
        if needed <= network.evaluate(np.zeros((1, 3)))[0, 0]:
            continue
        instance = Instance(
            tuple(Feature(name, "integer", True, (-4.0, 4.0)) for name in names),
            independent(names),
            network,
            dict.fromkeys(names, 0.0),
            Preferences(names),
            Cost.pure("l2-squared", dict.fromkeys(names, 1.0)),
            Acceptance(needed, 0.0),
        )
        state, watched = propose.Run(instance), [0.0]
        search_on.search_on(state, watch=lambda _, bound, watched=watched: watched.append(bound))
        assert len(watched) > 1 and max(watched) <= state.best.cost
        asked += 1
    assert asked > 20

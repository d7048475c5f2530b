"""Bounds of random programs contain what is sampled; contraction drops nothing worth having."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from milp_recourse.bounds.contract import atom_ranges, contract, least_cost
from milp_recourse.bounds.program import hull, program_bounds
from milp_recourse.bounds.shave import shave
from milp_recourse.bounds.tape import Tape
from milp_recourse.domain.cost import Cost
from milp_recourse.domain.enclosure import Enclosure
from milp_recourse.domain.features import Feature
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.domain.noise import Gamma
from milp_recourse.domain.scm import Mechanism, StructuralCausalModel, independent
from milp_recourse.instance import Instance, Preferences
from milp_recourse.program import Switch, lower
from milp_recourse.program.model import Elementary
from tests.helpers.generators import Style, supported_instance

SEEDS = range(120)
STYLE = Style(levers=4, depth=4, plausible=0.6)


@cache
def drawn(seed: int) -> tuple[Instance, list[Tape]]:
    """A random problem and the tapes of its configurations that have actions."""
    instance = supported_instance(seed, STYLE)
    program = lower(instance)
    return instance, [Tape(program.fix(c)) for c in program.configurations() if c]


def boxes(tape: Tape, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The whole box, a point, and random boxes in it; whole numbers where asked."""
    d = len(tape.lower)
    ends = np.sort(rng.random((2, count, d)), axis=0) * rng.choice([1.0, 1e-3], (1, count, 1))
    low, high = (tape.lower + e * (tape.upper - tape.lower) for e in ends)
    low[0], high[0] = tape.lower, tape.upper
    high[1] = low[1]
    whole = tape.integral
    low[:, whole], high[:, whole] = np.floor(low[:, whole]), np.ceil(high[:, whole])
    return low, high


def points(tape: Tape, low: np.ndarray, high: np.ndarray, rng: np.random.Generator, count: int) -> np.ndarray:
    """Random points of a box (d,), corners among them."""
    share = rng.random((count, len(low)))
    share[: count // 3] = np.round(share[: count // 3])
    a = np.clip(low + share * (high - low), low, high)
    a[:, tape.integral] = np.clip(np.round(a[:, tape.integral]), low[tape.integral], high[tape.integral])
    return a


def evaluated(tape: Tape, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The points where every logarithm and logit has a value (others are implausible), and their atoms."""
    with np.errstate(all="ignore"):
        v = tape.evaluate(a)
    kept = has_density(tape, v)
    return a[kept], v[kept]


def has_density(tape: Tape, v: np.ndarray) -> np.ndarray:
    good = np.isfinite(v).all(axis=1)
    v = np.nan_to_num(v, nan=0.0, posinf=0.0, neginf=0.0)
    for _, unit, row, offset in tape.units:
        x = v @ row[0] + offset[0]
        if unit.function in ("log", "logit"):
            good &= (x > 2e-9) & (x < 1 - 2e-9 if unit.function == "logit" else True)
    return good


def logits_at(tape: Tape, v: np.ndarray) -> np.ndarray:
    """The network's own evaluation of its columns, for atom values (n, atoms)."""
    matrix, offset = tape.dense(tape.program.columns)
    return tape.network.scores(v @ matrix.T + offset)


def costs_at(tape: Tape, v: np.ndarray) -> np.ndarray:
    """The program's cost of acting on all of its features, term by term."""
    c, terms = tape.program.cost, tape.program.cost_terms
    matrix, offset = tape.dense([term.delta for term in terms])
    weights, scales = (np.array([float(getattr(t, part)) for t in terms]) for part in ("weight", "scale"))
    steps = np.abs(v @ matrix.T + offset) / scales
    sums = (
        float(c.l2_squared) * steps**2 @ weights + float(c.l1) * steps @ weights + float(c.l0) * weights.sum()
    )
    return sums + float(c.linf) * (weights * steps).max(axis=1, initial=0.0)


def in_ball_at(tape: Tape, v: np.ndarray) -> np.ndarray:
    """Whether the program's ball, if it has one, holds."""
    ball = tape.program.ball
    if ball is None:
        return np.ones(len(v), dtype=bool)
    matrix, offset = tape.dense([ball.linear, *(form for _, form in ball.squares)])
    linear, *residuals = (v @ matrix.T + offset).T
    return linear + sum(float(w) * r**2 for (w, _), r in zip(ball.squares, residuals, strict=True)) <= 0


def inside(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> bool:
    slack = 1e-10 * (1 + np.abs(values))
    return bool(((values >= low - slack) & (values <= high + slack)).all())


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_contain_sampled_values(seed: int) -> None:
    """Atoms, unit arguments, hidden units, logit and its linear upper bound, on random boxes."""
    _, tapes = drawn(seed)
    rng = np.random.default_rng(seed)
    for tape in tapes:
        low, high = boxes(tape, rng, 5)
        bounds = tape.bounds(low, high)
        for b in range(len(low)):
            a = points(tape, low[b], high[b], rng, 60)
            a, v = evaluated(tape, a)
            assert inside(v, bounds.atoms_low[b], bounds.atoms_high[b])
            for k, _, row, offset in tape.units:
                x = v @ row[0] + offset[0]
                assert inside(x, bounds.arguments_low[b, k], bounds.arguments_high[b, k])
            z = v @ tape.first.T + tape.first_offset
            for layer, (l, h) in enumerate(zip(bounds.hidden_low, bounds.hidden_high, strict=True)):
                assert inside(z, l[b], h[b])
                z = np.maximum(z, 0.0) @ tape.weights[layer + 1].T + tape.biases[layer + 1]
            assert inside(z[:, 0], bounds.logit_low[b], bounds.logit_high[b])
            assert inside(z[:, 0], -np.inf, a @ bounds.slope[b] + bounds.offset[b])


@pytest.mark.parametrize("seed", SEEDS)
def test_bounds_handed_down_stay_bounds_and_never_loosen(seed: int) -> None:
    """A child box with its parent's bounds: contains the samples and lies inside the parent's."""
    _, tapes = drawn(seed)
    rng = np.random.default_rng(seed)
    for tape in tapes[:2]:
        low, high = boxes(tape, rng, 3)
        parent = tape.bounds(low[:1], high[:1])
        child = tape.bounds(low[2:3], high[2:3], parent)
        for l, h, pl, ph in zip(
            child.hidden_low, child.hidden_high, parent.hidden_low, parent.hidden_high, strict=True
        ):
            assert (l >= pl).all()
            assert (h <= np.maximum(ph, l)).all()
        a = points(tape, low[2], high[2], rng, 60)
        a, v = evaluated(tape, a)
        assert inside(logits_at(tape, v), child.logit_low[0], child.logit_high[0])


@pytest.mark.parametrize("seed", SEEDS)
def test_interval_ranges_contain_sampled_atoms(seed: int) -> None:
    """The cheap propagation behind contraction."""
    _, tapes = drawn(seed)
    rng = np.random.default_rng(seed)
    for tape in tapes:
        low, high = boxes(tape, rng, 4)
        al, ah = atom_ranges(tape, low, high)
        for b in range(len(low)):
            _, v = evaluated(tape, points(tape, low[b], high[b], rng, 40))
            assert inside(v, al[b], ah[b])


@pytest.mark.parametrize("seed", SEEDS)
def test_contraction_keeps_every_feasible_point_below_the_cutoff(seed: int) -> None:
    """Cost, ball and whole numbers: points that meet them stay in the box, to the last of many samples."""
    _, tapes = drawn(seed)
    rng = np.random.default_rng(seed)
    for tape in tapes:
        low, high = boxes(tape, rng, 5)
        a = np.concatenate([points(tape, l, h, rng, 80) for l, h in zip(low, high, strict=True)])
        with np.errstate(all="ignore"):
            v = tape.evaluate(a)
        good = has_density(tape, v)
        v = np.where(good[:, None], v, 0.0)
        cost = costs_at(tape, v)
        good &= in_ball_at(tape, v)
        cutoffs = [np.inf, *np.quantile(cost, [0.05, 0.5])]
        for cutoff in cutoffs:
            new_low, new_high = contract(tape, low, high, float(cutoff))
            assert (new_low >= low).all()
            assert (new_high <= high).all()
            for b in range(len(low)):
                mine = slice(80 * b, 80 * (b + 1))
                kept = a[mine][good[mine] & (cost[mine] <= cutoff)]
                assert ((kept >= new_low[b]) & (kept <= new_high[b])).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_least_cost_of_a_box_is_not_above_any_point_of_it(seed: int) -> None:
    """For every cost and kind of feature."""
    _, tapes = drawn(seed)
    rng = np.random.default_rng(seed)
    for tape in tapes:
        low, high = boxes(tape, rng, 5)
        least = least_cost(tape, low, high)
        for b in range(len(low)):
            _, v = evaluated(tape, points(tape, low[b], high[b], rng, 60))
            cost = costs_at(tape, v)
            assert (least[b] <= cost + 1e-12).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_hull_contains_every_configuration(seed: int) -> None:
    """Atoms, arguments, branches and hidden units of the open program, whatever is acted on."""
    instance, _ = drawn(seed)
    program = lower(instance)
    around = hull(program)
    assert around is not None
    rng = np.random.default_rng(seed)
    for acted in program.configurations():
        fixed = program.fix(acted, prune=False)
        tape = Tape(fixed)
        a = points(tape, tape.lower, tape.upper, rng, 30) if acted else np.zeros((1, 0))
        a, v = evaluated(tape, a)
        _, forms = program.substitution(acted)
        matrix, offset = tape.dense(forms)
        old = v @ matrix.T + offset
        for k, atom in enumerate(program.atoms):
            if isinstance(atom, Elementary):
                m, o = tape.dense([atom.argument.substitute(forms)])
                assert inside(v @ m.T + o, *around.arguments[k])
            if isinstance(atom, Switch):
                assert inside(old[:, k], *around.branches[k][0 if atom.feature in acted else 1])
            if not (hasattr(atom, "feature") and atom.feature not in acted and not isinstance(atom, Switch)):
                assert inside(old[:, k], *around.atoms[k])
        z = v @ tape.first.T + tape.first_offset
        for layer, limits in enumerate(around.hidden):
            assert inside(z, limits[:, 0], limits[:, 1])
            z = np.maximum(z, 0.0) @ tape.weights[layer + 1].T + tape.biases[layer + 1]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_bound_of_the_hull_is_finite(seed: int) -> None:
    """Encodings take them as they are: a branch that no configuration takes has a range too."""
    instance, _ = drawn(seed)
    around = hull(lower(instance))
    assert around is not None
    assert np.isfinite(around.atoms).all()
    assert all(np.isfinite(pair).all() for pair in around.branches.values())
    assert all(np.isfinite(h).all() for h in around.hidden)


def test_a_threshold_that_is_only_just_touched_is_not_excluded() -> None:
    """0.1 a - 0.1 k at a = k: rounding must not push the bound below the exact value."""
    for k in range(1, 60):
        instance = Instance(
            (Feature("a", actionable=True, bounds=(0.0, float(k))),),
            independent(("a",)),
            ReluNetwork.from_layers([([[0.1]], [-0.1 * k])]),
            {"a": 0.0},
            Preferences(("a",)),
            Cost.pure("l1", {"a": 1.0}),
        )
        tape = Tape(lower(instance).fix(frozenset({"a"})))
        low = np.array([[k * share] for share in (0.0, 0.3, 0.9, 0.99999, 1.0)])
        bounds = tape.bounds(low, np.full_like(low, k))
        exact = float(instance.classifier.enclose([Enclosure.of(k)])[0].upper)
        assert (bounds.logit_high >= exact).all()


@pytest.mark.parametrize("digits", range(9, 17))
def test_sums_that_cancel_keep_what_is_accepted(digits: int) -> None:
    """An input of 10^k that the bias cancels leaves float64 few digits: bounds must widen, not lie."""
    rng = np.random.default_rng(digits)
    w, x = 10.0 ** (digits / 2) * (1 + rng.random(2))
    bias = -(w * x)
    needed = float(-(Fraction(w) * Fraction(x) + Fraction(bias)))
    network = ReluNetwork.from_layers([([[w, 1.0], [w, -1.0]], [bias, bias]), ([[1.0, -1.0]], [0.0])])
    features = Feature("t"), Feature("a", actionable=True, bounds=(needed - 2, needed + 2))
    instance = Instance(
        features,
        independent(("t", "a")),
        network,
        {"t": x, "a": 0.0},
        Preferences(("a",)),
        Cost.pure("l1", {"a": 1.0}),
    )
    tape = Tape(lower(instance).fix(frozenset({"a"})))
    assert tape.first_offset.tolist() == [-needed, -needed]
    for a in needed + np.array([-1.0, -1e-3, 0.0, 1e-3, 1.0]):
        bounds = tape.bounds(np.array([[a]]), np.array([[a]]))
        exact = network.enclose([Enclosure.of(x), Enclosure.of(a)])[0].lower
        assert Fraction(bounds.logit_low[0]) <= exact <= Fraction(bounds.logit_high[0])
        assert exact <= Fraction(bounds.slope[0, 0]) * Fraction(a) + Fraction(bounds.offset[0])


def test_hidden_bounds_hold_where_the_terms_of_one_neuron_cancel() -> None:
    """1e8 a - 1e8 b - c with a and b almost equal: every pre-activation stays inside its bounds, exactly."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        a, b, c = rng.normal(size=3)
        b = a + 1e-8 * b
        weight = [[1e8 * rng.random(), -1e8, -c], [1e8, -1e8 * rng.random(), c]]
        network = ReluNetwork.from_layers(
            [(weight, [c, -c]), (rng.normal(size=(2, 2)), [c, c]), ([[1, 1]], [0])]
        )
        names = ("a", "b", "c")
        instance = Instance(
            tuple(Feature(n, actionable=True, bounds=(-9.0, 9.0)) for n in names),
            independent(names),
            network,
            dict.fromkeys(names, 0.0),
            Preferences(names),
            Cost.pure("l1", dict.fromkeys(names, 1.0)),
        )
        tape = Tape(lower(instance).fix(frozenset(names)))
        point = np.array([[a, b, c]])
        bounds = tape.bounds(point, point)
        z = [Enclosure.of(v) for v in (a, b, c)]
        for k, (low, high) in enumerate(zip(bounds.hidden_low, bounds.hidden_high, strict=True)):
            layer = ReluNetwork((network.weights[k],), (network.biases[k],))
            z = list(layer.enclose(z))
            for v, l, h in zip(z, low[0], high[0], strict=True):
                assert Fraction(l) <= v.lower <= Fraction(h)
            z = [v.relu() for v in z]


def test_nan_closes_no_box() -> None:
    """Where numbers overflow nothing is known, so nothing is cut off."""
    _, tapes = drawn(0)
    for tape in tapes:
        low, high = np.full(len(tape.lower), -1.7e308), np.full(len(tape.lower), 1.7e308)
        with np.errstate(all="ignore"):
            shaved = shave(tape, low, high, np.inf)
        assert not (shaved[0] > shaved[1]).any()


@pytest.mark.parametrize("seed", SEEDS)
def test_encodings_never_see_a_logarithm_of_what_is_not_positive(seed: int) -> None:
    """The slack that bounds are widened by stays inside the domain of log and logit."""
    instance, tapes = drawn(seed)
    program = lower(instance)
    around = hull(program)
    assert around is not None
    seen = [
        (atom.function, around.arguments[k])
        for k, atom in enumerate(program.atoms)
        if isinstance(atom, Elementary)
    ]
    for tape in tapes:
        wide = program_bounds(tape, tape.bounds(tape.lower[None], tape.upper[None]))
        seen += [(unit.function, wide.arguments[k]) for k, unit, *_ in tape.units]
    for function, (low, high) in seen:
        assert low <= high
        assert function not in ("log", "logit") or low > 0
        assert function != "logit" or high < 1


def test_a_box_that_breaks_a_ball_without_squares_is_empty() -> None:
    """Gamma noise alone: the ball is linear in a logarithm, and there is no residual to shrink."""
    scm = StructuralCausalModel(("a",), {"a": Mechanism(noise=Gamma(2.0, 1.0))})
    network = ReluNetwork.from_layers([([[-1.0]], [0.0])])
    levers = Preferences(("a",))
    feature = Feature("a", actionable=True, bounds=(-0.2, 0.09))
    instance = Instance((feature,), scm, network, {"a": 0.7}, levers, Cost.pure("l0", {}), plausible=True)
    tape = Tape(lower(instance).fix(frozenset({"a"})))
    assert tape.program.ball.squares == ()
    low, high = contract(tape, tape.lower[None], tape.upper[None], np.inf)
    assert (low > high).any()
    likelier = np.array([[0.5]]), np.array([[0.9]])  # the density rises up to 1
    assert (contract(tape, *likelier, np.inf)[0] <= contract(tape, *likelier, np.inf)[1]).all()


def test_a_tape_needs_its_cost_terms_in_the_actions_order() -> None:
    """Contraction and splitting take column k of the box to be term k."""
    tape = next(t for _, tapes in map(drawn, SEEDS) for t in tapes if len(t.actions) > 1)
    turned = replace(tape.program, cost_terms=tape.program.cost_terms[::-1])
    with pytest.raises(TypeError, match="order"):
        Tape(turned)

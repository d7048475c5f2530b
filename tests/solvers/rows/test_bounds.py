"""Bounds of random programs contain every feasible action that is cheap enough, and intervals contain all."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from milp_recourse import Status, solve
from milp_recourse.engine.box_bounds import EngineBox
from milp_recourse.judge import judge
from milp_recourse.problem.cost import Cost, Distance
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.noise import Gamma
from milp_recourse.problem.scm import Mechanism, StructuralCausalModel, independent
from milp_recourse.program import Switch, lower
from milp_recourse.program.forms import Action, Elementary
from milp_recourse.program.functions import evaluate
from milp_recourse.program.neutral_program import Program
from milp_recourse.solvers.rows.bounds import Configuration, ProgramBounds, hull
from tests.helpers.cost_kinds import with_falls
from tests.helpers.generators import Style, supported_instance, with_percentile_cost

SEEDS = range(18)
STYLE = Style(levers=4, depth=4, plausible=0.6)


@cache
def drawn(seed: int) -> tuple[Instance, list[Configuration]]:
    """A random problem and its configurations that have actions. Some logits are asked for that about half of
    all rows have, so that samples are feasible; some costs are in percentiles."""
    instance = supported_instance(seed, STYLE)
    if seed % 4 == 0:
        instance = with_percentile_cost(seed, instance)
    elif instance.cost.uses_scale and seed % 4 == 1:  # falls cheaper, or dearer, than rises
        own = {n: (5.0 if seed % 8 == 1 else 0.3) * m.rise for n, m in instance.cost.measures.items()}
        numeric = [n for n in own if instance.by_name[n].kind != "categorical"]
        instance = replace(instance, cost=with_falls(instance.cost, {n: own[n] for n in numeric}))
    rows = np.array([[instance.factual[f.name] for f in instance.features]])
    [[logit]] = instance.classifier.evaluate(instance.model_rows(rows))
    instance = replace(instance, accept=Acceptance(float(logit) - 0.5 * (seed % 3), 0.0))
    program = lower(instance)
    return instance, [Configuration(instance, program.fix(c)) for c in program.configurations() if c]


def boxes(part: Configuration, rng: np.random.Generator, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The whole box, and random boxes in it; whole numbers where asked."""
    made = [(part.lower, part.upper)]
    for _ in range(count):
        ends = np.sort(rng.random((2, len(part.lower))), axis=0)
        low, high = (part.lower + e * (part.upper - part.lower) for e in ends)
        low, high = (np.where(part.integral, f(v), v) for f, v in ((np.floor, low), (np.ceil, high)))
        made.append((low, high))
    return made


def points(
    part: Configuration, low: np.ndarray, high: np.ndarray, rng: np.random.Generator, count: int
) -> np.ndarray:
    """Random points of a box, corners among them."""
    share = rng.random((count, len(low)))
    share[: count // 3] = np.round(share[: count // 3])
    a = np.clip(low + share * (high - low), low, high)
    whole = part.integral
    a[:, whole] = np.clip(np.round(a[:, whole]), low[whole], high[whole])
    return a


def values_at(program: Program, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every atom, and what each elementary one is applied to, (atoms,), by the program's own forms."""
    atoms, arguments, given = np.zeros(len(program.atoms)), np.full(len(program.atoms), np.nan), iter(a)
    for k, atom in enumerate(program.atoms):
        if isinstance(atom, Action):
            atoms[k] = next(given)
        elif isinstance(atom, Elementary):
            arguments[k] = form_at(atom.argument, atoms)
            with np.errstate(all="ignore"):
                atoms[k] = evaluate(atom.function, arguments[k], atom.level)
    return atoms, arguments


def form_at(form, atoms: np.ndarray) -> float:
    return float(form.constant) + sum(float(c) * atoms[k] for k, c in form.terms.items())


def hidden_at(program: Program, atoms: np.ndarray) -> list[np.ndarray]:
    """The arguments of the hidden units."""
    z, layers = np.array([form_at(form, atoms) for form in program.columns]), []
    for weight, bias in zip(program.classifier.weights[:-1], program.classifier.biases[:-1], strict=True):
        layers.append(weight @ z + bias)
        z = np.maximum(layers[-1], 0.0)
    return layers


def inside(values: np.ndarray, ends: np.ndarray) -> bool:
    slack = 1e-9 * (1 + np.abs(values))
    return bool(((values >= ends[..., 0] - slack) & (values <= ends[..., 1] + slack)).all())


def contained(part: Configuration, a: np.ndarray, bounds: ProgramBounds) -> bool:
    """Whether everything that an action makes of the program lies in its bounds."""
    atoms, arguments = values_at(part.program, a)
    known = ~np.isnan(bounds.arguments[:, 0])
    if not (np.isfinite(atoms).all() and inside(atoms, bounds.atoms)):
        return False
    if not inside(arguments[known], bounds.arguments[known]):
        return False
    return all(inside(z, ends) for z, ends in zip(hidden_at(part.program, atoms), bounds.hidden, strict=True))


def test_no_feasible_action_below_the_target_is_lost() -> None:
    """Box, least cost, atoms, arguments and hidden units, with and without a target and known bounds."""
    feasible = closed = 0
    for seed in SEEDS:
        instance, parts = drawn(seed)
        rng = np.random.default_rng(seed)
        for part in parts[:4]:
            known = None
            for low, high in boxes(part, rng, 3):
                samples = []
                for a in points(part, low, high, rng, 25):
                    verdict = judge(instance, part.program.decode(a))
                    if verdict.feasible:
                        samples.append((a, float(verdict.cost)))
                costs = sorted(cost for _, cost in samples)
                middle = costs[len(costs) // 2 : len(costs) // 2 + 1]
                for target in (np.inf, *(cost * (1 + 1e-12) for cost in middle)):
                    found = part.bound(low, high, target, known)
                    cheap = [(a, cost) for a, cost in samples if cost < target]
                    feasible += len(cheap)
                    if found is None:
                        closed += 1
                        assert not cheap, (seed, target)
                        continue
                    for a, cost in cheap:
                        assert (a >= found.low - 1e-9).all() and (a <= found.high + 1e-9).all(), seed
                        assert found.least <= cost * (1 + 1e-12)
                        assert contained(part, a, found.bounds), seed
                    if known is None and target == np.inf:  # those of the whole box, for the boxes in it
                        known = found.bounds
    assert feasible > 750 and closed > 20


@pytest.mark.parametrize("seed", SEEDS)
def test_intervals_contain_everything(seed: int) -> None:
    """Whatever is feasible or not; but where a logarithm has no value the density is zero."""
    _, parts = drawn(seed)
    rng = np.random.default_rng(seed)
    for part in parts[:4]:
        bounds = part.intervals()
        for a in points(part, part.lower, part.upper, rng, 20):
            _, arguments = values_at(part.program, a)
            curves = [
                (e.function, arguments[k])
                for k, e in enumerate(part.program.atoms)
                if isinstance(e, Elementary)
            ]
            if all(x > 2e-9 and (f == "log" or x < 1 - 2e-9) for f, x in curves if f in ("log", "logit")):
                assert contained(part, a, bounds)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_engine_is_nowhere_looser_than_intervals(seed: int) -> None:
    """Children's bounds lie in their parents', and all in what intervals say."""
    _, parts = drawn(seed)
    rng = np.random.default_rng(seed)
    for part in parts[:4]:
        around, whole = part.intervals(), part.whole()
        if whole is None:
            continue
        [_, (low, high)] = boxes(part, rng, 1)
        child = part.bound(low, high, np.inf, whole.bounds)
        pairs = [(whole.bounds, around), *([] if child is None else [(child.bounds, whole.bounds)])]
        for inner, outer in pairs:
            for a, b in zip(inner.hidden, outer.hidden, strict=True):
                room = 1e-8 * (1 + np.abs(b).sum(axis=1))
                assert (a[:, 0] >= b[:, 0] - room).all() and (a[:, 1] <= b[:, 1] + room).all()


def test_bounds_within_the_cost_are_tighter() -> None:
    """What a cheap action can do to a unit is less than what any action can."""
    tighter = total = 0
    for seed in range(36):
        instance = supported_instance(seed, STYLE)
        result = solve(instance, "bab", 5.0)
        if not result.cost:
            continue
        program = lower(instance)
        for acted in program.configurations():
            part = Configuration(instance, program.fix(acted))
            plain, cut = (part.whole(t) if acted else None for t in (np.inf, result.cost * 1.01))
            if plain is not None and cut is not None and plain.bounds.hidden:
                total += 1
                tighter += cut.bounds.unstable < plain.bounds.unstable
    assert total >= 8 and tighter >= total // 4, (tighter, total)


def open_program(
    seed: int, target: float | None
) -> tuple[Instance, list[Configuration], Program, ProgramBounds]:
    """A random problem, its configurations, and its program with switches open, with bounds."""
    instance, parts = drawn(seed)
    program = lower(instance)
    around = hull(instance, program, target)
    assert around is not None
    return instance, parts, program, around


@pytest.mark.parametrize("target", [None, np.inf])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_hull_contains_every_feasible_action(seed: int, target: float | None) -> None:
    """Atoms, arguments, branches and hidden units of the open program, whatever is acted on; all finite. By
    intervals alone, and by the engine's bounds."""
    instance, _, program, around = open_program(seed, target)
    assert np.isfinite(around.atoms).all()
    assert all(np.isfinite(pair).all() for pair in around.branches.values())
    assert all(np.isfinite(h).all() for h in around.hidden)
    rng = np.random.default_rng(seed)
    for acted in program.configurations():
        fixed = program.fix(acted, prune=False)
        part = Configuration(instance, fixed, scaled=False)
        _, forms = program.substitution(acted)
        for a in points(part, part.lower, part.upper, rng, 20) if acted else np.zeros((1, 0)):
            action = fixed.decode(a)
            if judge(instance, action).faults:
                continue
            atoms, _ = values_at(fixed, a)
            old = np.array([form_at(form, atoms) for form in forms])
            for k, atom in enumerate(program.atoms):
                if isinstance(atom, Elementary):
                    assert inside(form_at(atom.argument.substitute(forms), atoms), around.arguments[k])
                if isinstance(atom, Switch):
                    assert inside(old[k], np.array(around.branches[k][0 if atom.feature in acted else 1]))
                if not isinstance(atom, Action) or atom.feature in acted:
                    assert inside(old[k], around.atoms[k])
            for z, ends in zip(hidden_at(fixed, atoms), around.hidden, strict=True):
                assert inside(z, ends)


@pytest.mark.parametrize("target", [None, np.inf])
@pytest.mark.parametrize("seed", SEEDS)
def test_encodings_never_see_a_logarithm_of_what_is_not_positive(seed: int, target: float | None) -> None:
    """The slack that bounds are widened by stays inside the domain of log and logit."""
    _, parts, program, around = open_program(seed, target)
    every = [(program, around)]
    for part in parts:
        whole = part.whole()
        every += [
            (part.program, part.intervals()),
            *([] if whole is None else [(part.program, whole.bounds)]),
        ]
    for one, bounds in every:
        for k, atom in enumerate(one.atoms):
            if isinstance(atom, Elementary):
                low, high = bounds.arguments[k]
                assert low <= high
                assert atom.function not in ("log", "logit") or low > 0
                assert atom.function != "logit" or high < 1


def on_one_lever(network: ReluNetwork, upper: float, factual: float = 0.0) -> Configuration:
    """A feature ``a`` from ``factual`` to ``upper``, and a network on it."""
    instance = Instance(
        (Feature("a", actionable=True, bounds=(factual, upper)),),
        independent(("a",)),
        network,
        {"a": factual},
        Preferences(("a",)),
        Cost.pure("l1", {"a": 1.0}),
    )
    return Configuration(instance, lower(instance).fix(frozenset({"a"})))


def test_a_threshold_that_is_only_just_touched_is_not_excluded() -> None:
    """0.1 a - 0.1 k at a = k: rounding must not close the box where the exact logit is 0 or more."""
    touched = 0
    for k in range(1, 60):
        network = ReluNetwork.from_layers([([[0.1]], [-0.1 * k])])
        part = on_one_lever(network, float(k))
        touched += network.enclose([Enclosure.of(k)])[0].lower >= 0
        if network.enclose([Enclosure.of(k)])[0].lower >= 0:
            for share in (0.0, 0.3, 0.9, 0.99999, 1.0):
                assert part.bound(part.upper * share, part.upper) is not None
    assert touched >= 20


@pytest.mark.parametrize("digits", range(9, 17))
def test_sums_that_cancel_keep_what_is_accepted(digits: int) -> None:
    """An input of 10^k that the bias cancels leaves float64 few digits: bounds must widen, not lie."""
    rng = np.random.default_rng(digits)
    w, x = 10.0 ** (digits / 2) * (1 + rng.random(2))
    bias = -(w * x)
    needed = float(-(Fraction(w) * Fraction(x) + Fraction(bias)))
    network = ReluNetwork.from_layers([([[w, 1.0], [w, -1.0]], [bias, bias]), ([[1.0, -1.0]], [0.0])])
    features = Feature("t"), Feature("a", actionable=True, bounds=(needed - 2, needed + 2))
    levers, cost = Preferences(("a",)), Cost.pure("l1", {"a": 1.0})
    instance = Instance(features, independent(("t", "a")), network, {"t": x, "a": 0.0}, levers, cost)
    part = Configuration(instance, lower(instance).fix(frozenset({"a"})), scaled=False)
    for a in needed + np.array([-1.0, -1e-3, 0.0, 1e-3, 1.0]):
        accepted = network.enclose([Enclosure.of(x), Enclosure.of(a)])[0].lower >= 0
        found = part.bound(np.array([a]), np.array([a]))
        assert found is not None or not accepted
        if found is not None:
            first = ReluNetwork(network.weights[:1], network.biases[:1])
            for z, (low, high) in zip(
                first.enclose([Enclosure.of(x), Enclosure.of(a)]), found.bounds.hidden[0], strict=True
            ):
                assert Fraction(low) <= z.lower <= Fraction(high)


def test_a_box_that_breaks_a_ball_without_squares_is_empty() -> None:
    """Gamma noise alone: the ball is linear in a logarithm, and there is no residual to shrink."""
    scm = StructuralCausalModel(("a",), {"a": Mechanism(noise=Gamma(2.0, 1.0))})
    network = ReluNetwork.from_layers([([[-1.0]], [0.0])])
    levers, cost = Preferences(("a",)), Cost.pure("l0", {})
    feature = Feature("a", actionable=True, bounds=(-0.2, 0.09))
    instance = Instance((feature,), scm, network, {"a": 0.7}, levers, cost, Acceptance(-9.0), plausible=True)
    part = Configuration(instance, lower(instance).fix(frozenset({"a"})), scaled=False)
    assert part.program.ball.squares == ()
    assert part.whole() is None
    assert part.bound(np.array([0.5]), np.array([0.9])) is not None  # the density rises up to 1


@pytest.mark.parametrize("kind", ["l1", "l2-squared", "linf", "l2"])
def test_a_cheaper_fall_is_not_priced_as_a_rise(kind: str) -> None:
    """Either lever may move by 1; a fall of a costs a tenth of a rise of b."""
    cost = Cost.pure(kind, {"a": Distance(1.0, 10.0), "b": 1.0})
    layers = [([[-1.0, 0.0], [0.0, 1.0]], [0.0, 0.0]), ([[1.0, 1.0]], [-1.0])]
    features = tuple(Feature(n, "continuous", True, (-3.0, 3.0)) for n in "ab")
    network, levers = ReluNetwork.from_layers(layers), Preferences(("a", "b"))
    instance = Instance(features, independent(["a", "b"]), network, {"a": 0.0, "b": 0.0}, levers, cost)
    others = ["highs", *(["pyomo:scip_direct"] if kind == "l1" else [])]  # SCIP takes long for the others
    cost = solve(instance, "bab", 20.0).cost
    assert cost is not None and cost < 0.1 * (1 + 1e-5)
    for name in others:
        assert solve(instance, name, 20.0).cost == pytest.approx(cost, rel=2e-6)


def test_a_domain_that_nobody_can_meet_ends_the_search_at_once() -> None:
    """A feature that no action moves is outside its domain."""
    features = Feature("a", actionable=True, bounds=(-3.0, 3.0)), Feature("t", domain=(0.0, 1.0))
    network, levers = ReluNetwork.from_layers([([[1.0, 0.0]], [-1.0])]), Preferences(("a",))
    cost = Cost.pure("l1", {"a": 1.0})
    instance = Instance(features, independent(["a", "t"]), network, {"a": 0.0, "t": 2.0}, levers, cost)
    result = solve(instance, "highs", 20.0)
    assert result.status is Status.INFEASIBLE and result.nodes == 0


def test_where_the_engine_has_no_arrays_intervals_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers are the same; only the bounds are weaker."""
    names, scales = ("a", "b"), {"a": 1.0, "b": 1.0}
    instance = Instance(
        tuple(Feature(n, "continuous", True, (-1.0, 1.0)) for n in names),
        independent(names),
        ReluNetwork.from_layers([([[1.0, -1.0], [1.0, 1.0]], [0.1, -0.2]), ([[1.0, 2.0]], [-1.5])]),
        dict.fromkeys(names, 0.0),
        Preferences(names),
        Cost.pure("l2-squared", scales),
    )
    expected = solve(instance, "highs")
    monkeypatch.setattr(EngineBox, "of", lambda instance, fixed: None)
    found = solve(instance, "highs")
    assert found.status is expected.status is Status.OPTIMAL
    assert found.cost == pytest.approx(expected.cost, rel=2e-6)

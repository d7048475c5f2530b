"""Lowering is exact: the program says the SCM's counterfactual, ball and cost, in Fractions."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from milp_recourse.problem.cost import Cost, measured
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.loan import FEATURES, loan
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.program import Action, Affine, Program, Switch, lower
from tests.helpers.generators import PIECEWISE_LINEAR, Style, sample_actions, supported_instance

LEVERS = ("amount", "duration", "income", "savings")
SUBSETS = [s for size in range(1, 5) for s in combinations(LEVERS, size)]
NARROW = Fraction(1, 10**40)


def loan_instance(seed: int, levers: tuple[str, ...], kind: str = "l2-squared") -> Instance:
    """A Loan applicant with wide bounds and a random network, plausibility asked for."""
    row = loan().sample(1, np.random.default_rng(seed))[0]
    x = dict(zip(FEATURES, (float(v) for v in row), strict=True))
    rng = np.random.default_rng(1000 + seed)
    network = ReluNetwork.from_layers(
        [(rng.normal(size=(4, 7)), rng.normal(size=4)), (rng.normal(size=(1, 4)), [0.0])]
    )
    features = tuple(
        Feature(
            n,
            "binary" if n == "gender" else "continuous",
            n in levers,
            (-50.0, 50.0) if n in levers else None,
        )
        for n in FEATURES
    )
    scale = {n: 1.0 + k / 3 for k, n in enumerate(levers)}
    return Instance(features, loan(), network, x, Preferences(levers), Cost.pure(kind, scale), plausible=True)


def random_action(instance: Instance, acted: tuple[str, ...], rng: np.random.Generator) -> dict[str, float]:
    return {n: float(rng.uniform(*instance.levers[n])) for n in acted}


def column_values(program: Program, action: Mapping[str, float]) -> list[Enclosure]:
    """The classifier's inputs under an action."""
    atoms = program.enclose(action)
    return [c.enclose(atoms) for c in program.columns]


def ball_value(program: Program, action: Mapping[str, float]) -> Enclosure:
    """Left side of the ball constraint under an action."""
    assert program.ball is not None
    atoms = program.enclose(action)
    total = program.ball.linear.enclose(atoms)
    for weight, form in program.ball.squares:
        total = total + Enclosure.of(weight) * form.enclose(atoms).square()
    return total


def cost_value(program: Program, action: Mapping[str, float]) -> Fraction:
    """The program's own cost of an action, from its terms."""
    atoms, total, largest = program.enclose(action), Fraction(0), Fraction(0)
    for t in program.cost_terms:
        if t.feature in action:
            paid, entry = t.prices.paid(abs(t.delta.enclose(atoms).lower) / t.unit)
            total, largest = total + paid, max(largest, entry)
    return total + largest


@pytest.mark.parametrize("acted", SUBSETS, ids="+".join)
def test_loan_programs_are_the_scm_exactly(acted: tuple[str, ...]) -> None:
    """Columns, ball and cost of open and decided programs: Fraction equality."""
    for seed in range(4):
        instance = loan_instance(seed, LEVERS)
        rng = np.random.default_rng(seed)
        program = lower(instance)
        fixed = program.fix(frozenset(acted))
        action = random_action(instance, acted, rng)
        exact = instance.scm.counterfactual_exact(instance.factual, action)
        excess = instance.scm.excess_energy(instance.factual, exact, frozenset(action))
        for p in (program, fixed):
            assert column_values(p, action) == [exact[n] for n in FEATURES]
            assert all(e.exact for e in column_values(p, action))
            assert ball_value(p, action) == excess
            assert cost_value(p, action) == instance.cost_of(action)


def test_the_loan_program_of_the_four_actions_has_one_relu() -> None:
    """Nothing else is left when gender, age and education stay put (docs/formulation.md, Loan)."""
    fixed = lower(loan_instance(0, LEVERS)).fix(frozenset(("amount", "duration", "income")))
    assert [a.function for a in fixed.atoms if not isinstance(a, Action)] == ["relu"]


@pytest.mark.parametrize(
    "acted", [("age",), ("education",), ("age", "income"), ("age", "education", "savings")]
)
def test_programs_with_curves_overlap_the_scm_narrowly(acted: tuple[str, ...]) -> None:
    """Sigmoids and logits of age and education: both enclosures hold the number, each below 1e-40 wide."""
    for seed in range(3):
        instance = loan_instance(seed, ("age", "education", *LEVERS))
        rng = np.random.default_rng(seed)
        action = random_action(instance, acted, rng)
        if "education" in action:
            action["education"] = float(rng.uniform(-0.4, 0.4))
        if "age" in action:
            action["age"] = instance.factual["age"] + float(rng.uniform(-1, 1))
        exact = instance.scm.counterfactual_exact(instance.factual, action)
        excess = instance.scm.excess_energy(instance.factual, exact, frozenset(action))
        program = lower(instance)
        for p in (program, program.fix(frozenset(acted))):
            for mine, theirs in zip(column_values(p, action), exact.values(), strict=True):
                assert overlap_narrowly(mine, theirs)
            assert overlap_narrowly(ball_value(p, action), excess)


def overlap_narrowly(a: Enclosure, b: Enclosure) -> bool:
    return a.lower <= b.upper and b.lower <= a.upper and max(a.upper - a.lower, b.upper - b.lower) < NARROW


@pytest.mark.parametrize("seed", range(60))
def test_random_piecewise_linear_programs_are_exact(seed: int) -> None:
    """Random graphs, networks as mechanisms, all kinds of features: Fraction equality of every column."""
    instance = supported_instance(seed, PIECEWISE_LINEAR)
    compare(instance, seed, exactly=True)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_with_curves_overlap_narrowly(seed: int) -> None:
    """Sigmoids, squares, products, logs: enclosures of the same numbers; the same densities of zero."""
    compare(supported_instance(seed, Style(levers=4, plausible=0.7)), seed, exactly=False)


def compare(instance: Instance, seed: int, exactly: bool) -> None:
    program = lower(instance)
    for row in sample_actions(np.random.default_rng(seed), instance, 6):
        action = {f.name: float(v) for f, v in zip(instance.features, row, strict=True) if not np.isnan(v)}
        exact = instance.scm.counterfactual_exact(instance.factual, action)
        excess = (
            instance.scm.excess_energy(instance.factual, exact, frozenset(action))
            if instance.plausible
            else None
        )
        if instance.plausible and excess is None:
            continue  # density zero: a logarithm has no value
        for p in (program, program.fix(frozenset(action))):
            assert cost_value(p, action) == instance.cost_of(action)
            mine = dict(zip(program.column_names, column_values(p, action), strict=True))
            for f in instance.features:
                if len(f.columns) == 1:
                    assert (
                        mine[f.name] == exact[f.name]
                        if exactly
                        else overlap_narrowly(mine[f.name], exact[f.name])
                    )
                else:
                    code = int(exact[f.name].lower)
                    assert [mine[c] for c in f.columns] == [
                        Enclosure.of(int(k == code)) for k in range(len(f.columns))
                    ]
            for r in p.rows:
                value = r.form.enclose(p.enclose(action))
                name = r.name.removeprefix("domain_")
                assert value == exact[name] if exactly else overlap_narrowly(value, exact[name])
            if excess is not None:
                assert overlap_narrowly(ball_value(p, action), excess)


def described(program: Program, action: Mapping[str, float]) -> tuple:
    """What a program says about an action: the classifier's inputs and the cost."""
    return column_values(program, action), cost_value(program, action)


@pytest.mark.parametrize("seed", range(40))
def test_configurations_cover_every_subset(seed: int) -> None:
    """Any action on any subset is one of a listed configuration, at the same cost and counterfactual."""
    instance = supported_instance(seed, Style(levers=4, curves=False, gamma=False, plausible=0.0))
    program = lower(instance)
    listed = set(program.configurations())
    assert all(c <= set(instance.levers) for c in listed)
    rng = np.random.default_rng(seed)
    for size in range(len(instance.levers) + 1):
        for acted in combinations(sorted(instance.levers), size):
            action = random_action(instance, acted, rng)
            action = {n: round(v) if instance.by_name[n].integral else v for n, v in action.items()}
            if frozenset(acted) in listed:
                continue
            held = {n: instance.factual[n] for n in set(instance.levers) - set(acted)}
            covering = [c for c in listed if set(acted) <= c]
            completed = [action | {n: held[n] for n in c - set(acted)} for c in covering]
            assert any(
                described(program, a) == described(program, action)
                and all(instance.levers[n][0] <= v <= instance.levers[n][1] for n, v in a.items())
                for a in completed
            ), acted


def one_lever(**changes) -> Instance:
    """x = 0, an action in [-1, 1]; ``changes`` to the feature or the cost."""
    bounds = changes.pop("bounds", (-1.0, 1.0))
    cost = changes.pop("cost", Cost.pure("l1", {"a": 1.0}))
    features = (Feature("a", actionable=True, bounds=bounds), Feature("b"))
    from milp_recourse.problem.scm import independent

    network = ReluNetwork.from_layers([([[1.0, 1.0]], [0.0])])
    return Instance(
        features, independent(("a", "b")), network, {"a": 0.0, "b": 0.0}, Preferences(("a",)), cost
    )


def test_a_free_hold_needs_no_configuration_of_its_own() -> None:
    """Acting on a root covers not acting: the factual value is allowed and free."""
    assert list(lower(one_lever()).configurations()) == [frozenset({"a"})]


def test_a_factual_outside_the_bounds_may_be_left_but_not_held() -> None:
    """Both configurations are needed."""
    assert set(lower(one_lever(bounds=(0.5, 1.0))).configurations()) == {frozenset({"a"}), frozenset()}


@pytest.mark.parametrize("cost", [Cost.pure("l0", {}), Cost(l1=1.0, l0=0.01, measures=measured({"a": 1.0}))])
def test_a_fixed_cost_per_action_tells_holding_from_leaving(cost: Cost) -> None:
    """Both configurations are needed."""
    assert set(lower(one_lever(cost=cost)).configurations()) == {frozenset({"a"}), frozenset()}


def test_a_feature_downstream_of_a_lever_needs_both_configurations() -> None:
    """Duration follows amount unless acted on, savings follows income; amount and income are roots here."""
    program = lower(loan_instance(0, LEVERS))
    assert len(list(program.configurations())) == 4
    assert all({"amount", "income"} <= c for c in program.configurations())
    assert set(program.switched) == set(LEVERS)


@pytest.mark.parametrize("seed", range(30))
def test_decode_undoes_the_reading_of_action_values(seed: int) -> None:
    """Values in order of the action atoms come back as the action; whole numbers rounded, bounds kept."""
    instance = supported_instance(seed)
    program = lower(instance).fix(frozenset(instance.levers))
    rng = np.random.default_rng(seed)
    action = {n: float(rng.uniform(*ends)) for n, ends in instance.levers.items()}
    action = {n: float(round(v)) if instance.by_name[n].integral else v for n, v in action.items()}
    values = [action[a.feature] for a in program.actions]
    assert program.decode(values) == action
    nearly = [v + 1e-9 * (-1) ** k for k, v in enumerate(values)]
    decoded = program.decode(nearly)
    for a in program.actions:
        assert a.lower <= decoded[a.feature] <= a.upper
        assert decoded[a.feature] == action[a.feature] or not a.integral
    some = program.actions[0].feature
    assert program.decode(values, acted=(some,)) == {some: action[some]}


def test_substitution_keeps_the_order_of_atoms_and_leaves_no_switch() -> None:
    """Every old atom is a form in the atoms that remain."""
    program = lower(loan_instance(1, LEVERS))
    atoms, forms = program.substitution(frozenset(("amount", "savings")))
    assert len(forms) == len(program.atoms)
    assert not any(isinstance(a, Switch) for a in atoms)
    assert max(k for f in forms for k in f.terms) < len(atoms)


def test_affine_forms_store_no_zero_coefficients() -> None:
    """a + b - a is b, and zero times anything is the zero form."""
    a, b = Affine.atom(0), Affine.atom(1)
    assert (a + b - a) == b
    assert a.scaled(0) == Affine()
    assert (a - a).is_constant
    assert (a.scaled(0.1) + Affine.of(0.1)).substitute([b]) == Affine(Fraction(0.1), {1: Fraction(0.1)})

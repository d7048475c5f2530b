"""Structural causal models: abduction inverts generation, and the Loan formulas hold exactly."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.expression import Relu, Sigmoid, Variable
from milp_recourse.problem.loan import FEATURES, loan, loan_as_printed
from milp_recourse.problem.noise import Normal
from milp_recourse.problem.scm import Link, Mechanism, StructuralCausalModel, independent
from tests.helpers.generators import Style, random_instance, sample_actions
from tests.helpers.loan_people import applicant

LEVERS = ("amount", "duration", "income", "savings")
SUBSETS = [s for size in range(5) for s in combinations(LEVERS, size)]
SEEDS = range(40)


def loan_by_hand(x: dict[str, float], action: dict[str, float]) -> dict[str, Fraction]:
    """The released equations for the four actions, in Fractions; 1.5 is a double, so its product is exact."""
    old = {n: Fraction(v) for n, v in x.items()}
    new = dict(old)
    new["amount"] = Fraction(action.get("amount", x["amount"]))
    moved = new["amount"] - old["amount"]
    new["duration"] = Fraction(action["duration"]) if "duration" in action else old["duration"] + moved
    new["income"] = Fraction(action.get("income", x["income"]))
    gain = max(new["income"], Fraction(0)) - max(old["income"], Fraction(0))
    new["savings"] = (
        Fraction(action["savings"]) if "savings" in action else old["savings"] + Fraction(3, 2) * gain
    )
    return new


@pytest.mark.parametrize("acted", SUBSETS, ids="+".join)
@pytest.mark.parametrize("model", [loan, loan_as_printed])
def test_the_four_loan_actions_are_exact(acted: tuple[str, ...], model) -> None:
    """Every subset of the four: Fraction equality with the hand-written formulas, in both variants."""
    scm = model()
    for seed in range(8):
        x = applicant(seed)
        rng = np.random.default_rng(100 + seed)
        action = {n: float(rng.normal(0, 5)) for n in acted}
        exact = scm.counterfactual_exact(x, action)
        assert {n: (e.lower, e.upper) for n, e in exact.items()} == {
            n: (v, v) for n, v in loan_by_hand(x, action).items()
        }


def test_loan_rows_come_back_from_their_noise() -> None:
    """generate(abduct(x)) = x, and the noise has the stated distribution."""
    scm = loan()
    x = scm.sample(4000, np.random.default_rng(0))
    u = scm.abduct(x)
    assert np.allclose(scm.generate(u), x, rtol=1e-9, atol=1e-9)
    assert u[:, 3:].std(axis=0) == pytest.approx([2.0, 3.0, 2.0, 5.0], rel=0.06)
    assert u[:, 1].mean() == pytest.approx(35.0, rel=0.03)
    assert set(u[:, 0]) == {0.0, 1.0}


def test_the_loan_equations_are_those_of_the_released_data() -> None:
    """One row by hand: G = 1, A = 5, U_E = 0.2, U_L = 1, U_D = -1, U_I = 3, U_S = 2."""
    g, a = 1.0, 5.0
    e = -0.5 + 1 / (1 + np.exp(-(-1 + 0.5 * g + 1 / (1 + np.exp(-0.1 * a)) + 0.2)))
    amount = 1 + 0.01 * (a - 5) * (5 - a) + (1 - g) + 1.0
    duration = -1 + 0.1 * a + 2 * (1 - g) + amount - 1.0
    income = -4 + 0.1 * (a + 35) + 2 * g + g * e + 3.0
    savings = -4 + 1.5 * max(income, 0) + 2.0
    row = loan().generate(np.array([g, 40.0, 0.2, 1.0, -1.0, 3.0, 2.0]))
    assert row == pytest.approx([g, a, e, amount, duration, income, savings], rel=1e-12)


def test_the_printed_variant_differs_in_amount_and_in_the_noise_of_savings_only() -> None:
    """The other sign, no "1 +", sd 0.5: appendix C.2.1 of the iCARMA paper."""
    right, printed = loan(), loan_as_printed()
    u = right.abduct(right.sample(50, np.random.default_rng(1)))
    a, b = right.generate(u), printed.generate(u)
    age = a[:, 1]
    moved = b[:, 3] - a[:, 3]
    assert moved == pytest.approx(2 * 0.01 * (age - 5) ** 2 - 1, abs=1e-9)
    assert b[:, 4] - a[:, 4] == pytest.approx(moved, abs=1e-9)  # duration follows amount
    assert np.array_equal(a[:, [0, 1, 2, 5, 6]], b[:, [0, 1, 2, 5, 6]])
    assert printed.mechanisms["savings"].noise.sd == 0.5
    assert [n for n in FEATURES if right.mechanisms[n].noise != printed.mechanisms[n].noise] == ["savings"]


def test_the_loan_graph_is_the_specs() -> None:
    """Parents of every feature."""
    scm = loan()
    assert {n: set(scm.parents(n)) for n in FEATURES} == {
        "gender": set(),
        "age": set(),
        "education": {"gender", "age"},
        "amount": {"gender", "age"},
        "duration": {"gender", "age", "amount"},
        "income": {"gender", "age", "education"},
        "savings": {"income"},
    }
    assert scm.order == FEATURES
    assert scm.has_density
    assert scm.descendants({"income"}) == {"income", "savings"}
    assert ("income", "savings") in scm.edges


@pytest.mark.parametrize("seed", SEEDS)
def test_abduction_inverts_generation(seed: int) -> None:
    """Random models: to float accuracy, both ways."""
    scm = random_instance(seed, Style(discrete=False)).scm
    x = scm.sample(20, np.random.default_rng(seed))
    again = scm.generate(scm.abduct(x))
    assert np.allclose(again, x, rtol=1e-7, atol=1e-7 * (1 + np.abs(x).max()))


@pytest.mark.parametrize("seed", SEEDS)
def test_float_counterfactuals_agree_with_the_exact_ones(seed: int) -> None:
    """Random models and random actions, vectorised against row by row."""
    instance = random_instance(seed)
    x = instance.factual
    actions = sample_actions(np.random.default_rng(seed), instance, 12)
    rows = instance.scm.counterfactual(instance.factual_row, actions)
    for row, action in zip(rows, actions, strict=True):
        chosen = {n: float(v) for n, v in zip(instance.scm.features, action, strict=True) if not np.isnan(v)}
        exact = instance.scm.counterfactual_exact(x, chosen)
        assert row == pytest.approx(
            [float(exact[n].midpoint) for n in instance.scm.features], rel=1e-7, abs=1e-7
        )
        assert all(e.upper - e.lower < Fraction(1, 10**40) for e in exact.values())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_counterfactual_is_generation_from_the_abducted_noise(seed: int) -> None:
    """Abduction, action, prediction: the same as generate(abduct(x), do)."""
    instance = random_instance(seed)
    scm, x = instance.scm, instance.factual_row
    for action in sample_actions(np.random.default_rng(seed), instance, 5):
        do = {n: v for n, v in zip(scm.features, action, strict=True) if not np.isnan(v)}
        pearl = scm.generate(scm.abduct(x), do)
        assert scm.counterfactual(x, action) == pytest.approx(pearl, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("seed", range(10))
def test_doing_nothing_leaves_the_factual_double_for_double(seed: int) -> None:
    """No rounding sneaks in, in floats and exactly."""
    instance = random_instance(seed)
    nothing = np.full(len(instance.features), np.nan)
    assert np.array_equal(instance.scm.counterfactual(instance.factual_row, nothing), instance.factual_row)
    exact = instance.scm.counterfactual_exact(instance.factual, {})
    assert exact == {n: Enclosure.of(v) for n, v in instance.factual.items()}


def test_holding_a_feature_blocks_what_flows_into_it() -> None:
    """do(duration := its own value) keeps duration where amount would move it."""
    x = applicant(3)
    free = loan().counterfactual_exact(x, {"amount": x["amount"] + 1.0})
    held = loan().counterfactual_exact(x, {"amount": x["amount"] + 1.0, "duration": x["duration"]})
    assert free["duration"].lower > Fraction(x["duration"]) == held["duration"].lower


def test_acting_on_age_moves_education_through_its_sigmoid() -> None:
    """The enclosure is narrow and the float value lies in its middle, to rounding."""
    x = applicant(5)
    exact = loan().counterfactual_exact(x, {"age": x["age"] + 3.0})
    row = loan().counterfactual(
        np.array([x[n] for n in FEATURES]), np.array([np.nan, x["age"] + 3, *[np.nan] * 5])
    )
    e = exact["education"]
    assert 0 < e.upper - e.lower < Fraction(1, 10**40)
    assert float(e.midpoint) == pytest.approx(row[2], rel=1e-12)
    assert exact["amount"].exact
    assert exact["gender"] == Enclosure.of(x["gender"])


def test_what_hangs_on_held_causes_is_the_factuals_own() -> None:
    """Behind a sigmoid it was an interval of width 1e-58 around it, for which nobody can prove that it is as
    plausible: a free way, holding the cause, was left out, and 0.17 called optimal."""
    a, b = Variable("a"), Variable("b")
    mechanisms = {
        "a": Mechanism(noise=Normal(1.0)),
        "b": Mechanism(-1.0 * a + Sigmoid(a), Link("sigmoid", -1.0, 4.0), Normal(0.7)),
        "c": Mechanism(2.0 * b, noise=Normal(1.0)),
    }
    scm = StructuralCausalModel(("a", "b", "c"), mechanisms)
    x = {"a": 2.0, "b": 1.125, "c": 0.5}
    assert scm.counterfactual_exact(x, {"a": 2.0}) == {f: Enclosure.of(v) for f, v in x.items()}
    after = scm.counterfactual_exact(x, {"a": 2.5})
    assert after["b"].nearest < x["b"] and after["c"].nearest < x["c"]


def test_the_density_is_the_noises_density_over_the_jacobian() -> None:
    """Two features, one behind a sigmoid: numeric derivative of the link against log_density."""
    from milp_recourse.problem.noise import Normal

    a = Variable("a")
    scm = StructuralCausalModel(
        ("a", "b"),
        {"a": Mechanism(noise=Normal(1.5)), "b": Mechanism(0.3 * a, Link("sigmoid", -1.0, 4.0), Normal(0.7))},
    )
    x = np.array([0.8, 1.3])
    u = scm.abduct(x)
    h = 1e-6
    jacobian = (scm.generate(u + [0, h])[1] - scm.generate(u - [0, h])[1]) / (2 * h)
    noise = sum(Normal(sd).log_density(np.float64(v)) for sd, v in zip((1.5, 0.7), u, strict=True))
    assert scm.log_density(x) == pytest.approx(float(noise) - np.log(jacobian), abs=1e-7)


def test_causal_order_need_not_be_column_order() -> None:
    """Columns c, b, a with a -> b -> c."""
    scm = StructuralCausalModel(
        ("c", "b", "a"), {"c": Mechanism(2.0 * Variable("b")), "b": Mechanism(Relu(Variable("a")))}
    )
    assert scm.order == ("a", "b", "c")
    exact = scm.counterfactual_exact({"a": 1.0, "b": 2.0, "c": 3.0}, {"a": 4.0})
    assert [exact[n].lower for n in ("a", "b", "c")] == [4, 5, 9]


def test_cycles_and_strangers_are_refused() -> None:
    """A cycle, a loop, an unknown parent and a mechanism for nobody."""
    a, b = Variable("a"), Variable("b")
    with pytest.raises(ValueError, match="cycle"):
        StructuralCausalModel(("a", "b"), {"a": Mechanism(1.0 * b), "b": Mechanism(Sigmoid(a))})
    with pytest.raises(ValueError, match="cycle"):
        StructuralCausalModel(("a",), {"a": Mechanism(1.0 * a)})
    with pytest.raises(ValueError, match="unknown feature 'b'"):
        StructuralCausalModel(("a",), {"a": Mechanism(1.0 * b)})
    with pytest.raises(ValueError, match="unknown feature 'z'"):
        StructuralCausalModel(("a",), {"z": Mechanism()})


def test_independent_features_move_alone_and_state_no_density() -> None:
    """Nothing flows, and nothing is known about noise."""
    scm = independent(("a", "b"))
    exact = scm.counterfactual_exact({"a": 1.0, "b": 2.0}, {"a": 5.0})
    assert [e.lower for e in exact.values()] == [5, 2]
    assert not scm.has_density
    with pytest.raises(ValueError, match="states no noise"):
        scm.sample(1, np.random.default_rng(0))
    with pytest.raises(ValueError, match="states no noise"):
        scm.log_density(np.zeros(2))

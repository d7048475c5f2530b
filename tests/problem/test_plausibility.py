"""Plausibility: the residual ball of docs/formulation.md, exactly, and the density everywhere else."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from milp_recourse.errors import Unsupported
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.expression import Relu, Variable
from milp_recourse.problem.loan import FEATURES, loan
from milp_recourse.problem.noise import Bernoulli, Gamma, Normal
from milp_recourse.problem.scm import Link, Mechanism, StructuralCausalModel
from tests.helpers.generators import Style, bernoulli_instance, random_instance, sample_actions
from tests.helpers.loan_people import applicant

LEVERS = ("amount", "duration", "income", "savings")
SUBSETS = [s for size in range(1, 5) for s in combinations(LEVERS, size)]
SD = {"amount": 2, "duration": 3, "income": 2, "savings": 5}


def residuals(values: dict[str, Fraction]) -> dict[str, Fraction]:
    """u of amount, duration, income and savings by the released equations, the coefficients being doubles."""
    g, a, e, l, d, i, s = (values[n] for n in FEATURES)
    tenth = Fraction(0.1)
    return {
        "amount": l - (1 + Fraction(0.01) * ((a - 5) * (5 - a)) + (1 - g)),
        "duration": d - (-1 + tenth * a + 2 * (1 - g) + l),
        "income": i - (-4 + tenth * (a + 35) + 2 * g + g * e),
        "savings": s - (-4 + Fraction(3, 2) * max(i, Fraction(0))),
    }


@pytest.mark.parametrize("acted", SUBSETS, ids="+".join)
def test_the_loan_excess_is_the_ball_of_the_spec_exactly(acted: tuple[str, ...]) -> None:
    """sum (u'/sd)^2 - sum (u/sd)^2, halved, as a Fraction; plausible where it is not positive."""
    for seed in range(6):
        x = applicant(seed)
        rng = np.random.default_rng(200 + seed)
        action = {n: x[n] + float(rng.normal(0, 2)) for n in acted}
        exact = loan().counterfactual_exact(x, action)
        excess = loan().excess_energy(x, exact, frozenset(action))
        before = residuals({n: Fraction(v) for n, v in x.items()})
        after = residuals({n: e.lower for n, e in exact.items()})
        ball = sum((after[n] / SD[n]) ** 2 - (before[n] / SD[n]) ** 2 for n in LEVERS)
        assert excess == Enclosure.of(ball / 2)
        assert loan().plausible_exact(x, exact, frozenset(action)) == (ball <= 0)


@pytest.mark.parametrize("seed", range(60))
def test_the_excess_is_the_change_of_the_models_log_density(seed: int) -> None:
    """Random models: excess = log p(x) - log p(x_cf), to float accuracy; no density where it says none."""
    instance = bernoulli_instance(seed) if seed % 6 == 5 else random_instance(seed, Style(plausible=1.0))
    scm, x = instance.scm, instance.factual_row
    compared = 0
    for action in sample_actions(np.random.default_rng(seed), instance, 10):
        chosen = {n: float(v) for n, v in zip(scm.features, action, strict=True) if not np.isnan(v)}
        exact = scm.counterfactual_exact(instance.factual, chosen)
        excess = scm.excess_energy(instance.factual, exact, frozenset(chosen))
        with np.errstate(all="ignore"):
            row = np.array([float(exact[n].midpoint) for n in scm.features])
            expected = float(scm.log_density(x) - scm.log_density(row))
        if excess is None:
            assert not np.isfinite(expected)
            continue
        compared += 1
        assert excess.upper - excess.lower < Fraction(1, 10**40)
        assert float(excess.midpoint) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert compared > 0 or any(
        isinstance(m.noise, Gamma) or m.link.kind == "sigmoid" for m in scm.mechanisms.values()
    )


def test_a_fair_coin_may_flip() -> None:
    """Equal chances cancel exactly, not to within an enclosure of log 1/2."""
    scm = StructuralCausalModel(("b",), {"b": Mechanism(noise=Bernoulli(0.5))})
    exact = scm.counterfactual_exact({"b": 0.0}, {"b": 1.0})
    assert scm.plausible_exact({"b": 0.0}, exact, frozenset({"b"}))
    assert scm.excess_energy({"b": 0.0}, exact, frozenset({"b"})) == Enclosure.of(0)


@pytest.mark.parametrize(("p", "allowed"), [(0.25, False), (0.75, True), (1.0, False), (0.0, False)])
def test_an_unfair_coin_flips_to_its_likelier_side_only(p: float, allowed: bool) -> None:
    """From 0 to 1 where p > 1/2; certain coins have a side of density zero."""
    scm = StructuralCausalModel(("b",), {"b": Mechanism(noise=Bernoulli(p))})
    exact = scm.counterfactual_exact({"b": 0.0}, {"b": 1.0})
    assert scm.plausible_exact({"b": 0.0}, exact, frozenset({"b"})) == allowed


def test_half_a_coin_has_density_zero() -> None:
    """Bernoulli noise is 0 or 1."""
    scm = StructuralCausalModel(("b",), {"b": Mechanism(noise=Bernoulli(0.5))})
    exact = scm.counterfactual_exact({"b": 0.0}, {"b": 0.5})
    assert scm.excess_energy({"b": 0.0}, exact, frozenset({"b"})) is None


@pytest.mark.parametrize("noise", [Gamma(3.0, 1.0), Normal(1.0)])
@pytest.mark.parametrize("link", [Link(), Link("sigmoid", 0.0, 4.0)])
def test_a_held_feature_whose_equation_stays_put_keeps_its_noise_exactly(noise, link: Link) -> None:
    """Its parent moves in the flat part of a ReLU: the energy does not change, not even by 1e-60."""
    scm = StructuralCausalModel(
        ("a", "b"),
        {"a": Mechanism(noise=Normal(1.0)), "b": Mechanism(Relu(Variable("a")), link, noise)},
    )
    x = {"a": -2.0, "b": 3.0}
    exact = scm.counterfactual_exact(x, {"a": -1.0, "b": 3.0})
    assert scm.excess_energy(x, exact, frozenset(("a", "b"))) == Enclosure.of(Fraction(-3, 2))
    exact = scm.counterfactual_exact(x, {"a": 2.0, "b": 3.0})
    excess = scm.excess_energy(x, exact, frozenset(("a", "b")))
    assert excess != Enclosure.of(0)


def test_equal_energy_is_plausible() -> None:
    """log p(x_cf) >= log p(x) includes equality: the mirror image of a residual."""
    scm = StructuralCausalModel(("a",), {"a": Mechanism(noise=Normal(0.3))})
    mirrored = scm.counterfactual_exact({"a": 0.7}, {"a": -0.7})
    assert scm.plausible_exact({"a": 0.7}, mirrored, frozenset({"a"}))
    just_beyond = scm.counterfactual_exact({"a": 0.7}, {"a": float(np.nextafter(-0.7, -1))})
    assert not scm.plausible_exact({"a": 0.7}, just_beyond, frozenset({"a"}))


def test_gamma_noise_is_positive() -> None:
    """An action that needs non-positive noise has density zero."""
    scm = StructuralCausalModel(("a",), {"a": Mechanism(noise=Gamma(10.0, 3.5))})
    for value in (0.0, -1.0):
        exact = scm.counterfactual_exact({"a": 30.0}, {"a": value})
        assert scm.excess_energy({"a": 30.0}, exact, frozenset({"a"})) is None
        assert not scm.plausible_exact({"a": 30.0}, exact, frozenset({"a"}))


def test_without_noise_plausibility_cannot_be_asked() -> None:
    """A mechanism that states none has no density to compare: an error, not "implausible"."""
    scm = StructuralCausalModel(("a",), {})
    exact = scm.counterfactual_exact({"a": 0.0}, {"a": 1.0})
    with pytest.raises(Unsupported, match="states no noise"):
        scm.plausible_exact({"a": 0.0}, exact, frozenset({"a"}))

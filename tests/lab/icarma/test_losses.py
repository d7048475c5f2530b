"""Equations 7 to 16, against numbers worked out by hand; their gradients too."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from milp_recourse.lab.icarma import losses


def t(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows if len(rows) > 1 else rows[0], dtype=torch.float64)


def test_cost_counts_acted_features_with_their_weights() -> None:
    """Equation 10: 1*2*3^2 + 1*5*1^2 = 23, the third change is not acted on; d/d change = 2 w delta."""
    change = t([[3.0, -1.0, 10.0]]).requires_grad_()
    cost = losses.action_cost(t([[1.0, 1.0, 0.0]]), t([[2.0, 5.0, 7.0]]), change)
    assert cost.tolist() == [23.0]
    cost.sum().backward()
    assert change.grad.tolist() == [[12.0, -10.0, 0.0]]


def test_divergence_of_the_mask() -> None:
    """Equation 13 at mu = 3/4, pi = 1/2: 0.75 log 1.5 + 0.25 log 0.5; nothing where not actionable.

    Its derivative in the logit is mu (1 - mu) (logit mu - logit pi) = 3/16 log 3.
    """
    logits = t([[math.log(3.0), 5.0]]).requires_grad_()
    actionable = torch.tensor([[True, False]])
    divergence = losses.mask_divergence(logits, t([[0.5, 0.0]]), actionable)
    assert divergence.tolist() == pytest.approx([0.75 * math.log(1.5) + 0.25 * math.log(0.5)])
    divergence.sum().backward()
    assert logits.grad.tolist()[0] == pytest.approx([3 / 16 * math.log(3.0), 0.0])


def test_divergence_is_zero_at_the_prior_and_infinite_nowhere() -> None:
    """mu = pi costs nothing; a mask network that is sure pays -log pi, finitely."""
    pi = t([[0.1, 0.5]])
    both = torch.tensor([[True, True]])
    assert losses.mask_divergence(pi.logit(), pi, both).tolist() == pytest.approx([0.0], abs=1e-12)
    sure = losses.mask_divergence(t([[800.0, 800.0]]), pi, both)
    assert sure.tolist() == pytest.approx([-math.log(0.1) - math.log(0.5)])


def test_hinge() -> None:
    """Equation 6: max(0, beta - h); a pull only below the margin."""
    h = t([-1.0, 0.01, 0.02]).requires_grad_()
    hinge = losses.validity_hinge(h, 0.013)
    assert hinge.tolist() == pytest.approx([1.013, 0.003, 0.0])
    hinge.sum().backward()
    assert h.grad.tolist() == [-1.0, -1.0, 0.0]


def test_plausibility_regulariser() -> None:
    """Equation 15: only what the counterfactual lost counts."""
    after = t([-4.0, -2.0]).requires_grad_()
    lost = losses.implausibility(t([-3.0, -3.0]), after)
    assert lost.tolist() == [1.0, 0.0]
    lost.sum().backward()
    assert after.grad.tolist() == [-1.0, 0.0]


def test_feasibility_regulariser() -> None:
    """Equation 16 on [-4, 2]: 3 is over by 1/2, -5 is under by 1/2 (over max, as printed), 1 is inside."""
    values = t([[3.0, -5.0, 1.0, 9.0]]).requires_grad_()
    actionable = torch.tensor([[True, True, True, False]])
    low, high = torch.full((4,), -4.0), torch.full((4,), 2.0)
    excess = losses.infeasibility(values, low, high, actionable)
    assert excess.tolist() == [1.0]
    excess.sum().backward()
    assert values.grad.tolist() == [[0.5, -0.5, 0.0, 0.0]]

"""Masks: drawn with gradients, chosen without chance, never outside what an applicant can do."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from milp_recourse.lab.icarma.networks import ActionPolicy, MaskPolicy, gumbel_mask, likeliest_mask


def test_a_drawn_mask_is_one_with_the_stated_probability() -> None:
    """20000 draws at mu = 0.8: the share of ones within four standard errors, whatever tau."""
    logits = torch.full((20000, 1), 4.0, dtype=torch.float64).log()
    can = torch.ones_like(logits, dtype=torch.bool)
    for temperature in (0.2, 1.0):
        drawn = gumbel_mask(logits, can, temperature, torch.Generator().manual_seed(0))
        assert set(drawn.round(decimals=9).unique().tolist()) == {0.0, 1.0}
        assert float(drawn.mean()) == pytest.approx(0.8, abs=4 * (0.16 / 20000) ** 0.5)


def test_gradients_pass_the_draw() -> None:
    """Backward it is the sigmoid: soft (1 - soft) / tau, by hand from the same uniform numbers."""
    logits = torch.tensor([[0.3, -0.7]], dtype=torch.float64, requires_grad=True)
    can = torch.tensor([[True, True]])
    gumbel_mask(logits, can, 0.5, torch.Generator().manual_seed(4)).sum().backward()
    uniform = torch.rand((1, 2), generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    soft = ((logits.detach() + uniform.logit()) / 0.5).sigmoid()
    assert logits.grad.tolist()[0] == pytest.approx((soft * (1 - soft) / 0.5)[0].tolist())


def test_no_draw_and_no_choice_leaves_the_individual_mask() -> None:
    """However sure the network is."""
    torch.manual_seed(0)
    logits = 30 * torch.randn(500, 4, dtype=torch.float64)
    can = torch.rand(500, 4) < 0.5
    assert not gumbel_mask(logits, can, 0.3)[~can].any()
    assert not likeliest_mask(logits, can)[~can].any()


def test_the_likeliest_mask() -> None:
    """mu above 1/2; else the likeliest actionable feature; nothing for who can do nothing."""
    logits = torch.tensor([[1.0, -1.0, 2.0], [-3.0, -1.0, -2.0], [-3.0, 5.0, -2.0], [1.0, 1.0, 1.0]])
    can = torch.tensor([[True, True, True], [True, True, True], [True, False, True], [False, False, False]])
    assert likeliest_mask(logits, can).int().tolist() == [[1, 0, 1], [0, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_every_weight_of_both_networks_gets_a_gradient() -> None:
    """And the action depends on the mask it is for."""
    torch.manual_seed(1)
    mask, action = MaskPolicy(5, 3, (16,)), ActionPolicy(5, 3, (16, 16))
    context = torch.randn(200, 5, dtype=torch.float64)
    logits = mask(context)
    acted = gumbel_mask(logits, torch.ones_like(logits, dtype=torch.bool), 0.5)
    action(context, acted).square().sum().backward()
    for network in (mask, action):
        assert all(p.grad is not None and bool((p.grad != 0).any()) for p in network.parameters())
    none, all_ = torch.zeros(200, 3, dtype=torch.float64), torch.ones(200, 3, dtype=torch.float64)
    assert not torch.equal(action(context, none), action(context, all_))


def test_without_a_fallback_nobody_is_told_to_act_below_one_half() -> None:
    """As the released code reads a mask; with it, exactly one feature."""
    logits = torch.tensor([[-1.0, -0.5, -2.0], [0.1, -1.0, 3.0]])
    can = torch.tensor([[True, True, True], [True, True, False]])
    assert likeliest_mask(logits, can, fallback=False).tolist() == [[False] * 3, [True, False, False]]
    assert likeliest_mask(logits, can).sum(dim=1).tolist() == [1, 1]

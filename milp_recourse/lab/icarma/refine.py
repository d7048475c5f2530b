r"""Refinement of recommendations: a few steps of sequential quadratic programming, all applicants at once.

With u the changes of the features acted on, in units in which the cost is :math:`|u|^2`, and :math:`g(u)` by
how much acceptance and plausibility exceed what is demanded, a step solves

.. math:: \min_v |v|^2 \quad \text{subject to} \quad g(u) + Dg(u) (v - u) \ge 0

exactly, as there are two rows, and goes part of the way to v, by the length with the least
:math:`|u|^2 + \rho \sum_i \max(0, -g_i(u))` (Nocedal and Wright 2006, chapter 18). The cheapest point seen
that meets both demands is kept. Nothing is proven: the steps find a local optimum, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from milp_recourse.lab.icarma.networks import torch_network
from milp_recourse.lab.icarma.task import Task
from milp_recourse.problem.network import ReluNetwork

LENGTHS = (1.0, 0.5, 0.2)
"""Parts of the way to v that are tried."""

AIMED, MET = 2e-3, 1e-6
"""What the steps aim at and what counts as met, in logits and in nats above what is demanded."""

DEAREST = 1e3
"""The largest price rho of a violation."""


@dataclass(frozen=True, eq=False)
class Demands:
    """What a recommendation must meet, and what it costs.

    Parameters
    ----------
    network
        The deployed classifier.
    least
        The logit that is demanded, margin included.
    scale
        s of the cost, shape (k,).
    """

    network: ReluNetwork
    least: float
    scale: NDArray[np.float64]

    @staticmethod
    def of(task: Task) -> Demands:
        """Those of a task; plausibility is always demanded."""
        accept = task.template.accept
        return Demands(task.network, accept.threshold + accept.margin, task.scale)

    def content(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """As arrays ``demands.*`` and a JSON value."""
        arrays = {"demands.scale": self.scale}
        for k, (weight, bias) in enumerate(zip(self.network.weights, self.network.biases, strict=True)):
            arrays |= {f"demands.weight.{k}": weight, f"demands.bias.{k}": bias}
        return arrays, {"least": self.least, "dtype": self.network.dtype, "layers": len(self.network.weights)}

    @staticmethod
    def of_content(arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> Demands:
        """The inverse of :meth:`content`."""
        layers = [
            (arrays[f"demands.weight.{k}"], arrays[f"demands.bias.{k}"]) for k in range(about["layers"])
        ]
        return Demands(
            ReluNetwork.from_layers(layers, about["dtype"]), about["least"], arrays["demands.scale"]
        )


@dataclass(frozen=True)
class Start:
    """Where steps begin: features acted on, boolean, and their values, both (n, k)."""

    acted: Tensor
    values: Tensor


@torch.enable_grad()
def refine(
    flow: Any,
    columns: Sequence[int],
    demands: Demands,
    rows: Tensor,
    weights: Tensor,
    limits: Sequence[Tensor],
    starts: Sequence[Start],
    steps: int,
) -> Start:
    """The cheapest of what the steps reach from several starts, each with its own features acted on.

    Parameters
    ----------
    flow, columns
        The flow or structural model for the effects of actions, and the levers' columns.
    rows, weights
        Factual rows, shape (n, d), and the applicants' weights, shape (n, k).
    limits
        Lowest and highest values of the levers, each (k,) or (n, k).

    Returns
    -------
    Start
        Features acted on and their values; those of the first start, within limits, where nothing is found.
    """
    acted, values = (torch.cat([getattr(one, name) for one in starts]) for name in ("acted", "values"))
    if not acted.any():
        return starts[0]
    decision, place = torch_network(demands.network, rows.device), torch.tensor(columns, device=rows.device)
    unit = torch.as_tensor(demands.scale, device=rows.device) / torch.where(weights > 0, weights, 1.0).sqrt()
    given = (
        rows,
        flow.abduct(rows),
        flow.log_density(rows),
        unit,
        *(limit.expand_as(unit) for limit in limits),
    )
    x, z, density, unit, low, high = (_repeated(one, len(starts)) for one in given)
    factual, mask = x[:, columns], torch.zeros_like(x).index_copy(1, place, acted.to(x.dtype))

    def gaps(u: Tensor) -> Tensor:
        each = (_repeated(one, len(u) // len(x)) for one in (x, z, density, mask, factual, unit))
        row, latents, least, acting, start, scale = each
        to = torch.zeros_like(row).index_copy(1, place, start + u * scale)
        after = flow.intervene(row, acting, to, latents)
        return torch.stack((decision(after) - demands.least, flow.log_density(after) - least), dim=-1)

    first, least, most = (torch.where(acted, (at - factual) / unit, 0.0) for at in (values, low, high))
    u, cost = cheapest(gaps, first, least, most, steps)
    found, which = cost.view(len(starts), -1).min(dim=0)
    chosen = torch.where(found.isfinite(), which, 0) * len(rows) + torch.arange(len(rows), device=rows.device)
    return Start(acted[chosen], _within(factual + u * unit, low, high)[chosen])


def _repeated(a: Tensor, times: int) -> Tensor:
    return a.repeat(times, *[1] * (a.dim() - 1))


def cheapest(
    gaps: Callable[[Tensor], Tensor], start: Tensor, low: Tensor, high: Tensor, steps: int
) -> tuple[Tensor, Tensor]:
    """Lower :math:`|u|^2` under two demands and bounds, one problem per row.

    Parameters
    ----------
    gaps
        g, (n, k) -> (n, 2), differentiable; 0 or more where a demand is met.
    start, low, high
        Where to begin, and the bounds of u, shape (n, k).

    Returns
    -------
    u, cost
        The cheapest point seen that meets both demands, shape (n, k), and its cost, infinite without one.
    """
    u = best = _within(start, low, high).detach()
    cost = torch.full_like(u[:, 0], torch.inf)
    price = torch.ones_like(cost)
    for _ in range(steps):
        point = u.detach().requires_grad_()
        gap = gaps(point)
        slopes = torch.stack(
            [torch.autograd.grad(one.sum(), point, retain_graph=True)[0] for one in gap.unbind(dim=1)], dim=1
        )
        gap = gap.detach()
        to, multipliers = within_bounds(slopes, AIMED - gap + (slopes @ u[..., None])[..., 0], low, high)
        price = torch.maximum(price, 3 * multipliers.amax(dim=1)).clamp_max(DEAREST)
        merit = torch.full_like(cost, torch.inf)
        on_the_way = torch.cat([u + length * (to - u) for length in LENGTHS])
        tried = list(zip(*(a.split(len(u)) for a in (on_the_way, gaps(on_the_way).detach())), strict=True))
        for v, reached in [(u, gap), *tried]:
            own = v.square().sum(dim=1)
            met = (reached >= MET).all(dim=1) & (own < cost)
            best, cost = torch.where(met[:, None], v, best), torch.where(met, own, cost)
        for v, reached in tried:
            worth = v.square().sum(dim=1) + price * (AIMED - reached).clamp_min(0).sum(dim=1)
            nearer = worth < merit
            u, merit = torch.where(nearer[:, None], v, u), torch.where(nearer, worth, merit)
    return best, cost


def within_bounds(slopes: Tensor, least: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """:func:`least_norm` within bounds: what is outside a bound is held there, and the rest solved again."""
    held = torch.zeros_like(low)
    free = torch.ones_like(low)
    for _ in range(low.shape[1]):
        rest = least - (slopes @ held[..., None])[..., 0]
        v, multipliers = least_norm(slopes * free[:, None], rest)
        v = v + held
        inside = _within(v, low, high)
        if bool((inside == v).all()):
            break
        held, free = torch.where(inside == v, held, inside), torch.where(inside == v, free, 0.0)
    return inside, multipliers


def least_norm(slopes: Tensor, least: Tensor) -> tuple[Tensor, Tensor]:
    r"""The shortest v with :math:`S v \ge b`, for two rows.

    No row holds with equality, or one, or both: of these four points the shortest that fulfils the rows is
    the solution. If the rows contradict each other, violations are priced instead.

    Parameters
    ----------
    slopes, least
        S and b, shapes (n, 2, k) and (n, 2).

    Returns
    -------
    v, multipliers
        Shapes (n, k) and (n, 2); :math:`v = S^T l` with multipliers l, 0 or more.
    """
    gram = slopes @ slopes.mT
    own, across = gram.diagonal(dim1=1, dim2=2).clamp_min(1e-12), gram[:, 0, 1]
    area = (own.prod(dim=1) - across.square()).clamp_min(1e-12)
    both = (own.flip(1) * least - across[:, None] * least.flip(1)) / area[:, None]
    alone = torch.diag_embed((least / own).clamp_min(0)).transpose(0, 1)
    each = torch.stack((torch.zeros_like(least), *alone, both))
    points = torch.einsum("cni,nik->cnk", each, slopes)
    lacking = (least - torch.einsum("nik,cnk->cni", slopes, points)).clamp_min(0).sum(dim=2)
    worth = points.square().sum(dim=2) + DEAREST * lacking + 1e6 * (each < 0).any(dim=2)
    chosen, people = worth.argmin(dim=0), torch.arange(len(least), device=least.device)
    return points[chosen, people], each[chosen, people].clamp_min(0)


def _within(values: Tensor, low: Tensor, high: Tensor) -> Tensor:
    return torch.maximum(torch.minimum(values, high), low)

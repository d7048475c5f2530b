"""A structural causal model with gradients, which replaces the flow where equations are known.

It has the methods of :class:`~milp_recourse.lab.icarma.flow.CausalFlow` (latents, densities, interventions),
and computes them from an instance's equations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from milp_recourse.errors import BadInput
from milp_recourse.formats.schema_scm import scm_of_dict, scm_to_dict
from milp_recourse.lab.arrays import FloatArray
from milp_recourse.lab.icarma.networks import torch_network
from milp_recourse.problem.expression import (
    Constant,
    Expression,
    NetworkOutput,
    Product,
    Relu,
    Sigmoid,
    Square,
    Sum,
    Variable,
)
from milp_recourse.problem.noise import Gamma, Mixture, Normal
from milp_recourse.problem.scm import Link, StructuralCausalModel


class StructuralModel(nn.Module):
    """An SCM as a differentiable module.

    Parameters
    ----------
    scm
        The model. Its features must be in causal order, and every mechanism must state its noise.
    mean, sd
        Mean and standard deviation of each feature, shape (d,), in which the networks' outputs are measured.

    Raises
    ------
    BadInput
        A mechanism states no noise, or a feature stands before one of its causes.
    """

    mean: Tensor
    sd: Tensor

    def __init__(self, scm: StructuralCausalModel, mean: ArrayLike, sd: ArrayLike) -> None:
        super().__init__()
        unstated = [f for f, m in scm.mechanisms.items() if m.noise is None]
        if unstated:
            raise BadInput("scm", f"no noise for {unstated[0]}", "a model that states every feature's noise")
        if scm.order != scm.features:
            raise BadInput("scm", f"features in the order {', '.join(scm.features)}", "causes before effects")
        self.scm, self.features = scm, scm.features
        for name, value in (("mean", mean), ("sd", sd)):
            self.register_buffer(name, torch.as_tensor(np.array(value, dtype=np.float64)), persistent=False)

    @staticmethod
    def of_rows(scm: StructuralCausalModel, rows: ArrayLike) -> StructuralModel:
        """The module with mean and standard deviation (divisor n) of rows, shape (n, d)."""
        table = np.asarray(rows, dtype=np.float64)
        return StructuralModel(scm, table.mean(axis=0), table.std(axis=0))

    @property
    def settings(self) -> dict[str, Any]:
        """The whole module as a JSON value."""
        return {
            "features": list(self.features),
            "scm": scm_to_dict(self.scm, explicit=True),
            "mean": self.mean.tolist(),
            "sd": self.sd.tolist(),
        }

    @staticmethod
    def of_settings(settings: Mapping[str, Any]) -> StructuralModel:
        """The inverse of :attr:`settings`."""
        scm = scm_of_dict(settings["scm"], settings["features"])
        return StructuralModel(scm, settings["mean"], settings["sd"])

    def abduct(self, x: Tensor) -> Tensor:
        """The noise of rows x, less its mean and divided by its standard deviation, shape (n, d).

        Normal noise has mean 0. For Bernoulli noise the feature's mean and standard deviation are taken.
        """
        values = self._columns(x)
        latents = []
        for k, f in enumerate(self.features):
            noise = self.scm.mechanisms[f].noise
            centre: float | Tensor = 0.0
            if isinstance(noise, Gamma):
                centre = noise.shape * noise.scale
            elif isinstance(noise, Mixture):
                centre = noise.mean
            elif not isinstance(noise, Normal):
                centre = self.mean[k]
            latents.append((self._noise(values, f) - centre) / self._unit(k))
        return torch.stack(latents, dim=-1)

    def log_density(self, x: Tensor) -> Tensor:
        """log p(x) of rows, shape (n,), without the terms of features with Bernoulli noise."""
        values, total = self._columns(x), torch.zeros_like(x[:, 0])
        for f in self.features:
            m = self.scm.mechanisms[f]
            u = self._noise(values, f)
            if isinstance(m.noise, Normal):
                total = total - 0.5 * (u / m.noise.sd).square() - np.log(m.noise.sd * np.sqrt(2 * np.pi))
            elif isinstance(m.noise, Gamma):
                gamma = torch.distributions.Gamma(m.noise.shape, 1 / m.noise.scale, validate_args=False)
                total = total + torch.where(u > 0, gamma.log_prob(u.clamp_min(1e-300)), -torch.inf)
            elif isinstance(m.noise, Mixture):
                weights, means, sds = (u.new_tensor(a) for a in (m.noise.weights, m.noise.means, m.noise.sds))
                parts = torch.distributions.Normal(means, sds).log_prob(u[..., None])
                total = total + (parts + (weights / weights.sum()).log()).logsumexp(-1)
            if m.link.kind == "sigmoid":
                s = (values[f] - m.link.offset) / m.link.scale
                total = total - s.log() - (-s).log1p() - np.log(abs(m.link.scale))
        return total

    def intervene(self, x: Tensor, acted: Tensor, values: Tensor, z: Tensor | None = None) -> Tensor:
        """Counterfactuals of do(X_I := a_I); see :meth:`milp_recourse.lab.icarma.flow.CausalFlow.intervene`.

        A feature that is not acted on moves by as much as its equation, a linked one before its link. If z is
        given, the noise is normal and there is no link, its value is computed from z instead, which saves
        evaluating the equation at the factual.
        """
        before = self._columns(x)
        after: dict[str, Tensor] = {}
        moved: set[str] = set()
        open_to_action = acted.detach().ne(0).any(dim=0).tolist()
        for i, f in enumerate(self.features):
            natural = before[f]
            if self.scm.parents(f) & moved:
                m = self.scm.mechanisms[f]
                now = evaluate(m.equation, after)
                if z is not None and isinstance(m.noise, Normal) and m.link.kind == "identity":
                    natural = now + z[:, i] * m.noise.sd
                else:
                    shift = now - evaluate(m.equation, before)
                    natural = _linked(_unlinked(natural, m.link) + shift, m.link)
                moved.add(f)
            if open_to_action[i]:
                natural = acted[:, i] * values[:, i] + (1 - acted[:, i]) * natural
                moved.add(f)
            after[f] = natural
        return torch.stack([after[f] for f in self.features], dim=-1)

    def shifted(self, x: Tensor, shift: Tensor, z: Tensor | None = None) -> Tensor:
        """The rows with shifted latents; see :meth:`milp_recourse.lab.icarma.flow.CausalFlow.shifted`."""
        before = self._columns(x)
        after: dict[str, Tensor] = {}
        moved: set[str] = set()
        pushed = shift.detach().ne(0).any(dim=0).tolist()
        for i, f in enumerate(self.features):
            after[f] = before[f]
            if pushed[i] or self.scm.parents(f) & moved:
                m = self.scm.mechanisms[f]
                noise = self._noise(before, f) + shift[:, i] * self._unit(i)
                after[f] = _linked(evaluate(m.equation, after) + noise, m.link)
                moved.add(f)
        return torch.stack([after[f] for f in self.features], dim=-1)

    def counterfactual(self, x: ArrayLike, action: ArrayLike) -> FloatArray:
        """:meth:`milp_recourse.problem.scm.StructuralCausalModel.counterfactual`, in float64."""
        return self.scm.counterfactual(np.asarray(x), np.asarray(action))

    @torch.no_grad()
    def log_densities(self, x: ArrayLike) -> FloatArray:
        """:meth:`log_density` of an array."""
        rows = torch.as_tensor(np.asarray(x, dtype=np.float64), device=self.mean.device)
        return self.log_density(rows).cpu().numpy()

    def _unit(self, k: int) -> float | Tensor:
        """The standard deviation of feature k's noise, which is one unit of its latent."""
        noise = self.scm.mechanisms[self.features[k]].noise
        if isinstance(noise, Normal | Mixture):
            return noise.sd
        if isinstance(noise, Gamma):
            return noise.scale * float(noise.shape**0.5)
        return self.sd[k]

    def _columns(self, x: Tensor) -> dict[str, Tensor]:
        return dict(zip(self.features, x.unbind(dim=-1), strict=True))

    def _noise(self, values: Mapping[str, Tensor], f: str) -> Tensor:
        m = self.scm.mechanisms[f]
        return _unlinked(values[f], m.link) - evaluate(m.equation, values)


def evaluate(expression: Expression, values: Mapping[str, Tensor]) -> Tensor:
    """An expression over tensors, with gradients."""
    if isinstance(expression, Constant):
        return torch.tensor(expression.value, dtype=torch.float64)
    if isinstance(expression, Variable):
        return values[expression.name]
    parts = [evaluate(child, values) for child in expression.children]
    if isinstance(expression, NetworkOutput):
        z = torch.stack(torch.broadcast_tensors(*parts), dim=-1)
        return torch_network(expression.network, z.device)(z)
    return _COMBINED[type(expression)](parts)


def _total(parts: list[Tensor]) -> Tensor:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _multiplied(parts: list[Tensor]) -> Tensor:
    product = parts[0]
    for part in parts[1:]:
        product = product * part
    return product


_COMBINED: Mapping[type, Any] = {
    Sum: _total,
    Product: _multiplied,
    Relu: lambda parts: torch.relu(parts[0]),
    Sigmoid: lambda parts: torch.sigmoid(parts[0]),
    Square: lambda parts: parts[0].square(),
}


def _linked(z: Tensor, link: Link) -> Tensor:
    return z if link.kind == "identity" else link.offset + link.scale * torch.sigmoid(z)


def _unlinked(x: Tensor, link: Link) -> Tensor:
    return x if link.kind == "identity" else torch.logit((x - link.offset) / link.scale)

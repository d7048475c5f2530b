r"""A causal normalising flow: an SCM's equations, learned from data and the causal graph.

One masked autoregressive layer, increasing in each feature given its causal parents,

.. math:: z_i = t(x_i; \theta_i(x_{pa(i)})), \qquad z_i \sim N(0, 1),

with t affine, :math:`b_i + e^{s_i} x_i`, or a rational-quadratic spline (Durkan et al. 2019,
https://arxiv.org/abs/1906.04032), whose parameters come from one masked network (Javaloy et al. 2023,
https://arxiv.org/abs/2306.05415; iCARMA paper, appendices A.4, C.2.2 and C.3.2). Because there is a single
layer, masked by the whole graph, :math:`z_i` is a function of feature i and its parents only, and can take
the place of the exogenous noise.

A discrete root (Loan's gender) is *conditioned on*: it enters the network as a parent, is not acted
on, and has no term in the density. Every density here is of the other features given it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from zuko.flows import MaskedAutoregressiveTransform
from zuko.transforms import MonotonicAffineTransform, MonotonicRQSTransform

from milp_recourse.lab.arrays import FloatArray
from milp_recourse.problem.scm import StructuralCausalModel

HALF_LOG_TWO_PI = 0.5 * float(np.log(2 * np.pi))

Shape = Literal["affine", "spline"]
"""The kind of map from a feature to its latent."""

BINS = 8
"""Number of bins of a spline on standardised values from -5 to 5; outside, the map is the identity."""

_SHAPES: dict[Shape, dict[str, Any]] = {
    "affine": {"univariate": MonotonicAffineTransform, "shapes": ((), ())},
    "spline": {"univariate": MonotonicRQSTransform, "shapes": ((BINS,), (BINS,), (BINS - 1,))},
}


class CausalFlow(nn.Module):
    """A learned density with abduction and interventions.

    Parameters
    ----------
    features
        Names in causal order, every parent before its children.
    parents
        Names of the direct causes of each feature.
    conditioned
        Discrete roots, which are conditioned on.
    hidden
        Number of units (ELU) of each hidden layer of the masked network.
    shape
        The kind of map from every feature to its latent.

    Raises
    ------
    ValueError
        A feature stands before one of its parents, or a conditioned one has parents.
    """

    mean: Tensor
    sd: Tensor
    continuous: Tensor

    def __init__(
        self,
        features: Sequence[str],
        parents: Sequence[Sequence[str]],
        conditioned: Sequence[str] = (),
        hidden: Sequence[int] = (64, 64),
        shape: Shape = "affine",
    ) -> None:
        super().__init__()
        self.features = tuple(features)
        self.parents = tuple(tuple(names) for names in parents)
        self.conditioned, self.hidden, self.shape = tuple(conditioned), tuple(hidden), shape
        d = len(self.features)
        graph = np.zeros((d, d), dtype=bool)
        for i, names in enumerate(self.parents):
            for name in names:
                graph[i, self.features.index(name)] = True
        if np.triu(graph).any():
            raise ValueError("features must stand in causal order, parents first")
        if any(graph[self.features.index(name)].any() for name in self.conditioned):
            raise ValueError("a conditioned feature must be a root")
        self.graph = graph
        adjacency = torch.as_tensor(graph | np.eye(d, dtype=bool))
        self.transform = MaskedAutoregressiveTransform(
            d, adjacency=adjacency, hidden_features=self.hidden, activation=nn.ELU, **_SHAPES[shape]
        )
        self.register_buffer("mean", torch.zeros(d))
        self.register_buffer("sd", torch.ones(d))
        continuous = [name not in self.conditioned for name in self.features]
        self.register_buffer("continuous", torch.tensor(continuous), persistent=False)
        self.double()

    @staticmethod
    def of_scm(scm: StructuralCausalModel, conditioned: Sequence[str]) -> CausalFlow:
        """An untrained flow with the causal graph of a model."""
        return CausalFlow(scm.features, [sorted(scm.parents(f)) for f in scm.features], conditioned)

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments, as JSON writes them."""
        return {
            "features": list(self.features),
            "parents": [list(names) for names in self.parents],
            "conditioned": list(self.conditioned),
            "hidden": list(self.hidden),
            "shape": self.shape,
        }

    def standardise_by(self, rows: ArrayLike) -> None:
        """Take mean and standard deviation (divisor n) of each feature from rows."""
        taken = torch.as_tensor(np.asarray(rows), dtype=torch.float64)
        self.mean.copy_(taken.mean(dim=0))
        self.sd.copy_(taken.std(dim=0, correction=0))

    def standardised(self, x: Tensor) -> Tensor:
        """Raw rows in units of standard deviations from the mean."""
        return (x - self.mean) / self.sd

    def abduct(self, x: Tensor) -> Tensor:
        """Latents z of rows x in raw units, both (n, d); for a conditioned feature its standardised value."""
        y = self.standardised(x)
        return torch.where(self.continuous, self._univariate(y)(y), y)

    def log_density(self, x: Tensor) -> Tensor:
        """log p(x) in raw units given the conditioned features, shape (n,)."""
        return self.column_log_density(x).sum(dim=-1)

    def column_log_density(self, x: Tensor) -> Tensor:
        """log p of each feature given its causes, shape (n, d); 0 for conditioned features."""
        y = self.standardised(x)
        z, slope = self._univariate(y).call_and_ladj(y)
        terms = slope - 0.5 * z.square() - HALF_LOG_TWO_PI - self.sd.log()
        return torch.where(self.continuous, terms, 0.0)

    def intervene(self, x: Tensor, acted: Tensor, values: Tensor, z: Tensor | None = None) -> Tensor:
        r"""Counterfactuals of :math:`do(X_I := a_I)`: abduction, action, prediction.

        In causal order, feature i becomes :math:`m_i a_i + (1 - m_i) x'_i`, where :math:`x'_i` follows from
        its latent and the parents' *new* values. Differentiable in all arguments (``acted`` gets no
        gradient for a feature that nobody in the batch acts on).

        Parameters
        ----------
        x
            Factual rows in raw units, shape (n, d).
        acted
            The mask m, shape (n, d): 0 or 1, or in between for a relaxed mask in training.
        values
            The values a, shape (n, d); any finite number where not acted on.
        z
            The latents of x; None to compute them here.
        """
        z = self.abduct(x) if z is None else z
        columns = list(x.unbind(dim=-1))
        moved: set[int] = set()
        open_to_action = acted.detach().ne(0).any(dim=0).tolist()
        for i in range(len(self.features)):
            natural = columns[i]
            if moved & set(np.flatnonzero(self.graph[i]).tolist()):
                natural = self._natural(i, columns, z)
                moved.add(i)
            if open_to_action[i]:
                natural = acted[:, i] * values[:, i] + (1 - acted[:, i]) * natural
                moved.add(i)
            columns[i] = natural
        return torch.stack(columns, dim=-1)

    def shifted(self, x: Tensor, shift: Tensor, z: Tensor | None = None) -> Tensor:
        r"""The rows with shifted latents, :math:`T^{-1}(z + s)`.

        In causal order, feature i follows from its shifted latent and its parents' *new* values. A feature
        without a shift whose parents have not moved keeps its value, up to rounding where others in the batch
        move it. Differentiable in all arguments.

        Parameters
        ----------
        x
            Factual rows in raw units, shape (n, d).
        shift
            s, shape (n, d); 0 for conditioned features.
        z
            The latents of x; None to compute them here.
        """
        z = (self.abduct(x) if z is None else z) + shift
        columns = list(x.unbind(dim=-1))
        moved: set[int] = set()
        pushed = shift.detach().ne(0).any(dim=0).tolist()
        for i in range(len(self.features)):
            if pushed[i] or moved & set(np.flatnonzero(self.graph[i]).tolist()):
                columns[i] = self._natural(i, columns, z)
                moved.add(i)
        return torch.stack(columns, dim=-1)

    def _natural(self, i: int, columns: list[Tensor], z: Tensor) -> Tensor:
        """The value of feature i that follows from its latent and the other features, shape (n,)."""
        parameters = self.transform.hyper(self.standardised(torch.stack(columns, dim=-1)))
        own = parameters.unflatten(-1, (len(self.features), -1))[:, i]
        shapes = _SHAPES[self.shape]["shapes"]
        parts = own.split([math.prod(shape) for shape in shapes], dim=-1)
        arguments = (part.unflatten(-1, (*shape, 1)) for part, shape in zip(parts, shapes, strict=True))
        univariate = _SHAPES[self.shape]["univariate"](*(a[..., 0] for a in arguments))
        return self.mean[i] + self.sd[i] * univariate.inv(z[:, i])

    @torch.no_grad()
    def sample(self, size: int, generator: torch.Generator | None = None) -> FloatArray:
        """Rows drawn from the flow in raw units, shape (size, d); the flow must not condition on anything."""
        z = torch.randn(size, len(self.features), generator=generator, dtype=torch.float64)
        y = self.transform().inv(z.to(self.mean.device))
        return (self.mean + self.sd * y).cpu().numpy()

    @torch.no_grad()
    def counterfactual(self, x: ArrayLike, action: ArrayLike) -> FloatArray:
        """Counterfactual rows, as :meth:`milp_recourse.problem.scm.StructuralCausalModel.counterfactual`.

        A feature that is acted on gets the double in ``action`` exactly. One that is not, and whose parents
        have not moved, keeps its double exactly.

        Parameters
        ----------
        x
            Factual rows, shape (n, d).
        action
            Shape (n, d), nan where a feature is not acted on.
        """
        rows, targets = (np.atleast_2d(np.asarray(a, dtype=np.float64)) for a in (x, action))
        acted = ~np.isnan(targets)
        values = np.where(acted, targets, 0.0)
        after = self.intervene(
            *(torch.as_tensor(a, dtype=torch.float64, device=self.mean.device) for a in (rows, acted, values))
        )
        result = after.cpu().numpy()
        moved = np.zeros_like(acted)
        for i in range(len(self.features)):
            follows = (moved & self.graph[i]).any(axis=-1)
            result[:, i] = np.where(acted[:, i], values[:, i], np.where(follows, result[:, i], rows[:, i]))
            moved[:, i] = acted[:, i] | follows
        return result

    @torch.no_grad()
    def log_densities(self, x: ArrayLike) -> FloatArray:
        """:meth:`log_density` of an array."""
        rows = torch.as_tensor(np.asarray(x, dtype=np.float64), device=self.mean.device)
        return self.log_density(rows).cpu().numpy()

    def _univariate(self, y: Tensor) -> Any:
        """The maps from each feature of standardised rows y to its latent, given y."""
        return self.transform.meta(None, y).base

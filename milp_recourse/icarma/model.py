"""Flow, mask network and action network put together: from applicants to actions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from milp_recourse.errors import BadInput
from milp_recourse.icarma.flow import CausalFlow
from milp_recourse.icarma.networks import ActionPolicy, MaskPolicy, by_xavier, gumbel_mask, likeliest_mask
from milp_recourse.icarma.sampling import Wishes
from milp_recourse.icarma.settings import LATENT_LIMIT, Settings
from milp_recourse.icarma.structural import StructuralModel

FloatArray = NDArray[np.float64]


class Proposed(NamedTuple):
    """What the networks propose.

    Attributes
    ----------
    logits, acted, values
        Mask logits, mask as numbers, values in raw units; all (n, k).
    after
        Counterfactual rows under the flow, shape (n, d).
    """

    logits: Tensor
    acted: Tensor
    values: Tensor
    after: Tensor


class Recommender(nn.Module):
    """A trained pair of networks with the flow that it looks through.

    Parameters
    ----------
    flow
        Frozen here.
    levers
        The k globally actionable features.
    bounds
        Lowest and highest value an action may set, shape (2, k).
    settings
        How it is, or was, trained.
    """

    bounds: Tensor

    def __init__(
        self, flow: CausalFlow | StructuralModel, levers: Sequence[str], bounds: ArrayLike, settings: Settings
    ) -> None:
        super().__init__()
        self.levers, self.settings = tuple(levers), settings
        self.columns = [flow.features.index(name) for name in self.levers]
        self.register_buffer("bounds", torch.as_tensor(np.array(bounds, dtype=np.float64)), persistent=False)
        k = len(self.levers)
        context = len(flow.features) + (2 * k if settings.individual else 0)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            self.mask = MaskPolicy(context, k, settings.mask_hidden)
            self.action = ActionPolicy(context, k, settings.action_hidden)
            if settings.initial == "xavier":
                by_xavier(self.mask)
                by_xavier(self.action)
        self.flow = flow
        self.flow.requires_grad_(False)

    def context(self, z: Tensor, actionable: Tensor, height: Tensor) -> Tensor:
        """What both networks see: latent, individual mask, preferences (CARMA: the latent alone).

        The paper does not say that the networks see preferences; without them, no mask could
        follow a prior that depends on preferences.
        """
        if not self.settings.individual:
            return z
        return torch.cat((z, actionable.to(z.dtype), height), dim=-1)

    def propose(
        self,
        rows: Tensor,
        z: Tensor,
        actionable: Tensor,
        height: Tensor,
        generator: torch.Generator | None = None,
    ) -> Proposed:
        """Masks drawn with ``generator`` and gradients, or the likeliest masks without."""
        context = self.context(z, actionable, height)
        logits = self.mask(context)
        if generator is None:
            acted = likeliest_mask(logits, actionable, self.settings.fallback).to(z.dtype)
        else:
            acted = gumbel_mask(logits, actionable, self.settings.temperature, generator)
        said = self.action(context, acted)
        if self.settings.actions == "latent":
            shift = self._placed(rows, acted * said.clamp(-LATENT_LIMIT, LATENT_LIMIT))
            after = self.flow.shifted(rows, shift, z)
            return Proposed(logits, acted, after[:, self.columns], after)
        values = rows[:, self.columns] + said * self.flow.sd[self.columns]
        after = self.flow.intervene(rows, self._placed(rows, acted), self._placed(rows, values), z)
        return Proposed(logits, acted, values, after)

    def _placed(self, rows: Tensor, of_levers: Tensor) -> Tensor:
        """Numbers of the levers in their columns, 0 elsewhere, shape (n, d)."""
        placed = torch.zeros_like(rows)
        placed[:, self.columns] = of_levers
        return placed

    @torch.no_grad()
    def recommend(
        self, rows: ArrayLike, wishes: Wishes, limits: ArrayLike | None = None, within_bounds: bool = True
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Actions for applicants, without chance.

        Parameters
        ----------
        rows
            Factual rows, raw units, shape (n, d).
        wishes
            Their masks and weights.
        limits
            Lowest and highest value per applicant and lever, shape (n, 2, k), where narrower than
            the bounds; lowest above highest: that lever cannot be used.
        within_bounds
            False: values stay as the networks say them, wherever that is, as the paper reports them.

        Returns
        -------
        action
            Shape (n, d), nan where not acted on: outside the individual mask always, inside the
            limits always.
        cut
            Whether a limit changed what the network said, shape (n,).

        Raises
        ------
        BadInput
            Masks and rows of different length.
        """
        table = np.atleast_2d(np.asarray(rows, dtype=np.float64))
        if len(wishes) != len(table):
            raise BadInput("preferences", len(wishes), f"one per applicant, {len(table)}")
        low, high = (
            self.bounds.cpu().numpy()
            if within_bounds
            else (np.full(len(self.levers), e) for e in (-np.inf, np.inf))
        )
        if limits is not None:
            given = np.asarray(limits, dtype=np.float64)
            low, high = np.maximum(low, given[:, 0]), np.minimum(high, given[:, 1])
        can = wishes.actionable & (low <= high)
        device = self.bounds.device
        x, mask, height = (torch.as_tensor(a, device=device) for a in (table, can, wishes.height))
        proposed = self.propose(x, self.flow.abduct(x), mask, height)
        acted, values = proposed.acted.cpu().numpy() > 0, proposed.values.cpu().numpy()
        inside = np.clip(values, low, np.maximum(low, high))
        action = np.full(table.shape, np.nan)
        action[:, self.columns] = np.where(acted, inside, np.nan)
        return action, (acted & (inside != values)).any(axis=-1)

    def state(self) -> dict[str, Any]:
        """The two networks' weights."""
        return {
            f"{part}.{name}": value
            for part, network in (("mask", self.mask), ("action", self.action))
            for name, value in network.state_dict().items()
        }

    def load(self, state: dict[str, Any]) -> None:
        """Take the weights of :meth:`state`."""
        for part, network in (("mask", self.mask), ("action", self.action)):
            start = f"{part}."
            network.load_state_dict(
                {k.removeprefix(start): v for k, v in state.items() if k.startswith(start)}
            )

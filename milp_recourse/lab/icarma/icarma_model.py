"""The model that recommends actions: a flow, a mask network and an action network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from milp_recourse.errors import BadInput
from milp_recourse.lab.arrays import FloatArray
from milp_recourse.lab.icarma.flow import CausalFlow
from milp_recourse.lab.icarma.networks import ActionPolicy, MaskPolicy, by_xavier, gumbel_mask, likeliest_mask
from milp_recourse.lab.icarma.refine import Demands, Start, refine
from milp_recourse.lab.icarma.sampling import Wishes
from milp_recourse.lab.icarma.settings import LATENT_LIMIT, Settings
from milp_recourse.lab.icarma.structural import StructuralModel


class Proposed(NamedTuple):
    """The networks' outputs for n applicants.

    Attributes
    ----------
    logits, acted, values
        Mask logits, mask as numbers, values of the action in raw units; all (n, k).
    after
        Counterfactual rows under the flow, shape (n, d).
    """

    logits: Tensor
    acted: Tensor
    values: Tensor
    after: Tensor


class Recommender(nn.Module):
    """A mask network and an action network, with the flow that predicts the effects of actions.

    Parameters
    ----------
    flow
        The flow; its parameters are frozen.
    levers
        The k globally actionable features.
    bounds
        Lowest and highest value an action may set, shape (2, k).
    settings
        The settings of the training.
    demands
        What refined recommendations must meet; None where the settings have no steps.
    """

    bounds: Tensor

    def __init__(
        self,
        flow: CausalFlow | StructuralModel,
        levers: Sequence[str],
        bounds: ArrayLike,
        settings: Settings,
        demands: Demands | None = None,
    ) -> None:
        super().__init__()
        self.levers, self.settings, self.demands = tuple(levers), settings, demands
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
        """The input of both networks: latent, individual mask and preferences; for CARMA the latent only.

        The paper does not say that preferences are an input. Without them, no mask could depend on them.
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
        whole: bool = False,
    ) -> Proposed:
        """Masks and actions: with ``generator`` masks drawn at random, else the likeliest masks.

        With ``whole``, every actionable feature is acted on instead.
        """
        context = self.context(z, actionable, height)
        logits = self.mask(context)
        if self.settings.conditioning == "mask":
            context = self.context(z, actionable, torch.zeros_like(height))
        if whole:
            acted = actionable.to(z.dtype)
        elif generator is None:
            acted = likeliest_mask(logits, actionable, self.settings.fallback).to(z.dtype)
        else:
            acted = gumbel_mask(logits, actionable, self.settings.temperature, generator)
        change = self.action(context, acted)
        if self.settings.actions == "latent":
            shift = self._placed(rows, acted * change.clamp(-LATENT_LIMIT, LATENT_LIMIT))
            after = self.flow.shifted(rows, shift, z)
            return Proposed(logits, acted, after[:, self.columns], after)
        values = rows[:, self.columns] + change * self.flow.sd[self.columns]
        after = self.flow.intervene(rows, self._placed(rows, acted), self._placed(rows, values), z)
        return Proposed(logits, acted, values, after)

    def starts(self, rows: Tensor, z: Tensor, actionable: Tensor, height: Tensor) -> list[Start]:
        """The networks' values within their mask and, for steps, with every actionable feature acted on."""
        ways = (False, True) if self.settings.steps else (False,)
        proposed = (self.propose(rows, z, actionable, height, whole=whole) for whole in ways)
        return [Start(one.acted > 0, one.values) for one in proposed]

    def _placed(self, rows: Tensor, of_levers: Tensor) -> Tensor:
        """Numbers of the levers in their columns, 0 elsewhere, shape (n, d)."""
        placed = torch.zeros_like(rows)
        placed[:, self.columns] = of_levers
        return placed

    @torch.no_grad()
    def recommend(
        self, rows: ArrayLike, wishes: Wishes, limits: ArrayLike | None = None, within_bounds: bool = True
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Actions for applicants, with the likeliest masks, refined by as many steps as the settings say.

        Steps begin at the networks' values, once within their mask and once with every actionable feature
        acted on; the cheapest result that meets the demands is recommended, else the networks' values.

        Parameters
        ----------
        rows
            Factual rows, raw units, shape (n, d).
        wishes
            The applicants' masks and weights.
        limits
            Lowest and highest value per applicant and lever, shape (n, 2, k), which narrow the bounds; a
            lever whose lowest is above its highest value cannot be used.
        within_bounds
            Whether values are cut to the bounds. The paper reports values that are not.

        Returns
        -------
        action
            Values, shape (n, d), nan where not acted on. Only features of the individual mask are acted on,
            and values are inside the limits.
        cut
            Whether bounds or limits changed a value of the network, shape (n,).

        Raises
        ------
        BadInput
            There is not one mask per row.
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
        z, high = self.flow.abduct(x), np.maximum(low, high)
        starts = self.starts(x, z, mask, height)
        acted, values = (of.cpu().numpy() for of in (starts[0].acted, starts[0].values))
        inside = np.clip(values, low, high)
        cut = (acted & (inside != values)).any(axis=-1)
        if self.demands:
            weights, *limits = (torch.as_tensor(a, device=device) for a in (wishes.weights, low, high))
            steps = self.settings.steps
            best = refine(self.flow, self.columns, self.demands, x, weights, limits, starts, steps)
            acted, inside = best.acted.cpu().numpy(), best.values.cpu().numpy()
        action = np.full(table.shape, np.nan)
        action[:, self.columns] = np.where(acted, inside, np.nan)
        return action, cut

    def state(self) -> dict[str, Any]:
        """The two networks' weights."""
        return {
            f"{part}.{name}": value
            for part, network in (("mask", self.mask), ("action", self.action))
            for name, value in network.state_dict().items()
        }

    def load(self, state: dict[str, Any]) -> None:
        """Set the two networks' weights to those of :meth:`state`."""
        for part, network in (("mask", self.mask), ("action", self.action)):
            start = f"{part}."
            network.load_state_dict(
                {k.removeprefix(start): v for k, v in state.items() if k.startswith(start)}
            )

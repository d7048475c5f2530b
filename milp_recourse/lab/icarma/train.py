"""Joint training of the mask network and the action network (iCARMA paper, appendices A.5, B, C.2.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from milp_recourse.errors import BadInput
from milp_recourse.lab.icarma import losses
from milp_recourse.lab.icarma.checkpoint import FORMAT, flow_content, read_arrays, tensors, write_arrays
from milp_recourse.lab.icarma.flow import CausalFlow
from milp_recourse.lab.icarma.icarma_model import Proposed, Recommender
from milp_recourse.lab.icarma.networks import torch_network
from milp_recourse.lab.icarma.refine import Demands
from milp_recourse.lab.icarma.sampling import Wishes, everyone
from milp_recourse.lab.icarma.settings import DAMPING, Settings
from milp_recourse.lab.icarma.structural import StructuralModel
from milp_recourse.lab.icarma.task import Task
from milp_recourse.lab.icarma.training_optima import Optima

PREFERENCES, MASKS, VALIDATION = 1, 2, 3
"""Parts of the seeds of what is drawn at random. Draws of an epoch depend on nothing but the seed and the
epoch's number, so that a resumed run gives the results of an uninterrupted one."""


@dataclass(frozen=True)
class Applicants:
    """Refused rows with their latents and log densities, which do not change in training."""

    rows: Tensor
    z: Tensor
    log_density: Tensor

    def __getitem__(self, index: Tensor) -> Applicants:
        return Applicants(self.rows[index], self.z[index], self.log_density[index])


@dataclass(frozen=True)
class Wanted:
    """Preferences as tensors, shape (n, k), for a batch.

    Attributes
    ----------
    actionable, weights, height
        As in :class:`~milp_recourse.lab.icarma.sampling.Wishes`.
    priors
        The mask network's, 0 where not actionable.
    optimal
        The levers' values in the optimal counterfactual, nan where there is none. None where the loss
        does not learn from certified answers, and for validation rows.
    share
        Each person's weight in the loss, shape (n,); None where ``optimal`` is.
    """

    actionable: Tensor
    weights: Tensor
    height: Tensor
    priors: Tensor
    optimal: Tensor | None = None
    share: Tensor | None = None

    @staticmethod
    def of(wishes: Wishes, settings: Settings, device: torch.device, *learned: NDArray[Any]) -> Wanted:
        """From arrays; ``learned`` are ``optimal`` and ``share``."""
        arrays = [wishes.actionable, wishes.weights, wishes.height, settings.priors(wishes)]
        return Wanted(*(torch.as_tensor(a, device=device) for a in (*arrays, *learned)))

    def __getitem__(self, index: Tensor) -> Wanted:
        columns = (getattr(self, field.name) for field in fields(self))
        return Wanted(*(None if c is None else c[index] for c in columns))


class Trainer:
    """One training run, which can be saved and resumed between epochs.

    Parameters
    ----------
    task
        The problem and its refused rows.
    flow
        The flow, or the structural model that replaces it; its parameters are frozen.
    device
        The device for torch.
    optima
        The certified answers for the train rows, if the settings learn from them.

    Raises
    ------
    BadInput
        The settings learn from certified answers, and ``optima`` is None or of another number of rows.
    """

    def __init__(
        self,
        task: Task,
        flow: CausalFlow | StructuralModel,
        settings: Settings,
        device: str = "cpu",
        optima: Optima | None = None,
    ) -> None:
        if settings.learns and (optima is None or optima.values.shape[1] != len(task.train)):
            got = "none" if optima is None else optima.values.shape[1]
            raise BadInput("optima", got, f"those of the {len(task.train)} train rows")
        self.task, self.settings = task, settings
        self.optima = optima if settings.learns else None
        self.device = torch.device(device)
        demands = Demands.of(task) if settings.steps else None
        self.model = Recommender(flow, task.levers, task.bounds, settings, demands).to(self.device)
        weights = [*self.model.mask.parameters(), *self.model.action.parameters()]
        self.optimiser = torch.optim.Adam(
            weights, lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        self.low, self.high = self.model.bounds
        self.scale = torch.as_tensor(task.scale, device=self.device)
        self.decision = torch_network(task.network, self.device)
        self.train, self.validation = self.applicants(task.train), self.applicants(task.validation)
        held = self._wishes(len(task.validation), np.random.default_rng([settings.seed, VALIDATION]))
        self.held = Wanted.of(held, settings, self.device)
        self.multiplier = 0.0 if settings.dual else settings.validity
        self.epoch, self.best_loss, self.best_epoch = 0, float("inf"), 0
        self.best = deepcopy(self.model.state())
        self.history: list[dict[str, float]] = []

    def step(self) -> dict[str, float]:
        """Train one epoch, with newly drawn or with certified preferences, and return :meth:`validate`."""
        seed, epoch = self.settings.seed, self.epoch
        rng = np.random.default_rng([seed, PREFERENCES, epoch])
        learned: tuple[NDArray[Any], ...] = ()
        if self.optima is None:
            wishes = self._wishes(len(self.train.rows), rng)
        else:
            k = epoch % len(self.optima.wishes)
            wishes = self.optima.wishes[k]
            counted = np.where(self.optima.impossible[k], self.settings.impossible, 1.0)
            learned = self.optima.values[k], counted
        wanted = Wanted.of(wishes, self.settings, self.device, *learned)
        stream = int(np.random.SeedSequence([seed, MASKS, epoch]).generate_state(1)[0])
        generator = torch.Generator().manual_seed(stream)
        if self.settings.decay:
            share = 0.5 * (1 + math.cos(math.pi * epoch / self.settings.epochs))
            for group in self.optimiser.param_groups:
                group["lr"] = self.settings.learning_rate * share
        order = torch.randperm(len(self.train.rows), generator=generator).to(self.device)
        for start in range(0, len(order), self.settings.batch):
            index = order[start : start + self.settings.batch]
            loss = self.loss(self.train[index], wanted[index], generator)
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()
        self.epoch += 1
        summary = self.validate()
        self.history.append({"epoch": self.epoch, **summary, "multiplier": self.multiplier})
        if self.settings.keep == "last" or summary["loss"] < self.best_loss:
            self.best_loss, self.best_epoch = summary["loss"], self.epoch
            self.best = deepcopy(self.model.state())
        return summary

    def loss(self, people: Applicants, wanted: Wanted, generator: torch.Generator) -> Tensor:
        r"""The loss of one batch: equation 6 with the individual terms and regularisers, for drawn masks.

        With dual ascent the hinge's mean v has the weight :math:`\lambda - 10 v`, and afterwards
        :math:`\lambda := \lambda + v`.
        """
        proposed = self.model.propose(people.rows, people.z, wanted.actionable, wanted.height, generator)
        means = {name: term.mean() for name, term in self.terms(people, wanted, proposed).items()}
        violation = means.pop("validity")
        loss = sum((self.settings_weight(name) * mean for name, mean in means.items()), torch.tensor(0.0))
        weight, now = self.multiplier, float(violation.detach())
        if self.settings.dual:
            weight -= DAMPING * now
            self.multiplier += now
        return loss + weight * violation

    def terms(self, people: Applicants, wanted: Wanted, proposed: Proposed) -> dict[str, Tensor]:
        """The terms of the loss by name, one number per applicant, without weights."""
        after, columns = proposed.after, self.model.columns
        change = (proposed.values - people.rows[:, columns]) / self.scale
        decision = self.decision(after) - self.task.template.accept.threshold
        if self.settings.hinge == "probability":
            decision = 2 * decision.sigmoid() - 1
        else:
            decision = decision / self.task.spread
        density = self.model.flow.log_density(after)
        terms = {
            "cost": losses.action_cost(proposed.acted, wanted.weights, change),
            "divergence": losses.mask_divergence(proposed.logits, wanted.priors, wanted.actionable),
            "validity": losses.validity_hinge(decision, self.settings.margin),
            "plausibility": losses.implausibility(people.log_density, density, self.settings.density_margin),
            "feasibility": losses.infeasibility(after[:, columns], self.low, self.high, wanted.actionable),
        }
        if wanted.optimal is not None:
            known = ~wanted.optimal.isnan().any(dim=-1)
            target = torch.where(known[:, None], wanted.optimal, after[:, columns].detach())
            terms["imitation"] = losses.distance(after[:, columns], target, known, self.scale)
        if wanted.share is not None:
            terms = {name: wanted.share * term for name, term in terms.items()}
        return terms

    def settings_weight(self, term: str) -> float:
        """A term's weight in the loss."""
        return float(getattr(self.settings, term))

    def validate(self) -> dict[str, float]:
        """Means over the refused validation rows, with the likeliest masks and always the same preferences.

        The best epoch is the one with the least ``loss``. It does not contain the divergence, which measures
        the masks' probabilities and no recommendation.
        """
        terms, valid, plausible, _ = self.measure(self.validation, self.held)
        del terms["divergence"]
        loss = sum(self.settings_weight(name) * float(term.mean()) for name, term in terms.items())
        return {
            "loss": loss,
            "valid": float(valid.double().mean()),
            "plausible": float(plausible.double().mean()),
            "cost": float(terms["cost"][valid].mean()) if bool(valid.any()) else float("nan"),
        }

    @torch.no_grad()
    def measure(self, people: Applicants, wanted: Wanted) -> tuple[dict[str, Tensor], Tensor, Tensor, Tensor]:
        """The loss's terms, who is accepted and whose outcome is plausible by the flow, and the masks."""
        proposed = self.model.propose(people.rows, people.z, wanted.actionable, wanted.height)
        valid = self.decision(proposed.after) >= self.task.template.accept.threshold
        plausible = self.model.flow.log_density(proposed.after) >= people.log_density
        return self.terms(people, wanted, proposed), valid, plausible, proposed.acted

    def save(self, path: Path) -> None:
        """Write everything that :meth:`resume` needs."""
        arrays, flow = flow_content(self.model.flow)
        for start, state in (("now.", self.model.state()), ("best.", self.best)):
            arrays |= {f"{start}{name}": value.detach().cpu().numpy() for name, value in state.items()}
        for k, state in self.optimiser.state_dict()["state"].items():
            arrays |= {f"adam.{k}.{name}": value.cpu().numpy() for name, value in state.items()}
        about = {
            "format": FORMAT,
            "kind": "training",
            "flow": flow,
            "settings": self.settings.as_json(),
            "epoch": self.epoch,
            "multiplier": self.multiplier,
            "best_epoch": self.best_epoch,
            "best_loss": self.best_loss if self.epoch else None,
            "history": self.history,
        }
        write_arrays(path, arrays, about)

    def resume(self, path: Path) -> None:
        """Restore the state that :meth:`save` wrote.

        Raises
        ------
        BadInput
            The file belongs to a run with other settings or another flow.
        """
        arrays, about = read_arrays(path)
        if about.get("kind") != "training" or Settings.of_json(about["settings"]) != self.settings:
            raise BadInput(str(path), "another run's checkpoint", "a new folder, or the same options")
        for name, value in tensors(arrays, "flow.").items():
            if not torch.equal(value, self.model.flow.state_dict()[name].cpu()):
                raise BadInput(str(path), "a run with another flow", "a new folder, or the same flow")
        self.model.load(tensors(arrays, "now."))
        self.best = tensors(arrays, "best.")
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors(arrays, "adam.").items():
            number, _, part = name.partition(".")
            state.setdefault(int(number), {})[part] = value
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": state, "param_groups": groups})
        self.epoch, self.best_epoch, self.history = about["epoch"], about["best_epoch"], about["history"]
        self.multiplier = about["multiplier"]
        self.best_loss = float("inf") if about["best_loss"] is None else about["best_loss"]

    def _wishes(self, size: int, rng: np.random.Generator) -> Wishes:
        levers = len(self.task.levers)
        if not self.settings.individual:
            return everyone(size, levers)
        return replace(self.settings.sampler, levers=levers).draw(size, rng)

    @torch.no_grad()
    def applicants(self, rows: NDArray[Any]) -> Applicants:
        """Rows with what does not change in training."""
        x = torch.as_tensor(rows, device=self.device)
        return Applicants(x, self.model.flow.abduct(x), self.model.flow.log_density(x))


def train(
    task: Task,
    flow: CausalFlow | StructuralModel,
    settings: Settings,
    folder: Path | None = None,
    device: str = "cpu",
    on_epoch: Callable[[Mapping[str, Any]], None] = lambda _: None,
    every: int = 10,
    optima: Optima | None = None,
) -> Trainer:
    """Train all epochs, resuming if possible; the returned trainer has the model of the epoch that is kept.

    Parameters
    ----------
    folder
        The folder in which ``training.npz`` is written after each ``every`` epochs; None to keep nothing.
    on_epoch
        Called after every epoch with the numbers of the validation.
    optima
        The certified answers for the train rows, if the settings learn from them.
    """
    trainer = Trainer(task, flow, settings, device, optima)
    path = None if folder is None else folder / "training.npz"
    if path is not None and path.exists():
        trainer.resume(path)
    while trainer.epoch < settings.epochs:
        summary = trainer.step()
        if path is not None and (trainer.epoch % every == 0 or trainer.epoch == settings.epochs):
            trainer.save(path)
        on_epoch({"epoch": trainer.epoch, **summary})
    trainer.model.load(trainer.best)
    return trainer

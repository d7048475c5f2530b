"""The mask network and the action network, and how a network is fitted in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from itertools import pairwise

import torch
from torch import Tensor, nn


def perceptron(inputs: int, hidden: Sequence[int], outputs: int) -> nn.Sequential:
    """A ReLU network, in float64."""
    sizes = [inputs, *hidden]
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], outputs)).double()


def fit_in_batches(
    module: nn.Module,
    loss: Callable[[Tensor], Tensor],
    rows: int,
    *,
    batch: int,
    epochs: int,
    learning_rate: float,
    seed: int,
    decay: bool = True,
    held: Callable[[], Tensor] | None = None,
    on_epoch: Callable[[], None] = lambda: None,
) -> None:
    """Minimise a mean loss over so many rows by Adam, in place.

    Parameters
    ----------
    loss
        Of some of the rows, by their numbers.
    decay
        Whether the rate falls to zero along a cosine.
    held
        The loss on the validation rows, by which the best epoch stays; None: the last one stays.
    on_epoch
        Called after every epoch.
    """
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(module.parameters(), lr=learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    least, kept = float("inf"), deepcopy(module.state_dict())
    for _ in range(epochs):
        for index in torch.randperm(rows, generator=generator).split(batch):
            optimiser.zero_grad()
            loss(index).backward()
            optimiser.step()
        if decay:
            schedule.step()
        if held is not None:
            with torch.no_grad():
                here = float(held())
            if here < least:
                least, kept = here, deepcopy(module.state_dict())
        on_epoch()
    if held is not None:
        module.load_state_dict(kept)


def by_xavier(network: nn.Module) -> None:
    """Initial weights by Glorot and Bengio for ReLU, biases 0.01, in place."""
    for part in network.modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight, gain=nn.init.calculate_gain("relu"))
            nn.init.constant_(part.bias, 0.01)


class MaskPolicy(nn.Module):
    """Which features to act on: logits of independent Bernoulli variables, given a context.

    Parameters
    ----------
    context
        Numbers that describe an applicant: latent z, individual mask, how reluctant they are.
    levers
        k, the globally actionable features.
    """

    def __init__(self, context: int, levers: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.layers = perceptron(context, hidden, levers)

    def forward(self, context: Tensor) -> Tensor:
        """Logits, shape (n, k)."""
        return self.layers(context)


class ActionPolicy(nn.Module):
    """How far to go: changes of the k features in sd units, given a context and a mask."""

    def __init__(self, context: int, levers: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.layers = perceptron(context + levers, hidden, levers)

    def forward(self, context: Tensor, acted: Tensor) -> Tensor:
        """Changes, shape (n, k); those of features not acted on mean nothing."""
        return self.layers(torch.cat((context, acted), dim=-1))


def gumbel_mask(
    logits: Tensor, actionable: Tensor, temperature: float, generator: torch.Generator | None = None
) -> Tensor:
    r"""Draw masks that gradients pass through (Jang et al. 2017, https://arxiv.org/abs/1611.01144).

    Forward, each entry is 1 with probability :math:`\mu = \sigma(logit)`, and 0 where not
    individually actionable; backward, it is :math:`\sigma((logit + L) / \tau)` with the logistic
    draw L (the Gumbel-softmax of two classes, straight through).

    Parameters
    ----------
    logits
        Shape (n, k).
    actionable
        Which features each person can act on (the mask), boolean, shape (n, k).
    temperature
        tau.
    """
    uniform = torch.rand(logits.shape, generator=generator, dtype=logits.dtype).to(logits.device)
    uniform = uniform.clamp(1e-12, 1 - 1e-12)
    soft = ((logits + uniform.log() - (-uniform).log1p()) / temperature).sigmoid()
    hard = (soft > 0.5).to(soft.dtype)
    return torch.where(actionable, hard + (soft - soft.detach()), 0.0)


def likeliest_mask(logits: Tensor, actionable: Tensor, fallback: bool = True) -> Tensor:
    """Masks without chance, boolean: mu above 1/2.

    Parameters
    ----------
    fallback
        Where none is above, the likeliest actionable feature alone, so that somebody with one actionable
        feature is told to use it rather than nothing.
    """
    chosen = (logits > 0) & actionable
    if not fallback:
        return chosen
    likeliest = torch.where(actionable, logits, -torch.inf).argmax(dim=-1, keepdim=True)
    alone = torch.zeros_like(chosen).scatter(-1, likeliest, True) & actionable
    return torch.where(chosen.any(dim=-1, keepdim=True), chosen, alone)

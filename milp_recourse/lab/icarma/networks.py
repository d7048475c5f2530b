"""The mask network, the action network and the deployed one; drawing masks, and fitting in batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import lru_cache
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from milp_recourse.problem.network import ReluNetwork


def perceptron(inputs: int, hidden: Sequence[int], outputs: int) -> nn.Sequential:
    """A ReLU network in float64 with the given numbers of units."""
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
    """Minimise a mean loss over ``rows`` rows by Adam, in place.

    Parameters
    ----------
    loss
        The mean loss of the rows with given indices.
    decay
        Whether the learning rate falls to zero along a cosine.
    held
        The loss on the validation rows; the epoch with the least is kept. None keeps the last epoch.
    on_epoch
        Called after every epoch.
    """
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(module.parameters(), lr=learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    least, best = float("inf"), deepcopy(module.state_dict())
    for _ in range(epochs):
        for index in torch.randperm(rows, generator=generator).split(batch):
            optimiser.zero_grad()
            loss(index).backward()
            optimiser.step()
        if decay:
            schedule.step()
        if held is not None:
            with torch.no_grad():
                validation = float(held())
            if validation < least:
                least, best = validation, deepcopy(module.state_dict())
        on_epoch()
    if held is not None:
        module.load_state_dict(best)


def by_xavier(network: nn.Module) -> None:
    """Initialise weights by Glorot and Bengio's uniform rule for ReLU, and biases with 0.01, in place."""
    for part in network.modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight, gain=nn.init.calculate_gain("relu"))
            nn.init.constant_(part.bias, 0.01)


class MaskPolicy(nn.Module):
    """The mask network: logits of independent Bernoulli variables, one per feature, given a context.

    Parameters
    ----------
    context
        Number of inputs that describe an applicant: latent z, individual mask, preferences.
    levers
        Number k of globally actionable features.
    """

    def __init__(self, context: int, levers: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.layers = perceptron(context, hidden, levers)

    def forward(self, context: Tensor) -> Tensor:
        """Logits, shape (n, k)."""
        return self.layers(context)


class ActionPolicy(nn.Module):
    """The action network: changes of the k features, given a context and a mask.

    Changes are in units of standard deviations, or of latents (``Settings.actions``).
    """

    def __init__(self, context: int, levers: int, hidden: Sequence[int]) -> None:
        super().__init__()
        self.layers = perceptron(context + levers, hidden, levers)

    def forward(self, context: Tensor, acted: Tensor) -> Tensor:
        """Changes, shape (n, k); those of features not acted on have no meaning."""
        return self.layers(torch.cat((context, acted), dim=-1))


def gumbel_mask(
    logits: Tensor, actionable: Tensor, temperature: float, generator: torch.Generator | None = None
) -> Tensor:
    r"""Draw masks that gradients pass through (Jang et al. 2017, https://arxiv.org/abs/1611.01144).

    In the forward pass each entry is 1 with probability :math:`\mu = \sigma(logit)`, and 0 where not
    individually actionable. In the backward pass it is :math:`\sigma((logit + L) / \tau)` with the logistic
    draw L. This is the straight-through Gumbel-softmax of two classes.

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
    """The likeliest masks, boolean, shape (n, k): features whose mu is above 1/2.

    Parameters
    ----------
    fallback
        Whether a mask without any such feature gets the likeliest actionable feature, so that nobody
        who can act on a feature is told to do nothing.
    """
    chosen = (logits > 0) & actionable
    if not fallback:
        return chosen
    likeliest = torch.where(actionable, logits, -torch.inf).argmax(dim=-1, keepdim=True)
    single = torch.zeros_like(chosen).scatter(-1, likeliest, True) & actionable
    return torch.where(chosen.any(dim=-1, keepdim=True), chosen, single)


@lru_cache(maxsize=256)
def torch_network(network: ReluNetwork, device: torch.device) -> Callable[[Tensor], Tensor]:
    """Logits of raw rows, (n, d) -> (n,), in float64, differentiable."""
    layers = [
        tuple(torch.as_tensor(np.array(part), device=device) for part in layer)
        for layer in zip(network.weights, network.biases, strict=True)
    ]

    def logits(x: Tensor) -> Tensor:
        for k, (weight, bias) in enumerate(layers):
            x = nn.functional.linear(torch.relu(x) if k else x, weight, bias)
        return x[..., 0]

    return logits

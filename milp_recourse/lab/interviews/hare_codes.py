"""The base recourses of HARE's experiments that search in the codes of an autoencoder (torch).

References
----------
C-CHVAE: Pawelczyk et al. (2020), https://arxiv.org/abs/1910.09398; CLUE: Antoran et al. (2021),
https://arxiv.org/abs/2006.06848; CRUDS: Downs et al. (2020), whose autoencoder is that of Klys et al. (2018),
https://arxiv.org/abs/1812.06190
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from milp_recourse.lab.interviews.hare_people import Crowd
from milp_recourse.preferences.hare import FloatArray


class Autoencoder(nn.Module):
    """A variational autoencoder of rows; with a condition (coordinates that stay) or a second code w for the
    label, from which z is kept free by an adversary (Klys et al.).

    ``code`` gives means and logarithms of variances of z; ``decode`` takes (z, w or condition).
    """

    def __init__(self, d: int, condition: int = 0, width: int = 24, codes: int = 6):
        super().__init__()
        self.code = nn.Sequential(nn.Linear(d, width), nn.ReLU(), nn.Linear(width, 2 * codes))
        self.label_code = nn.Sequential(nn.Linear(d + 1, width), nn.ReLU(), nn.Linear(width, 4))
        self.adversary = nn.Sequential(nn.Linear(codes, width), nn.ReLU(), nn.Linear(width, 1))
        self.decoder = nn.Sequential(nn.Linear(codes + condition, width), nn.ReLU(), nn.Linear(width, d))

    def decode(self, z: torch.Tensor, more: torch.Tensor | None = None) -> torch.Tensor:
        """Rows of codes."""
        return self.decoder(z if more is None else torch.cat([z, more], dim=-1))


def _sample(code: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    mean, log = code.chunk(2, dim=-1)
    return mean + torch.exp(log / 2) * torch.randn_like(mean), mean, log


def autoencoder(
    seen: FloatArray, free: FloatArray | None = None, labels: Any = None, epochs: int = 15, noise: float = 0.1
) -> Autoencoder:
    """Maximise the evidence's lower bound on rows; the decoder is normal with deviation ``noise``.

    Parameters
    ----------
    free
        1 for coordinates that may change: the others are the decoder's condition (C-CHVAE).
    labels
        1 for accepted rows: w is then normal around 0 for accepted and around 3 for refused rows (CRUDS).
    """
    rows = torch.tensor(seen, dtype=torch.float32)
    fixed = None if free is None else rows[:, torch.tensor(free == 0)]
    y = None if labels is None else torch.tensor(np.asarray(labels, dtype=np.float32))[:, None]
    model = Autoencoder(rows.shape[1], 2 if y is not None else 0 if fixed is None else fixed.shape[1])
    judge = torch.optim.Adam(model.adversary.parameters(), 3e-3)
    best = torch.optim.Adam([p for n, p in model.named_parameters() if "adversary" not in n], 3e-3)
    guess = nn.BCEWithLogitsLoss()
    for _ in range(epochs):
        for part in torch.randperm(len(rows)).split(256):
            x = rows[part]
            z, mean, log = _sample(model.code(x))
            loss = 0.5 * (mean**2 + log.exp() - log - 1).sum(dim=1).mean()
            more = None if fixed is None else fixed[part]
            if y is not None:
                more, own, spread = _sample(model.label_code(torch.cat([x, y[part]], dim=1)))
                away = own - 3 * (1 - y[part])
                loss = loss + 0.5 * (away**2 + spread.exp() - spread - 1).sum(dim=1).mean()
                loss = loss - guess(model.adversary(z), y[part])
            loss = loss + ((model.decode(z, more) - x) ** 2).sum(dim=1).mean() / (2 * noise**2)
            best.zero_grad()
            loss.backward()
            best.step()
            if y is not None:
                judge.zero_grad()
                guess(model.adversary(z.detach()), y[part]).backward()
                judge.step()
    return model.requires_grad_(False)


def cchvae(
    crowd: Crowd,
    model: Autoencoder,
    rng: np.random.Generator,
    step: float = 0.1,
    shells: int = 100,
    draws: int = 300,
) -> FloatArray:
    """C-CHVAE: growing shells around x's code; of the first that holds an accepted row the nearest to x, l1.
    What people cannot act on conditions the decoder, and stays."""
    x, free = torch.tensor(crowd.start[:, 0], dtype=torch.float32), crowd.free > 0
    z, found = model.code(x).chunk(2, dim=-1)[0], np.full_like(crowd.start, np.nan)
    fixed = x[:, None, torch.tensor(~free)].expand(-1, draws, -1)
    for shell in range(shells):
        left = np.flatnonzero(np.isnan(found[:, 0, 0]))
        if not len(left):
            break
        way = rng.normal(size=(len(left), draws, z.shape[1]))
        way /= np.linalg.norm(way, axis=-1, keepdims=True)
        way *= rng.uniform(shell, shell + 1, size=(len(left), draws, 1)) * step
        codes = z[left, None] + torch.tensor(way, dtype=torch.float32)
        rows = model.decode(codes, fixed[left]).numpy().astype(np.float64)
        rows = np.where(free, rows, crowd.start[left])
        far = np.abs(rows - crowd.start[left]).sum(axis=-1)
        far = np.where(crowd.only(left).score(rows) > 0, far, np.inf)
        nearest = np.take_along_axis(rows, far.argmin(axis=1)[:, None, None], 1)
        found[left] = np.where(np.isfinite(far.min(axis=1))[:, None, None], nearest, np.nan)
    return found


def clue(
    crowd: Crowd, model: Autoencoder, weight: float = 0.1, steps: int = 300, rate: float = 0.03
) -> FloatArray:
    """CLUE: minimise the entropy of the classifier's answer to a decoded row plus ``weight`` times its l1
    distance to x, over codes from x's own. The answer may become surer of a refusal: that is no recourse."""
    x = torch.tensor(crowd.start[:, 0], dtype=torch.float32)
    z = model.code(x).chunk(2, dim=-1)[0].clone().requires_grad_()
    best = torch.optim.Adam([z], rate)
    for _ in range(steps):
        rows = model.decode(z)
        loss = (entropy(logits(crowd, rows)) + weight * (rows - x).abs().sum(dim=1)).sum()
        best.zero_grad()
        loss.backward()
        best.step()
    return _rows(model.decode(z))


def cruds(
    crowd: Crowd, model: Autoencoder, weight: float = 0.001, steps: int = 300, rate: float = 0.05
) -> FloatArray:
    """CRUDS: with z as it is, minimise over w the loss of the wanted answer plus ``weight`` times the squared
    distance to x; of the accepted rows on the way the one with the least loss."""
    x = torch.tensor(crowd.start[:, 0], dtype=torch.float32)
    z = model.code(x).chunk(2, dim=-1)[0]
    w = torch.rand(len(x), 2, requires_grad=True)
    best = torch.optim.RMSprop([w], rate)
    found, least = np.full_like(crowd.start, np.nan), np.full(len(x), np.inf)
    for _ in range(steps):
        rows = model.decode(z, w)
        said = logits(crowd, rows)
        loss = nn.functional.softplus(-said) + weight * ((rows - x) ** 2).sum(dim=1)
        now = loss.detach().numpy()
        better = (said.detach().numpy() > 0) & (now < least)
        least, found = np.where(better, now, least), np.where(better[:, None, None], _rows(rows), found)
        best.zero_grad()
        loss.sum().backward()
        best.step()
    return found


def logits(crowd: Crowd, rows: torch.Tensor) -> torch.Tensor:
    """The classifier's logits, (n,), with gradients."""
    for k, (weights, bias) in enumerate(crowd.layers):
        first, second = (torch.tensor(part, dtype=torch.float32) for part in (weights, bias))
        rows = (rows.relu() if k else rows) @ first + second
    return rows[:, 0]


def entropy(said: torch.Tensor) -> torch.Tensor:
    """Of a yes or no with these logits, in nats."""
    softplus = nn.functional.softplus
    return torch.sigmoid(said) * softplus(-said) + torch.sigmoid(-said) * softplus(said)


def _rows(rows: torch.Tensor) -> FloatArray:
    return rows.detach().numpy().astype(np.float64)[:, None, :]

"""Random causal models over a table's columns, in the file format and in a few lines of their own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Term:
    """A factor times a cause, its square, a product of two causes, or the part of a cause above ``start``."""

    shape: str
    causes: tuple[str, ...]
    factor: float
    start: float = 0.0

    def of(self, values: Mapping[str, Array]) -> Array:
        """Its value."""
        first = values[self.causes[0]]
        if self.shape == "square":
            return self.factor * first**2
        if self.shape == "product":
            return self.factor * first * values[self.causes[1]]
        return self.factor * (np.maximum(first - self.start, 0.0) if self.shape == "relu" else first)

    @property
    def said(self) -> Any:
        """As a file says it."""
        first = self.causes[0]
        inner: Any = {
            "linear": first,
            "square": {"square": first},
            "product": {"product": list(self.causes)},
            "relu": {"relu": {"sum": [first, -self.start]}},
        }[self.shape]
        return {"product": [self.factor, inner]}


@dataclass(frozen=True)
class Mechanism:
    """value = equation + noise, or offset + scale * sigmoid(equation + noise)."""

    constant: float
    noise: Mapping[str, Any]
    terms: tuple[Term, ...] = ()
    link: tuple[float, float] | None = None

    @property
    def causes(self) -> set[str]:
        """The features that the equation reads."""
        return {name for term in self.terms for name in term.causes}

    @property
    def said(self) -> dict[str, Any]:
        """As a file says it."""
        said: dict[str, Any] = {"equation": {"sum": [self.constant, *(term.said for term in self.terms)]}}
        if self.link is not None:
            said["link"] = {"kind": "sigmoid", "offset": self.link[0], "scale": self.link[1]}
        return said | {"noise": dict(self.noise)}

    def equation(self, values: Mapping[str, Array]) -> Array:
        """The part that causes decide."""
        return self.constant + sum((term.of(values) for term in self.terms), np.zeros(1))

    def moved(self, x: float, shift: Array) -> Array:
        """Where a value ends if the equation grows."""
        if self.link is None:
            return x + shift
        offset, scale = self.link
        share = (x - offset) / scale
        z = math.log(share / (1.0 - share)) + shift
        return np.where(shift == 0.0, x, offset + scale / (1.0 + np.exp(-z)))

    def log_density(self, value: Array, values: Mapping[str, Array]) -> Array:
        """Of a value, given its causes; -inf outside the support."""
        equation = self.equation(values)
        with np.errstate(all="ignore"):
            if self.link is None:
                u, jacobian = value - equation, 0.0
            else:
                share = (value - self.link[0]) / self.link[1]
                u = np.log(share) - np.log1p(-share) - equation
                jacobian = np.log(abs(self.link[1])) + np.log(share) + np.log1p(-share)
            known = np.nan_to_num(_log_density(self.noise, u) - jacobian, nan=-np.inf)
        return np.broadcast_to(known, np.broadcast_shapes(value.shape, equation.shape))


def _log_density(noise: Mapping[str, Any], u: Array) -> Array:
    if noise["kind"] == "normal":
        return -0.5 * (u / noise["sd"]) ** 2 - np.log(noise["sd"]) - 0.5 * np.log(2 * np.pi)
    if noise["kind"] == "bernoulli":
        return np.where(u == 1, np.log(noise["p"]), np.where(u == 0, np.log(1 - noise["p"]), -np.inf))
    shape, scale = noise["shape"], noise["scale"]
    known = (shape - 1) * np.log(u) - u / scale - math.lgamma(shape) - shape * np.log(scale)
    return np.where(u > 0, known, -np.inf)


def drawn_causes(rng: np.random.Generator, X: pd.DataFrame, curved: bool) -> dict[str, Mechanism]:
    """Mechanisms of all columns but labels, causes before effects; piecewise linear unless ``curved``.

    Columns called ``number ...`` follow from whole ones, and from each other. Without a link their numbers
    are multiples of a power of two, so that doubles are exact.
    """
    made: dict[str, Mechanism] = {}
    for name in X.columns:
        column = X[name].astype(float) if not name.startswith(("label", "code", "number")) else None
        if column is None:
            continue
        if set(column.unique()) <= {0.0, 1.0}:
            made[name] = Mechanism(
                0.0, {"kind": "bernoulli", "p": float(rng.choice([0.5, 0.3, 0.75] if curved else [0.5]))}
            )
        elif curved and rng.random() < 0.25:
            noise = {
                "kind": "gamma",
                "shape": float(rng.choice([1, 2, 3.5])),
                "scale": float(rng.choice([0.5, 2])),
            }
            made[name] = Mechanism(float(column.min()) - float(rng.choice([1.5, 1.5, 0.5])), noise)
        else:
            sd = float(rng.choice([0.5, 1, 2, 4]))
            made[name] = Mechanism(float(np.round(column.mean() * 8) / 8), {"kind": "normal", "sd": sd})
    whole = [c for c in X.columns if c.startswith("whole") and X[c].abs().max() < 100]
    known = list(whole)
    for name in sorted(c for c in X.columns if c.startswith("number")):
        noise = {"kind": "normal", "sd": float(rng.choice([0.5, 1, 2, 4]))}
        causes = rng.permutation(known)[: int(rng.integers(0, 4))].tolist()
        terms = tuple(_term(rng, cause, whole if curved else []) for cause in causes)
        link = None
        if causes and curved and rng.random() < 0.3:
            link = float(X[name].min()) - 1.0, float(X[name].max() - X[name].min()) + 2.0
        made[name] = Mechanism(0.0, noise, terms, link)
        known += [name] if link is None else []
    return made


def _term(rng: np.random.Generator, cause: str, whole: list[str]) -> Term:
    shapes = ["linear", "linear", "relu"] + (["square", "product"] if cause in whole else [])
    shape, factor = str(rng.choice(shapes)), float(rng.choice([-1, -0.5, 0.25, 0.5, 1, 1.5]))
    if shape == "square":
        factor /= 8
    if shape == "product":
        return Term(shape, (cause, str(rng.choice(whole))), factor / 8)
    return Term(shape, (cause,), factor, float(rng.integers(-1, 4)) if shape == "relu" else 0.0)

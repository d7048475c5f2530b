"""Means, standard deviations and quantiles that are nan, without a warning, if there are no values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

BOOTSTRAP = 2000
"""How many resamples an interval is computed from."""


def mean(values: ArrayLike) -> float:
    """The mean; nan of no values."""
    array = np.asarray(values)
    return float(array.mean()) if array.size else float("nan")


def sd(values: ArrayLike) -> float:
    """The sample standard deviation; nan for fewer than two."""
    array = np.asarray(values)
    return float(array.std(ddof=1)) if array.size > 1 else float("nan")


def quantile(values: ArrayLike, share: float) -> float:
    """The quantile of the values; nan of no values."""
    array = np.asarray(values)
    return float(np.quantile(array, share)) if array.size else float("nan")


def quantiles(name: str, values: ArrayLike, **shares: float) -> dict[str, float]:
    """Quantiles by name: ``quantiles("cost", values, p90=0.9)`` has ``cost_p90``."""
    return {f"{name}_{key}": quantile(values, share) for key, share in shares.items()}


def ratio(a: Any, b: Any) -> float:
    """a / b; nan where b is 0."""
    return float(a / b) if b else float("nan")


def bootstrap(
    values: NDArray[Any], rng: np.random.Generator, samples: int = BOOTSTRAP
) -> NDArray[np.float64]:
    """Means of bootstrap resamples of n values, shape (n, ...) -> (samples, ...); nan for n = 0.

    All columns are resampled together.
    """
    n = len(values)
    if not n:
        return np.full((samples, *values.shape[1:]), np.nan)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=samples)
    return np.asarray(counts @ values / n)


def interval(samples: NDArray[np.float64]) -> tuple[float, float]:
    """The ends of the interval that holds the middle 95% of the samples."""
    low, high = np.quantile(samples, (0.025, 0.975))
    return float(low), float(high)

"""Means, spreads and quantiles of values that may be none: nan where there is nothing to take them of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

BOOTSTRAP = 2000
"""Resamples of an interval."""


def mean(values: ArrayLike) -> float:
    """The mean."""
    array = np.asarray(values)
    return float(array.mean()) if array.size else float("nan")


def sd(values: ArrayLike) -> float:
    """The sample standard deviation; nan for fewer than two."""
    array = np.asarray(values)
    return float(array.std(ddof=1)) if array.size > 1 else float("nan")


def quantile(values: ArrayLike, share: float) -> float:
    """What a share of the values lies below."""
    array = np.asarray(values)
    return float(np.quantile(array, share)) if array.size else float("nan")


def ratio(a: Any, b: Any) -> float:
    """a / b; nan where b is 0."""
    return float(a / b) if b else float("nan")


def bootstrap(
    values: NDArray[Any], rng: np.random.Generator, samples: int = BOOTSTRAP
) -> NDArray[np.float64]:
    """Means of resamples of n values, (n, ...) -> (samples, ...), the same for all columns; nan for n = 0."""
    n = len(values)
    if not n:
        return np.full((samples, *values.shape[1:]), np.nan)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=samples)
    return np.asarray(counts @ values / n)


def interval(samples: NDArray[np.float64]) -> tuple[float, float]:
    """What holds 95% of them."""
    low, high = np.quantile(samples, (0.025, 0.975))
    return float(low), float(high)

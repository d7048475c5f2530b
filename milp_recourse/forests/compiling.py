"""Compiling with numba, kept on disk where a folder can be written to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def compiled(function: Callable[..., Any]) -> Any:
    """The compiled function; compiled anew in every process where numba finds no folder for its cache."""
    try:
        return njit(cache=True)(function)
    except RuntimeError:  # no locator: neither the package's folder nor the user's cache can be written
        return njit(function)

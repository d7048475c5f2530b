"""Reading options that give an amount per feature: ``NAME=NUMBER``, or ``NAME=LEAST:MOST``."""

from __future__ import annotations

from collections.abc import Sequence

from milp_recourse.errors import BadInput

ONE, ONE_OR_TWO = "NAME=NUMBER", "NAME=NUMBER or NAME=LEAST:MOST"
"""The forms of a text, as errors name them."""


def amounts(option: str, given: Sequence[str]) -> dict[str, float]:
    """Feature -> number, from texts ``NAME=NUMBER``.

    Raises
    ------
    BadInput
        A text has another form, or a feature is named twice.
    """
    return {name: _number(option, text, value, ONE) for name, text, value in _parted(option, given, ONE)}


def intervals(option: str, given: Sequence[str]) -> dict[str, float | list[float]]:
    """Feature -> number or two ends, from texts ``NAME=NUMBER`` or ``NAME=LEAST:MOST``.

    Raises
    ------
    BadInput
        As for :func:`amounts`.
    """
    found: dict[str, float | list[float]] = {}
    for name, text, value in _parted(option, given, ONE_OR_TWO):
        ends = [_number(option, text, end, ONE_OR_TWO) for end in value.split(":")]
        if len(ends) > 2:
            raise BadInput(option, text, ONE_OR_TWO)
        found[name] = ends if len(ends) == 2 else ends[0]
    return found


def _parted(option: str, given: Sequence[str], form: str) -> list[tuple[str, str, str]]:
    """For each text: the feature, the text itself, and what is behind the last ``=``."""
    parts = [(text.rpartition("=")[0], text, text.rpartition("=")[2]) for text in given]
    for name, text, _ in parts:
        if not name or sum(name == other for other, *_ in parts) > 1:
            raise BadInput(option, text, f"{form}, each feature once")
    return parts


def _number(option: str, text: str, value: str, form: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise BadInput(option, text, form) from None

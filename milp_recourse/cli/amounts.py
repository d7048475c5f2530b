"""Reading options that give an amount per feature: ``NAME=NUMBER``, or ``NAME=LEAST:MOST``."""

from __future__ import annotations

from collections.abc import Sequence

from milp_recourse.errors import BadInput


def amounts(option: str, given: Sequence[str]) -> dict[str, float]:
    """Feature -> number, from texts ``NAME=NUMBER``.

    Raises
    ------
    BadInput
        A text has another form, or a feature is named twice.
    """
    return {name: _number(option, text, value) for name, text, value in _parted(option, given)}


def intervals(option: str, given: Sequence[str]) -> dict[str, float | list[float]]:
    """Feature -> number or two ends, from texts ``NAME=NUMBER`` or ``NAME=LEAST:MOST``.

    Raises
    ------
    BadInput
        As for :func:`amounts`.
    """
    found: dict[str, float | list[float]] = {}
    for name, text, value in _parted(option, given):
        ends = [_number(option, text, end) for end in value.split(":")]
        if len(ends) > 2:
            raise BadInput(option, text, "NAME=NUMBER or NAME=LEAST:MOST")
        found[name] = ends if len(ends) == 2 else ends[0]
    return found


def _parted(option: str, given: Sequence[str]) -> list[tuple[str, str, str]]:
    """For each text: the feature, the text itself, and what is behind the last ``=``."""
    parts = [(text.rpartition("=")[0], text, text.rpartition("=")[2]) for text in given]
    for name, text, _ in parts:
        if not name or sum(name == other for other, *_ in parts) > 1:
            raise BadInput(option, text, "NAME=NUMBER, each feature once")
    return parts


def _number(option: str, text: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise BadInput(option, text, "NAME=NUMBER") from None

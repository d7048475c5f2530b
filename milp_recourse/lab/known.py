"""Checks of options that take names."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from milp_recourse.errors import BadInput


def known(option: str, name: str, names: Collection[str]) -> Any:
    """Return the name; raise BadInput, which lists all names, if it is none of them."""
    if name not in names:
        raise BadInput(option, name, ", ".join(names))
    return name


def parts(text: str) -> list[str]:
    """The parts of a comma-separated text, without spaces around them; what is said twice counts once."""
    return list(dict.fromkeys(part.strip() for part in text.split(",")))

"""Options that name something known."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from milp_recourse.errors import BadInput


def known(option: str, name: str, names: Collection[str]) -> Any:
    """The name; one line that lists what is known where it is none of them."""
    if name not in names:
        raise BadInput(option, name, ", ".join(names))
    return name


def parts(text: str) -> list[str]:
    """The parts of a text that is comma-separated."""
    return [part.strip() for part in text.split(",")]

"""A population from a pandas DataFrame of factuals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from milp_recourse.errors import BadInput
from milp_recourse.formats.read import ID, as_table
from milp_recourse.instance import Instance, Population, Preferences

if TYPE_CHECKING:
    import pandas as pd


def population_from_frame(
    frame: pd.DataFrame,
    model: Instance | Population,
    preferences: Preferences | Sequence[Preferences] | None = None,
    id: str | None = None,
) -> Population:
    """One applicant per row of a frame; see :meth:`milp_recourse.instance.Population.from_frame`."""
    template = model.template if isinstance(model, Population) else model
    names = [f.name for f in template.features]
    columns = list(frame.columns)
    twice = [name for name in names if columns.count(name) > 1]
    missing = [name for name in names if name not in columns]
    for what, found in (("columns twice", twice), ("no column", missing)):
        if found:
            raise BadInput("frame", f"{what} {', '.join(map(repr, found))}", "the features, each once")
    if id is not None and id not in columns:
        raise BadInput("id", id, "the name of a column: " + ", ".join(map(str, columns)))
    if not len(frame):
        raise BadInput("frame", "no rows", "at least one applicant")
    own = [preferences] if isinstance(preferences, Preferences) else preferences
    own = [template.preferences] if own is None else list(own)
    if len(own) == 1:
        own = own * len(frame)
    if len(own) != len(frame):
        raise BadInput("preferences", f"{len(own)}", f"one for all, or one per row ({len(frame)})")
    table, unreadable = as_table(_rows(frame, names), template)
    first = next(k for k in range(len(table)) if k not in unreadable)
    template = replace(template, factual=table[first], preferences=own[first], reference=None)
    if id is None and ID in columns and ID not in names:
        id = ID
    ids = None if id is None else tuple(map(str, frame[id]))
    return Population(template, table, tuple(own), unreadable, ids)


def _rows(frame: pd.DataFrame, names: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    columns = [frame[name].tolist() for name in names]
    for label, values in zip(frame.index, zip(*columns, strict=True), strict=True):
        yield f"row {label!r}", {name: _plain(value) for name, value in zip(names, values, strict=True)}


def _plain(value: Any) -> Any:
    """None for what pandas means by missing; True as 1; anything that is no number or text in words."""
    if value is None or value != value or type(value).__name__ in ("NAType", "NaTType"):  # noqa: PLR0124
        return None
    if isinstance(value, bool | np.bool_):
        return int(value)
    return value if isinstance(value, int | float | str) else str(value)

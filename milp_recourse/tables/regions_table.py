"""One person's region as a table in the table's own columns and values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import pandas as pd

from milp_recourse.judge.judgement import known_exactly
from milp_recourse.questions.regions import Region
from milp_recourse.tables.columns import TableColumn
from milp_recourse.tables.people_rows import Rows, chosen, counterfactual_rows
from milp_recourse.tables.said_values import Accepts

COLUMNS = ("feature", "low", "high", "labels", "shown_low", "shown_high", "held_low", "held_high")

_PART = 0.01  # of the width of a side: what rounding its ends inward may take away


def region_table(found: Region, columns: Sequence[TableColumn], said: Mapping[str, float]) -> pd.DataFrame:
    """A row per lever that is acted on: its lowest and highest value, or its labels.

    Parameters
    ----------
    said
        The values to say of the action. Where they lie in the box, they lie within what is shown of it.
    """
    table: list[tuple[object, ...]] = []
    for column in (c for c in columns if c.name in found.action):
        name = column.name
        if name in found.box.labels:
            labels = tuple(column.value(float(k)) for k in found.box.labels[name])
            table.append((column.key, None, None, labels, None, None, None, None))
            continue
        ends = found.box.ends[name]
        shown = ends if column.feature.integral else shortest(*ends, said.get(name, math.nan))
        values = [column.value(v) for v in (*ends, *shown)]
        held = found.held_by((name, "low")), found.held_by((name, "high"))
        table.append((column.key, *values[:2], None, *values[2:], *held))
    frame = pd.DataFrame(table, columns=list(COLUMNS), dtype=object)
    frame.attrs |= {"proven": found.proven, "message": found.message, "document": found.to_dict()}
    return frame


def shortest(low: float, high: float, inside: float) -> tuple[float, float]:
    """The ends of an interval rounded inward to few digits, by at most 1% of its width each, and not past a
    number that lies inside."""
    room = _PART * (high - low)
    first, last = low + room, high - room
    if low <= inside <= high:
        first, last = min(first, inside), max(last, inside)
    return _rounded(low, low, first, ROUND_CEILING), _rounded(high, last, high, ROUND_FLOOR)


def _rounded(value: float, least: float, most: float, rounding: str) -> float:
    """A double with as few digits of ``value`` as leave it between two numbers."""
    number = Decimal(repr(value))
    for digits in range(1, len(number.as_tuple().digits)):
        short = float(number.quantize(Decimal(1).scaleb(number.adjusted() - digits + 1), rounding))
        if least <= short <= most:
            return short
    return value


def refused_corner(
    found: Region, person: int, rows: Rows, columns: Sequence[TableColumn], accepts: Accepts | None
) -> dict[str, object] | None:
    """The values of a corner of the box that the model itself refuses; None if it refuses none of those that
    it is asked about, or cannot be asked.

    Parameters
    ----------
    person
        The person's position in ``rows``.
    """
    if accepts is None or not found.action:
        return None
    corners = list(found.box.corners())
    instance = found.instance
    factual, changed = known_exactly(instance), list[dict[str, float]]()
    for corner in corners:
        after = instance.scm.counterfactual_exact(factual, corner)
        changed.append({f: v.nearest for f, v in after.items() if v is not factual[f]} | corner)
    own = chosen(rows, [person] * len(corners))
    answers = accepts(counterfactual_rows(own, columns, changed))
    wrong = (corner for corner, word in zip(corners, answers, strict=True) if word is not True)
    refused = next(wrong, None)
    if refused is None:
        return None
    return {c.name: c.value(refused[c.name]) for c in columns if c.name in refused}

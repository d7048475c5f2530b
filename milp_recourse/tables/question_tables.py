"""Answers about one person as tables in the table's own columns and values.

Reasons that can be acted on, regions, and joint plans, the last compared with the model's own word on them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np
import pandas as pd

from milp_recourse.judge.judgement import known_exactly
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import Population
from milp_recourse.questions.reasons import Sufficient
from milp_recourse.questions.regions import Region
from milp_recourse.questions.share import Point, Shared, chosen_offers
from milp_recourse.tables.against_model import Accepts, Compare, said_values
from milp_recourse.tables.columns import TableColumn
from milp_recourse.tables.people_rows import Rows, chosen, counterfactual_rows

REASON_COLUMNS = ("levers", "status", "cost", "lower_bound", "proof", "confirmed", "values")


def reasons_table(
    found: Sequence[Sufficient],
    person: int,
    problem: Instance,
    rows: Rows,
    columns: Sequence[TableColumn],
    compare: Compare,
    accepts: Accepts | None,
) -> pd.DataFrame:
    """A row per set of levers, in the order given.

    Parameters
    ----------
    found
        Answers of one person.
    person
        The person's position in ``rows``.
    compare, accepts
        As in :class:`~milp_recourse.tables.answers.Answers`: each answer is compared with the model.
    """
    own = chosen(rows, [person] * len(found))
    masks = [replace(problem.preferences, actionable=one.levers) for one in found]
    population = Population.of(problem, [problem.factual] * len(found), masks, {}) if found else None
    compared, confirmed = compare(rows=own, results=[one.result for one in found], population=population)
    said = said_values(own, columns, population, compared, confirmed, accepts)
    by_name = {c.name: c for c in columns}
    table = []
    for one, result, word, values in zip(found, compared, confirmed, said, strict=True):
        shown = {} if values is None else values.action
        table.append(
            (
                tuple(by_name[name].key for name in one.levers),
                result.status.value,
                result.cost,
                result.lower_bound,
                result.proof,
                word,
                {by_name[n].key: by_name[n].value(v) for n, v in shown.items()},
            )
        )
    frame = pd.DataFrame(table, pd.RangeIndex(1, 1 + len(table), name="rank"), list(REASON_COLUMNS))
    frame["confirmed"] = frame["confirmed"].astype("boolean")
    return frame.astype({"cost": "float64", "lower_bound": "float64"})


def counted(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Several people's tables as one: for how many each set suffices, cannot suffice, and is the cheapest.

    Parameters
    ----------
    tables
        As :func:`reasons_table` makes them. An answer that the model contradicts does not suffice.
    """
    names = ["people", "suffices", "infeasible", "cheapest", "median_cost"]
    if not tables:
        return pd.DataFrame(columns=names, index=pd.Index([], name="levers"))
    works = [t["cost"].notna() & t["confirmed"].fillna(True).astype(bool) for t in tables]
    marked = [
        t.assign(
            people=1,
            suffices=ok,
            infeasible=t["status"] == "infeasible",
            cheapest=ok & (t["cost"] == t["cost"][ok].min()),
            median_cost=t["cost"].where(ok),
        )
        for t, ok in zip(tables, works, strict=True)
    ]
    by_set = pd.concat(marked).groupby("levers", sort=False)
    table = by_set[names[:-1]].sum().astype(int).join(by_set["median_cost"].median())
    return table.sort_values(["suffices", "median_cost"], ascending=[False, True], kind="stable")


REGION_COLUMNS = ("feature", "low", "high", "labels", "shown_low", "shown_high", "held_low", "held_high")

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
    frame = pd.DataFrame(table, columns=list(REGION_COLUMNS), dtype=object)
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


def compared_plans(
    found: Shared, people: Population, rows: Rows, columns: Sequence[TableColumn], compare: Compare
) -> tuple[Shared, Mapping[int, Sequence[bool | None]]]:
    """The plans, those that the model contradicts without their claim, and whether each is confirmed.

    A plan is asked about by two rows: what is given makes the first of the person's, and the action the
    second. A lowered threshold is not the rule of ``predict``, which then confirms nothing.

    Parameters
    ----------
    people
        The people's problems without an offer.
    compare
        As in :class:`~milp_recourse.tables.answered.AnsweredPeople`.

    Returns
    -------
    Shared, Mapping
        Chosen anew, since a point without a claim proves less; and for each person a word per point, None
        without an action, under a lowered threshold, or where the model cannot be asked.
    """
    points = [(i, k, point) for i, front in found.fronts.items() for k, point in enumerate(front)]
    fronts = {i: list(front) for i, front in found.fronts.items()}
    confirmed: dict[int, list[bool | None]] = {i: [None] * len(front) for i, front in fronts.items()}
    for lowered in (False, True):
        some = [one for one in points if bool(one[2].offer.lower) is lowered]
        if not some:
            continue
        places = [i for i, _, _ in some]
        problems = [point.offer.applied(people[i]) or people[i] for i, _, point in some]
        population = Population.of(
            problems[0],
            [one.factual for one in problems],
            [one.preferences for one in problems],
            {},
            margins=[people.margin_of(i) for i in places],
        )
        compared, words = compare(
            rows=_given(chosen(rows, places), columns, problems),
            results=[point.result for _, _, point in some],
            population=population,
            **({"word": None} if lowered else {}),
        )
        for (i, k, point), result, word in zip(some, compared, words, strict=True):
            fronts[i][k], confirmed[i][k] = Point(point.offer, result), word
    after = {i: tuple(front) for i, front in fronts.items()}
    return chosen_offers(found.offers, after, found.budget, found.weight, found.most_cost), confirmed


def _given(rows: Rows, columns: Sequence[TableColumn], problems: Sequence[Instance]) -> Rows:
    """The rows from which people start."""
    starts = np.array([[one.factual[c.name] for c in columns] for one in problems])
    changed = [
        {
            c.name: new
            for c, old, new in zip(columns, before, now, strict=True)
            if not np.isnan(new) and new != old
        }
        for before, now in zip(rows.values.tolist(), starts.tolist(), strict=True)
    ]
    return replace(rows, frame=counterfactual_rows(rows, columns, changed), values=starts)

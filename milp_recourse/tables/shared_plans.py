"""Joint plans of a table's people, compared with the model's own word on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import Population
from milp_recourse.questions.share import Point, Shared, chosen_offers
from milp_recourse.tables.columns import TableColumn
from milp_recourse.tables.people_rows import Rows, chosen, counterfactual_rows


def compared_plans(
    found: Shared, people: Population, rows: Rows, columns: Sequence[TableColumn], compare: Callable
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

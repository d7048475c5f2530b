"""The values to say of people's actions, accepted by the model itself where it can be asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import pandas as pd

from milp_recourse.judge.as_printed import AsPrinted, as_printed
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result
from milp_recourse.tables.against_model import changed_values
from milp_recourse.tables.columns import TableColumn
from milp_recourse.tables.people_rows import Rows, counterfactual_rows

Accepts = Callable[[pd.DataFrame], Sequence[object]]


def said_values(
    rows: Rows,
    columns: Sequence[TableColumn],
    problem: Population | None,
    results: Sequence[Result | None],
    confirmed: Sequence[bool | None],
    accepts: Accepts | None,
) -> list[AsPrinted | None]:
    """For each person with an action the values to say: the shortest decimals that the model accepts when
    they are set together (:func:`~milp_recourse.judge.as_printed.as_printed`).

    Where the model itself refuses them, they are the exact doubles; so they are of a model that is asked:
    what its levers can be set to is finite.

    Parameters
    ----------
    confirmed
        Whether the model's own ``predict`` confirms each action.
    accepts
        What the model itself says of rows, each asked alone; None if it cannot be asked.
    """
    found: list[AsPrinted | None] = [None] * len(rows)
    exact: dict[int, AsPrinted] = {}
    known = {c.name: c for c in columns}
    for i, result in enumerate(results):
        if problem is not None and result is not None and result.action is not None:
            action = {name: known[name].feature.number(v) for name, v in result.action.items()}
            after = changed_values(rows, columns, i, result) or {}
            exact[i] = AsPrinted(action, after | action, Fraction(result.cost or 0.0))
    lasting = {i for i, one in enumerate(results) if one is not None and one.proof != "asked"}
    asked = [i for i, one in exact.items() if one.action and confirmed[i] is not False and i in lasting]
    short = as_printed([(problem[i], exact[i].action) for i in asked]) if problem is not None else []
    for i, one in (exact | dict(zip(asked, short, strict=True))).items():
        found[i] = one
    said = [None if one is None else one.counterfactual for one in found]
    if accepts is not None and asked:
        after_all = counterfactual_rows(rows, columns, said).iloc[asked]
        for i, accepted in zip(asked, accepts(after_all), strict=True):
            if accepted is not True:
                found[i] = exact[i]
    return found

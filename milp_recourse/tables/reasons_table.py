"""One person's reasons that can be acted on, as a table in the table's own columns and values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pandas as pd

from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import Population
from milp_recourse.questions.reasons import Sufficient
from milp_recourse.tables.columns import TableColumn
from milp_recourse.tables.people_rows import Rows, chosen
from milp_recourse.tables.said_values import Accepts, said_values

COLUMNS = ("levers", "status", "cost", "lower_bound", "proof", "confirmed", "values")


def reasons_table(
    found: Sequence[Sufficient],
    person: int,
    problem: Instance,
    rows: Rows,
    columns: Sequence[TableColumn],
    compare: Callable,
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
    frame = pd.DataFrame(table, pd.RangeIndex(1, 1 + len(table), name="rank"), list(COLUMNS))
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

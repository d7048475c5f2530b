"""The rows after people's actions, and what the model's own word on them says about the answers.

Its predictions for rows of X, too: searches start from accepted rows, and a test compares the model with the
one that was read. The values to say of actions are accepted by the model itself where it can be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milp_recourse.errors import BadInput
from milp_recourse.judge import Judgement, judge
from milp_recourse.judge.as_printed import AsPrinted, as_printed
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result, Status
from milp_recourse.tables.columns import TableColumn, got_repr
from milp_recourse.tables.people_rows import Rows, counterfactual_rows, read_rows
from milp_recourse.tables.verdict import OwnWord

_Result = TypeVar("_Result", Result, Result | None)


def changed_values(
    rows: Rows, columns: Sequence[TableColumn], i: int, result: Result | None
) -> dict[str, float] | None:
    """The features of person i whose value after the action differs from the row, with their new numbers.

    A missing value differs from any value that an action sets, also from the imputer's. None without an
    action.
    """
    if result is None or result.counterfactual is None or result.action is None:
        return None
    found = {}
    for k, column in enumerate(columns):
        shown = result.counterfactual[column.name]
        if shown is None:  # missing before and after
            continue
        new = column.feature.number(shown)
        acted = column.name in result.action
        if new != rows.values[i, k] or (acted and rows.missing[i, k]):
            found[column.name] = new
    return found


def rows_after(rows: Rows, columns: Sequence[TableColumn], results: Sequence[Result | None]) -> pd.DataFrame:
    """Everybody's row after the action, in X's columns and dtypes."""
    changed = [changed_values(rows, columns, i, r) for i, r in enumerate(results)]
    return counterfactual_rows(rows, columns, changed)


def compared_with_model(
    rows: Rows,
    columns: Sequence[TableColumn],
    results: Sequence[_Result],
    population: Population | None,
    word: OwnWord | None,
    doubt: str | None,
) -> tuple[list[_Result], list[bool | None]]:
    """Compare results with the model's own predictions; a contradicted result loses its claim.

    Parameters
    ----------
    population
        The problems; None if nobody could be read.
    word
        The model's own word; None if it cannot be asked, or is another rule than the problems'.
    doubt
        Why ``predict`` is another model than the one that was read; None if they agree on X.

    Returns
    -------
    list, list
        The results, of which a contradicted one becomes ``limit`` with a bound of 0 and no evidence, as does
        one for which ``predict`` fails; and whether each action is confirmed.
    """
    if word is None or population is None:
        return [_without_claim(result, doubt) for result in results], [None] * len(results)
    known = [i for i, result in enumerate(results) if result is not None]
    before = word.accepts_each(rows.frame.iloc[known])
    for k in _on_the_edge(rows, population, known):  # there sums may depend on how many rows are asked
        [before[k]] = word.accepts_each(rows.frame.iloc[[known[k]]])
    later = word.accepts_each(rows_after(rows, columns, results).iloc[known])
    compared = list(results)
    confirmed: list[bool | None] = [None] * len(results)
    for i, was, now in zip(known, before, later, strict=True):
        result = results[i]
        assert result is not None
        failed = next((str(one) for one in (was, now) if isinstance(one, BadInput)), None)
        # those who are accepted as they are may have to act all the same: for a domain or a condition
        rest = judge(population[i], {}) if was is True and result.action != {} else None
        must = rest is not None and bool(rest.broken)
        if result.action is not None:
            confirmed[i] = failed is None and bool(now and (was if must or not result.action else not was))
        wrong = failed or doubt or contradiction(result, rest, population[i], now is True)
        compared[i] = _without_claim(result, wrong)
    return compared, confirmed


class Compare(Protocol):
    """:func:`compared_with_model` of one model."""

    def __call__(
        self, *, rows: Rows, results: Sequence[_Result], population: Population | None, **word: None
    ) -> tuple[list[_Result], list[bool | None]]:
        """``word``: None for another rule than that of ``predict``."""


def _without_claim(result: _Result, wrong: str | None) -> _Result:
    """The result, of which nothing is proven if there is something ``wrong`` with it."""
    claims = (Status.OPTIMAL, Status.INFEASIBLE, Status.LIMIT)
    if result is None or wrong is None or result.status not in claims:
        return result
    return replace(result, status=Status.LIMIT, lower_bound=0.0, message=wrong, evidence=None)


def _on_the_edge(rows: Rows, population: Population, known: Sequence[int]) -> list[int]:
    """The positions in ``known`` of people whose logit is within their margin of a network's threshold."""
    problem = population.template
    if not isinstance(problem.classifier, ReluNetwork) or not known:
        return []
    with np.errstate(over="ignore", invalid="ignore"):
        logits = problem.classifier.scores(problem.model_rows(rows.values[list(known)]))
        off = np.abs(logits - problem.accept.threshold)
    margins = np.array([population.margin_of(i) for i in known])
    return np.flatnonzero(~(off > 2.0 * margins)).tolist()


def contradiction(result: Result, rest: Judgement | None, instance: Instance, after: bool) -> str | None:
    """How the model's own predictions contradict a result, in a sentence; None if they do not.

    Parameters
    ----------
    rest
        The judgement of doing nothing, for a person whom the model's own word accepts as they are although
        the result is another one than doing nothing; else None.
    instance
        The person's problem.
    after
        Whether the model's own word accepts the row after the action.
    """
    if result.action is not None and not after:
        return "the model's own predict refuses the counterfactual: give a larger margin"
    if rest is None or (result.action is None and result.status is not Status.INFEASIBLE):
        return None
    own = "the model's own predict accepts this person as they are"
    if rest.logit is not None and rest.logit.upper < instance.accept.refused:
        return f"{own}, and what was read refuses them: the model was not read rightly"
    if rest.broken and (rest.accepted_exact or rest.logit is not None):
        return None
    return f"{own}: by less than the margin, or the model was not read rightly"


SAMPLE = 20_000
"""The most rows of X for which ``predict`` is called."""

STARTS = 2_000
"""The most accepted rows from which searches may start."""

CHECKED = 1_000
"""The number of rows on which ``predict`` is compared with the model that was read."""

NEAR = 1e-3
"""Rows are not compared if their distance from the threshold is below this part of the median distance."""


@dataclass(frozen=True)
class KnownRows:
    """Rows of X that can be read, and the model's own predictions for them.

    Attributes
    ----------
    names
        The rows' labels in X.
    values
        Shape (rows, features): as numbers.
    wanted
        Whether ``predict`` gives a desired class, shape (rows,).
    """

    names: pd.Index
    values: NDArray[np.float64]
    wanted: NDArray[np.bool_]

    @property
    def starts(self) -> NDArray[np.float64]:
        """Accepted rows: searches may start from them."""
        return self.values[self.wanted][:STARTS]

    def doubt(self, problem: Instance) -> str | None:
        """How ``predict`` differs from the model that was read, in a sentence; None if they agree.

        They can differ if ``predict`` is another function, or if categories are in another order than at the
        fit. Each person's two rows alone might not show it. Rows near the threshold are left out.

        Parameters
        ----------
        problem
            The problem; its factual is ignored.
        """
        values, predicted = self.values[:CHECKED], self.wanted[:CHECKED]
        scores = problem.classifier.scores(problem.model_rows(values))
        distance = scores - problem.accept.threshold
        sure = np.abs(distance) > NEAR * (np.median(np.abs(distance)) if len(distance) else 0.0)
        wrong = np.flatnonzero(sure & ((distance > 0) != predicted))
        if not len(wrong):
            return None
        return (
            f"predict is not the model that was read: they differ on {len(wrong)} of {len(values)} rows of "
            f"X, such as {got_repr(self.names[wrong[0]])} (a predict of its own, or categories that are not "
            "those of the fit)"
        )


def ask_model(word: OwnWord, X: pd.DataFrame, columns: Sequence[TableColumn]) -> KnownRows:
    """Ask the model about a sample of X; keep its first rows, and accepted ones of the others."""
    sample = X.sample(min(len(X), SAMPLE), random_state=0)
    wanted = word.accepts(sample)
    order = np.argsort(~wanted[CHECKED:], kind="stable")[:STARTS] + CHECKED
    chosen = [*range(min(CHECKED, len(sample))), *(k for k in order.tolist() if wanted[k])]
    rows = read_rows(sample.iloc[chosen], columns, X.columns)
    known = np.array([i not in rows.faults for i in range(len(rows))], dtype=bool)
    return KnownRows(rows.frame.index[known], rows.values[known], wanted[chosen][known])


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

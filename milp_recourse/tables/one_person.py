"""One person of a table: the problem, and the model's own word on recourses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result
from milp_recourse.tables.against_model import compared_with_model, rows_after
from milp_recourse.tables.columns import TableColumn
from milp_recourse.tables.people_rows import Rows, chosen
from milp_recourse.tables.verdict import OwnWord


@dataclass(frozen=True)
class OnePerson:
    """What :meth:`Recourse.one_person` gives.

    Attributes
    ----------
    population
        The person alone.
    word
        The model's own word; None if it cannot be asked.
    doubt
        Why ``predict`` is another model than the one that was read; None if it is not.
    """

    population: Population
    rows: Rows
    columns: Sequence[TableColumn]
    word: OwnWord | None
    doubt: str | None

    @property
    def instance(self) -> Instance:
        """The person's problem."""
        return self.population[0]

    def confirms(self, recourses: Sequence[Any]) -> list[bool]:
        """Whether the model's own ``predict`` gives a desired class after each recourse, a result or another
        object with ``action`` and ``counterfactual``; true for all where the model cannot be asked."""
        if self.word is None or not recourses:
            return [True] * len(recourses)
        many = chosen(self.rows, [0] * len(recourses))
        said = self.word.accepts_each(rows_after(many, self.columns, recourses))
        return [one is True for one in said]

    def compared(self, result: Result) -> Result:
        """The result; where ``predict`` contradicts it, without its claim."""
        return self.compared_and_confirmed(result)[0]

    def compared_and_confirmed(self, result: Result) -> tuple[Result, bool | None]:
        """:meth:`compared`, and whether ``predict`` confirms the action; None without one."""
        [compared], [confirmed] = compared_with_model(
            self.rows, self.columns, [result], self.population, self.word, self.doubt
        )
        return compared, confirmed

"""One person of a table: the problem, and the model's own word on recourses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result
from milp_recourse.tables.answers import compared_with_model, rows_after
from milp_recourse.tables.columns import TableColumn
from milp_recourse.tables.people_rows import Rows
from milp_recourse.tables.verdict import Predict, verdicts


@dataclass(frozen=True)
class OnePerson:
    """What :meth:`Recourse.one_person` gives.

    Attributes
    ----------
    instance
        The person's problem.
    """

    instance: Instance
    rows: Rows
    columns: Sequence[TableColumn]
    predict: Predict | None
    wants: Callable[[object], bool]
    doubt: str | None

    def confirms(self, recourses: Sequence[Any]) -> list[bool]:
        """Whether the model's own ``predict`` gives a desired class after each recourse, a result or another
        object with ``action`` and ``counterfactual``; true for all where the model cannot be asked."""
        if self.predict is None or not recourses:
            return [True] * len(recourses)
        same = [0] * len(recourses)
        many = replace(
            self.rows,
            frame=self.rows.frame.iloc[same].reset_index(drop=True),
            values=self.rows.values[same],
            missing=self.rows.missing[same],
        )
        return verdicts(self.predict, rows_after(many, self.columns, recourses), self.wants).tolist()

    def compared(self, result: Result) -> Result:
        """The result; where ``predict`` contradicts it, without its claim."""
        [compared], _ = compared_with_model(
            self.rows, self.columns, [result], self.predict, self.wants, self.doubt
        )
        assert compared is not None
        return compared

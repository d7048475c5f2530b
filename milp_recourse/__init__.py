"""Exact, proven algorithmic recourse: the least an applicant must change to be accepted.

>>> import milp_recourse
>>> result = milp_recourse.solve("applicant.json")  # doctest: +SKIP
>>> result.status.value, result.cost, result.action  # doctest: +SKIP
('optimal', 0.25, {'income': 3.0})

Importing the package loads no solver: each back end imports its own when it is asked for.
"""

from typing import TYPE_CHECKING, Any

from milp_recourse.formats import read_instance, read_population
from milp_recourse.problem.instance import Instance, Population
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.solve import solve, solve_population

if TYPE_CHECKING:
    from milp_recourse.tables.recourse import Recourse

__all__ = [
    "Instance",
    "Population",
    "Recourse",
    "Result",
    "Status",
    "read_instance",
    "read_population",
    "solve",
    "solve_population",
]


def __getattr__(name: str) -> Any:
    """Import :class:`~milp_recourse.tables.recourse.Recourse` on first use, because it needs pandas."""
    if name == "Recourse":
        from milp_recourse.tables.recourse import Recourse

        return Recourse
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

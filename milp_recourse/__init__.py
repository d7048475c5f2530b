"""Exact, proven algorithmic recourse: the least an applicant must change to be accepted.

>>> import milp_recourse
>>> result = milp_recourse.solve("applicant.json")  # doctest: +SKIP
>>> result.status.value, result.cost, result.action  # doctest: +SKIP
('optimal', 0.25, {'income': 3.0})

Importing the package loads no solver: each back end imports its own when it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from milp_recourse.formats import read_instance, read_population
    from milp_recourse.problem.instance import Instance
    from milp_recourse.problem.population import Population
    from milp_recourse.problem.result import Result, Status
    from milp_recourse.questions.solve import solve, solve_population
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

_HOMES = {
    "formats": ("read_instance", "read_population"),
    "problem.instance": ("Instance",),
    "problem.population": ("Population",),
    "problem.result": ("Result", "Status"),
    "questions.solve": ("solve", "solve_population"),
    "tables.recourse": ("Recourse",),
}
"""Where each public name is made: it is imported when it is first asked for."""


def __getattr__(name: str) -> Any:
    """Import a public name, or read ``__version__``, on first use."""
    if name == "__version__":
        from importlib.metadata import version

        return version("milp-recourse")
    for module, names in _HOMES.items():
        if name in names:
            found = getattr(import_module(f"{__name__}.{module}"), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

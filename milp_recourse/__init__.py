"""Exact, proven algorithmic recourse: the least an applicant must change to be accepted.

>>> import milp_recourse
>>> result = milp_recourse.solve("applicant.json")  # doctest: +SKIP
>>> result.status.value, result.cost, result.action  # doctest: +SKIP
('optimal', 0.25, {'income': 3.0})

Importing the package loads no solver: each back end imports its own when it is asked for.
"""

from milp_recourse.formats import read_instance, read_population
from milp_recourse.instance import Instance, Population
from milp_recourse.result import Result, Status
from milp_recourse.solve import solve, solve_population

__all__ = [
    "Instance",
    "Population",
    "Result",
    "Status",
    "read_instance",
    "read_population",
    "solve",
    "solve_population",
]

"""Answers as HTML: a file per person or per population, and fragments for notebooks.

The files load nothing: style, script, data and plots are inside.
"""

from milp_recourse.reports.pages.gather import detailed, facts_of, persons_of, reasons_of
from milp_recourse.reports.pages.whole_pages import (
    person_fragment,
    person_page,
    population_fragment,
    population_page,
)
from milp_recourse.reports.view import Change, Person, Reason, Reasons

__all__ = [
    "Change",
    "Person",
    "Reason",
    "Reasons",
    "detailed",
    "facts_of",
    "person_fragment",
    "person_page",
    "persons_of",
    "population_fragment",
    "population_page",
    "reasons_of",
]

"""Answers as HTML: a file per person or per population, and fragments for notebooks.

The files load nothing: style, script, data and plots are inside.
"""

from milp_recourse.reports.pages.gather import (
    changes_of,
    facts_of,
    group_of,
    person_of,
    persons_of,
    reasons_of,
)
from milp_recourse.reports.pages.person import NOT_REACHED, Change, Outcome, Person, Reason, Reasons
from milp_recourse.reports.pages.whole_pages import (
    person_fragment,
    person_page,
    population_fragment,
    population_page,
)

__all__ = [
    "NOT_REACHED",
    "Change",
    "Outcome",
    "Person",
    "Reason",
    "Reasons",
    "changes_of",
    "facts_of",
    "group_of",
    "person_fragment",
    "person_of",
    "person_page",
    "persons_of",
    "population_fragment",
    "population_page",
    "reasons_of",
]

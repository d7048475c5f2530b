"""Which restrictions make recourse impossible, what each one costs, and how little widening suffices."""

from milp_recourse.questions.why.answer import Why, why
from milp_recourse.questions.why.restrictions import lift, restrictions
from milp_recourse.questions.why.why_people import PopulationWhy, why_population
from milp_recourse.questions.why.widening import widen

__all__ = [
    "PopulationWhy",
    "Why",
    "lift",
    "restrictions",
    "why",
    "why_population",
    "widen",
]

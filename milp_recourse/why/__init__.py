"""Which restrictions make recourse impossible, what each one costs, and how little widening suffices."""

from milp_recourse.why.answer import Why, why
from milp_recourse.why.population import PopulationWhy, why_population
from milp_recourse.why.restrictions import lift, restrictions
from milp_recourse.why.widening import widen

__all__ = [
    "PopulationWhy",
    "Why",
    "lift",
    "restrictions",
    "why",
    "why_population",
    "widen",
]

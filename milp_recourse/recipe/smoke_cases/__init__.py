"""The cases behind instances/smoke; each description carries the derivation of its answer."""

from __future__ import annotations

from milp_recourse.recipe.smoke import Smoke
from milp_recourse.recipe.smoke_cases import causes, rules, values


def all_cases() -> list[Smoke]:
    """Every smoke case; names are unique."""
    return [*rules.cases(), *values.cases(), *causes.cases()]

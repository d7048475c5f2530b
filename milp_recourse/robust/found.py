"""What a search for certainty ends with, and what both searches need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from milp_recourse.domain.scenario import Scenario
from milp_recourse.instance import Instance
from milp_recourse.result import Proof


@dataclass(frozen=True)
class Found:
    """What a search ended with.

    Attributes
    ----------
    action
        Proven to hold in every outcome; None where none was.
    lower_bound
        Infinite where it is proven that no action holds.
    cuts
        Scenarios or refused boxes that the bound rests on.
    rounds
        Problems solved.
    message
        Why the two sides did not meet; None where they did.
    worst
        The lowest logit or score found of the action, and what happens there.
    """

    action: dict[str, float] | None
    lower_bound: float
    proof: Proof
    cuts: int
    rounds: int
    nodes: int
    message: str | None
    worst: tuple[float, Scenario] | None


def indices(instance: Instance, action: Mapping[str, float | int | str]) -> dict[str, float]:
    """A result's action with labels by their index."""
    found = {}
    for name, value in action.items():
        categories = instance.feature(name).categories
        found[name] = float(value) if categories is None else float(categories.index(str(value)))
    return found

"""One way in which an action can turn out otherwise than planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Scenario:
    """Deviations from what was planned.

    Parameters
    ----------
    missed
        Per feature, what is added to its target if it is acted on, in the feature's unit.
    noise
        Per feature, what is added to its abducted noise. It has an effect only if the feature is not acted on
        and one of its causes has moved.
    """

    missed: Mapping[str, float] = field(default_factory=dict)
    noise: Mapping[str, float] = field(default_factory=dict)

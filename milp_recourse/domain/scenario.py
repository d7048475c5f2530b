"""One way in which an action can turn out otherwise than planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Scenario:
    """What happens instead of what was planned.

    Parameters
    ----------
    missed
        Per feature, by how much its target is missed where it is acted on: value is target + missed, in the
        feature's unit.
    noise
        Per feature, what its noise is more than abducted, where it is not acted on and something upstream is.
    """

    missed: Mapping[str, float] = field(default_factory=dict)
    noise: Mapping[str, float] = field(default_factory=dict)

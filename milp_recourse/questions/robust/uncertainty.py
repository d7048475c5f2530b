"""What is uncertain about an action, and the problem with the highest possible threshold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from milp_recourse.errors import BadInput, is_number
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork

Interval = tuple[float, float]


@dataclass(frozen=True)
class Uncertainty:
    """What a certain action must withstand, all of it at the same time.

    Parameters
    ----------
    missed
        Feature -> d >= 0, in the feature's unit. If the feature is acted on, also if it is held, its value
        may differ from the target by up to d (by whole numbers for integer features). Only for continuous and
        integer features.
    threshold
        The highest value of the threshold; None if it does not move.
    noise
        Feature -> (least, most), an interval that contains 0, in the noise's unit. If the feature is not
        acted on but one of its causes moves, its noise is the abducted one plus any number of the interval.
    """

    missed: Mapping[str, float] = field(default_factory=dict)
    threshold: float | None = None
    noise: Mapping[str, Interval] = field(default_factory=dict)

    @property
    def of_outcomes(self) -> bool:
        """Whether an action can have more than one outcome; the threshold does not count."""
        return any(self.missed.values()) or any(low < high for low, high in self.noise.values())

    def to_dict(self) -> dict[str, Any]:
        """As a JSON value."""
        noise = {name: list(ends) for name, ends in self.noise.items()}
        return {"missed": dict(self.missed), "threshold": self.threshold, "noise": noise}


def uncertainty_of(
    instance: Instance,
    missed: Mapping[str, float] | None = None,
    threshold: float | None = None,
    noise: Mapping[str, float | Sequence[float]] | None = None,
) -> Uncertainty:
    """Check the arguments against the problem; a single number a for noise means (-a, a).

    Raises
    ------
    BadInput
        A feature is unknown or of a kind that cannot be uncertain so, or a number is not what is allowed.
    """
    known = instance.by_name
    names = ", ".join(known)
    distances: dict[str, float] = {}
    for name, amount in (missed or {}).items():
        where = f"missed.{name}"
        if name not in known:
            raise BadInput(where, amount, f"a feature: {names}")
        if known[name].kind not in ("continuous", "integer"):
            raise BadInput(where, f"{known[name].kind} feature", "a continuous or an integer one")
        if not is_number(amount) or amount < 0:
            raise BadInput(where, amount, "a number, 0 or more, in the feature's unit")
        distances[name] = float(math.floor(amount)) if known[name].integral else float(amount)
    if threshold is not None and not is_number(threshold):
        raise BadInput("threshold", threshold, "a finite number")
    intervals: dict[str, Interval] = {}
    for name, ends in (noise or {}).items():
        where = f"noise.{name}"
        if name not in known:
            raise BadInput(where, ends, f"a feature: {names}")
        pair = [-ends, ends] if is_number(ends) else ends
        good = isinstance(pair, Sequence) and len(pair) == 2 and all(is_number(end) for end in pair)
        if not good or not pair[0] <= 0 <= pair[1]:  # type: ignore[index]
            raise BadInput(where, ends, "an amount, 0 or more, or [least, most] with 0 between them")
        if known[name].integral:
            raise BadInput(where, f"{known[name].kind} feature", "a continuous one: noise is no whole number")
        intervals[name] = float(pair[0]), float(pair[1])  # type: ignore[index]
    return Uncertainty(distances, None if threshold is None else float(threshold), intervals)


def at_worst_threshold(instance: Instance, uncertainty: Uncertainty) -> Instance:
    """The problem with the highest possible threshold, rounded up to a float32 for a float32 network."""
    highest = uncertainty.threshold
    if highest is None or highest <= instance.accept.threshold:
        return instance
    if isinstance(instance.classifier, ReluNetwork) and instance.classifier.dtype == "float32":
        single = np.float32(highest)
        highest = float(single if float(single) >= highest else np.nextafter(single, np.float32(np.inf)))
    return replace(instance, accept=replace(instance.accept, threshold=highest), reference=None)

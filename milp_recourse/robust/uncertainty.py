"""What may turn out otherwise than planned, and the problem in which it does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from milp_recourse.domain.network import ReluNetwork
from milp_recourse.errors import BadInput, is_number
from milp_recourse.instance import Instance

Interval = tuple[float, float]


@dataclass(frozen=True)
class Uncertainty:
    """What a certain action must withstand, all of it at once.

    Parameters
    ----------
    missed
        Feature -> d >= 0, in its unit: where it is acted on, its value is anything within d of what is aimed
        at; whole steps of whole numbers. Not of labels. Holding a feature is aiming at its factual value.
    threshold
        The highest value the threshold may have moved to; None: it stays.
    noise
        Feature -> (least, most) with 0 between them, in the noise's unit: where the feature is not acted on
        and something upstream of it is, its noise is the abducted one plus anything between them.
    """

    missed: Mapping[str, float] = field(default_factory=dict)
    threshold: float | None = None
    noise: Mapping[str, Interval] = field(default_factory=dict)

    @property
    def of_outcomes(self) -> bool:
        """Whether an action can have more than one outcome, the threshold apart."""
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
    """What was said, checked against the problem; noise given as one number a is (-a, a).

    Raises
    ------
    BadInput
        One line: an unknown feature, a label that cannot be missed, a number that is none.
    """
    known = {f.name: f for f in instance.features}
    names = ", ".join(known)
    made: dict[str, float] = {}
    for name, amount in (missed or {}).items():
        where = f"missed.{name}"
        if name not in known:
            raise BadInput(where, amount, f"a feature: {names}")
        if known[name].kind not in ("continuous", "integer"):
            raise BadInput(where, f"{known[name].kind} feature", "a continuous or an integer one")
        if not is_number(amount) or amount < 0:
            raise BadInput(where, amount, "a number, 0 or more, in the feature's unit")
        made[name] = float(math.floor(amount)) if known[name].integral else float(amount)
    if threshold is not None and not is_number(threshold):
        raise BadInput("threshold", threshold, "a finite number")
    intervals: dict[str, Interval] = {}
    for name, ends in (noise or {}).items():
        where = f"noise.{name}"
        if name not in known:
            raise BadInput(where, ends, f"a feature: {names}")
        pair = [-ends, ends] if is_number(ends) else ends  # type: ignore[operator]
        good = isinstance(pair, Sequence) and len(pair) == 2 and all(is_number(end) for end in pair)
        if not good or not pair[0] <= 0 <= pair[1]:  # type: ignore[index, operator]
            raise BadInput(where, ends, "an amount, 0 or more, or [least, most] with 0 between them")
        if known[name].integral:
            raise BadInput(where, f"{known[name].kind} feature", "a continuous one: noise is no whole number")
        intervals[name] = float(pair[0]), float(pair[1])  # type: ignore[index, arg-type]
    return Uncertainty(made, None if threshold is None else float(threshold), intervals)


def at_worst_threshold(instance: Instance, uncertainty: Uncertainty) -> Instance:
    """The problem with the highest threshold that there may be; of a float32 network the next float32."""
    highest = uncertainty.threshold
    if highest is None or highest <= instance.accept.threshold:
        return instance
    if isinstance(instance.classifier, ReluNetwork) and instance.classifier.dtype == "float32":
        single = np.float32(highest)
        highest = float(single if float(single) >= highest else np.nextafter(single, np.float32(np.inf)))
    return replace(instance, accept=replace(instance.accept, threshold=highest), reference=None)

"""The controls of a person's limits: one per feature that anybody can act on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from milp_recourse.problem.conditions import LabelIn
from milp_recourse.problem.features import Feature, Steps, Values
from milp_recourse.problem.instance import Instance
from milp_recourse.reports.own_words import OwnWords
from milp_recourse.reports.pages.values import said

STOPS = (1 / 9, 1 / 3, 1.0, 3.0, 9.0)
"""Weights from "very easy" to "very hard", times the weight that the person came with."""

MOST_BOXES = 16
"""With more labels, there are no boxes for them."""

FAR = 200
"""Bounds that are more than this times the person's own value apart are too far for an even slider."""

MOST_CHOICES = 40
"""With more values, a list of values is a slider."""


@dataclass(frozen=True)
class Control:
    """What is set for one feature.

    Attributes
    ----------
    kind
        ``range``: two ends on a slider; ``order``: two ends among few values; ``labels``: boxes; ``none``.
    now, exact
        The person's value, a label by its name, and as a number; None where it is missing.
    low, high
        The ends that are set, in the feature's unit (labels by index).
    least, most, step
        Of the slider.
    curve
        Around the person's value, a slider moves evenly within about this distance, and by shares of the
        distance beyond, because the bounds are very far away; 0: evenly everywhere.
    choices
        Values and their words, of ``order`` and ``labels``.
    boxes
        The labels that are possible, of ``labels``.
    stop
        The position among :data:`STOPS` nearest to the weight.
    """

    feature: str
    called: str
    unit: str | None
    kind: Literal["range", "order", "labels", "none"]
    now: float | str | None
    locked: bool
    only: str | None
    low: str
    high: str
    least: str
    most: str
    step: str
    curve: float
    exact: float | None
    choices: Sequence[tuple[str, str]]
    boxes: frozenset[str]
    weight: float
    usual: float
    stop: int


def controls(instance: Instance, start: Instance, words: OwnWords) -> list[Control]:
    """The controls for an instance; ``start`` is the person before anything was set."""
    able = [f for f in instance.features if f.actionable and instance.cost.covers(f.name)]
    return [_control(instance, start, f, words) for f in able]


def _control(instance: Instance, start: Instance, f: Feature, words: OwnWords) -> Control:
    own, low, high = instance.preferences, *f.action_bounds
    kind, choices = _kind(f, low, high)
    step, least, most = _slider(f, low, high)
    ends, x = own.ranges.get(f.name), instance.factual[f.name]
    now, usual, weight = f.shown(instance.factual[f.name]), start.weight(f.name), instance.weight(f.name)
    return Control(
        feature=f.name,
        called=words.names.get(f.name, f.name),
        unit=words.units.get(f.name),
        kind=kind,
        now=now,
        locked=f.name not in own.actionable,
        only=f.monotone,
        low=_plain(ends[0]) if ends else (choices[0][0] if kind == "order" else least),
        high=_plain(ends[1]) if ends else (choices[-1][0] if kind == "order" else most),
        least=least,
        most=most,
        step=step,
        curve=_curve(x, low, high) if kind == "range" else 0.0,
        exact=None if math.isnan(x) else x,
        choices=choices,
        boxes=_boxes(instance, f),
        weight=weight,
        usual=usual,
        stop=stop_of(weight, usual),
    )


def stop_of(weight: float, usual: float) -> int:
    """The position among :data:`STOPS` nearest to a weight."""
    return min(range(len(STOPS)), key=lambda k: abs(math.log(weight / (usual * STOPS[k]))))


def _kind(
    f: Feature, low: float, high: float
) -> tuple[Literal["range", "order", "labels", "none"], list[tuple[str, str]]]:
    if f.kind == "binary" or low >= high:
        return "none", []
    if f.categories is not None:
        labels = list(enumerate(f.categories))[int(low) : int(high) + 1]
        if f.kind == "ordinal":
            return "order", [(str(k), label) for k, label in labels]
        return ("labels" if len(labels) <= MOST_BOXES else "none"), [(label, label) for _, label in labels]
    if isinstance(f.only, Values) and f.only.count(low, high) <= MOST_CHOICES:
        return "order", [(_plain(v), said(f.show(v))) for v in f.only.within(low, high)]
    return "range", []


def _slider(f: Feature, low: float, high: float) -> tuple[str, str, str]:
    """Step and ends of a slider, as short decimals; the ends are not inside the bounds."""
    if f.labelled or low >= high:
        return "1", _plain(low), _plain(high)
    fine = Decimal(1).scaleb(math.floor(math.log10((high - low) / 50)))
    step = Decimal(1) if f.integral else fine
    if isinstance(f.only, Steps):
        return _plain(float(f.only.step)), _plain(f.only.ceil(low)), _plain(f.only.floor(high))
    least, most = math.floor(Decimal(low) / step) * step, math.ceil(Decimal(high) / step) * step
    return format(step, "f"), _plain(float(least)), _plain(float(most))


def _curve(x: float, low: float, high: float) -> float:
    if math.isnan(x):
        return 0.0
    near = abs(x) or (high - low) / 1000
    return near if high - low > FAR * near else 0.0


def _plain(value: float) -> str:
    """A number as an input of the browser takes it."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def _boxes(instance: Instance, f: Feature) -> frozenset[str]:
    """The labels that the person's own conditions leave."""
    left = set(f.categories or ())
    for one in instance.preferences.conditions:
        if is_boxes(one, f.name):
            left &= {f.categories[int(k)] for k in one.labels} if f.categories else set()  # type: ignore[union-attr]
    return frozenset(left)


def is_boxes(condition: object, name: str) -> bool:
    """Whether a condition is what the boxes of a feature say: its label after the action is one of some."""
    return isinstance(condition, LabelIn) and condition.feature == name and condition.of == "counterfactual"

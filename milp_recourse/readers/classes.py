"""The wanted class, and the logit that is above 0 where a network predicts it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from milp_recourse.errors import BadInput, Unsupported, is_number
from milp_recourse.problem.network import DType, ReluNetwork
from milp_recourse.readers.layers import Layers
from milp_recourse.readers.refusal import not_fitted, refuse


@dataclass(frozen=True)
class Target:
    """The class that people want, or the one that they do not want.

    Attributes
    ----------
    index
        Position of the class among the model's classes.
    wanted
        Whether this class is wanted; if not, any other class is.
    words
        The wish in words, such as ``'good'`` or ``not 'bad'``.
    """

    index: int
    wanted: bool
    words: str


@dataclass(frozen=True)
class Interval:
    """The numbers that people want a regression to predict.

    Attributes
    ----------
    low, high
        The least and the largest; infinite where there is none.
    words
        The wish in words, such as ``at least 1000``.
    """

    low: float
    high: float
    words: str


class OtherLabel:
    """Any label of a column that its encoder was not fitted on, and that it takes nevertheless."""

    def __str__(self) -> str:
        return "another label"


OTHER = OtherLabel()
"""Stands among a column's labels for all that are not there."""


def plain(value: Any) -> Any:
    """A label as a Python value."""
    return value.item() if isinstance(value, np.generic) else value


def choose_target(desired: object, classes: Sequence[object]) -> Target:
    """The target that ``desired`` names: a class, ``{"not": class}``, or None for the second of two.

    Raises
    ------
    Unsupported
        The model has a single class.
    BadInput
        The model has no such class, or ``desired`` is None and there are more than two.
    """
    shown = ", ".join(repr(c) for c in classes)
    if len(classes) < 2:
        raise Unsupported(f"model: got the single class {shown}; allowed: a model of at least two classes")
    if desired is None:
        if len(classes) > 2:
            raise BadInput(
                "desired", "nothing", f"one of the {len(classes)} classes {shown}, or {{'not': one}}"
            )
        return Target(1, True, repr(classes[1]))
    negated = isinstance(desired, Mapping)
    if isinstance(desired, Mapping):
        if list(desired) != ["not"]:
            raise BadInput("desired", repr(desired), f"a class of {shown}, or {{'not': one}}")
        desired = desired["not"]
    label = plain(desired)
    found = [k for k, c in enumerate(classes) if type(c) is type(label) and c == label] or [
        k for k, c in enumerate(classes) if _equal(c, label)
    ]
    if len(found) != 1:
        raise BadInput("desired", repr(label), f"a class of {shown}, or {{'not': one}}")
    words = f"not {classes[found[0]]!r}" if negated else repr(classes[found[0]])
    if negated and len(classes) == 2:
        return Target(1 - found[0], True, words)
    return Target(found[0], not negated, words)


def choose_interval(desired: object, name: str) -> Interval:
    """The interval that ``desired`` names: (low, high), None for an open end.

    Raises
    ------
    BadInput
        It is no such pair, both ends are open, or the lower is above the upper.
    """
    allowed = f"(low, high) for what {name} predicts, None for an open end"
    if not isinstance(desired, list | tuple) or len(desired) != 2:
        raise BadInput("desired", "nothing" if desired is None else repr(desired), allowed)
    ends = [plain(end) for end in desired]
    if ends == [None, None] or not all(end is None or is_number(end) for end in ends):
        raise BadInput("desired", repr(tuple(ends)), allowed)
    low, high = ends
    if low is not None and high is not None and low > high:
        raise BadInput("desired", repr((low, high)), "the lower number first")
    if high is None:
        words = f"at least {low:g}"
    else:
        words = f"at most {high:g}" if low is None else f"from {low:g} to {high:g}"
    least, most = -math.inf if low is None else float(low), math.inf if high is None else float(high)
    return Interval(least, most, words)


def classes_of(model: Any, count: Callable[[Any], int] | None = None) -> tuple[object, ...]:
    """The classes of a fitted classifier, as Python values.

    Parameters
    ----------
    count
        Gives the number of classes of a model that does not name them.

    Raises
    ------
    Unsupported
        The classifier is not fitted, or has several outputs.
    """
    known = getattr(model, "classes_", None)
    if known is None:
        if count is None or hasattr(model, "fit"):
            raise not_fitted("model")
        return tuple(range(count(model)))
    if len(known) and isinstance(known[0], list | tuple | np.ndarray):
        raise refuse("model", f"{len(known)} outputs", "one output")
    return tuple(plain(c) for c in known)


def choose_logit(layers: Layers, target: Target, classes: int) -> None:
    r"""Turn a network's outputs into one logit that is above 0 where the target is met.

    ======================  =========================================
    one output, 2 classes   :math:`z`, or :math:`-z` for the first class
    this class c            :math:`\min_j (z_c - z_j)`
    any but c               :math:`\max_j (z_j - z_c)`
    ======================  =========================================

    Raises
    ------
    Unsupported
        There are neither as many outputs as classes nor one output for two.
    """
    outputs = layers.outputs
    if outputs == 1 and classes == 2:
        layers.choose([([[1.0 if target.index == 1 else -1.0]], [0.0])])
        return
    if outputs != classes:
        raise Unsupported(
            f"last layer: got {outputs} outputs for {classes} classes; allowed: one per class, or one for two"
        )
    rows = -np.delete(np.eye(classes), target.index, axis=0)
    rows[:, target.index] = 1.0
    if target.wanted:
        layers.choose([(rows, np.zeros(len(rows)))])
    else:
        layers.choose([([row], [0.0]) for row in -rows])


def two_classes(append: Callable[[Any, Layers], DType], model: Any) -> ReluNetwork:
    """The network of a model of two classes, whose logit is above 0 for the second class.

    Parameters
    ----------
    append
        Appends the model's maps to layers, and returns the precision.
    """
    layers = Layers()
    dtype = append(model, layers)
    if layers.outputs == 2:
        choose_logit(layers, Target(1, True, "1"), 2)
    return layers.network(dtype)


def _equal(one: object, other: object) -> bool:
    try:
        return bool(one == other)
    except (TypeError, ValueError):
        return False

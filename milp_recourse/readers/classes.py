"""The wanted class, and the logit that is above 0 where a network predicts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.problem.network import DType, ReluNetwork
from milp_recourse.readers.layers import Layers


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
        layers.choose([[1.0 if target.index == 1 else -1.0]], "one")
        return
    if outputs != classes:
        raise Unsupported(
            f"last layer: got {outputs} outputs for {classes} classes; allowed: one per class, or one for two"
        )
    rows = -np.delete(np.eye(classes), target.index, axis=0)
    rows[:, target.index] = 1.0
    if target.wanted:
        layers.choose(rows, "smallest" if classes > 2 else "one")
    else:
        layers.choose(-rows, "largest" if classes > 2 else "one")


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

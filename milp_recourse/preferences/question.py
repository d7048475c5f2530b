"""What a person is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from milp_recourse.judge import judge
from milp_recourse.problem.instance import Instance

PAIR = ("left", "right", "same", "neither", "only-left", "only-right")
"""Answers to a pair. ``left``: left is easier; ``same``: about the same; ``neither``: both are out of the
question; ``only-left``: left is possible, right is out of the question."""

ONE = ("yes", "no")
"""Answers to one recourse: it is possible, or out of the question."""


@dataclass(frozen=True)
class Option:
    """A recourse that is shown; the model accepts it.

    Attributes
    ----------
    action, counterfactual
        As in a result: labels as labels.
    numbers
        The action with labels as their index.
    """

    action: Mapping[str, float | int | str]
    counterfactual: Mapping[str, float | int | str | None]
    numbers: Mapping[str, float] = field(repr=False)


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes
    ----------
    kind
        ``pair``: which recourse is easier? ``one``: is this recourse possible? ``lever``: a question about
        one feature: whether it can be changed, how hard that is, or, where ``left`` is given, whether it can
        be changed as in ``left``; ``levers``: which of two features is easier?
    left, right
        The recourses; ``right`` is None unless two are shown. Of ``lever``, a part of a recourse.
    levers
        The features that a question is about, where it is about features.
    answers
        What :meth:`Interview.tell` takes.
    final
        Of ``one``: whether the question is if the recourse will do, so that yes ends the interview, and no
        says nothing about what is possible.
    """

    kind: str
    left: Option | None = None
    right: Option | None = None
    levers: tuple[str, ...] = ()
    answers: tuple[str, ...] = PAIR
    final: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As a JSON value: what was shown."""
        shown: dict[str, Any] = {"kind": self.kind, **({"final": True} if self.final else {})}
        for side in ("left", "right"):
            option: Option | None = getattr(self, side)
            if option is not None:
                shown[side] = dict(option.action)
        if self.levers:
            shown["levers"] = list(self.levers)
        return shown


def option(instance: Instance, numbers: Mapping[str, float]) -> Option | None:
    """The option that an action is; None if the exact judge or the deployed model refuses it."""
    verdict = judge(instance, numbers)
    if not verdict.feasible:
        return None
    shown = {name: instance.by_name[name].show(value) for name, value in numbers.items()}
    after = {f.name: f.shown(verdict.counterfactual[f.name]) for f in instance.features}
    return Option(shown, after, dict(numbers))


def part_of(shown: Option, name: str) -> Option:
    """What a recourse does with one lever."""
    after = {name: shown.counterfactual[name]}
    return Option({name: shown.action[name]}, after, {name: shown.numbers[name]})

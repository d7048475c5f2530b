"""One view of one person's answer, from which everything that shows the answer is made.

Terminals get it as text (here) and as a table, and ``results.csv`` as a row
(:mod:`~milp_recourse.reports.result_rows`); DataFrames as rows (:mod:`milp_recourse.tables.answered`); pages,
letters, audits and the studio with what :func:`~milp_recourse.reports.pages.gather.detailed` adds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Status

BAD_INPUT = "bad-input"
"""The status of a person who could not be read."""

NOT_REACHED = "not-reached"
"""The status of a person who has no row because the run stopped before."""

STATUSES = (*(status.value for status in Status), BAD_INPUT)
"""The statuses in results."""

NUMBERS = ("cost", "lower_bound", "gap", "seconds")
"""The numbers of an answer."""

COPIED = (*NUMBERS, "proof", "message", "backend", "nodes", "certificate")
"""What a view has as the answer has it."""

Cause = Literal["action", "effect", "held", "unchanged"]
Value = float | int | str


class Answer(Protocol):
    """What a view is made of: a ``Result``, or a ``result-1`` document; with all of :data:`COPIED`, too."""

    @property
    def status(self) -> str:
        """A status of results."""

    @property
    def action(self) -> Mapping[str, Value] | None:
        """Value per feature acted on; None without an action."""

    @property
    def counterfactual(self) -> Mapping[str, Value | None] | None:
        """Value of every feature after the action; None without one."""


@dataclass(frozen=True)
class Change:
    """One feature of one person, before and after.

    From ``lever`` on it is what only some renderers need, and what takes time to find.

    Attributes
    ----------
    feature
        The feature's name.
    before, after
        Values as the user writes them: numbers, labels, None for a missing value.
    cause
        ``action`` if the person changes it; ``held`` if it is acted on at its own value, so that its causes
        do not move it; ``effect`` if it follows from the actions by the causal model; else ``unchanged``.
    lever
        Whether this person can act on it.
    allowed
        The values that an action can set, in words; None if it is no lever.
    share
        The cost of this change by itself divided by the total cost, from 0 to 1; None without a cost.
    printed
        The shortest value in place of ``after`` with which the model still accepts; None: ``after``.
    name
        Words for the feature; None: its own name.
    unit
        The unit of its numbers; None: none.
    place
        The feature's position in the action, whose order need not be that of the features.
    """

    feature: str
    before: object
    after: object
    cause: Cause = "unchanged"
    lever: bool = False
    allowed: str | None = None
    share: float | None = None
    printed: object = None
    name: str | None = None
    unit: str | None = None
    place: int = field(default=0, compare=False)

    @property
    def called(self) -> str:
        """The words for the feature."""
        return self.feature if self.name is None else self.name

    @property
    def said(self) -> object:
        """The value to say for ``after``."""
        return self.after if self.printed is None else self.printed


@dataclass(frozen=True)
class Reason:
    """One restriction (or set of restrictions lifted together), and the optimum without it.

    Attributes
    ----------
    restrictions
        One sentence for each restriction.
    cost
        The proven cost of the cheapest action without them; None if that was not settled.
    """

    restrictions: Sequence[str]
    cost: float | None


@dataclass(frozen=True)
class Reasons:
    """The answer of ``why`` about one person.

    Attributes
    ----------
    heading
        One sentence that explains the list.
    reasons
        Cheapest first if no action is feasible; otherwise in the file's order.
    """

    heading: str
    reasons: Sequence[Reason]


@dataclass(frozen=True)
class Person:
    """One person's answer, with everything that is shown about it.

    Numbers and truth values may be numpy's or pandas'; a missing one is None.

    Attributes
    ----------
    id
        The user's identifier of the person.
    status
        A status of results, or ``not-reached``.
    cost, lower_bound, gap, proof, message, seconds, backend, nodes, certificate
        As in a result; None if the result has none.
    confirmed
        Whether the model's own ``predict`` agrees; None if it was not called.
    features
        One :class:`Change` per feature, in order; empty where only the answer as a whole is shown.
    group
        The person's value of every column by which groups are formed; may be empty.
    why
        The answer of ``why``; None if it was not asked for.
    """

    id: str
    status: str
    cost: float | None = None
    lower_bound: float | None = None
    gap: float | None = None
    proof: str | None = None
    confirmed: bool | None = None
    message: str | None = None
    seconds: float | None = None
    features: Sequence[Change] = ()
    group: Mapping[str, str] = field(default_factory=dict)
    why: Reasons | None = None
    backend: str | None = None
    nodes: int | None = None
    certificate: str | None = None

    def __post_init__(self) -> None:
        for name in NUMBERS:
            number = plain(getattr(self, name))
            if isinstance(number, str):
                raise ValueError(f"{name}: got {number}; allowed: a finite number, or None")
            object.__setattr__(self, name, None if number is None else float(number))
        truth = plain(self.confirmed)
        object.__setattr__(self, "confirmed", None if truth is None else truth in ("True", 1))
        for name in ("proof", "message"):
            text = plain(getattr(self, name))
            object.__setattr__(self, name, None if text is None else str(text))

    def caused(self, *causes: Cause) -> list[Change]:
        """The features whose cause is one of those given, in order."""
        return [change for change in self.features if change.cause in causes]

    @property
    def action(self) -> dict[str, Any]:
        """The value of each feature acted on, in the action's own order."""
        return {c.feature: c.after for c in acted(self.features)}

    @property
    def said(self) -> dict[str, Any]:
        """The value to say of each feature that is acted on or changes, in the features' order."""
        return {c.feature: c.said for c in self.features if c.cause != "unchanged"}

    @property
    def sentence(self) -> str | None:
        """What the status means; None of one that results have not."""
        return next((one.sentence for one in Status if one.value == self.status), None)

    @property
    def note(self) -> str | None:
        """The message, unless it only repeats what the status means."""
        return self.message if self.message and self.message != self.sentence else None


def person_of(
    answer: Answer, instance: Instance | None = None, id: str = "", confirmed: bool | None = None
) -> Person:
    """The view of an answer.

    Parameters
    ----------
    instance
        The person's problem; None: a view without features, for what shows none.
    """
    features = [] if instance is None else changes_of(instance, answer.action, answer.counterfactual)
    copied = {name: getattr(answer, name) for name in COPIED}
    status = answer.status.value if isinstance(answer.status, Status) else answer.status
    return Person(id, status, **copied, confirmed=confirmed, features=features)


def unread(fault: str | None, id: str = "") -> Person:
    """The view of a person who could not be read, and why."""
    return Person(id, BAD_INPUT, message=fault)


def changes_of(
    instance: Instance,
    action: Mapping[str, Value] | None = None,
    counterfactual: Mapping[str, Value | None] | None = None,
) -> list[Change]:
    """One change per feature.

    Parameters
    ----------
    action, counterfactual
        As in a result; None where there is no action.
    """
    action, after = action or {}, counterfactual or {}
    places = {instance.by_name[name].name: k for k, name in enumerate(action)}
    changes = []
    for f in instance.features:
        name = f.name
        before = f.shown(instance.factual[name])
        value = action[name] if name in action else after.get(name, before)
        cause: Cause = "unchanged" if value == before else "effect"
        if name in action:
            cause = "held" if value == before else "action"
        changes.append(Change(name, before, value, cause, place=places.get(name, 0)))
    return changes


def acted(changes: Iterable[Change]) -> list[Change]:
    """The changes that a person makes, in the action's own order."""
    return sorted((c for c in changes if c.cause in ("action", "held")), key=lambda c: c.place)


def plain(value: object) -> float | int | str | None:
    """A Python number, text, or None for a missing value, also for values of numpy and pandas.

    Truth values, numbers that are not finite and all other objects become text.
    """
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "shape", None) == ():
        value = item()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return int(value) if abs(value) < 2**53 else str(value)
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return float(value) if math.isfinite(value) else str(value)
    return str(value)


def short(value: object, digits: int = 6) -> str:
    """A value in a few characters: ``-`` for None, numbers to ``digits`` significant digits."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:.{digits}g}"


def in_words(changes: Iterable[Change]) -> str:
    """What a person has to do: ``income from 0.75 to 3.2; hold savings at 2``, or ``none needed``."""
    parts = []
    for c in acted(changes):
        if c.before is None:
            parts.append(f"{c.feature} from missing to {short(c.after)}")
        elif c.cause == "held":
            parts.append(f"hold {c.feature} at {short(c.before)}")
        else:
            digits = 6 if short(c.before) != short(c.after) else 17
            parts.append(f"{c.feature} from {short(c.before)} to {short(c.after, digits)}")
    return "; ".join(parts) or "none needed"


def in_one_line(person: Person) -> str:
    """Status, cost, lower bound and, if there is one, the action."""
    changes = "" if person.cost is None else f"; {in_words(person.features)}"
    return f"{person.status} cost={person.cost!r} lower_bound={person.lower_bound!r}{changes}"


def describe(person: Person, given: bool = False) -> str:
    """A few lines about one answer.

    Parameters
    ----------
    given
        Whether the user gave the action, which need not be the cheapest.
    """
    proof = f" (proof: {person.proof})" if person.proof else ""
    lines = [f"{person.status}{proof}: {person.sentence}"]
    if given and person.status == Status.LIMIT:
        lines = [f"feasible (proof: {person.proof}): No feasible action costs less than the lower bound."]
    if person.cost is not None:
        lines.append(f"action       {in_words(person.features)}")
        lines.append(f"cost         {person.cost!r}")
    if person.lower_bound is not None:
        lines.append(f"lower bound  {person.lower_bound!r}   gap {short(person.gap, 3)}")
    if person.note:
        lines.append(f"note         {person.note}")
    nodes = "" if person.nodes is None else f", {person.nodes} nodes"
    lines.append(f"back end     {person.backend}, {person.seconds:.2f} s{nodes}")
    return "\n".join(lines)


def distance(person: Person) -> str:
    """A line that says how far, at most, the cost is above the optimum, by the lower bound."""
    if person.lower_bound is None or person.gap is None:
        return "distance     nothing is proven"
    share = f" ({100 * person.gap / person.lower_bound:.3g}% of it)" if person.lower_bound else ""
    return f"distance     at most {short(person.gap)} above the optimum{share}"

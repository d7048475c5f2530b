"""The data that pages show about one person, in the user's own values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from milp_recourse.reports.pages.values import plain

NOT_REACHED = "not-reached"
"""The status of a person who has no row because the run stopped before."""

STATUSES = ("optimal", "infeasible", "limit", "found", "not-found", "bad-input")
"""The statuses in results."""

NUMBERS = ("cost", "lower_bound", "gap", "seconds")
"""The numbers of an answer."""

Cause = Literal["action", "effect", "held", "unchanged"]


@dataclass(frozen=True)
class Change:
    """One feature of one person, before and after.

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
    """One person's answer, with everything that a page shows about it.

    Numbers and truth values may be numpy's or pandas'; a missing one is None.

    Attributes
    ----------
    id
        The user's identifier of the person.
    status
        A status of results, or ``not-reached``.
    cost, lower_bound, gap, proof, message, seconds
        As in a result; None if the result has none.
    confirmed
        Whether the model's own ``predict`` agrees; None if it was not called.
    features
        One :class:`Change` per feature, in order.
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


class Outcome(Enum):
    """The kinds of answers, as they matter to a person; the value of a member is a short label."""

    sentence: str

    def __new__(cls, label: str, sentence: str) -> Outcome:
        """A member whose value is ``label`` and that has the attribute ``sentence``."""
        member = object.__new__(cls)
        member._value_ = label
        member.sentence = sentence
        return member

    ACCEPTED = "accepted already", "Nothing has to change."
    PROVEN = "cheapest, proven", "A way to be accepted, and the proof that none is cheaper."
    UNPROVEN = "a way, not proven cheapest", "A way to be accepted; a cheaper one may exist."
    IMPOSSIBLE = "no way, proven", "Proven: nothing this person may change leads to acceptance."
    CONTRADICTED = "contradicted by the model", "The model's own predict disagrees with what was computed."
    OPEN = "not settled", "No way was found, and it is not proven that there is none."
    UNREADABLE = "not readable", "The person's data could not be used; the message says why."
    UNREACHED = "not reached", "The run was stopped before this person's turn."

    @property
    def recourse(self) -> bool:
        """Whether the person has a way to be accepted, or is accepted already."""
        return self in (Outcome.ACCEPTED, Outcome.PROVEN, Outcome.UNPROVEN)

    @property
    def settled(self) -> bool:
        """Whether the answer is proven."""
        return self in (Outcome.ACCEPTED, Outcome.PROVEN, Outcome.IMPOSSIBLE)

    @property
    def answered(self) -> bool:
        """Whether there is an answer at all; percentages on pages are of the people who have one."""
        return self not in (Outcome.UNREADABLE, Outcome.UNREACHED)


def outcome(person: Person) -> Outcome:
    """The outcome that follows from a person's status, cost and changes.

    Raises
    ------
    ValueError
        The status is not among those of results.
    """
    if person.status == NOT_REACHED:
        return Outcome.UNREACHED
    if person.status not in STATUSES:
        raise ValueError(f"status: got {person.status!r}; allowed: {', '.join(STATUSES)}")
    if person.status == "bad-input":
        return Outcome.UNREADABLE
    if person.confirmed is False:
        return Outcome.CONTRADICTED
    if person.status == "infeasible":
        return Outcome.IMPOSSIBLE
    if person.cost is None:
        return Outcome.OPEN
    if person.status == "optimal":
        return Outcome.PROVEN if person.caused("action", "held") else Outcome.ACCEPTED
    return Outcome.UNPROVEN

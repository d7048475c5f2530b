"""What a page shows about one person, in the user's own values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from milp_recourse.reports.pages.values import plain

NOT_REACHED = "not-reached"
"""The run was stopped before this person's turn; results have no row for them."""

STATUSES = ("optimal", "infeasible", "limit", "found", "not-found", "bad-input")
"""What a status in results can be."""

Cause = Literal["action", "effect", "held", "unchanged"]


@dataclass(frozen=True)
class Change:
    """One feature of one person, before and after.

    Attributes
    ----------
    feature
        Its name.
    before, after
        As the user writes them: numbers, labels, None for a missing value.
    cause
        ``action``: the person changes it; ``held``: acted on at its own value, so that causes do not move
        it; ``effect``: it follows from the actions by the causal model; ``unchanged``.
    lever
        Whether this person could act on it.
    allowed
        What an action could have set it to, in words; None where there is nothing to say.
    share
        The cost of this change alone over the whole cost, from 0 to 1; None without a cost.
    """

    feature: str
    before: object
    after: object
    cause: Cause = "unchanged"
    lever: bool = False
    allowed: str | None = None
    share: float | None = None


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
    """Why a person gets this answer.

    Attributes
    ----------
    said
        One sentence that explains the list.
    reasons
        Cheapest first if no action is feasible; otherwise in the file's order.
    """

    said: str
    reasons: Sequence[Reason]


@dataclass(frozen=True)
class Person:
    """One person's answer: what a page shows, and nothing it would have to compute.

    Numbers and truth values may be numpy's or pandas'; a missing one is None.

    Attributes
    ----------
    id
        The user's identifier of the person.
    status
        One of a result's, ``bad-input`` or ``not-reached``.
    cost, lower_bound, gap, proof, message, seconds
        As in a result; None where there is none.
    confirmed
        Whether the model's own ``predict`` agrees; None where it was not asked.
    features
        One :class:`Change` per feature, in order.
    group
        Value per group column, for comparing groups; may be empty.
    why
        What stands in the way, or what each restriction costs; None where it was not asked.
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
        for name in ("cost", "lower_bound", "gap", "seconds"):
            number = plain(getattr(self, name))
            if isinstance(number, str):
                raise ValueError(f"{name}: got {number}; allowed: a finite number, or None")
            object.__setattr__(self, name, None if number is None else float(number))
        said = plain(self.confirmed)
        object.__setattr__(self, "confirmed", None if said is None else said in ("True", 1))
        for name in ("proof", "message"):
            text = plain(getattr(self, name))
            object.__setattr__(self, name, None if text is None else str(text))

    def caused(self, *causes: Cause) -> list[Change]:
        """The features whose cause is one of those given, in order."""
        return [change for change in self.features if change.cause in causes]


class Outcome(Enum):
    """What an answer means to the person; each member carries a short label and a sentence."""

    sentence: str

    def __new__(cls, label: str, sentence: str) -> Outcome:
        """A member whose value is its label."""
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
        """Whether there is an answer at all: shares are of those who have one."""
        return self not in (Outcome.UNREADABLE, Outcome.UNREACHED)


def outcome(person: Person) -> Outcome:
    """The outcome that follows from a person's status, cost and changes.

    Raises
    ------
    ValueError
        The status is none of a result's.
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

"""The kinds of answers, as they matter to a person."""

from __future__ import annotations

from enum import Enum

from milp_recourse.reports.view import BAD_INPUT, NOT_REACHED, STATUSES, Person


class Outcome(Enum):
    """The kinds of answers; the value of a member is a short label."""

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
    if person.status == BAD_INPUT:
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

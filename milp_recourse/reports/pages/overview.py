"""What a population's page says about many people together: sentences, counts, costs, changes, groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from milp_recourse.reports.answer_kinds import Outcome, outcome
from milp_recourse.reports.pages.charts import quartiles
from milp_recourse.reports.pages.values import percent, shown
from milp_recourse.reports.view import Person

MOST_GROUPS = 12
"""The largest number of groups shown; the smallest groups beyond are shown as one."""

CHANGING = (Outcome.PROVEN, Outcome.UNPROVEN)
"""The outcomes of people who have an action and must change something."""

CAUSES = {"action": "to change", "held": "to hold", "effect": "follows by itself"}
"""The words for each cause of a change."""

ENDINGS = {
    Outcome.ACCEPTED: "accepted already",
    Outcome.UNPROVEN: "with a way that is not proven cheapest",
    Outcome.IMPOSSIBLE: "proven to have no way",
    Outcome.CONTRADICTED: "contradicted by the model",
    Outcome.OPEN: "not settled",
    Outcome.UNREADABLE: "not readable",
    Outcome.UNREACHED: "not reached",
}
"""The words for outcomes in a sentence about how many have each."""

Answers = Sequence[tuple[Person, Outcome]]


class Groups(NamedTuple):
    """People by a column: each group's, the words for the axis of costs, and where that ends."""

    members: Mapping[str, Overview]
    axis: str
    end: float


class Overview:
    """Several people with their outcomes.

    Attributes
    ----------
    answered
        The number of people with an answer, without those who could not be read or were not reached.
    costs
        Of people who have an action and must change something.
    """

    causes = CAUSES

    def __init__(self, answers: Answers) -> None:
        self.answers, self.size = answers, len(answers)
        self.counts = Counter(kind for _, kind in answers)
        self.present = [kind for kind in Outcome if self.counts[kind]]
        self.answered, self.found, self.settled = (
            sum(getattr(kind, name) for _, kind in answers) for name in ("answered", "recourse", "settled")
        )
        self.costs = [p.cost for p, kind in answers if p.cost is not None and kind in CHANGING]

    @staticmethod
    def of(people: Sequence[Person]) -> Overview:
        """Everybody with their outcome.

        Raises
        ------
        ValueError
            ``people`` is empty, or a person's status is not among those of results.
        """
        if not people:
            raise ValueError("people: got nobody; allowed: at least one person")
        return Overview([(person, outcome(person)) for person in people])

    @property
    def headline(self) -> str:
        """A sentence: how many of the people with an answer can be accepted."""
        if not self.answered:
            return "Nobody has an answer."
        people = "person" if self.answered == 1 else "people"
        with_answer = " with an answer" if self.answered < self.size else ""
        share = percent(self.found, self.answered)
        return (
            f"{shown(self.found)} of {shown(self.answered)} {people}{with_answer} can be accepted ({share})."
        )

    @property
    def lead(self) -> str:
        """A sentence: how many answers are proven, and how many have each of the other outcomes."""
        parts = [f"{shown(self.settled)} answers are proven ({percent(self.settled, self.answered)})"]
        parts += [f"{shown(self.counts[k])} {words}" for k, words in ENDINGS.items() if self.counts[k]]
        return "; ".join(parts) + "."

    @property
    def tiles(self) -> list[tuple[str, str, str]]:
        """The main counts: name, number, words."""
        whole = self.answered
        proofs = Counter(person.proof for person, kind in self.answers if kind.settled)
        word = [person.confirmed for person, _ in self.answers if person.confirmed is not None]
        by = ", ".join(f"{count} {name}" for name, count in sorted(proofs.items(), key=str) if name)
        middle = shown(quartiles(self.costs)[1]) if self.costs else "-"
        return [
            ("people", shown(self.size), f"in this population{self.without}"),
            ("recourse", percent(self.found, whole), f"have a way to be accepted: {shown(self.found)}"),
            ("settled", percent(self.settled, whole), f"of the answers are proven{f': {by}' if by else ''}"),
            ("impossible", shown(self.counts[Outcome.IMPOSSIBLE]), "have no way, proven"),
            ("cost", middle, "median cost of those who must change"),
            ("confirmed", percent(sum(word), len(word)), _confirmed(word)),
        ]

    @property
    def without(self) -> str:
        """The counts of people without an answer, as a part of a sentence."""
        some = (kind for kind in self.present if not kind.answered)
        return "".join(f"; {shown(self.counts[kind])} {kind.value}" for kind in some)

    @property
    def share(self) -> str:
        """How many can be accepted, in a few words."""
        found, whole = self.found, self.answered
        return (
            f"{percent(found, whole)} can be accepted: {found} of {whole}"
            if whole
            else "nobody has an answer"
        )

    @property
    def spread(self) -> str:
        """What people pay who must change something, in a sentence."""
        if not self.costs:
            return "Nobody here has a way that costs something."
        low, middle, high = map(shown, quartiles(self.costs))
        ends = f"lowest {shown(min(self.costs))}, highest {shown(max(self.costs))}"
        return f"Median {middle}; half of them between {low} and {high}; {ends}."

    @property
    def acting(self) -> int:
        """The number of people who have an action and must change something."""
        return sum(self.counts[kind] for kind in CHANGING)

    @cached_property
    def features(self) -> list[tuple[str, dict[str, int]]]:
        """How often each feature is changed, held or moved by its causes, over people who must change."""
        counts: dict[str, Counter[str]] = {}
        for person, _ in (one for one in self.answers if one[1] in CHANGING):
            for change in person.features:
                counts.setdefault(change.called, Counter())[change.cause] += 1
        rows = [(name, {cause: c[cause] for cause in CAUSES}) for name, c in counts.items()]
        rows = [(name, c) for name, c in rows if any(c.values())]
        return sorted(rows, key=lambda row: (-row[1]["action"], -sum(row[1].values())))

    @property
    def present_causes(self) -> list[str]:
        """The causes of these changes."""
        return [cause for cause in CAUSES if any(c[cause] for _, c in self.features)]

    @property
    def columns(self) -> list[str]:
        """The columns by which people can be grouped."""
        return list(dict.fromkeys(name for person, _ in self.answers for name in person.group))

    @property
    def numbered(self) -> list[tuple[str, str]]:
        """Each column with its number before it."""
        return [(str(k), name) for k, name in enumerate(self.columns)]

    def by(self, column: str) -> Groups:
        """The people by their value of a column, the page's script showing one column at a time."""
        members: dict[str, list[tuple[Person, Outcome]]] = {}
        for person, kind in self.answers:
            members.setdefault(person.group.get(column, "not stated"), []).append((person, kind))
        largest = sorted(members, key=lambda name: -len(members[name]))
        kept = len(largest) if len(largest) <= MOST_GROUPS else MOST_GROUPS - 1
        groups = {name: Overview(members[name]) for name in sorted(largest[:kept])}
        if largest[kept:]:
            rest = [one for name in largest[kept:] for one in members[name]]
            groups[f"{len(largest) - kept} smaller groups"] = Overview(rest)
        end = max((quartiles(own.costs)[2] for own in groups.values() if own.costs), default=0.0)
        axis = f"Cost: median and middle half, from 0 to {shown(end)}" if end else "Cost"
        return Groups(groups, axis, end)


def _confirmed(answers: Sequence[bool]) -> str:
    if not answers:
        return "the model's own predict was not asked"
    against = len(answers) - sum(answers)
    return f"confirmed by the model: {shown(sum(answers))} of {shown(len(answers))}" + (
        f"; {against} contradicted" if against else ""
    )

"""The upper part of a population's page: sentences, counts and plots, which need no script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from milp_recourse.reports.pages import charts
from milp_recourse.reports.pages.html import Html, el, join
from milp_recourse.reports.pages.person import Outcome, Person, outcome
from milp_recourse.reports.pages.shell import card, choice
from milp_recourse.reports.pages.values import percent, shown

MOST_GROUPS = 12
"""The largest number of groups shown; the smallest groups beyond are shown as one."""

CHANGING = (Outcome.PROVEN, Outcome.UNPROVEN)
"""The outcomes of people who have an action and must change something."""

CAUSES = {"action": "to change", "held": "to hold", "effect": "follows by itself"}
"""The words for each cause of a change."""

Answers = Sequence[tuple[Person, Outcome]]


def answers_of(people: Sequence[Person]) -> list[tuple[Person, Outcome]]:
    """Everybody with their outcome.

    Raises
    ------
    ValueError
        ``people`` is empty, or a person's status is not among those of results.
    """
    if not people:
        raise ValueError("people: got nobody; allowed: at least one person")
    return [(person, outcome(person)) for person in people]


def headline(answers: Answers) -> str:
    """A sentence: how many of the people with an answer can be accepted."""
    whole, found = _answered(answers), sum(kind.recourse for _, kind in answers)
    if not whole:
        return "Nobody has an answer."
    people = "person" if whole == 1 else "people"
    with_answer = " with an answer" if whole < len(answers) else ""
    return (
        f"{shown(found)} of {shown(whole)} {people}{with_answer} can be accepted ({percent(found, whole)})."
    )


def _answered(answers: Answers) -> int:
    """The number of people with an answer, without those who could not be read or were not reached."""
    return sum(kind.answered for _, kind in answers)


def lead(answers: Answers) -> str:
    """A sentence: how many answers are proven, and how many have each of the other outcomes."""
    counts = Counter(kind for _, kind in answers)
    whole = _answered(answers)
    settled = sum(kind.settled for _, kind in answers)
    parts = [f"{shown(settled)} answers are proven ({percent(settled, whole)})"]
    endings = {
        Outcome.ACCEPTED: "accepted already",
        Outcome.UNPROVEN: "with a way that is not proven cheapest",
        Outcome.IMPOSSIBLE: "proven to have no way",
        Outcome.CONTRADICTED: "contradicted by the model",
        Outcome.OPEN: "not settled",
        Outcome.UNREADABLE: "not readable",
        Outcome.UNREACHED: "not reached",
    }
    parts += [f"{shown(counts[kind])} {words}" for kind, words in endings.items() if counts[kind]]
    return "; ".join(parts) + "."


def tiles(answers: Answers) -> Html:
    """The tiles with the main counts, and the bar of outcomes."""
    whole = _answered(answers)
    counts = Counter(kind for _, kind in answers)
    proofs = Counter(person.proof for person, kind in answers if kind.settled)
    confirmed = [person.confirmed for person, _ in answers if person.confirmed is not None]
    costs = _paid(answers)
    found, settled = sum(k.recourse for _, k in answers), sum(k.settled for _, k in answers)
    by = ", ".join(f"{count} {name}" for name, count in sorted(proofs.items(), key=str) if name)
    shown_tiles = [
        ("people", shown(len(answers)), f"in this population{_without(counts)}"),
        ("recourse", percent(found, whole), f"have a way to be accepted: {shown(found)}"),
        ("settled", percent(settled, whole), f"of the answers are proven{f': {by}' if by else ''}"),
        ("impossible", shown(counts[Outcome.IMPOSSIBLE]), "have no way, proven"),
        ("cost", shown(charts.quartiles(costs)[1]) if costs else "-", "median cost of those who must change"),
        ("confirmed", percent(sum(confirmed), len(confirmed)), _confirmed(confirmed)),
    ]
    return join(
        el("div", *(_tile(*tile) for tile in shown_tiles), class_="tiles"),
        card("Answers", outcome_bar(answers)),
    )


def _without(counts: Mapping[Outcome, int]) -> str:
    """The counts of people without an answer, as a part of a sentence."""
    unanswered = {kind.value: counts[kind] for kind in Outcome if not kind.answered and counts[kind]}
    return "".join(f"; {shown(count)} {words}" for words, count in unanswered.items())


def _tile(name: str, number: str, words: str) -> Html:
    return el("div", el("b", number), el("span", words), class_="tile", id=f"tile-{name}")


def _confirmed(answers: Sequence[bool]) -> str:
    if not answers:
        return "the model's own predict was not asked"
    against = len(answers) - sum(answers)
    return f"confirmed by the model: {shown(sum(answers))} of {shown(len(answers))}" + (
        f"; {against} contradicted" if against else ""
    )


def _paid(answers: Answers) -> list[float]:
    """The costs of people who have an action and must change something."""
    return [p.cost for p, kind in answers if p.cost is not None and kind in CHANGING]


def outcome_bar(answers: Answers) -> Html:
    """A bar with the number of people per outcome, and its legend."""
    counts = Counter(kind for _, kind in answers)
    present = [kind for kind in Outcome if counts[kind]]
    keys = (
        el("span", f"{kind.value}: {shown(counts[kind])}", class_=f"key {tone(kind)}", title=kind.sentence)
        for kind in present
    )
    return join(_stack(counts), el("p", *keys, class_="legend"))


def _stack(counts: Mapping[Outcome, int]) -> Html:
    return charts.stacked_bar([(tone(kind), kind.value, counts.get(kind, 0)) for kind in Outcome])


def tone(kind: Outcome) -> str:
    """The CSS class that colours an outcome."""
    return kind.name.lower()


def cost_card(answers: Answers) -> Html:
    """A histogram of the costs of people who must change something."""
    costs = _paid(answers)
    if not costs:
        return card("What it costs", el("p", "Nobody here has a way that costs something.", class_="note"))
    low, middle, high = charts.quartiles(costs)
    note = (
        f"Median {shown(middle)}; half of them between {shown(low)} and {shown(high)}; "
        f"lowest {shown(min(costs))}, highest {shown(max(costs))}."
    )
    return card("What it costs", charts.histogram(costs, "people"), el("p", note, class_="note"))


def feature_card(answers: Answers) -> Html:
    """Bars of how often each feature is changed, held or moved by its causes, over people who must change."""
    people = [person for person, kind in answers if kind in CHANGING]
    counts: dict[str, Counter[str]] = {}
    for person in people:
        for change in person.features:
            counts.setdefault(change.called, Counter())[change.cause] += 1
    rows = [(name, {cause: c[cause] for cause in CAUSES}) for name, c in counts.items()]
    rows = [(name, c) for name, c in rows if any(c.values())]
    rows.sort(key=lambda row: (-row[1]["action"], -sum(row[1].values())))
    if not rows:
        return card("What changes", el("p", "Nobody here has to change anything.", class_="note"))
    present = [cause for cause in CAUSES if any(c[cause] for _, c in rows)]
    keys = (el("span", CAUSES[cause], class_=f"key {cause}") for cause in present)
    return card(
        "What changes",
        charts.frequency_bars(rows, len(people), CAUSES),
        el("p", *keys, class_="legend"),
        el("p", f"Of {shown(len(people))} people with a way to be accepted.", class_="note"),
    )


def group_card(answers: Answers) -> Html | None:
    """Outcomes and costs per group, in one block per group column; the page's script shows one of them."""
    columns = list(dict.fromkeys(name for person, _ in answers for name in person.group))
    if not columns:
        return None
    options = (el("option", name, value=str(k)) for k, name in enumerate(columns))
    chooser = choice("Group by", "group", options)
    blocks = (
        el(
            "div",
            el("h3", name, class_="group-name"),
            _group_block(answers, name),
            class_="group-block",
            data_group=str(k),
        )
        for k, name in enumerate(columns)
    )
    return card("By group", el("div", chooser, class_="tools script-only", hidden=True), *blocks)


def _group_block(answers: Answers, column: str) -> Html:
    members: dict[str, list[tuple[Person, Outcome]]] = {}
    for person, kind in answers:
        members.setdefault(person.group.get(column, "not stated"), []).append((person, kind))
    largest = sorted(members, key=lambda name: -len(members[name]))
    if len(largest) > MOST_GROUPS:
        rest = [one for name in largest[MOST_GROUPS - 1 :] for one in members[name]]
        count = len(largest) - MOST_GROUPS + 1
        named = sorted(largest[: MOST_GROUPS - 1])
        members = {name: members[name] for name in named} | {f"{count} smaller groups": rest}
    else:
        members = {name: members[name] for name in sorted(largest)}
    end = max((charts.quartiles(costs)[2] for costs in map(_paid, members.values()) if costs), default=0.0)
    axis = f"Cost: median and middle half, from 0 to {shown(end)}" if end else "Cost"
    cells: list[Html] = [el("div", text, class_="head") for text in (column, "Answers", axis)]
    for name, own in members.items():
        cells += _group_row(name, own, end)
    return el("div", *cells, class_="groups")


def _group_row(name: str, own: Answers, end: float) -> list[Html]:
    found, costs, whole = sum(kind.recourse for _, kind in own), _paid(own), _answered(own)
    counts = Counter(kind for _, kind in own)
    share = (
        f"{percent(found, whole)} can be accepted: {found} of {whole}" if whole else "nobody has an answer"
    )
    people = "person" if len(own) == 1 else "people"
    return [
        el("div", name, el("small", f"{shown(len(own))} {people}"), class_="name"),
        el("div", _stack(counts), el("small", share + _without(counts), class_="under")),
        el(
            "div",
            charts.quartile_line(costs, end),
            el("small", f"median {shown(charts.quartiles(costs)[1])}", class_="under"),
        )
        if costs
        else el("div", el("small", "nobody with a cost", class_="under")),
    ]

"""The page, and the fragment, about one person's answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from milp_recourse.reports.pages import wording
from milp_recourse.reports.pages.html import Html, el, join
from milp_recourse.reports.pages.person import Change, Outcome, Person, Reason, outcome
from milp_recourse.reports.pages.shell import card, definitions, document, facts_card, fragment, table_head
from milp_recourse.reports.pages.values import difference, exact, percent, plain, shown, shown_beside

COLUMNS = ("Feature", "Now → after", "Share of the cost", "May be set to")
Part = tuple[str, str, list[Change]]
UNCHANGED = ("Feature", "Now", "", "May be set to")


def person_page(person: Person, title: str, facts: Mapping[str, str]) -> str:
    """A whole HTML file about one person.

    Parameters
    ----------
    title
        The title, e.g. the name of the population.
    facts
        Facts about the problem in words, by name: model, cost formula, margin, and so on.

    Raises
    ------
    ValueError
        The person's status is not among those of results.
    """
    changes = "What changes" if person.caused("action", "held") else "What may change"
    body = el(
        "article",
        _head(person, title),
        card(changes, changes_table(person)) if person.features else None,
        _why(person),
        el("div", card("How sure it is", _evidence(person)), _limits(person), class_="pair"),
        facts_card("What the answer rests on", dict(facts)),
        class_="person",
    )
    return document(f"{person.id} · {title}", body)


def person_fragment(person: Person) -> str:
    """The answer, the changes and how sure they are, as HTML without script for a notebook's cell.

    Raises
    ------
    ValueError
        The person's status is not among those of results.
    """
    changed = [c for c in person.features if c.cause != "unchanged"]
    lines = [
        el("p", el("strong", wording.headline(person))),
        el("p", wording.assurance(person), " ", *_word_of_the_model(person), class_="note"),
        el("p", person.message, class_="note") if person.message else None,
        changes_table(person, stays=False) if changed else None,
    ]
    return fragment(join(pill(outcome(person)), *lines))


def pill(kind: Outcome) -> Html:
    """The outcome's label with its colour."""
    return el("span", kind.value, class_=f"pill {kind.name.lower()}", title=kind.sentence)


def changes_table(person: Person, stays: bool = True) -> Html:
    """A table of features before and after, by cause; with ``stays`` another one, folded away where there are
    changes, of those that do not change."""
    stay = person.caused("unchanged") if stays else []
    found = outcome(person) in (Outcome.PROVEN, Outcome.UNPROVEN)
    idle = "Could have changed, need not" if found or outcome(person) is Outcome.ACCEPTED else "May change"
    parts = [
        ("To change", "", person.caused("action")),
        ("To hold", "acted on at its own value, so that nothing else moves it", person.caused("held")),
        ("Follows by itself", "by the causal model, at no cost", person.caused("effect")),
        (idle, "", [c for c in stay if c.lever]),
        ("Stays as it is", "not this person's to change", [c for c in stay if not c.lever]),
    ]
    moved, still = _table(parts[:3], COLUMNS), _table(parts[3:], UNCHANGED)
    if moved is None or still is None:
        return moved or still or Html()
    names = (
        f"{name.lower() if k else name} ({len(some)})" for k, (name, _, some) in enumerate(_filled(parts[3:]))
    )
    return join(moved, el("details", el("summary", ", ".join(names)), still))


def _filled(parts: Sequence[Part]) -> list[Part]:
    return [part for part in parts if part[2]]


def _table(parts: Sequence[Part], names: Sequence[str]) -> Html | None:
    """A table of those parts that hold features; None where none does."""
    rows = [_part(*part) for part in _filled(parts)]
    return el("table", table_head(*names), *rows, class_="wide changes") if rows else None


def _head(person: Person, title: str) -> Html:
    message = el("p", person.message, class_="alert") if person.message else None
    return el(
        "header",
        el(
            "div",
            el("p", f"{title} · {person.id}", class_="eyebrow"),
            pill(outcome(person)),
            class_="headrow",
        ),
        el("h1", wording.headline(person)),
        el("p", wording.assurance(person), " ", *_word_of_the_model(person), class_="lead"),
        message,
        class_="top",
    )


def _word_of_the_model(person: Person) -> list[str]:
    return ["Confirmed by the model itself."] if person.confirmed else []


def _part(name: str, note: str, changes: Iterable[Change]) -> Html:
    rows = [_row(change) for change in changes]
    remark = el("span", note, class_="note") if note else None
    count = f"{name} ({len(rows)})"
    return el(
        "tbody",
        el("tr", el("th", count, remark, colspan=len(COLUMNS), scope="colgroup"), class_="part"),
        *rows,
    )


def _row(change: Change) -> Html:
    limits = change.allowed if change.lever else None
    return el(
        "tr",
        el("th", change.called, scope="row"),
        el("td", _values(change), class_="values"),
        el("td", _share(change), class_="full"),
        el("td", limits, class_="full note", data_label="May be set to" if limits else None),
    )


def _values(change: Change) -> Html:
    if change.cause in ("held", "unchanged"):
        return value(change.before, _with_unit(change, change.before, shown(change.before)))
    before, after = shown_beside(change.before, change.said)
    step = difference(change.before, change.said)
    by = el("span", f"{'+' if step > 0 else '-'}{shown(abs(step))}", class_="by") if step else None
    return join(
        value(change.before, before),
        el("span", "→", class_="arrow"),
        value(change.after, _with_unit(change, change.after, after), "after"),
        by,
    )


def _with_unit(change: Change, given: object, text: str) -> str:
    return f"{text}\u00a0{change.unit}" if change.unit and isinstance(plain(given), int | float) else text


def value(given: object, text: str, class_: str | None = None) -> Html:
    """A value's short text, with all its digits in the tooltip."""
    kind = "none" if plain(given) is None else "num" if isinstance(plain(given), int | float) else ""
    class_ = f"{class_ or ''} {kind}".strip() or None
    digits = exact(given)
    return el("span", text, class_=class_, title=digits if digits != text else None)


def _share(change: Change) -> Html | None:
    if change.share is None or change.cause not in ("action", "held"):
        return None
    part = min(max(change.share, 0.0), 1.0)
    bar = el("span", el("i", style=f"width:{100 * part:.2f}%"), class_="track")
    return el("div", bar, el("span", percent(part, 1), title=repr(change.share)), class_="share")


def _evidence(person: Person) -> Html:
    entries: dict[str, str | Html] = {}
    numbers = {"Cost": person.cost, "Lower bound": person.lower_bound, "Gap": person.gap}
    for name, number in numbers.items():
        if number is not None:
            entries[name] = value(number, shown(number))
    entries["Proof"] = wording.proof(person)
    entries["Model's own word"] = wording.confirmation(person)
    if person.seconds is not None:
        entries["Time"] = f"{shown(round(person.seconds, 3))} s"
    entries["Status"] = person.status
    return definitions(entries)


def _why(person: Person) -> Html | None:
    """The card with the answer of ``why``, if there is one."""
    if person.why is None:
        return None
    found = [_reason(person, reason) for reason in person.why.reasons]
    head = table_head("Without", "Cost", "Saved")
    table = el("table", head, el("tbody", *found), class_="wide") if found else None
    return card("Why", el("p", person.why.heading, class_="note"), table)


def _reason(person: Person, reason: Reason) -> Html:
    """A row: a set's restrictions, the cost without them, and how much less that is than the cost now."""
    listed = join(*(el("div", sentence) for sentence in reason.restrictions))
    saved = None
    if person.cost is not None and reason.cost is not None:
        less = max(0.0, person.cost - reason.cost)
        saved = value(less, shown(less) if less > (person.gap or 0.0) else "nothing")
    cost = "open" if reason.cost is None else value(reason.cost, shown(reason.cost))
    return el("tr", el("th", listed, scope="row"), el("td", cost), el("td", saved))


def _limits(person: Person) -> Html | None:
    sentences = wording.limits(person)
    if not sentences:
        return None
    return card("What this does not say", el("ul", *(el("li", sentence) for sentence in sentences)))

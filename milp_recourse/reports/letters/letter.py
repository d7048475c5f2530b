"""Fills a template with what one person can change, in words that the person can use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from milp_recourse.errors import BadInput
from milp_recourse.reports.answer_kinds import Outcome, outcome
from milp_recourse.reports.pages.values import breakable, difference, said, shown_beside
from milp_recourse.reports.view import Change, Person, plain

FOLDER = Path(__file__).parent
LAYOUT, ENDING = "layout", ".html.j2"
LANGUAGES = tuple(sorted({f.name.removesuffix(ENDING) for f in FOLDER.glob(f"*{ENDING}")} - {LAYOUT}))
"""The languages that have a file here."""

LONGEST = 10
"""The most signs of a person's own value that are said in full; longer ones are rounded."""

IN_A_CELL, IN_A_LINE = 20, 50
"""So many letters of a name fit on one line of the table, or of a list."""

KINDS: Mapping[Outcome, str] = {
    Outcome.ACCEPTED: "accepted",
    Outcome.PROVEN: "change",
    Outcome.UNPROVEN: "change",
    Outcome.IMPOSSIBLE: "impossible",
    Outcome.CONTRADICTED: "contradicted",
    Outcome.OPEN: "open",
    Outcome.UNREADABLE: "unreadable",
    Outcome.UNREACHED: "waiting",
}
"""The kinds of letters. A template decides by ``kind`` what it says."""


@dataclass(frozen=True)
class Amount:
    """A value to say.

    Attributes
    ----------
    text
        The value in English notation (12,345.6); None: a missing value.
    number
        Whether it is a number. Numbers are written with the language's signs and followed by the unit.
    unit
        The unit; None: none.
    """

    text: str | None
    number: bool = False
    unit: str | None = None


@dataclass(frozen=True)
class Line:
    """One value of the person's: what it is, what it becomes, and by how much.

    Attributes
    ----------
    by
        The size of the difference; None where it is no number.
    more
        Whether the value rises; None where it is no number.
    """

    name: str
    before: Amount
    after: Amount
    by: Amount | None = None
    more: bool | None = None


def letter(
    person: Person, template: str | Path | None = None, language: str = "en", day: date | None = None
) -> str:
    """One page of HTML for the person.

    It names what to change, to what and by how much, what follows from it, and what it does not promise. It
    names no cost.

    Parameters
    ----------
    template
        The file of a Jinja2 template in place of the language's. It may extend ``language_file`` and replace
        blocks, or extend ``layout.html.j2`` and be another language. It gets ``person``, ``kind``,
        ``proven``, ``actions``, ``held``, ``effects``, ``levers``, ``size`` and ``day``.
    language
        One of :data:`LANGUAGES`.
    day
        The day on which the model was asked; None: today.

    Raises
    ------
    BadInput
        There is no such language or file, or the template has an error.
    """
    if not isinstance(language, str) or language not in LANGUAGES:
        allowed = f"{', '.join(LANGUAGES)}; another one is a file: template"
        raise BadInput("language", repr(language), allowed)
    if template is not None and not isinstance(template, str | Path):
        raise BadInput("template", f"a {type(template).__name__}", "the path of a Jinja2 template, or None")
    file, own_day = f"{language}{ENDING}", stated_day(day)
    try:
        if template is None:
            made = _environment().get_template(file)
        else:
            made = _environment().from_string(Path(template).read_text(encoding="utf-8"))
        return made.render(contents(person), language_file=file, day=own_day)
    except (OSError, UnicodeError) as error:
        got = f"{template}: {getattr(error, 'strerror', None) or error}"
        raise BadInput("template", got, "a file of UTF-8 text that can be read") from None
    except Exception as error:  # a template can fail in any way
        if template is None:
            raise
        line = getattr(error, "lineno", None)
        where = f"{template}, line {line}" if line else f"{template}"
        words = (str(error).splitlines() or [""])[0]
        raise BadInput("template", f"{where}: {type(error).__name__}: {words}", "a Jinja2 template") from None


def stated_day(day: date | None) -> date:
    """The day that a document states; None: today."""
    if not isinstance(day, date | None):
        raise BadInput("day", repr(day), "a datetime.date, or None for today")
    return day or date.today()


def heading(person: Person, language: str) -> str:
    """The letter's heading alone."""
    made = _environment().get_template(f"{language}{ENDING}")
    return "".join(made.blocks["heading"](made.new_context(contents(person)))).strip()


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    """Every text is escaped, templates reach nothing but what they are given, and a name that does not exist
    is an error."""
    environment = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["said"] = amount_said
    environment.filters["breakable"] = breakable
    return environment


@pass_context
def amount_said(context: Context, amount: Amount) -> str:
    """An amount with the language's ``decimal``, ``thousands`` and word for what is ``missing``."""
    if amount.text is None:
        return str(context.get("missing", "-"))
    if not amount.number:
        return amount.text
    signs: dict[str, str | int | None] = {
        ".": str(context.get("decimal", ".")),
        ",": str(context.get("thousands", ",")),
    }
    text = amount.text.translate(str.maketrans(signs))
    return f"{text}\u00a0{amount.unit}" if amount.unit else text


def contents(person: Person) -> dict[str, Any]:
    """What templates get."""
    kind = outcome(person)
    actions, held = person.caused("action"), person.caused("held")
    word = KINDS[kind]
    if word == "change" and not (actions or held):
        word = "accepted"
    changes = word == "change"
    lines = {
        "actions": [_line(c) for c in actions] if changes else [],
        "held": [_line(c) for c in held] if changes else [],
        "effects": [_line(c) for c in person.caused("effect")] if changes else [],
    }
    return lines | {
        "person": person,
        "kind": word,
        "proven": kind.settled,
        "size": _size(lines),
        "levers": [c.called for c in person.features if c.lever],
    }


def _size(lines: Mapping[str, Sequence[Line]]) -> str:
    """How large the letter is set, so that it fits on one sheet: ``large``, ``medium`` or ``small``."""
    rows = sum(1 + len(line.name) // IN_A_CELL for line in lines["actions"])
    rows += sum(1 + len(line.name) // IN_A_LINE for kind in ("held", "effects") for line in lines[kind])
    return "large" if rows <= 6 else "medium" if rows <= 14 else "small"


def _line(change: Change) -> Line:
    if change.cause == "held":
        same = _amount(change.before, said(change.before), change)
        return Line(change.called, same, same)
    before, after = shown_beside(change.before, change.said)
    if len(said(change.before)) <= LONGEST:
        before = said(change.before)
    step = _step(before, after) if difference(change.before, change.said) is not None else None
    return Line(
        change.called,
        _amount(change.before, before, change),
        _amount(change.said, after, change),
        Amount(said(abs(float(step))), True, change.unit) if step else None,
        None if not step else step > 0,
    )


def _step(before: str, after: str) -> Decimal:
    """The difference of two numbers as they are said, so that whoever adds it up comes to the same."""
    return Decimal(after.replace(",", "")) - Decimal(before.replace(",", ""))


def _amount(value: object, text: str, change: Change) -> Amount:
    known = plain(value)
    return Amount(None if known is None else text, isinstance(known, int | float), change.unit)

"""What a letter holds: the words for each kind of answer, numbers, hostile names, one sheet, templates."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from milp_recourse.errors import BadInput
from milp_recourse.reports.answer_kinds import outcome
from milp_recourse.reports.letters import LANGUAGES, letter, reading_ease
from milp_recourse.reports.letters.letter import FOLDER, KINDS
from milp_recourse.reports.own_words import OwnWords
from milp_recourse.reports.view import Change, Person
from tests.helpers.page_samples import HOSTILE, Reader, everybody, solved

DAY = date(2026, 3, 9)


def with_changes(actions: int, effects: int = 0, name: str = "income after tax") -> Person:
    acted = [
        Change(f"{name} {k}", 12345.5 + k, 23456.75 + k, "action", True, unit="EUR") for k in range(actions)
    ]
    moved = [Change(f"{name} follows {k}", 1.5, 2.25, "effect") for k in range(effects)]
    return solved(features=[*acted, *moved])


class Sheet(Reader):
    """How many millimetres a letter is high, if no sign is wider than a wide sans-serif's average."""

    def __init__(self, page: str) -> None:
        size = re.search(r'<body class="(\w+)">', page)
        assert size is not None
        self.points, self.leading = {"large": (14, 1.4), "medium": (12, 1.25), "small": (10, 1.15)}[size[1]]
        self.high, self.block = 0.0, ""
        super().__init__(page)

    def handle_starttag(self, tag, attrs):
        self.block = "" if tag in ("h1", "h2", "p", "li") else self.block
        if tag == "br":
            self.add(1, 0.0)
        super().handle_starttag(tag, attrs)

    def handle_data(self, data):
        self.block += data
        super().handle_data(data)

    def handle_endtag(self, tag):
        across = 170 / (0.53 * self.points * 0.353)
        if tag == "tr":
            cells = [1.1 * len(cell) + 2 for cell in self.rows[-1]]  # some are bold
            lines = 1 if sum(cells) <= across else max(math.ceil(4 * cell / across) for cell in cells)
            self.add(lines, 0.6)
        elif tag in ("p", "li"):
            self.add(math.ceil(len(" ".join(self.block.split())) / across), 0.4 if tag == "p" else 0.05)
        elif tag in ("h1", "h2"):
            em = 1.45 if tag == "h1" else 1.1
            self.add(em * math.ceil(len(" ".join(self.block.split())) / (across / em)), 1.2)
        super().handle_endtag(tag)

    def add(self, lines: float, ems: float) -> None:
        self.high += 0.353 * self.points * (lines * self.leading + ems)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("person", everybody(), ids=lambda p: p.id[:3])
def test_every_kind_of_answer_has_its_letter(person: Person, language: str) -> None:
    """Well-formed, in its language, one heading of the first rank, headers with a scope, on one sheet, plain
    words, no cost, nothing technical."""
    priced = person if person.cost is None else replace(person, cost=77.125)
    page = letter(priced, language=language, day=DAY)
    read = Sheet(page)
    tags = [tag for tag, _ in read.tags]
    assert page.startswith("<!doctype html>") and tags.count("h1") == 1 and tags.count("main") == 1
    assert ("html", {"lang": language}) in read.tags
    assert tags.index("h1") < tags.index("h2") and "h3" not in tags
    assert all("scope" in attrs for tag, attrs in read.tags if tag == "th")
    title = re.search(r"<title>([^<]+)</title>", page)
    assert title is not None and title[1].strip() and "script" not in tags
    assert read.high <= 265, "A4 without margins"
    ease = reading_ease(page)
    assert ease is not None and ease >= 60
    text = " ".join(read.text.split())
    assert "2026" in text and not re.search(r"\b(cost|Kosten|optimal|infeasible|model|Modell)\b", text)
    assert "77.125" not in text and not re.search(r"\bNone\b(?! of)", text)
    assert person.message is None or person.id == HOSTILE or person.message not in text
    acts = KINDS[outcome(person)] == "change" and person.caused("action", "held")
    assert ("table" in tags) == bool(acts)


def test_kinds_say_different_things() -> None:
    """A heading of its own for a change, nothing to do, no way, unreadable, and not reached."""
    pages = {KINDS[outcome(p)]: letter(p, day=DAY) for p in everybody() if p.id != HOSTILE}
    assert pages.keys() == set(KINDS.values())
    headings = {kind: re.search(r"<h1>(.+?)</h1>", page, re.S)[1] for kind, page in pages.items()}
    assert len(set(headings.values())) == 6 and headings["open"] == headings["contradicted"]
    assert len({page.split("</h1>")[1] for page in pages.values()}) == len(pages)
    proven, found = (
        letter(solved(**more), day=DAY) for more in ({}, {"status": "found", "lower_bound": None})
    )
    assert "no clearly smaller change is enough" in proven and "no clearly smaller" not in found
    assert "may be a smaller change" in found


def test_numbers_are_those_to_say_in_the_language() -> None:
    """The printed value, not the exact one; what is lost in between adds up; units; German signs."""
    change = Change("debt", 12345.67, 9999.123456789, "action", True, printed=9999.5, name="Debt", unit="€")
    held = Change("rent", 750.5, 750.5, "held", True, unit="€")
    person = solved(features=[change, held, Change("jobs", None, 2, "action", True)])
    text = Reader(letter(person, day=DAY))
    assert ["Debt", "12,345.67\u00a0€", "9999.5\u00a0€", "2346.17\u00a0€ less"] in text.rows
    assert ["jobs", "not given", "2", ""] in text.rows and "rent: 750.5\u00a0€" in text.text
    deutsch = Reader(letter(person, language="de", day=DAY))
    assert ["Debt", "12\u202f345,67\u00a0€", "9999,5\u00a0€", "2346,17\u00a0€ weniger"] in deutsch.rows
    assert ["jobs", "keine Angabe", "2", ""] in deutsch.rows and "9. März 2026" in deutsch.text


@pytest.mark.parametrize("language", LANGUAGES)
def test_hostile_words_stay_words(language: str) -> None:
    """Names, units, labels and identifiers are escaped."""
    strange = Change(HOSTILE, HOSTILE, HOSTILE + "2", "action", True, name=HOSTILE, unit=HOSTILE)
    numbers = Change("n", 1.0, 2.0, "effect", unit=HOSTILE)
    levers = [Change(HOSTILE, 1, 1, "unchanged", True)]
    none = {"cost": None, "lower_bound": None, "gap": None, "confirmed": None, "status": "infeasible"}
    for person in (solved(HOSTILE, features=[strange, numbers]), solved(HOSTILE, features=levers, **none)):
        page = letter(person, language=language)
        read = Reader(page)
        assert not {"b", "script"} & {tag for tag, _ in read.tags}
        assert "onclick" not in {name for _, attrs in read.tags for name in attrs}
        assert HOSTILE in read.text


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("actions", "effects"), [(1, 0), (3, 3), (6, 0), (7, 7), (14, 0), (12, 8), (23, 0)])
def test_it_fits_on_one_sheet(actions: int, effects: int, language: str) -> None:
    """Larger type where there is room, smaller where there is much to say."""
    sheet = Sheet(letter(with_changes(actions, effects), language=language))
    assert sheet.high <= 265 and len(sheet.rows) == actions + 1
    assert sheet.points == 14 or actions + effects > 6


def test_long_names_are_set_smaller() -> None:
    """Five names of sixty letters."""
    name = "income of everybody in the household after tax and rent, no"
    sheet = Sheet(letter(with_changes(5, name=name)))
    assert sheet.high <= 265 and sheet.points < 14


def test_words_for_features_are_used() -> None:
    """Also where a letter lists what was looked at."""
    words = OwnWords({"income": "what you earn"}, {"income": "EUR a month"})
    assert "what you earn" in letter(words.of(solved()))
    none = {"cost": None, "lower_bound": None, "gap": None, "confirmed": None, "status": "infeasible"}
    still = [Change("income", 1.0, 1.0, "unchanged", True), Change("age", 1, 1)]
    listed = letter(words.of(solved(features=still, **none)))
    assert "We looked at changes to: what you earn." in listed and "age" not in Reader(listed).text


def test_a_template_may_change_a_part_or_be_another_language(tmp_path: Path) -> None:
    """A letterhead above the English letter; a language that this package has not."""
    own = tmp_path / "own.html.j2"
    own.write_text("{% extends language_file %}{% block letterhead %}<p>Bank & Co</p>{% endblock %}")
    page = letter(solved(), own, "de")
    assert "<p>Bank & Co</p>" in page and "Was Sie ändern" in page
    french = (FOLDER / "en.html.j2").read_text(encoding="utf-8").replace('lang = "en"', 'lang = "fr"')
    own.write_text(french.replace('decimal = "."', 'decimal = ","').replace("What to change", "À changer"))
    page = letter(solved(), own)
    assert '<html lang="fr">' in page and "À changer" in page and "1000,5" in page
    assert reading_ease(page) is None
    own.write_text("{{ person.id }}: {{ actions|length }} {{ '<b>' }}")
    assert letter(solved(), own) == "p1: 2 &lt;b&gt;"


@pytest.mark.parametrize(
    "text",
    [
        "{% if %}",
        "{{ nobody }}",
        "{{ 1 / 0 }}",
        '{% include "nothing" %}',
        '{% include "../own_words.py" %}',
        "{{ ''.__class__.__mro__ }}",
        "{{ person.__init__.__globals__ }}",
        "{{ actions.append(1) }}",
    ],
)
def test_a_template_that_fails_is_one_line(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that reaches for what it was not given."""
    monkeypatch.chdir(tmp_path)
    file = Path("bad.j2")
    file.write_text(text)
    with pytest.raises(BadInput, match="template") as caught:
        letter(solved(), file)
    assert "\n" not in str(caught.value) and "bad.j2" in str(caught.value)


def test_bad_arguments(tmp_path: Path) -> None:
    """No such language, not even as a path; no such file; no text."""
    for language in ("fr", "layout", "../en", "", 3):
        with pytest.raises(BadInput, match="language"):
            letter(solved(), language=language)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="day"):
        letter(solved(), day="2026-11-28")  # type: ignore[arg-type]
    (tmp_path / "latin").write_bytes(b"\xff\xfe\xe4")
    for template in (tmp_path / "none", tmp_path, tmp_path / "latin", 3):
        with pytest.raises(BadInput, match="template"):
            letter(solved(), template)  # type: ignore[arg-type]


def test_the_figure_of_readability() -> None:
    """By hand: 4 words, 1 sentence, 5 syllables; German: 3 words, 4 syllables; tables do not count."""
    page = '<html lang="{}"><h1>Incomprehensibility</h1><p>{}</p><table><tr><td>Antidote</td></tr></table>'
    english = reading_ease(page.format("en", "The cat likes water."))
    assert english == pytest.approx(206.835 - 1.015 * 4 - 84.6 * 5 / 4)
    german = reading_ease(page.format("de-DE", "Das Haus brennt nicht."))
    assert german == pytest.approx(180 - 4 - 58.5 * 4 / 4)
    hard = (
        "Notwithstanding considerable organisational responsibilities, administrative determination prevails."
    )
    hard_figure = reading_ease(page.format("en", hard))
    assert hard_figure is not None and hard_figure < 0
    assert (
        reading_ease(page.format("fr", "Oui.")) is None and reading_ease('<html lang="en"><p>12</p>') is None
    )

"""The files are whole, hold everything, fetch nothing, and no text can break out of its place."""

import json
import re
from collections import Counter

import pytest
from jinja2 import DictLoader
from markupsafe import Markup

from milp_recourse.reports.answer_kinds import Outcome, outcome
from milp_recourse.reports.letters import letter
from milp_recourse.reports.pages import person_fragment, person_page, population_fragment, population_page
from milp_recourse.reports.pages.charts import binned, quartiles
from milp_recourse.reports.pages.shell import templates
from milp_recourse.reports.pages.values import breakable, json_island
from milp_recourse.reports.view import Change, Person
from tests.helpers.page_samples import FACTS, HOSTILE, Reader, changes, crowd, everybody, solved

PEOPLE = everybody()


@pytest.mark.parametrize("person", PEOPLE, ids=lambda p: p.status)
def test_a_persons_page_is_well_formed_and_says_everything(person):
    """Every feature, fact, number and message is in the text."""
    read = Reader(person_page(person, HOSTILE, FACTS))
    for text in [HOSTILE, person.id, person.message or "", *FACTS, *FACTS.values()]:
        assert text.replace("\u2028", "") in read.text.replace("\u2028", "")
    for change in person.features:
        assert change.feature in read.text
    assert read.scripts == []
    assert not any(tag == "b" for tag, _ in read.tags)


@pytest.mark.parametrize("make", [person_fragment, lambda p: population_fragment([p])])
@pytest.mark.parametrize("person", PEOPLE, ids=lambda p: p.status)
def test_fragments_are_well_formed_and_hold_no_script(make, person):
    """A notebook gets one element; its style touches nothing outside."""
    text = make(person)
    read = Reader(text)
    assert read.tags[0] == ("div", {"class": "mr mr-fragment"})
    assert "script" not in {tag for tag, _ in read.tags}
    assert not any(name.startswith("on") for _, attributes in read.tags for name in attributes)


def test_every_rule_of_the_style_is_below_our_class():
    """So that a notebook around a fragment stays as it is."""
    style = re.search(r"<style>(.*?)</style>", person_fragment(PEOPLE[0]), re.DOTALL)[1]
    style = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    style = re.sub(r"@media[^{]*\{", "", style)
    selectors = [one for rule in re.findall(r"([^{}]+)\{", style) for one in re.split(r",(?![^(]*\))", rule)]
    assert len(selectors) > 100
    assert [s for s in selectors if not re.match(r"\.mr|body:has\(> \.mr-page\)$", s.strip())] == []


@pytest.mark.parametrize("page", [person_page(PEOPLE[0], "t", {}), population_page(PEOPLE, "t", {})])
def test_nothing_is_fetched(page):
    """No address, no source, and a policy that forbids the browser to try."""
    read = Reader(page)
    assert not any({"src", "href"} & set(attributes) for _, attributes in read.tags)
    assert not {"link", "img", "iframe"} & {tag for tag, _ in read.tags}
    assert "url(" not in page
    assert "@import" not in page
    policy = [a["content"] for _, a in read.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy[0].startswith("default-src 'none';")


def test_a_populations_page_holds_everybody_whatever_they_are_called():
    """Hostile labels come back from the data as they were."""
    read = Reader(population_page(PEOPLE, HOSTILE, FACTS))
    assert len(read.scripts) == 2
    data = read.data
    assert [row[0] for row in data["people"]] == [person.id for person in PEOPLE]
    assert [list(Outcome)[row[1]] for row in data["people"]] == [outcome(person) for person in PEOPLE]
    assert [row[3:6] for row in data["people"]] == [[p.cost, p.lower_bound, p.gap] for p in PEOPLE]
    last = data["people"][-1]
    place = data["features"].index(HOSTILE)
    assert last[12][place] == HOSTILE
    assert last[13] == [[place, f"{HOSTILE}2", "action", 1.0, f"{HOSTILE}2"]]
    assert HOSTILE in data["texts"]
    assert data["groups"] == ["sex", "region", HOSTILE]


def test_the_data_say_of_every_feature_what_changed_and_what_could():
    """As the person's own page does."""
    person = solved()
    data = Reader(population_page([person], "t", {})).data
    row = data["people"][0]
    moved = {m[0]: m[1:] for m in row[13]}
    limits = data["limits"][row[14]]
    for k, change in enumerate(changes()):
        assert data["features"][k] == change.feature
        assert row[12][k] == change.before
        wanted = (
            None if change.cause == "unchanged" else [change.after, change.cause, change.share, change.said]
        )
        assert moved.get(k) == wanted
        assert (limits[k] is None) == (not change.lever)
        assert limits[k] is None or data["texts"][limits[k]] == change.allowed


def test_counts_are_counted_from_the_people():
    """Tiles, legend and groups."""
    people = crowd(40) + PEOPLE[1:3] + [Person("bad", "bad-input")]
    read = Reader(population_page(people, "t", {}))
    assert "41 of 42 people with an answer can be accepted (97.6%)." in read.text
    counts = Counter(outcome(person).value for person in people)
    for name, count in counts.items():
        assert f"{name}: {count}" in read.text
    women = sum(person.group.get("sex") == "f" for person in people)
    found = sum(person.group.get("sex") == "f" and person.status == "optimal" for person in people)
    assert f"{women} people" in read.text
    assert f"can be accepted: {found} of {women}" in read.text
    assert "smaller groups" in read.text  # thirty towns


def test_an_empty_population_is_refused():
    """In one line."""
    with pytest.raises(ValueError, match="people: got nobody; allowed: at least one person"):
        population_page([], "t", {})


@pytest.mark.parametrize("values", [[0.5], [0.0, 0.0], [1e-9, 1e9], [float(k) for k in range(1000)]])
def test_a_histogram_counts_everybody(values):
    """The tooltips' counts add up to the people."""
    found = binned(values)
    assert sum(bar.holds for bar in found.bins) == len(values)
    assert len(found.bins) <= 40
    people = [solved(cost=cost) for cost in values]
    page = population_page(people, "t", {})
    assert re.findall(r": (\d+) people</title>", page) == [str(bar.holds) for bar in found.bins]


def test_quartiles_are_those_of_the_values():
    """Interpolated, as numpy does."""
    assert quartiles([1.0, 2.0, 3.0, 4.0, 5.0]) == (2.0, 3.0, 4.0)
    assert quartiles([7.0]) == (7.0, 7.0, 7.0)


def made(text, **content):
    """What a template of these words makes of its content."""
    return templates(DictLoader({"t": text})).get_template("t").render(content)


def test_markup_escapes_what_is_not_markup():
    """Text, attributes and data; control characters and lone surrogates do not make the file invalid."""
    text = '<p title="{{ a|quoted }}">{{ b }}</p>'
    assert made(text, a='"x"', b="<&") == '<p title="&quot;x&quot;">&lt;&amp;</p>'
    assert made("<p>{{ a }}{{ b }}{{ c }}</p>", a=Markup("<b>x</b>"), b=None, c=1) == "<p><b>x</b>1</p>"
    inside = json_island({"a": HOSTILE, "b": "<!--<script>"}, "d").partition(">")[2].removesuffix("</script>")
    assert not set("<>&\u2028") & set(inside)
    assert json.loads(inside) == {"a": HOSTILE, "b": "<!--<script>"}
    assert json_island(["\x00\ud800"], "d").encode("utf-8")
    for text in ("{{ a }}", "{{ a|quoted }}"):
        assert made(text, a="\x00\ud800\x1b[31m").encode("utf-8") == "\ufffd?\ufffd[31m".encode()


def test_a_long_name_may_go_on_between_its_words_only() -> None:
    """Not in a number, a short word, a title; and what is no name is escaped as before."""
    assert breakable("NumberOfTimes90DaysLate") == "Number<wbr>Of<wbr>Times<wbr>90<wbr>Days<wbr>Late"
    assert breakable("open_credit_lines & <loans>") == "open_<wbr>credit_<wbr>lines &amp; &lt;loans&gt;"
    for text in ("12,345.678901234", "-1.9731234567e-05", "MonthlyPay", "unbelievably"):
        assert breakable(text) == text
    assert made("{{ a|quoted }}", a="NumberOfTimes90DaysLate") == "NumberOfTimes90DaysLate"
    assert "<wbr>" in letter(solved(features=[Change("monthly_income_after_tax", 1, 2, "action", True)]))

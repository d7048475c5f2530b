"""The pages in a real browser: no console message, no overflow, and a table that does what it says."""

from dataclasses import replace
from operator import attrgetter

import pytest

from milp_recourse.reports.answer_kinds import outcome
from milp_recourse.reports.pages import person_page, population_page, wording
from milp_recourse.reports.pages.values import breakable, shown
from milp_recourse.reports.pages.whole_pages import changes_table
from milp_recourse.reports.view import Change
from tests.helpers import browser
from tests.helpers.page_samples import FACTS, HOSTILE, Reader, crowd, everybody, solved, still

pytestmark = pytest.mark.skipif(
    browser.find() is None, reason="no Chromium or Chrome here: apt-get install chromium"
)

IDS = "all('.people tr.row .opener').map((b) => b.textContent)"
CLICK_HEAD = "(name) => all('.people thead button').find((b) => b.textContent === name).click()"
SET = "(q, v, e = 'change') => { one(q).value = v; one(q).dispatchEvent(new win.Event(e)); }"


def test_what_goes_wrong_in_a_page_is_seen(tmp_path):
    """An error, a message, and a request that the page's policy forbids."""
    page = population_page([solved()], "t", {})
    noise = ("<script>console.log(1)</script>", "<img src='http://127.0.0.1:9/x.png'>")
    for k, more in enumerate(noise):
        _, console = browser.visit(page.replace("</main>", more + "</main>"), "return 1", tmp_path / str(k))
        assert any("Content Security Policy" in line for line in console)
    bare = "<!doctype html><p>x<script>console.log('said'); undefinedName();</script>"
    answer, console = browser.visit(bare, "return one('p').textContent[0]", tmp_path / "bare")
    assert answer == "x"
    assert [word for line in console for word in ("said", "undefinedName") if word in line] == [
        "said",
        "undefinedName",
    ]


WIDE = (0, 3, len(everybody()) - 1)
"""Tried on a wide screen, too: proven, at the limit, hostile."""


@pytest.mark.parametrize(("width", "people"), [(390, range(len(everybody()))), (1280, WIDE)])
def test_persons_pages_fit_and_are_quiet(width, people, tmp_path):
    """Nothing on the console, nothing wider than the screen, the answer first; one browser for all."""
    for k in people:
        page = person_page(everybody()[k], HOSTILE, FACTS)
        (tmp_path / f"{k}.html").write_text(page, encoding="utf-8")
    steps = f"""
      const seen = [];
      for (const k of {list(people)}) {{
        const other = document.createElement("iframe"), loaded = new Promise((done) => (other.onload = done));
        other.style = page.style.cssText;
        other.src = k + ".html";
        document.body.append(other);
        await loaded;
        const of = other.contentDocument;
        seen.push([of.querySelector("h1").textContent, of.documentElement.scrollWidth,
          of.querySelectorAll("b").length]);
      }}
      return seen;"""
    found, console = browser.visit("<!doctype html>", steps, tmp_path, width)
    assert console == []
    for k, (title, wide, broken) in zip(people, found, strict=True):
        assert title == wording.headline(everybody()[k])
        assert wide <= width, k
        assert broken == 0, k


@pytest.mark.parametrize("width", [390, 1280])
def test_a_populations_page_fits_and_is_quiet(width, tmp_path):
    """All rows open; hostile labels are text."""
    steps = f"""
      for (let k = 0; k < {len(everybody())}; k++) all('.people tr.row .opener')[k].click();
      await settle();
      return {{ ids: {IDS}, wide: doc.documentElement.scrollWidth, details: all('tr.detail').length,
        text: one('.people').textContent, bold: all('.people b').length }};"""
    page = population_page(everybody(), HOSTILE, FACTS)
    answer, console = browser.visit(page, steps, tmp_path / "b", width)
    assert console == []
    assert answer["ids"] == [person.id for person in everybody()]
    assert answer["details"] == len(everybody())
    assert answer["wide"] <= width
    assert f"{HOSTILE}2" in answer["text"]
    assert answer["bold"] == 0


def test_heads_sort_by_what_they_name(tmp_path):
    """Costs as numbers, names in natural order, those without a value last; twice is the other way round."""
    people = [*everybody(), *crowd(30)]
    steps = f"""
      const click = {CLICK_HEAD}, seen = {{}};
      for (const name of ['Cost', 'Person', 'Changes']) {{
        click(name); seen[name] = {IDS};
        click(name); seen[name + ' down'] = {IDS};
      }}
      const sorted = all('.people thead th[aria-sort]');
      seen.sorted = sorted.map((h) => [h.textContent, h.getAttribute('aria-sort')]);
      return seen;"""
    seen, console = browser.visit(population_page(people, "t", {}), steps, tmp_path / "b")
    assert console == []
    free = [p.id for p in people if p.cost is None]
    for name, down in (("Cost", False), ("Cost down", True)):
        priced = sorted((p for p in people if p.cost is not None), key=attrgetter("cost"), reverse=down)
        assert seen[name] == [p.id for p in priced] + free
    own = [id for id in seen["Person"] if id.startswith("id-")]
    assert own == [f"id-{k}" for k in range(30)]
    assert seen["Person down"] == seen["Person"][::-1]
    by_id = {p.id: p for p in people}
    counts = [len(by_id[id].caused("action", "held")) for id in seen["Changes"] if by_id[id].cost is not None]
    assert counts == sorted(counts)
    assert seen["sorted"] == [["Changes", "descending"]]


def test_filters_leave_whom_they_should(tmp_path):
    """By outcome, by the model's word, by text, all together, and nobody."""
    people = [*everybody(), *crowd(60)]
    steps = f"""
      const set = {SET}, seen = {{}};
      const type = async (text) => {{ set("#search", text, "input"); await settle(); }};
      const chip = (text) => all('.chip').find((c) => c.textContent.startsWith(text)).click();
      const note = (name) => {{ seen[name] = [{IDS}, one('#count').textContent]; }};
      note('all');
      chip('no way, proven'); note('impossible');
      chip('not settled'); note('impossible or open');
      chip('no way, proven'); chip('not settled');
      set('#confirmed', 'no'); note('contradicted'); set('#confirmed', 'any');
      set('#confirmed', 'not asked'); note('not asked'); set('#confirmed', 'any');
      await type('ID-3'); note('id-3');
      await type('sex=m town=town'); note('men');
      await type('time limit'); note('message');
      await type('nothing like this'); note('nobody');
      seen.empty = one('.people tbody').textContent;
      return seen;"""
    seen, console = browser.visit(population_page(people, "t", {}), steps, tmp_path / "b")
    assert console == []

    def those(test):
        return [p.id for p in people if test(p)]

    assert seen["all"] == [those(lambda p: True)[:50], "1 to 50 of 71"]
    assert seen["impossible"] == [["p2"], "1 to 1 of 1 (everybody: 71)"]
    assert seen["impossible or open"][0] == ["p2", "p4", "p6"]
    assert seen["contradicted"][0] == ["p5"]
    assert seen["not asked"][0] == ["p8"]
    assert seen["id-3"][0] == those(lambda p: "id-3" in p.id)
    assert seen["men"][0] == those(lambda p: p.group.get("sex") == "m" and "town" in p.group)
    assert seen["message"][0] == ["p3"]
    assert seen["nobody"] == [[], "0 (everybody: 71)"]
    assert seen["empty"] == "Nobody matches."


def test_thousands_are_drawn_a_page_at_a_time(tmp_path):
    """Paging covers everybody once; no page draws more rows than it shows."""
    people = crowd(5000)
    steps = f"""
      const ids = {{}}, set = {SET};
      let most = 0, pages = 1;
      set('#size', '500');
      for (;;) {{
        const here = {IDS};
        most = Math.max(most, all('tr').length);
        for (const id of here) ids[id] = (ids[id] || 0) + 1;
        if (one('#next').disabled) break;
        one('#next').click(); pages += 1;
      }}
      const twice = Object.values(ids).filter((n) => n > 1).length;
      return {{ most, pages, twice, people: Object.keys(ids).length, place: one('#place').textContent }};"""
    answer, console = browser.visit(population_page(people, "t", {}), steps, tmp_path / "b")
    assert console == []
    assert answer == {"most": 501, "pages": 10, "people": 5000, "twice": 0, "place": "page 10 of 10"}


def test_the_browser_shows_numbers_as_python_does(tmp_path):
    """Costs of every size, rounded alike; the tooltip has the double."""
    people = [*crowd(100, seed=1), *crowd(100, seed=2)]
    steps = f"""
      const set = {SET}, tip = (c) => c.querySelector('[title]');
      set('#size', '500');
      return all('.people tr.row .paid').map((c) => [c.textContent, tip(c) && tip(c).title]);"""
    cells, console = browser.visit(population_page(people, "t", {}), steps, tmp_path / "b")
    assert console == []
    assert [text for text, _ in cells] == [shown(person.cost) for person in people]
    assert all(title is None or float(title) == p.cost for (_, title), p in zip(cells, people, strict=True))
    assert sum(title is not None for _, title in cells) > 150


def test_an_opened_row_shows_what_the_persons_own_page_shows(tmp_path):
    """Cell by cell: values, differences, shares, what may be set."""
    people = [*everybody(), *crowd(40)]
    steps = f"""
      const set = {SET}, cells = (row) => [...row.children].map((c) => c.textContent);
      set('#size', '500');
      for (let k = 0; k < {len(people)}; k++) all('.people tr.row .opener')[k].click();
      return all('tr.detail').map((detail) => ({{
        rows: [...detail.querySelectorAll('table tr:not(.part)')].map(cells),
        title: detail.querySelector('h3').textContent }}));"""
    opened, console = browser.visit(population_page(people, "t", {}), steps, tmp_path / "b")
    assert console == []
    assert len(opened) == len(people)
    for person, answer in zip(people, opened, strict=True):
        rows, own = Reader(changes_table(person)).rows, {c.feature for c in person.features}
        known = [row for row in answer["rows"] if row[0] in own]
        assert known == [row for row in rows if row[0] in own and len(row) > 1]
        if person.features:
            assert answer["rows"][0] == rows[0]
        assert answer["title"] == wording.headline(person)


def test_the_group_column_can_be_chosen_and_a_link_opens_a_person(tmp_path):
    """One block of bars at a time; #person=ID pages to the person and opens the row."""
    people = crowd(300)
    steps = f"""
      const shown = () => all('.group-block').filter((b) => !b.hidden);
      const blocks = () => shown().map((b) => b.querySelector('.head').textContent);
      const set = {SET};
      const seen = {{ first: blocks() }};
      set('#group', '1');
      seen.second = blocks();
      win.location.hash = '#person=id-277';
      await settle();
      seen.open = all('.opener[aria-expanded=true]').map((b) => b.textContent);
      seen.place = one('#place').textContent;
      one('.opener[aria-expanded=true]').click();
      seen.closed = all('tr.detail').length;
      set('#sort', '2 down');
      seen.dearest = {IDS}[0];
      return seen;"""
    seen, console = browser.visit(population_page(people, "t", {}), steps, tmp_path / "b", 390)
    assert console == []
    dearest = max(people, key=attrgetter("cost")).id
    assert seen == {
        "first": ["sex"],
        "second": ["town"],
        "open": ["id-277"],
        "place": "page 6 of 6",
        "closed": 0,
        "dearest": dearest,
    }


def test_the_page_works_where_there_is_little_to_show(tmp_path):
    """One person without features, groups or cost; one whose every feature stays."""
    people = [
        replace(solved(), features=[], group={}, cost=None, status="infeasible", lower_bound=None, gap=None)
    ]
    for given in (people, [solved(features=still(solved().features), cost=0.0, lower_bound=0.0, gap=0.0)]):
        page = population_page(given, "t", {})
        steps = "one('.opener').click(); return one('tr.detail h3').textContent"
        title, console = browser.visit(page, steps, tmp_path / outcome(given[0]).name)
        assert console == []
        assert title in ("No allowed change leads to acceptance.", "Accepted already: nothing has to change.")


def test_the_browser_breaks_names_where_python_does(tmp_path):
    """Between the words of a long name, with its unit beside the numbers."""
    names = [
        "NumberOfTimes90DaysLate",
        "open_credit_lines/loans",
        "12,345.678901234",
        "straßen_größeÄnderung9",
        HOSTILE,
    ]
    features = [Change(n, 1, 2.5, "action", True, "0 to 5", 0.2, name=f"{n} said", unit="EUR") for n in names]
    steps = """
      one('.people tr.row .opener').click();
      return [all('tr.detail th[scope=row]').map((th) => th.innerHTML),
        all('tr.detail .after').map((v) => v.textContent)];"""
    (heads, values), _ = browser.visit(
        population_page([solved(features=features)], "t", {}), steps, tmp_path / "b"
    )
    unquoted = [
        str(breakable(f"{name} said")).replace("&quot;", '"').replace("&#x27;", "'") for name in names
    ]
    assert heads == unquoted
    assert values == ["2.5\u00a0EUR"] * len(names)

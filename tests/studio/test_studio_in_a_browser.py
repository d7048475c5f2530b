"""The studio in a real browser: what an adviser does, on three kinds of models, and what they see."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.helpers import browser as chromium
from tests.studio.adviser import Adviser
from tests.studio.visit import ROOT, Visit, browser, studio

pytestmark = pytest.mark.skipif(
    chromium.find() is None, reason="no Chromium or Chrome here: apt-get install chromium"
)


@pytest.fixture(scope="module")
def launched():
    with browser() as found:
        yield found


@pytest.fixture(scope="module", params=["loan", "boosted", "asked"])
def visit(request, launched):
    with studio(request.param) as address:
        visit = Visit(launched, address)
        visit.name = request.param
        visit.open("en/person/0")
        yield visit
        assert [url for url in visit.asked if not url.startswith((address, "data:", "blob:"))] == []
        # 409: a newer question has stopped this one
        assert [line for line in visit.said if "409" not in line] == []


FIRST = {"loan": "savings", "boosted": "debt", "asked": "income"}


def test_lock_slide_weigh_and_undo(visit, launched):
    """Every move has its own answer; a bookmark opens it in another browser; undo leads back."""
    name = FIRST[visit.name]
    visit.open("en/person/0")
    first = visit.changed()
    assert first
    adviser = Adviser(visit, visit.name)
    adviser.the_least_without()
    adviser.why_not_without()
    locked = visit.changed()
    assert locked != first
    bookmark = Visit(launched, visit.page.url)
    bookmark.open("")
    assert bookmark.changed() == locked
    bookmark.page.context.close()
    for _ in range(2):
        visit.goes(visit.page.locator("#undo").click)
    assert visit.page.url.endswith("/person/0") and visit.changed() == first
    slider = visit.lever(name).locator(".end.high, .end.low").first
    slider.focus()
    visit.moved(lambda: visit.page.keyboard.press("ArrowRight"))
    visit.lever(name).locator(".stop").focus()
    visit.moved(lambda: visit.page.keyboard.press("End"))
    assert "weights" in visit.page.url
    assert visit.lever(name).locator("output").inner_text() == "very hard"


def test_compare_five_pairs_and_take_the_recommendation(visit, tmp_path):
    """The dialogue ends in limits of the first page; answers are saved and opened again."""
    adviser = Adviser(visit, visit.name)
    visit.open("en/person/0")
    adviser.which_is_hers()
    given = visit.page.url
    assert "answers=left" in given or visit.page.locator("[data-tell]").count() == 0
    visit.page.reload()
    visit.settle()
    if visit.name != "asked":
        with visit.page.expect_download() as download:
            visit.page.locator("#save-answers").click()
        download.value.save_as(tmp_path / "interview.json")
        visit.page.locator("#back-answer").click()
        visit.settle()
        visit.goes(lambda: visit.page.locator("#open").set_input_files(tmp_path / "interview.json"))
        assert visit.page.url.endswith(given.split("answers=")[1])
    adviser.take()


def test_prove_print_save_and_reopen(visit, tmp_path):
    """The certificate that is downloaded verifies; limits survive a file; the letter prints."""
    visit.open("en/person/0")
    visit.moved(lambda: visit.lever(FIRST[visit.name]).locator(".lock").uncheck())
    locked = visit.changed()
    adviser = Adviser(visit, visit.name)
    adviser.that_it_is_the_least()
    if visit.name != "asked":
        for link, file in (("Download the certificate", "c.json"), ("Download the problem", "p.json")):
            with visit.page.expect_download() as download:
                visit.page.get_by_role("link", name=link).click()
            download.value.save_as(tmp_path / file)
        command = [sys.executable, "-m", "verify", str(tmp_path / "c.json"), str(tmp_path / "p.json")]
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
        assert done.stdout.startswith("VERIFIED optimal")
    with visit.page.expect_download() as download:
        visit.page.locator("#save").click()
    download.value.save_as(tmp_path / "limits.json")
    visit.goes(visit.page.locator("#reset").click)
    assert visit.changed() != locked
    visit.goes(lambda: visit.page.locator("#open").set_input_files(tmp_path / "limits.json"))
    assert visit.changed() == locked
    adviser.write()


def test_other_ways(visit):
    """Plans side by side; what is proven not to be enough; taking one leads to its limits."""
    visit.open("en/ways/0")
    assert visit.page.locator(".plan").count() >= 1
    visit.page.get_by_role("button", name="Pin to compare 1").click()
    visit.page.locator("[data-unpin]").wait_for()
    visit.goes(visit.page.get_by_role("link", name="Take this way 1").click)
    assert visit.changed()
    visit.page.locator("[data-unpin]").wait_for()
    assert visit.faults() == []
    visit.page.locator("[data-unpin]").click()
    visit.page.locator("#pins").wait_for(state="hidden")


def test_the_people_are_listed_filtered_and_opened(visit):
    """Everybody has a row, whenever it was ready; one person alone has a page instead."""
    visit.open("en/")
    if visit.name == "loan":
        assert "/person/0" in visit.page.url
        return
    everybody = {"boosted": 6, "asked": 3}[visit.name]
    visit.page.get_by_text(f"{everybody} of {everybody} people").wait_for()
    names = visit.page.locator("#rows th").all_inner_texts()
    assert len(names) == len(set(names)) == everybody
    visit.page.locator("#filter").fill(names[1])
    assert names[1] in visit.page.locator("#rows th:visible").all_inner_texts()
    visit.page.locator("#kind").select_option("without, proven")
    assert visit.page.locator("#rows tr:visible").count() == 0
    visit.page.locator("#kind").select_option("all")
    visit.page.locator("#group").select_option("home")
    counted = visit.page.locator("#counts td").all_inner_texts()
    assert sum(int(text) for text in counted if text.isdigit()) == everybody
    visit.goes(visit.page.get_by_role("link", name=names[1], exact=True).click)
    assert visit.page.url.endswith("/person/1")


def test_a_long_search_shows_its_bound_and_can_be_stopped(launched):
    """What is known by then is said; the next question is answered as if nothing had been."""
    with studio("slow") as address:
        visit = Visit(launched, address)
        visit.page.goto(f"{address}en/person/0")
        visit.page.locator("[data-stop]").wait_for()
        assert "Searched for" in visit.page.locator("#progress").inner_text()
        visit.page.locator("[data-stop]").click()
        answered = visit.page.locator("#answer:not([aria-busy]) .badge")
        answered.filter(has_text="Not settled").wait_for()
        for name in ("debt", "years"):
            visit.page.locator(f'fieldset[data-feature="{name}"] .lock').uncheck()
        answered.filter(has_text="Proven").wait_for()


VIEWS = (
    *(("loan", "light", 360, "de"), ("loan", "dark", 1280, "en"), ("boosted", "light", 768, "en")),
    *(("boosted", "dark", 360, "de"), ("asked", "light", 640, "de"), ("asked", "dark", 768, "en")),
)
"""Each screen, light and dark, with one problem and in one language: of all, which took seven minutes."""


@pytest.mark.parametrize(("visit", "scheme", "width", "language"), VIEWS, indirect=["visit"])
def test_every_view_can_be_read_by_everybody(visit, launched, width, scheme, language):
    """axe finds nothing; nothing is wider than the screen; 640 wide is 200% of 1280."""
    own = Visit(launched, visit.address, color_scheme=scheme)
    own.page.set_viewport_size({"width": width, "height": 800})
    for page in ("", "person/0", "ways/0", "interview/0", "letter/0"):
        own.open(f"{language}/{page}")
        if page == "person/0":
            own.page.locator(".proof summary").click()
        assert own.faults() == [], page
        assert own.page.evaluate("document.documentElement.scrollWidth") <= width, page
    assert own.said == []
    own.page.context.close()

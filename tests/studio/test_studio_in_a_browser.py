"""The studio in a real browser: what an adviser does, on three kinds of models, and what they see.

``python -m tests.studio.test_studio_in_a_browser`` measures how long answers take after a move of a slider.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers import browser as chromium

pytestmark = pytest.mark.skipif(
    chromium.find() is None, reason="no Chromium or Chrome here: apt-get install chromium"
)

ROOT = Path(__file__).parents[2]
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
TASKS = ("answer", "why", "ways", "interview")


@contextmanager
def studio(name: str) -> Iterator[str]:
    """The address of a studio of its own process, which ends by Ctrl-C."""
    command = [sys.executable, "-m", "tests.studio.lent", name]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(30) == 0
        if process.stdout is not None:
            process.stdout.close()


@pytest.fixture(scope="module")
def launched():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=chromium.find(), args=list(QUIET))
        yield found
        found.close()


class Visit:
    """A page of a studio, and what its browser asked for and complained of."""

    def __init__(self, launched: Any, address: str, **context: Any) -> None:
        self.address, self.asked, self.said = address, list[str](), list[str]()
        self.page = launched.new_context(viewport={"width": 1280, "height": 900}, **context).new_page()
        self.page.set_default_timeout(30_000)
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))

    def open(self, path: str) -> None:
        self.page.goto(self.address + path)
        self.settle()

    def settle(self) -> None:
        """Until nothing is being looked for."""
        self.page.locator("[aria-busy]").first.wait_for(state="detached")
        self.page.wait_for_load_state("networkidle")

    def moved(self, act: Any) -> None:
        """Do something that asks for another answer, and wait for that."""
        before = self.answered()
        act()
        self.wait_beyond(before)
        self.settle()

    def goes(self, act: Any) -> None:
        """Do something that leads to another page, and wait for that."""
        with self.page.expect_navigation():
            act()
        self.settle()

    def answered(self) -> int:
        """The number of the last question that was answered on this page."""
        return int(self.page.evaluate("Number(document.body.dataset.answered || 0)"))

    def wait_beyond(self, before: int) -> None:
        """Until a later one is answered. The page's policy forbids what wait_for_function does."""
        until = time.monotonic() + 60
        while self.answered() <= before and time.monotonic() < until:
            time.sleep(0.005)
        assert self.answered() > before

    def changed(self) -> dict[str, str]:
        """What is to change, and to what."""
        rows = self.page.locator("#answer table.changes tbody tr")
        return {row.locator("th").inner_text(): row.locator(".to").inner_text() for row in rows.all()}

    def faults(self) -> list[str]:
        """What axe finds, for all rules that it has for WCAG 2.2 AA and good practice."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [f"{one['id']}: {one['nodes'][0]['html']}" for one in found]


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


def lever(visit: Visit, name: str) -> Any:
    return visit.page.locator(f'fieldset[data-feature="{name}"]')


FIRST = {"loan": "savings", "boosted": "debt", "asked": "income", "gmsc": "DebtRatio"}


def test_lock_slide_weigh_and_undo(visit):
    """Every move has its own answer; undo and reload keep what was set."""
    name = FIRST[visit.name]
    visit.open("en/person/0")
    first = visit.changed()
    assert first
    visit.moved(lambda: lever(visit, name).locator(".lock").uncheck())
    locked = visit.changed()
    assert name not in locked and locked != first
    visit.page.reload()
    visit.settle()
    assert visit.changed() == locked
    visit.page.locator("#undo").click()
    visit.page.wait_for_url("**/person/0")
    visit.settle()
    assert visit.changed() == first
    slider = lever(visit, name).locator(".end.high, .end.low").first
    slider.focus()
    visit.moved(lambda: visit.page.keyboard.press("ArrowRight"))
    visit.moved(lambda: lever(visit, name).locator(".stop").fill("4"))
    assert "weights" in visit.page.url
    assert lever(visit, name).locator("output").inner_text() == "very hard"


def test_compare_five_pairs_and_take_the_recommendation(visit, tmp_path):
    """The dialogue ends in limits of the first page; answers are saved and opened again."""
    visit.open("en/interview/0")
    for _ in range(5):
        button = visit.page.locator("[data-tell]").first
        if not button.count():
            break
        button.click()
        visit.settle()
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
    visit.goes(visit.page.locator("#take").click)
    assert visit.changed()


def test_prove_print_save_and_reopen(visit, tmp_path):
    """The certificate that is downloaded verifies; limits survive a file; the letter prints."""
    visit.open("en/person/0")
    visit.moved(lambda: lever(visit, FIRST[visit.name]).locator(".lock").uncheck())
    locked = visit.changed()
    visit.page.locator(".proof summary").click()
    if visit.name != "asked":
        visit.page.locator("[data-ask=verify]").click()
        visit.page.locator("#verify pre").wait_for()
        assert "VERIFIED optimal" in visit.page.locator("#verify pre").inner_text()
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
    with visit.page.context.expect_page() as letter:
        visit.page.locator("#letter").click()
    letter.value.wait_for_load_state()
    assert letter.value.locator("h1").inner_text() == visit.page.locator("#answer h1").inner_text()
    assert letter.value.pdf()[:4] == b"%PDF"
    letter.value.close()


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


@pytest.mark.parametrize("width", [360, 768, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_can_be_read_by_everybody(visit, launched, width, scheme):
    """axe finds nothing; nothing is wider than the screen, in both languages; 640 wide is 200% of 1280."""
    own = Visit(launched, visit.address, color_scheme=scheme)
    for wide, language in ((width, "en"), (width // 2 if width == 1280 else width, "de")):
        own.page.set_viewport_size({"width": wide, "height": 800})
        for page in ("", "person/0", "ways/0", "interview/0", "letter/0"):
            own.open(f"{language}/{page}")
            if page == "person/0":
                own.page.locator(".proof summary").click()
            assert own.faults() == [], (page, language)
            assert own.page.evaluate("document.documentElement.scrollWidth") <= wide, (page, language)
    assert own.said == []
    own.page.context.close()


SLIDE = """([lever, end, share]) => {
  const levers = document.querySelectorAll("fieldset[data-kind=range]");
  const field = levers[lever % levers.length], slider = field.querySelector(`.end.${end}`);
  const now = Number(field.querySelector(".mark.is").getAttribute("x")) / 100;
  const at = end === "low" ? share * now : 1 - share * (1 - now);
  slider.value = Number(slider.min) + at * (slider.max - slider.min);
  slider.dispatchEvent(new Event("input", { bubbles: true }));
}"""


def move_times(visit: Visit, moves: int) -> list[float]:
    """Milliseconds from a move of a slider, any one to any place on its side of today's value, to its
    answer on the page."""
    times = []
    rng = np.random.default_rng(0)
    for _ in range(moves):
        before = visit.answered()
        end = ["low", "high"][rng.integers(2)]
        visit.page.evaluate(SLIDE, [int(rng.integers(60)), end, float(rng.uniform())])
        visit.wait_beyond(before)
        times.append(float(visit.page.evaluate("Number(document.body.dataset.took)")))
        visit.page.wait_for_timeout(50)
    return times


def measure(moves: int = 100) -> dict[str, Any]:
    """The median and the 95th percentile for both models."""
    from playwright.sync_api import sync_playwright

    found = {}
    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium.find(), args=list(QUIET))
        for name in ("loan", "gmsc"):
            with studio(name) as address:
                visit = Visit(started, address)
                visit.open("en/person/0")
                times = move_times(visit, moves)
                found[name] = {
                    "moves": moves,
                    "median_ms": float(np.median(times)),
                    "p95_ms": float(np.percentile(times, 95)),
                }
        started.close()
    return found


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))

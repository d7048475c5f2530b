"""Five things that an adviser is asked, done from the words on the pages alone.

``python -m tests.studio.adviser`` counts actions and seconds of each, measures how long answers take after a
move of a slider, and writes both into ``docs/results/studio`` and pictures into ``docs/images``; with
``pictures``, ``times`` or ``tasks`` only these.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.studio.visit import ROOT, Visit, browser, studio

JOB = {"loan": "income", "boosted": "home <b>", "asked": "years"}
"""What she cannot change, as the page calls it."""

LOAN = {"loan": "amount", "boosted": "debt", "asked": "income"}
"""What she asks to be left out."""

MOST_ANSWERS = 5

MOVES = 100


class Adviser:
    """Somebody who acts on a studio's pages, one action after the other."""

    def __init__(self, visit: Visit, name: str) -> None:
        self.visit, self.page, self.name, self.actions = visit, visit.page, name, 0

    def acts(self, how: Callable[[Any], Any], act: Any) -> None:
        """One action, and what follows on the page."""
        self.actions += 1
        how(act)

    def lock(self, called: str) -> None:
        """Say that something may not change."""
        box = self.page.get_by_label(f"may change: {called}", exact=True)
        self.acts(self.visit.moved, box.uncheck)

    def badge(self) -> str:
        """What is said of the answer."""
        said: str = self.page.locator("#answer .badge").first.inner_text()
        return said

    def the_least_without(self) -> None:
        """She cannot change her job; what is the least?"""
        if self.page.get_by_role("heading", name="People").count():
            self.acts(self.visit.goes, self.page.locator("#rows").get_by_role("link").first.click)
        self.lock(JOB[self.name])
        assert JOB[self.name] not in self.visit.changed()
        assert self.badge() == "Proven: nothing smaller is enough"

    def why_not_without(self) -> str:
        """Why not without the loan?"""
        called = LOAN[self.name]
        self.lock(called)
        line = self.page.locator("#why li").filter(has_text=f"{called} stays as it is").first
        line.wait_for()
        said: str = line.inner_text()
        way = self.badge() == "Proven: nothing smaller is enough"
        assert way == ("smaller" in said)  # what it costs; or that it stands in the way
        return said

    def which_is_hers(self) -> None:
        """Which of these is hers?"""
        self.acts(self.visit.goes, self.page.get_by_role("link", name="Which is easier?").click)
        for _ in range(MOST_ANSWERS):
            button = self.page.locator(".answers button").first
            if not button.count():
                break
            self.acts(lambda act: (act(), self.visit.settle()), button.click)

    def take(self) -> None:
        """Take what is recommended."""
        self.acts(self.visit.goes, self.page.get_by_role("link", name="Take this recommendation").click)
        assert self.visit.changed()

    def that_it_is_the_least(self) -> None:
        """Show it is the least."""
        self.acts(lambda act: act(), self.page.get_by_text("Proven: nothing smaller is enough").click)
        if self.name == "asked":
            assert "Every smaller change was asked" in self.page.locator(".proof").inner_text()
            return
        self.acts(lambda act: act(), self.page.get_by_role("button", name="Check it now").click)
        self.page.locator("#verify pre").wait_for()
        assert "VERIFIED optimal" in self.page.locator("#verify pre").inner_text()

    def write(self) -> None:
        """Write to her."""
        with self.page.context.expect_page() as letter:
            self.acts(lambda act: act(), self.page.get_by_role("link", name="Letter to print").click)
        letter.value.wait_for_load_state()
        assert letter.value.locator("h1").inner_text() == self.page.locator("#answer h1").inner_text()
        assert letter.value.pdf()[:4] == b"%PDF"
        letter.value.close()


def five_tasks(launched: Any, name: str) -> dict[str, dict[str, float]]:
    """Actions and seconds of each task, from the first page on."""
    found = {}
    with studio(name) as address:
        adviser = Adviser(Visit(launched, address), name)
        adviser.visit.open("en/")
        tasks = {
            "she cannot change her job; what is the least?": [adviser.the_least_without],
            "show it is the least": [adviser.that_it_is_the_least],
            "why not without the loan?": [adviser.why_not_without],
            "which of these is hers?": [adviser.which_is_hers, adviser.take],
            "write to her": [adviser.write],
        }
        for task, steps in tasks.items():
            begun, before = time.monotonic(), adviser.actions
            for step in steps:
                step()
            seconds = round(time.monotonic() - begun, 1)
            found[task] = {"actions": adviser.actions - before, "seconds": seconds}
    return found


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


def times(launched: Any, name: str) -> dict[str, float]:
    """The median and the 95th percentile of :func:`move_times`."""
    with studio(name) as address:
        visit = Visit(launched, address)
        visit.open("en/person/0")
        found = move_times(visit, MOVES)
    median, high = (round(float(np.percentile(found, p))) for p in (50, 95))
    return {"moves": MOVES, "median_ms": median, "p95_ms": high}


VIEWS = {
    "phone": (360, "dark", "person"),
    "tablet": (768, "light", "interview"),
    "desktop": (1280, "light", "person"),
}
"""Widths, colours and pages of the pictures."""


def pictures(launched: Any) -> dict[str, bytes]:
    """What each of :data:`VIEWS` looks like, as PNGs of few colours."""
    from PIL import Image

    made = {}
    with studio("boosted") as address:
        for device, (width, scheme, page) in VIEWS.items():
            visit = Visit(launched, address, color_scheme=scheme)
            visit.page.set_viewport_size({"width": width, "height": 800})
            visit.open(f"en/{page}/0")
            if page == "person":
                visit.page.locator("#why li").first.wait_for()
                visit.settle()
            image, file = Image.open(io.BytesIO(visit.page.screenshot())), io.BytesIO()
            image.convert("RGB").quantize(48).save(file, "png", optimize=True)
            made[device] = file.getvalue()
    return made


def main(*parts: str) -> None:
    """Measure and write these parts, or all: pictures, times, tasks."""
    file = ROOT / "docs" / "results" / "studio" / "adviser.json"
    wanted = parts or ("pictures", "times", "tasks")
    found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    with browser() as launched:
        if "times" in wanted:
            each = {name: times(launched, name) for name in ("loan", "gmsc")}
            found["slider_to_answer"] = {"load": round(os.getloadavg()[0], 1), **each}
        if "tasks" in wanted:
            found["five_tasks"] = {name: five_tasks(launched, name) for name in JOB}
        for device, content in pictures(launched).items() if "pictures" in wanted else ():
            (ROOT / "docs" / "images" / f"studio_{device}.png").write_bytes(content)
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

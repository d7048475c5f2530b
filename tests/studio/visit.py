"""A real browser on a studio, for tests and measurements."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.helpers import browser as chromium

ROOT = Path(__file__).parents[2]
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


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


@contextmanager
def browser() -> Iterator[Any]:
    """The system's Chromium."""
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

    def lever(self, name: str) -> Any:
        """The controls of a feature."""
        return self.page.locator(f'fieldset[data-feature="{name}"]')

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

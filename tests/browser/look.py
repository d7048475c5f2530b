"""Opens pages and letters in Chromium, for a phone and a desk, in light and dark, and prints letters.

``python -m tests.browser.look FOLDER --json docs/results/pages/looked_at.json``. Nothing may be wider than
the screen, no word may be broken, nothing may stand on the console, axe may find no violation, and a letter
has to fit on one sheet of A4. FOLDER gets the screenshots, to be looked at, and the PDFs.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Browser, sync_playwright

from tests.browser.samples import samples
from tests.helpers.browser import find

WIDTHS = {"phone": 390, "desk": 1280}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
AXE = "axe.run().then((r) => r.violations.map((v) => [v.id, v.nodes.map((n) => n.html)]))"
OPTIONS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]
BROKEN = """() => {
  const broken = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode()); ) {
    if (node.parentElement.closest('script, style')) continue;
    for (const found of node.data.matchAll(/[A-Za-z0-9À-ɏ.,]+/g)) {
      const range = document.createRange();
      range.setStart(node, found.index);
      range.setEnd(node, found.index + found[0].length);
      const seen = [...range.getClientRects()].filter((r) => r.width > 0);
      const lines = new Set(seen.map((r) => Math.round(r.top)));
      if (lines.size > 1) broken.push(found[0]);
    }
  }
  return broken;
}"""
"""Words that stand on two lines."""


def sheets(pdf: bytes) -> int:
    """The pages of a PDF that Chromium wrote."""
    return len(re.findall(rb"/Type\s*/Page[^s]", pdf))


def looked_at(browser: Browser, name: str, html: str, folder: Path) -> Iterator[dict[str, Any]]:
    """What is wrong with a page at each width and in each colour scheme."""
    axe = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    file = folder / f"{name}.html"
    file.write_text(html, encoding="utf-8")
    page, console = browser.new_page(bypass_csp=True), list[str]()
    page.on("console", lambda message: console.append(message.text))
    page.on("pageerror", lambda error: console.append(str(error)))
    page.goto(file.as_uri())
    for opener in page.locator(".people tr.row .opener").all()[:2]:
        opener.click()
    for more in page.locator("summary").all():
        more.click()
    page.evaluate(axe)
    for place, width in WIDTHS.items():
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            yield {
                "page": f"{name}, {place}, {scheme}",
                "console": list(console),
                "too wide": max(0, page.evaluate("document.documentElement.scrollWidth") - width),
                "broken words": page.evaluate(BROKEN),
                "axe": page.evaluate(AXE),
            }
            if scheme == "light":
                page.screenshot(path=folder / f"{name}-{place}.png", full_page=True)
    if name.startswith("letter"):
        page.emulate_media(color_scheme="light")
        pdf = page.pdf(prefer_css_page_size=True)
        (folder / f"{name}.pdf").write_bytes(pdf)
        yield {"page": f"{name}, printed", "sheets": sheets(pdf)}
    page.close()


def main() -> None:
    """Look at everything, print what is wrong, and write the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="what names contain")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    found: list[dict[str, Any]] = []
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=find(), args=OPTIONS)
        version = browser.version
        for name, html in samples():
            if given.only in name:
                for one in looked_at(browser, name, html, given.folder):
                    found.append(one)
                    wrong = {k: v for k, v in one.items() if k != "page" and v and v != 1}
                    print(one["page"], json.dumps(wrong, ensure_ascii=False)[:600], flush=True)
        browser.close()
    opened = [one for one in found if "axe" in one]
    letters = [one for one in found if "sheets" in one]
    summary = {
        "browser": f"Chromium {version}",
        "pages and letters": len({one["page"].split(",")[0] for one in opened}),
        "opened (phone and desk, light and dark)": len(opened),
        "with a violation of axe": sum(bool(one["axe"]) for one in opened),
        "wider than the screen": sum(bool(one["too wide"]) for one in opened),
        "with a broken word": sum(bool(one["broken words"]) for one in opened),
        "with a message on the console": sum(bool(one["console"]) for one in opened),
        "letters printed": len(letters),
        "on one sheet": sum(one["sheets"] == 1 for one in letters),
    }
    print(json.dumps(summary, indent=1))
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(summary, indent=1) + "\n")


if __name__ == "__main__":
    main()

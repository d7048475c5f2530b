"""A real browser for tests, driven by nothing but its own command line."""

from __future__ import annotations

import json
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

HARNESS = """<!doctype html><meta charset="utf-8"><body><pre id="answer"></pre><script>
const page = document.createElement("iframe");
page.style = "border:0; width:WIDTHpx; height:900px";
const settle = (ms = 200) => new Promise((done) => setTimeout(done, ms));
page.onload = async () => {
  const win = page.contentWindow, doc = page.contentDocument;
  const all = (q) => [...doc.querySelectorAll(q)], one = (q) => doc.querySelector(q);
  let answer;
  try { answer = await (async () => { STEPS })(); } catch (error) { answer = { error: String(error.stack) }; }
  document.getElementById("answer").textContent = "<<" + JSON.stringify(answer) + ">>";
};
page.src = "page.html";
document.body.append(page);
</script>"""


def find() -> str | None:
    """The path of a Chromium or Chrome; None without one."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


def visit(page: str, steps: str, folder: Path, width: int = 1280) -> tuple[Any, list[str]]:
    """Open a page and take steps in it.

    Parameters
    ----------
    steps
        JavaScript with ``win``, ``doc``, ``one(selector)``, ``all(selector)`` and ``await settle()``; what it
        returns comes back.
    width
        Of the page, in CSS pixels.

    Returns
    -------
    tuple
        The answer, and every line on the browser's console: messages, warnings, errors, refused requests.
    """
    folder.mkdir(exist_ok=True)
    (folder / "page.html").write_text(page, encoding="utf-8")
    harness = HARNESS.replace("WIDTH", str(width)).replace("STEPS", steps)
    (folder / "harness.html").write_text(harness, encoding="utf-8")
    options = "--headless --no-sandbox --disable-gpu --allow-file-access-from-files --enable-logging=stderr"
    command = [
        str(find()),
        *options.split(),
        f"--user-data-dir={folder / 'profile'}",
        f"--window-size={width + 40},1000",
        "--virtual-time-budget=20000",
        "--dump-dom",
        (folder / "harness.html").as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = done.stdout.split('<pre id="answer">')[1].split("</pre>")[0]
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(unescape(found).removeprefix("<<").removesuffix(">>")), console

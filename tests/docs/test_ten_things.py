"""A reader who knows nothing finds what they look for within two links from README or docs/index.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STARTS = ("README.md", "docs/index.md")
MOST = 2

LOOKED_FOR = [
    ("How do I get recourse for the people of a DataFrame?", "docs/dataframes.md", "ten lines each"),
    ("What does a file that states a problem look like?", "docs/formats.md", "## Instance"),
    ("What does a result guarantee, and how do I check it?", "docs/judging.md", "VERIFIED means"),
    ("How does a certificate prove that nothing is cheaper?", "docs/certificate_walkthrough.md", "by hand"),
    ("How is one node of a network bounded?", "docs/engine_in_detail.md", "## How one node is bounded"),
    ("Where does a new cost, reader or command go?", "docs/architecture.md", "## Where things are"),
    ("Why has somebody no recourse, and what would help?", "docs/why.md", "minimal"),
    ("How fast is it, beside other solvers?", "docs/benchmarks.md", "Gurobi"),
    ("Which costs are there, and who proposed them?", "docs/costs_and_plausibility.md", "Wachter"),
    ("How do I set up, test and propose a change?", "CONTRIBUTING.md", "## Set up"),
]
"""A question, the page that answers it, and words of the answer."""


def linked(page: Path) -> set[Path]:
    """The pages that a page links to."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    targets = re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s#]+\.md)(?:#[^)\s]*)?\)", text)
    return {found for target in targets if (found := (page.parent / target).resolve()).is_file()}


def distances(start: Path) -> dict[Path, int]:
    """How many links away each page is."""
    found, edge = {start: 0}, [start]
    while edge:
        page = edge.pop(0)
        for target in sorted(linked(page) - found.keys()):
            found[target] = found[page] + 1
            edge.append(target)
    return found


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(("question", "page", "words"), LOOKED_FOR, ids=[one[1] for one in LOOKED_FOR])
def test_an_answer_is_two_links_away(start, question, page, words):
    """The page is near, and has the words."""
    assert words in (ROOT / page).read_text(encoding="utf-8"), question
    assert distances(ROOT / start).get(ROOT / page, 99) <= MOST, question


def test_every_page_is_found_from_the_start():
    """No page of docs stands alone."""
    near = distances(ROOT / "docs" / "index.md")
    assert set((ROOT / "docs").rglob("*.md")) <= set(near)


def test_the_texts_stay_short():
    """Whoever adds a page takes words out of others: at most 50 000, README at most 1500."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    words = {page: len(page.read_text(encoding="utf-8").split()) for page in pages}
    assert sum(words.values()) <= 50_000
    assert words[ROOT / "README.md"] <= 1500

"""Totals that pages state are the sums of the shipped tables."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def said(page: str, pattern: str) -> list[int]:
    """The whole numbers a page states in a sentence, wherever its lines break."""
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    found = re.search(pattern, text)
    assert found, f"{page}: {pattern}"
    return [int(number) for number in found.groups()]


@pytest.mark.parametrize("page", ["README.md", "docs/benchmarks.md"])
def test_what_the_grid_misses(page):
    """Instances, those with recourse, those where the grid finds some, those it misses."""
    table = json.loads((ROOT / "instances" / "grid_comparison.json").read_text(encoding="utf-8"))
    loan = [row for row in table["groups"] if row["folder"] == "loan"]
    every, exists, found = (
        sum(row[key] for row in loan) for key in ("instances", "recourse_exists", "grid_found")
    )
    pattern = (
        r"(\d+) Loan instances recourse exists for (\d+); "
        r"the grid finds some for (\d+) and misses (\d+)"
    )
    assert said(page, pattern) == [every, exists, found, exists - found]


def test_random_problems():
    """Cases and their statuses."""
    counts = json.loads((ROOT / "docs" / "results" / "properties" / "highs_2000.json").read_text())["counts"]
    numbers = said(
        "docs/benchmarks.md",
        r"(\d+) random problems \(.*?\): (\d+) optimal, (\d+) infeasible, (\d+) limits; (\d+) actions",
    )
    assert numbers == [counts[k] for k in ("solved", "optimal", "infeasible", "limit", "actions")]

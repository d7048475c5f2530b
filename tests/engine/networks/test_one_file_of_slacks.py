"""Rounding constants stand in one file, so that whoever doubts the bounds reads a single page."""

from __future__ import annotations

import ast
import math
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "milp_recourse" / "engine" / "networks"
SMALL = 2.0**-24
ALLOWED = {("splitting.py", 2.0**-60)}
"""A factor on losses that a split promises; no proof rests on it."""
GRIDS = {("linear_bounds.py", 2.0**32), ("proof_search.py", 2.0**40), ("interior.py", 2.0**40)}
"""Numbers whose inverses are small: the steps of slopes and shares in certificates, which are rounded to the
safe side, and when a guess has diverged."""


def small_numbers(source: str) -> set[float]:
    """Numbers between 0 and :data:`SMALL` that a source spells out, powers included."""
    return {value for value in numbers(source) if 0.0 < abs(value) < SMALL}


def numbers(source: str) -> set[float]:
    """The finite doubles that a source spells out."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant | ast.BinOp | ast.UnaryOp):
            try:
                value = eval(compile(ast.Expression(node), "", "eval"), {"__builtins__": {}})
            except Exception:
                continue
            if isinstance(value, float) and abs(value) < math.inf:
                found.add(value)
    return found


def test_no_other_file_spells_out_a_small_number() -> None:
    """The page that derives them is ``numerics.py``."""
    sources = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.py")}
    assert len(small_numbers(sources.pop("numerics.py"))) >= 5
    found = {(name, value) for name, source in sources.items() for value in small_numbers(source)}
    assert found == ALLOWED


def test_no_other_file_divides_by_a_large_number() -> None:
    """Which would be another way to spell out a small one."""
    sources = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.py")}
    sources.pop("numerics.py")
    large = {(name, v) for name, source in sources.items() for v in numbers(source) if abs(v) > 1.0 / SMALL}
    assert large == GRIDS | {("propose.py", 4e9)}  # bytes


def test_they_are_seen_however_they_are_written() -> None:
    """As a power, in a difference, and as a decimal."""
    assert small_numbers("x = 1.0 + 2.0**-44") == {2.0**-44}
    assert small_numbers("def f(y):\n    return y - 1e-12") == {1e-12}
    assert small_numbers("x = 0.5**30; y = 2.0**-10") == {0.5**30}

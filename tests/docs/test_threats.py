"""docs/threats.md: every line names tests, and they exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "threats.md").read_text(encoding="utf-8")


def test_every_line_of_a_table_names_a_test():
    """Its last cell holds nothing else."""
    lines = [line for line in TEXT.splitlines() if line.startswith("| ") and not line.endswith("| test |")]
    assert len(lines) > 20
    for line in lines:
        last = line.rstrip("| ").rpartition(" | ")[2]
        assert re.fullmatch(r"(`tests/[\w/]+\.py::test_\w+`(, |$))+", last), line


def test_the_tests_are_there():
    """In the file that is named, under that name."""
    for file, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT):
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, (
            f"{file}::{name}"
        )

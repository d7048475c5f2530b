"""Every compiled function says the shapes of the arrays that it gets: they have no types to read that from.

A shape stands behind the name, as in ``price (classes,)`` or ``low, high (K + 1, n)``, or in the name's entry
under *Parameters*. Names of one letter may have it in the module's docstring. Fields of records have theirs
where the record is.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.test_typed_functions import COMPILED, ROOT

FILES = sorted((ROOT / "milp_recourse" / "engine").glob("*/*.py"))

SHAPE = re.compile(r"\([\w +]+,(?: [\w +]+,?)*\)")
"""``(cells,)``, ``(K + 1, n)``."""

TUPLES = {"late", "convex"}
"""Parameters that are pairs of numbers."""


def functions(file: Path) -> Iterator[tuple[ast.FunctionDef, str]]:
    """The compiled functions of a file, and the file's own docstring."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for one in ast.walk(tree):
        if isinstance(one, ast.FunctionDef) and COMPILED.intersection(map(ast.unparse, one.decorator_list)):
            yield one, ast.get_docstring(tree) or ""


def indexed(function: ast.FunctionDef) -> set[str]:
    """Parameters that the body indexes: records are read by attribute."""
    inside = (one.value for one in ast.walk(function) if isinstance(one, ast.Subscript))
    names = {one.id for one in inside if isinstance(one, ast.Name)}
    return names & {one.arg for one in function.args.args}


def says(text: str, name: str) -> bool:
    """Whether a docstring has the shape of what this name stands for."""
    text = text.replace("`", "")
    behind = rf"\b{name}(?:, \w+)* {SHAPE.pattern}"
    entry = re.search(rf"^(?:\w+, )*{name}(?:, \w+)*\n((?:    .*\n?)+)", text, re.MULTILINE)
    return bool(re.search(behind, re.sub(r"\s+", " ", text)) or (entry and SHAPE.search(entry[1])))


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_arrays_have_their_shapes(file: Path) -> None:
    """Whoever reads a function knows what each index of its arrays runs over."""
    missing = [
        f"{function.name}: {name}"
        for function, module in functions(file)
        for name in sorted(indexed(function) - TUPLES)
        if not says(ast.get_docstring(function) or "", name) and not (len(name) == 1 and says(module, name))
    ]
    assert not missing


def test_a_shape_is_told_from_other_parentheses() -> None:
    """What counts as said, and what does not."""
    assert says("Fill in low, high (cells,).", "low")
    assert says("Of ``price`` (classes,).", "price")
    assert says("Sum.\n\nParameters\n----------\nloss\n    For every cell, (3, cells).\n", "loss")
    assert not says("Sum of price (per class).", "price")
    assert not says("Sum.\n\nParameters\n----------\nloss\n    Sums.\nx\n    (axes,)\n", "loss")

"""The checker's rings: imports point inwards only, and the fast path says what the kernel says."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import verify.fast.box
from tests.docs.sizes import code_lines
from verify.__main__ import examine, main

ROOT = Path(__file__).parent.parent.parent
VERIFY = ROOT / "verify"
HERE = ROOT / "tests" / "certificates"
INDEX = json.loads((HERE / "index.json").read_text(encoding="utf-8"))
CASES = [
    *((HERE / "accepted" / name, instance) for name, instance in INDEX["accepted"].items()),
    *(
        (HERE / kind / name, entry["instance"])
        for kind in ("rejected", "malformed")
        for name, entry in INDEX[kind].items()
    ),
]

MAY_IMPORT = {
    "kernel": {"kernel"},
    "certain": {"kernel", "certain"},
    "regret": {"kernel", "regret"},
    "fast": {"kernel", "fast"},
    "files": {"kernel", "certain", "regret", "fast", "files"},
}
TRUSTED = {"kernel": 1081, "certain": 300, "regret": 60}
"""The rings that a verdict with ``--slow`` rests on, and the most code lines of each."""

PLAIN = {"__future__", "bisect", "collections", "contextlib", "dataclasses", "decimal", "fractions",
         "functools", "itertools", "math", "struct", "time", "typing"}  # fmt: skip
"""What these may import of Python's own: nothing that touches a file, a process or a network."""


def imports(source: str) -> Iterator[str]:
    """Every module a source imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from (f"{module}.{alias.name}" for alias in node.names) if module == "verify" else [module]


def outward(ring: str, source: str) -> list[str]:
    """Imports of a ring's module that do not point inwards."""
    wrong = []
    for name in imports(source):
        own = name.split(".")
        if own[0] == "verify":
            wrong += [name] if len(own) < 2 or own[1] not in MAY_IMPORT[ring] else []
        elif not own[0] or (ring in TRUSTED and own[0] not in PLAIN):
            wrong.append(name)
    return wrong


@pytest.mark.parametrize("ring", MAY_IMPORT)
def test_imports_point_inwards(ring):
    """The kernel imports itself and pure parts of the library; the others the kernel; files all of them."""
    found = {file.name: outward(ring, file.read_text()) for file in sorted((VERIFY / ring).glob("*.py"))}
    assert found and {name: wrong for name, wrong in found.items() if wrong} == {}


def test_the_check_of_imports_sees_what_it_should():
    """Outward, relative and impure imports."""
    assert outward("kernel", "from verify.fast.box import Floats")
    assert outward("kernel", "def f():\n    from verify import files")
    assert outward("kernel", "import os") and outward("kernel", "from . import box")
    assert outward("kernel", "from verify.certain import check") and outward("certain", "import os")
    assert outward("certain", "from verify.fast.box import Floats")
    assert outward("fast", "from verify.files.reading import parse_json")
    assert not outward("fast", "from verify.kernel.box import Exact\nimport os")


@pytest.mark.parametrize(("ring", "most"), TRUSTED.items())
def test_what_has_to_be_trusted_is_small(ring, most):
    """It is read in an evening; claims about certain actions take another hour."""
    lines = sum(code_lines(file.read_text()) for file in (VERIFY / ring).glob("*.py"))
    assert lines <= most, lines


@pytest.mark.parametrize(("file", "instance"), CASES, ids=lambda value: getattr(value, "name", ""))
def test_the_kernel_alone_says_the_same(file, instance, monkeypatch):
    """Every certificate and attack in the repository: one line, fast or slow, trees all at once or not."""
    fast, slow = (examine(file, ROOT / instance, 60, slow=slow) for slow in (False, True))
    assert fast.line == slow.line
    monkeypatch.setattr(verify.fast.box, "LARGE", 0)
    assert examine(file, ROOT / instance, 60).line == slow.line


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("held_condition", "VERIFIED"),  # held at the factual value, a curve of it changes by exactly 0
        ("held_domain", "VERIFIED"),
        ("relu_fast", "VERIFIED"),  # a sign leaves a relu's argument one value, on a box of more than a point
        ("relu_kernel", "REJECTED"),
        ("labels_fast", "VERIFIED"),  # an equation reads the number of a label
        ("labels_theta_fast", "VERIFIED"),
    ],
)
def test_where_the_rings_once_differed(name, verdict):
    """True claims on which they gave two verdicts, or refused an action that ties with its bound."""
    file, instance = (HERE / "rings" / f"{name}_{what}.json" for what in ("certificate", "instance"))
    fast, slow = (examine(file, instance, 60, slow=slow) for slow in (False, True))
    assert fast.line == slow.line
    assert fast.line.startswith(verdict)


def test_slow_imports_no_fast_path(capsys, monkeypatch):
    """With ``--slow`` the fast path is not run at all."""

    def broken(*_):
        raise AssertionError

    monkeypatch.setattr(verify.fast.box.Floats, "__init__", broken)
    files = [str(ROOT / "docs/examples" / f"toy_{what}.json") for what in ("certificate", "instance")]
    assert main([*files, "--slow"]) == 0
    assert main(files) == 4
    assert "VERIFIED" in capsys.readouterr().out
    assert sys.modules["verify.kernel.box"]

"""The page that derives the checker's constants has all of them, with the values of the code."""

from __future__ import annotations

import ast
import re
from fractions import Fraction
from pathlib import Path

import verify.fast.arrays
import verify.fast.box
import verify.fast.cells
import verify.files.cells
import verify.files.certificate
import verify.files.classifier
import verify.files.conditions
import verify.files.instance
import verify.files.reading
from milp_recourse.certificates import limits
from milp_recourse.reports import certificate_files
from verify.certain import outcomes
from verify.kernel import certificate, checks, curves
from verify.regret import cone

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/certificate_constants.md").read_text(encoding="utf-8")

VALUES = {
    "GRID": (curves.GRID, 2**32),
    "BITS": (curves.BITS, 96),
    "DIGITS": (curves.DIGITS.prec, 36),
    "FAR": (curves.FAR, 64),
    "EDGE": (curves.EDGE, Fraction(1e-9)),
    "RELATIVE_GAP": (certificate.RELATIVE_GAP, Fraction(1e-6)),
    "LEVER_GAP": (certificate.LEVER_GAP, Fraction(1e-12)),
    "LONGEST": (checks.LONGEST, 2**17),
    "MOST_TERMS": (verify.files.certificate.MOST_TERMS, 64),
    "MOST_RAYS": (cone.MOST_RAYS, 20_000),
    "MOST_TOGETHER": (outcomes.MOST_TOGETHER, 2_000_000),
    "LARGEST_PRICE": (verify.files.cells.LARGEST_PRICE, 2.0**53),
    "PIECE": (verify.files.reading.PIECE, 2**20),
    "MOST_CLASSES": (verify.files.cells.MOST_CLASSES, 300_000_000),
    "LARGEST_FILE": (verify.files.reading.LARGEST_FILE, 64 * 2**20),
    "MOST_ROOM": (verify.files.reading.MOST_ROOM, limits.MOST_ROOM),
    "INSTANCE": (verify.files.reading.INSTANCE, limits.INSTANCE),
    "MOST_FEATURES": (verify.files.instance.MOST_FEATURES, limits.MOST_FEATURES),
    "MOST_CELLS": (verify.files.instance.MOST_CELLS, limits.MOST_CELLS),
    "MOST_CONDITIONS": (verify.files.instance.MOST_CONDITIONS, 10_000),
    "MOST_WEIGHTS": (verify.files.classifier.MOST_WEIGHTS, limits.MOST_WEIGHTS),
    "DEEPEST": ((verify.files.instance.DEEPEST, verify.files.conditions.DEEPEST), (50, 40)),
    "MOST_LAYERS": (verify.files.classifier.MOST_LAYERS, 100),
    "LARGEST_SCORE": (verify.files.classifier.LARGEST_SCORE, 1e30),
    "MOST_COLUMNS": (verify.fast.box.MOST_COLUMNS, 600),
    "MOST_WAYS": (verify.fast.cells.MOST_WAYS, 1_000_000),
    "MOST_AMOUNTS": (verify.fast.arrays.MOST_AMOUNTS, 2**24),
    "MOST_BITS": (verify.fast.arrays.MOST_BITS, 58),
}


def numbers(source: str) -> set[str]:
    """Constants of a module that are made of numbers."""
    found = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            inner = [n for n in ast.walk(node.value) if isinstance(n, ast.Constant)]
            if inner and all(isinstance(n.value, int | float) for n in inner):
                found |= {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    return {name for name in found if name.isupper()}


def test_every_constant_is_derived():
    """The page has each by name, and the values are the code's."""
    for name, (code, page) in VALUES.items():
        assert code == page, name
        assert f"`{name}`" in PAGE, name


def test_both_sides_have_the_same_limits():
    """Who makes a certificate, or keeps it, knows how large it may be and how it is checked."""
    sizes = limits.LARGEST_FILE, certificate_files.LARGEST_CERTIFICATE, verify.files.reading.LARGEST_FILE
    assert len({*sizes}) == 1
    assert limits.TOGETHER == verify.fast.box.LARGE


def test_curves_in_decimals_are_as_near_as_the_page_says():
    """36 digits of the largest logarithm that there is, and of exp, are less than 2^-96 off."""
    largest = curves.logarithm(Fraction(2) ** checks.LONGEST)[1]
    digits = len(str(int(largest)))
    assert largest < 10**5 and Fraction(10) ** (digits - curves.DIGITS.prec) < Fraction(1, 2**curves.BITS)


def test_no_constant_of_the_kernel_is_left_out():
    """A number that the trusted rings name is on the page."""
    trusted = [
        file for ring in ("kernel", "certain", "regret") for file in (ROOT / "verify" / ring).glob("*.py")
    ]
    named = {name for file in trusted for name in numbers(file.read_text(encoding="utf-8"))}
    assert named - set(VALUES) == {"ONE", "ZERO", "UNIT", "FALSE"}


def test_the_walk_through_names_what_there_is():
    """Files, functions and attacks that the page leads to."""
    page = (ROOT / "docs/certificate_walkthrough.md").read_text(encoding="utf-8")
    page = page.partition("## The code, rule by rule")[2]
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    prefixes = {"kernel": "", "certain": "certain/", "regret": "regret/"}
    rings = ((ROOT / "verify" / ring, prefix) for ring, prefix in prefixes.items())
    kernel = {
        prefix + file.stem: file.read_text(encoding="utf-8")
        for ring, prefix in rings
        for file in ring.glob("*.py")
        if file.stem != "__init__"
    }
    assert {re.findall("`(.+?)`", row[0])[0] for row in rows} == kernel.keys()
    for read, *_, attacks in rows:
        file, *functions = re.findall("`(.+?)`", read)
        for name in functions:
            assert re.search(rf"(def|class) {name}\b|self\.{name} =", kernel[file]), (file, name)
        for name in re.findall("`(.+?)`", attacks):
            assert (ROOT / f"tests/certificates/rejected/{name}.json").exists(), name

"""Every word of the glossary is a word of the code and is defined once; the needed ones are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
TERMS = [
    term.strip()
    for heading in re.findall(r"^\*\*([^*]+)\*\*", PAGE, re.MULTILINE)
    for term in heading.split(",")
]
SOURCES = [
    *(ROOT / "milp_recourse").rglob("*.py"),
    *(ROOT / "milp_recourse").rglob("*.json"),
    *(ROOT / "verify").rglob("*.py"),
]
WORDS = set(
    re.findall(
        r"[a-z]+",
        re.sub(
            r"(?<=[a-z])(?=[A-Z])", " ", " ".join(file.read_text(encoding="utf-8") for file in SOURCES)
        ).lower(),
    )
)
"""Lower-case words of all sources, names split where they join words."""

ASKED = {
    "atom",
    "ball",
    "budget",
    "case",
    "cell",
    "configuration",
    "cut",
    "cutoff",
    "form",
    "leaf",
    "lever",
    "node",
    "piece",
    "price",
    "region",
    "row",
    "share",
    "switch",
    "table",
    "target",
    "unit",
}
"""Terms that a reader of the code meets everywhere."""


def in_code(term: str) -> bool:
    """Whether each word of a term stands in the code, in the singular or the plural."""
    return all(
        {word, f"{word}s", word.removesuffix("s"), word.removesuffix("ies") + "y"} & WORDS
        for word in re.findall(r"[a-z]+", term.lower())
    )


@pytest.mark.parametrize("term", TERMS)
def test_the_code_uses_every_term(term):
    """A term that has gone from the code goes from the glossary too."""
    assert in_code(term)


def test_a_term_that_nobody_uses_is_found():
    """The test above can fail."""
    assert not in_code("Flibbertigibbet")


def test_terms_are_defined_once():
    """And those that a reader cannot do without are."""
    lower = [term.lower() for term in TERMS]
    assert len(lower) == len(set(lower))
    named = {word.removesuffix("s") for word in lower} | set(lower)
    assert not ASKED - named

"""The user's words for features, and the units of their numbers, on pages and in letters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from milp_recourse.errors import BadInput
from milp_recourse.formats.strict_json import read_json
from milp_recourse.reports.view import Person

Key = TypeVar("Key")

WORDS_FILE = "words.json"
"""The file of a folder of results that holds them: ``{"names": {feature: words}, "units": {...}}``."""


@dataclass(frozen=True)
class OwnWords:
    """By feature, words in place of its name, and the unit of its numbers."""

    names: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)

    def of(self, person: Person) -> Person:
        """The person, whose features are called so."""
        named = [
            replace(c, name=self.names.get(c.feature), unit=self.units.get(c.feature))
            for c in person.features
        ]
        return replace(person, features=named)

    def to_dict(self) -> dict[str, dict[str, str]]:
        """As a JSON value."""
        return {"names": dict(self.names), "units": dict(self.units)}


def check_words(argument: str, words: Mapping[Key, object]) -> dict[Key, str]:
    """The words, if each is text.

    Raises
    ------
    BadInput
        One is no text, or blank.
    """
    for name, text in words.items():
        if not isinstance(text, str) or not text.strip():
            raise BadInput(f"{argument}.{name}", repr(text), "words, as text")
    return {name: str(text) for name, text in words.items()}


def words_in(folder: Path) -> OwnWords:
    """The words in a folder's file :data:`WORDS_FILE`; none without such a file.

    Raises
    ------
    BadInput
        The file holds something else.
    """
    file = folder / WORDS_FILE
    if not file.is_file():
        return OwnWords()
    found = read_json(file)
    try:
        if not isinstance(found, dict) or not found.keys() <= {"names", "units"}:
            raise BadInput("words", "something else", 'an object with "names" and "units"')
        for key, value in found.items():
            if not isinstance(value, dict):
                raise BadInput(key, type(value).__name__, "an object: feature -> words")
        return OwnWords(*(check_words(key, found.get(key, {})) for key in ("names", "units")))
    except BadInput as error:
        raise error.in_file(str(file)) from None

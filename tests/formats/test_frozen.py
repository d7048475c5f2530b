"""A frozen type whose fields are stated once is read and written by them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from annotated_types import Gt
from pydantic import Field

from milp_recourse.errors import BadInput
from milp_recourse.formats.stated import Stated, as_json, states, validate


@dataclass(frozen=True)
class Part:
    """One part.

    Not what files say of it.
    """

    size: Annotated[float, Gt(0)]


@dataclass(frozen=True)
class Whole:
    """Several parts."""

    start: float
    parts: tuple[Part, ...] = ()
    name: str | None = None


PART = Annotated[Part, Stated(states(Part))]
WHOLE = Annotated[
    Whole, Stated(states(Whole, {"Part": PART}, kind=(Literal["whole"], ...), start=Field(alias="from")))
]


def test_what_is_written_is_read_again() -> None:
    """Tuples are lists, a field's key may be another, and what is None is left out."""
    whole = Whole(0.5, (Part(1.0), Part(2.0)))
    written = as_json(whole)
    assert written == {"kind": "whole", "from": 0.5, "parts": [{"size": 1.0}, {"size": 2.0}]}
    assert list(written) == ["kind", "from", "parts"] and validate(WHOLE, written) == whole


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"parts": [{"size": 0}]}, "parts.0.size: got 0; allowed: a number above 0"),
        ({"parts": ({"size": 1},)}, "parts: got ({'size': 1},); allowed: a list"),
        ({"from": True}, "from: got true; allowed: a number"),
        ({"start": 1}, "start: got an unknown key; allowed: kind, from, parts, name"),
        ({"kind": "half"}, "kind: got half; allowed: 'whole'"),
    ],
)
def test_what_the_annotations_forbid_is_refused(change: dict[str, object], line: str) -> None:
    """Also what a file may not say though Python may: a tuple, the field's own name for another key."""
    with pytest.raises(BadInput) as refused:
        validate(WHOLE, {"kind": "whole", "from": 1.0} | change)
    assert str(refused.value) == line


def test_a_schema_has_the_first_lines_alone() -> None:
    """The rest of a docstring is about Python."""
    assert states(Part).model_json_schema()["description"] == "One part."

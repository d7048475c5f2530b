"""Memory made from the annotations of a named tuple, and the places that are taken of its arrays."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from milp_recourse.engine.compiling import allocated
from milp_recourse.engine.networks import problem_arrays
from milp_recourse.engine.networks.problem_arrays import CASES, FORMS, PERSONAL, Problem


class Old(NamedTuple):
    """An array's type as numpy writes it before version 2.5: its shape's and its dtype's."""

    a: Annotated[np.ndarray[tuple[int, ...], np.dtype[np.uint8]], 2, "n"]


class New(NamedTuple):
    """As numpy 2.5 does: the alias with the numbers' type."""

    a: Annotated[list[np.uint8], 2, "n"]


class Here(NamedTuple):
    """As the numpy at hand does."""

    a: Annotated[NDArray[np.uint8], 2, "n"]


@pytest.mark.parametrize("kind", [Old, New, Here])
def test_numbers_and_shapes_are_those_of_the_annotation(kind: type[Old]) -> None:
    """With numpy 2.5 the numbers' type was looked for where it no longer is, and nothing could be solved."""
    made = allocated(kind, n=3)
    assert made.a.dtype == np.uint8 and made.a.shape == (2, 3)


class Row:
    """An array that remembers the place that was taken of it."""

    def __init__(self, name: str, *taken: object) -> None:
        self.said = name, taken

    def __getitem__(self, k: object) -> Row:
        return Row(self.said[0], *self.said[1], getattr(k, "said", k))


def test_every_field_is_taken_where_its_list_says() -> None:
    """The arrays of one configuration and of one applicant are written out, field by field."""
    whole, form = Problem(*map(Row, Problem._fields)), ("form", (3,))
    of_one = dict.fromkeys(PERSONAL, (3,)) | dict.fromkeys(FORMS, (form,))
    for name, places in (("case", dict.fromkeys(CASES, (3,))), ("one_of", of_one)):
        function = getattr(problem_arrays, name)
        found = getattr(function, "py_func", function)(whole, 3)
        assert [one.said for one in found] == [(f, places.get(f, ())) for f in Problem._fields], name

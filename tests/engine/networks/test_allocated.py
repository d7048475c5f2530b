"""Memory made from the annotations of a named tuple."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from milp_recourse.engine.compiling import allocated


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

"""What is made of a part of a problem is kept as long as the part lives."""

from __future__ import annotations

import gc
from weakref import ref

import pytest

from milp_recourse.problem.instance import kept_with


class Part:
    """A part of a problem."""


def test_it_is_made_once_for_each_part_and_argument() -> None:
    """None is kept like anything else; a part's results are dropped where there would be too many."""
    made: list[tuple[Part, int]] = []

    @kept_with(2)
    def odd(part: Part, number: int) -> int | None:
        made.append((part, number))
        return number if number % 2 else None

    one, other = Part(), Part()
    assert [odd(part, k) for _ in range(2) for part in (one, other) for k in (1, 2)] == [1, None] * 4
    assert made == [(one, 1), (one, 2), (other, 1), (other, 2)]
    assert odd(one, 3) == 3 and odd(one, 1) == 1 and odd(other, 2) is None
    assert made[4:] == [(one, 3), (one, 1)]


def test_it_goes_with_the_part() -> None:
    """Nothing else keeps it."""
    made = kept_with()(lambda part: Part())
    part = Part()
    found = ref(made(part))
    assert found() is made(part)
    del part
    gc.collect()
    assert found() is None


def test_an_error_is_not_kept() -> None:
    """The next call tries again."""
    tries = iter((ValueError, 7))

    @kept_with()
    def made(_: Part) -> int:
        found = next(tries)
        if not isinstance(found, int):
            raise found
        return found

    part = Part()
    with pytest.raises(ValueError):
        made(part)
    assert made(part) == made(part) == 7

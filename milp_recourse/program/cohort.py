"""Programs of many applicants: those who differ in numbers only are lowered once, together.

What :func:`~milp_recourse.program.lower.lower` computes for one applicant with Fractions is computed for
all at once with :class:`~milp_recourse.program.rationals.Rationals`, by the same functions. Where a
decision about structure comes out differently (a factual outside its bounds may not be held, a product
has the factual as a coefficient, a category), the applicants are parted and lowered again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from numpy.typing import NDArray

from milp_recourse.instance import Instance, of_one_model
from milp_recourse.program.lower import lower, lower_together
from milp_recourse.program.model import Program
from milp_recourse.program.rationals import Mixed

T = TypeVar("T")

_FEW = 4  # people that it must tell apart on average for a further attempt to be worth it


def together(
    instances: Sequence[Instance], make: Callable[[list[Instance], Program], T]
) -> Iterator[tuple[list[int], T]]:
    """Apply a function to every applicant's program, once for all who share the program.

    Parameters
    ----------
    make
        Gets applicants and their program; where it raises :class:`Mixed` they are parted and lowered again.

    Yields
    ------
    tuple
        Numbers of applicants, and what was made for them.
    """
    waiting = of_one_model(instances)
    while waiting:
        people = waiting.pop(0)
        members = [instances[person] for person in people]
        try:
            program = lower(members[0]) if len(members) == 1 else lower_together(members)
            made = make(members, program)
        except Mixed as mixed:
            waiting[:0] = _parts(people, mixed.labels)
        else:
            yield people, made


def _parts(people: list[int], labels: NDArray[Any]) -> list[list[int]]:
    """Those with equal labels together; everyone alone where hardly any are equal."""
    parts: dict[Any, list[int]] = {}
    for person, label in zip(people, labels.tolist(), strict=True):
        parts.setdefault(label, []).append(person)
    if len(parts) * _FEW > len(people):
        return [[person] for person in people]
    return list(parts.values())

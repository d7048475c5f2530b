"""Programs of many applicants: those whose programs differ in numbers only are lowered once, together.

What :func:`~milp_recourse.program.lower.lower` computes for one applicant with Fractions is computed for
all at once with :class:`~milp_recourse.program.affine.Rationals`, by the same functions. The structure
of a program can depend on numbers: a factual outside its bounds may not be held, a factual can be the
coefficient of a product, and categories give different atoms. Applicants who differ in that are separated
and lowered again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from numpy.typing import NDArray

from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import of_one_model
from milp_recourse.program.affine import Mixed
from milp_recourse.program.lower import lower, lower_together
from milp_recourse.program.neutral_program import Program

T = TypeVar("T")

_FEW = 4  # with fewer people per group on average, lowering together is not tried again


def together(
    instances: Sequence[Instance], make: Callable[[list[Instance], Program], T]
) -> Iterator[tuple[list[int], T]]:
    """Apply a function to every applicant's program, once for all who share the program.

    Parameters
    ----------
    make
        The function of applicants and their common program, which has no cost terms. If it raises
        :class:`Mixed`, the applicants are separated and lowered again.

    Yields
    ------
    tuple
        Positions of applicants in ``instances``, and the function's value for them.
    """
    waiting = of_one_model(instances)
    while waiting:
        people = waiting.pop(0)
        members = [instances[person] for person in people]
        try:
            program = lower(members[0], costs=False) if len(members) == 1 else lower_together(members)
            value = make(members, program)
        except Mixed as mixed:
            waiting[:0] = _parts(people, mixed.labels)
        else:
            yield people, value


def _parts(people: list[int], labels: NDArray[Any]) -> list[list[int]]:
    """Groups of people with equal labels; groups of one if the groups would be small."""
    parts: dict[Any, list[int]] = {}
    for person, label in zip(people, labels.tolist(), strict=True):
        parts.setdefault(label, []).append(person)
    if len(parts) * _FEW > len(people):
        return [[person] for person in people]
    return list(parts.values())

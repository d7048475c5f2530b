"""Records of arrays that all have the nodes of one batch on their last axis."""

from __future__ import annotations

from typing import Any, Generic, Self, TypeVar

import numpy as np

Array = Any
Part = TypeVar("Part", bound="Batched")

_MOST = 0.75  # where fewer than this share still move, the others are set aside


class Batched:
    """A dataclass whose every field is an array (..., B), or such a record itself."""

    def take(self, index: Array) -> Self:
        """The nodes at ``index``."""
        return type(self)(*(_taken(v, index) for v in vars(self).values()))

    @classmethod
    def joined(cls, parts: list[Self]) -> Self:
        """Several batches after each other."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            *(_joined(list(column)) for column in zip(*(vars(part).values() for part in parts), strict=True))
        )


class Resting(Generic[Part]):
    """What is finished of a batch that is worked on step by step, while the rest goes on.

    Attributes
    ----------
    place
        Where what is still worked on belongs in the batch, (B,).
    """

    def __init__(self, like: Array) -> None:
        self.place = np.arange(like.shape[-1])
        self._parts: list[tuple[Array, Part]] = []

    def set_aside(self, running: Array, outcome: Part) -> Array | None:
        """Keep what rests of the ``outcome``; the index of what goes on, or None where that is nearly all."""
        moving = np.nonzero(running)[0]
        if moving.shape[0] >= _MOST * self.place.shape[0]:
            return None
        rest = np.nonzero(~running)[0]
        self._parts.append((np.take(self.place, rest), outcome.take(rest)))
        self.place = np.take(self.place, moving)
        return moving

    def joined(self, last: Part) -> Part:
        """The whole batch in its order, ``last`` being what was worked on to the end."""
        parts = [*self._parts, (self.place, last)]
        order = np.argsort(np.concat([place for place, _ in parts]))
        return type(last).joined([part for _, part in parts]).take(order)


def _joined(column: list[Any]) -> Any:
    first = column[0]
    if isinstance(first, Batched):
        return type(first).joined(column)
    return np.concat(column, axis=first.ndim - 1)


def _taken(value: Any, index: Array) -> Any:
    if isinstance(value, Batched):
        return value.take(index)
    return np.take(value, index, axis=value.ndim - 1)

"""Records of arrays that all have the nodes of one batch on their last axis."""

from __future__ import annotations

from typing import Any, Self

from array_api_compat import array_namespace

Array = Any


class Batched:
    """A dataclass whose every field is an array (..., B)."""

    def take(self, index: Array) -> Self:
        """The nodes at ``index``."""
        fields = list(vars(self).values())
        xp = array_namespace(fields[0])
        return type(self)(*(xp.take(v, index, axis=v.ndim - 1) for v in fields))

    @classmethod
    def joined(cls, parts: list[Self]) -> Self:
        """Several batches after each other."""
        if len(parts) == 1:
            return parts[0]
        columns = list(zip(*(vars(part).values() for part in parts), strict=True))
        xp = array_namespace(columns[0][0])
        return cls(*(xp.concat(list(column), axis=column[0].ndim - 1) for column in columns))

"""What the tensors of an ONNX graph hold, for each applicant, in terms of the applicant's columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import Unsupported
from milp_recourse.problem.derived_networks import Bends
from milp_recourse.readers.formulas import Rule
from milp_recourse.readers.layers import Layers, Map
from milp_recourse.readers.operations import Operation
from milp_recourse.readers.refusal import refuse
from milp_recourse.readers.scores import Score
from milp_recourse.readers.track import Track

ROUND = Operation("round", 0.0)


@dataclass(frozen=True, eq=False)
class Columns:
    """Numbers or labels that are each made of one column.

    Attributes
    ----------
    name
        The tensor.
    tracks
        What each is made of; None for an input of unknown width.
    kind
        Its element type, as numpy names it; ``str`` for texts.
    truncated
        Why they can be labels only; empty where they may be numbers.
    """

    name: str
    tracks: tuple[Track, ...] | None
    kind: str
    truncated: str = ""

    def after(self, name: str, added: Sequence[Sequence[Operation]]) -> Columns:
        """The same behind operations on each; labels, which are tabulated, need none."""
        rounds = [ROUND] if self.kind == "float32" else []
        tracks = (
            t if t.coded else replace(t, operations=(*t.operations, *(x for o in each for x in [o, *rounds])))
            for t, each in zip(self.tracks or (), added, strict=True)
        )
        return replace(self, name=name, tracks=tuple(tracks))

    def rounded(self, name: str) -> Columns:
        """The same as float32."""
        if self.kind == "float32":
            return replace(self, name=name)
        tracks = (t if t.coded else replace(t, operations=(*t.operations, ROUND)) for t in self.tracks or ())
        return replace(self, name=name, tracks=tuple(tracks), kind="float32")


@dataclass(frozen=True, eq=False)
class Net:
    """Outputs of affine maps and ReLUs.

    Attributes
    ----------
    layers
        The maps. They are never changed: what follows is appended to a copy.
    columns
        As in :class:`milp_recourse.readers.scores.NetworkScore`.
    closed
        The rising function of them that the tensor holds; the numbers themselves if empty.
    rows
        Whether applicants are rows.
    where
        The node of the rising function.
    """

    layers: Layers
    columns: tuple[int, ...]
    closed: Literal["", "sigmoid", "rest", "softmax"] = ""
    rows: bool = True
    where: str = ""

    @property
    def width(self) -> int:
        """The number of outputs."""
        return self.layers.outputs or 0

    def check_order(self) -> None:
        """Refuse a sigmoid of several outputs: it rounds large ones to 1, and so ties classes whose logits
        differ."""
        if self.closed == "sigmoid" and self.width > 1:
            got = f"a sigmoid of {self.width} outputs, whose order is lost where it rounds to 1"
            raise refuse(self.where, got, "a softmax, or nothing, after several outputs")

    def copy(self) -> Net:
        """The same with layers of its own."""
        return replace(self, layers=self.layers.lengthened(0))


@dataclass(frozen=True, eq=False)
class Sums:
    """What an ensemble of trees adds up for each target."""

    scores: tuple[Score, ...]


@dataclass(frozen=True, eq=False)
class Winner:
    """The position of the class that is predicted, or its label, and when it is which."""

    scores: tuple[Score, ...]
    rule: Rule
    classes: tuple[object, ...]
    measure: str


@dataclass(frozen=True, eq=False)
class Hidden:
    """A tensor that cannot be read, which matters only if the answer depends on it."""

    error: Unsupported


Value = Columns | Net | Sums | Winner | Hidden | NDArray[Any]


class Source(Protocol):
    """Where columns are among the columns of the whole model."""

    def layers(self, columns: Columns) -> tuple[Layers, tuple[int, ...]]:
        """As :meth:`milp_recourse.readers.places.Place.layers`."""

    def positions(self, columns: Columns) -> tuple[int, ...]:
        """As :attr:`milp_recourse.readers.places.Place.columns`."""


class Unknown:
    """The source of a graph that is read without a table."""

    def layers(self, columns: Columns) -> tuple[Layers, tuple[int, ...]]:
        """Layers of as many inputs as the first map has."""
        return Layers(None if columns.tracks is None else len(columns.tracks)), ()

    def positions(self, columns: Columns) -> tuple[int, ...]:
        """Any, of columns whose number is known."""
        if columns.tracks is None:
            raise refuse("graph", f"trees on the columns {columns.name}", "read_model, with the DataFrame")
        return tuple(range(len(columns.tracks)))


def joined(parts: Sequence[Net], where: str) -> Net:
    """One network whose outputs are those of several, one after the other.

    What they have in common from the start is there once. Beside a longer part, a shorter one passes as
    relu(z) where z is at least 0, right behind a ReLU, and else as relu(z) - relu(-z).
    """
    if any(one.closed for one in parts):
        raise refuse(where, f"a {parts[0].closed or parts[-1].closed} beside other numbers", "logits")
    if len({one.columns for one in parts}) > 1:
        columns = tuple(column for one in parts for column in one.columns)
        return replace(parts[0], layers=Layers.beside([one.layers for one in parts]), columns=columns)
    sequences = [_steps(one.layers) for one in parts]
    shared = 0
    while all(len(own) > shared and own[shared] is sequences[0][shared] for own in sequences):
        shared += 1
    trunk = Layers(parts[0].layers.inputs)
    for step in sequences[0][:shared]:
        trunk.append(step, where)
    width, after_relu = trunk.outputs, shared > 0 and sequences[0][shared - 1] is None
    assert width is not None
    longest = max(_bends(own[shared:]) for own in sequences)
    rests = []
    for own in sequences:
        rest = Layers(width)
        missing = longest - _bends(own[shared:]) if after_relu else 0
        for _ in range(missing):
            rest.affine(np.eye(width), np.zeros(width), where)
            rest.relu(where)
        if missing or len(own) == shared or not isinstance(own[shared], Map):
            rest.affine(np.eye(width), np.zeros(width), where)
        for step in own[shared:]:
            rest.append(step, where)
        if not rest.segments[-1]:
            rest.affine(np.eye(rest.outputs or 0), np.zeros(rest.outputs or 0), where)
        rests.append(rest)
    trunk.affine(np.vstack([np.eye(width)] * len(rests)), np.zeros(width * len(rests)), where)
    trunk.extend(Layers.beside(rests))
    trunk.slack = max(one.layers.slack for one in parts)
    return replace(parts[0], layers=trunk)


def _steps(layers: Layers) -> list[Map | Bends]:
    """The maps and the functions between them, in order."""
    found: list[Map | Bends] = [*layers.segments[0]]
    for bends, segment in zip(layers.bends, layers.segments[1:], strict=True):
        found += [bends, *segment]
    return found


def _bends(steps: Sequence[Map | Bends]) -> int:
    return sum(not isinstance(step, Map) for step in steps)

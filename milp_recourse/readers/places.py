"""Where a model's parts get their columns from: chains of transformers, one after the other in one long row.

A model made of others may put each of them behind transformers of its own. Every chain of transformers has a
stretch of the long row, and each part of the model knows its columns by their position in it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from milp_recourse.readers.blends import Mix
from milp_recourse.readers.layers import UNIT, Layers
from milp_recourse.readers.refusal import OR_ASK, refuse
from milp_recourse.readers.steps_before import Preprocessing, read_preprocessing

Step = tuple[str, Any]
"""A name for messages and a fitted transformer."""

Codes = list[tuple[object, float]]
"""Pairs of label and code; the code is nan for labels that the model treats as missing."""


@dataclass(frozen=True)
class Inputs:
    """What reaches a model that is computed from other scores: its name, and their positions."""

    where: str
    columns: tuple[int, ...]

    def layers(self) -> tuple[Layers, tuple[int, ...]]:
        """As :meth:`Place.layers`."""
        return Layers(len(self.columns)), self.columns


@dataclass(frozen=True)
class Place:
    """What reaches a part of the model.

    Attributes
    ----------
    chains
        All chains.
    where
        The part, for messages.
    steps
        The transformers before it.
    picked
        Which of the columns behind them it gets; None: all.
    """

    chains: Chains
    where: str
    steps: tuple[Step, ...] = ()
    picked: tuple[int, ...] | None = None

    @property
    def columns(self) -> tuple[int, ...]:
        """The positions of its columns in the long row.

        Raises
        ------
        Unsupported
            They are sums of what is in the long row, as behind PCA: :meth:`layers` is for these.
        """
        mix = self.chains.mix(self.steps)
        if mix is not None:
            got = f"a model that takes columns one by one behind {mix.name}"
            raise refuse(self.where, got, f"a linear model or a network behind it, {OR_ASK}")
        made = self.chains.columns(self.steps)
        return made if self.picked is None else tuple(made[k] for k in self.picked)

    def layers(self) -> tuple[Layers, tuple[int, ...]]:
        """Layers to which a linear model or a network appends its maps, and the positions that they take."""
        mix = self.chains.mix(self.steps)
        if mix is None:
            return Layers(len(self.columns)), self.columns
        taken = self.chains.columns(self.steps)
        layers = Layers(len(taken))
        layers.affine(mix.weights, mix.constants, self.where, UNIT["float64"], mix.sizes)
        return layers, taken

    def after(self, steps: Sequence[Step], where: str) -> Place:
        """The place behind further transformers."""
        if steps and self.picked is not None:
            allowed = "all columns for each member (max_features=1.0, bootstrap_features=False)"
            raise refuse(where, "transformers behind a choice of columns", allowed)
        return replace(self, where=where, steps=(*self.steps, *steps))

    def pick(self, features: Sequence[int], where: str) -> Place:
        """The place of a part that gets some of the columns."""
        known = range(len(self.columns)) if self.picked is None else self.picked
        picked = tuple(known[int(k)] for k in features)
        whole = self.picked is None and picked == tuple(known)
        return replace(self, where=where, picked=None if whole else picked)

    @property
    def sparse(self) -> bool:
        """Whether a sparse matrix arrives here."""
        return self.chains.sparse(self.steps)

    @property
    def frame(self) -> Any:
        """X's columns in the model's order."""
        return self.chains.X[list(self.chains.names)]


class Chains:
    """The chains of transformers that a model has.

    Parameters
    ----------
    names
        X's columns in the model's order.
    X
        The DataFrame that the model was fitted on.
    open_to
        As for :func:`milp_recourse.readers.steps_before.read_preprocessing`.
    """

    def __init__(self, names: Sequence[object], X: Any, open_to: Collection[object] = ()) -> None:
        self.names, self.X, self._open_to = names, X, open_to
        self.native: dict[int, Codes] = {}
        self._chains: dict[
            tuple[int, ...], tuple[tuple[Step, ...], tuple[int, ...], Preprocessing | None]
        ] = {}
        self._width = 0
        self._zeros: set[int] = set()

    @property
    def width(self) -> int:
        """The length of the long row."""
        return self._width

    def columns(self, steps: tuple[Step, ...]) -> tuple[int, ...]:
        """The positions of what the last of the transformers makes."""
        return self._chain(steps)[1]

    def sparse(self, steps: tuple[Step, ...]) -> bool:
        """Whether the last of the transformers makes a sparse matrix."""
        alone = self._chain(steps)[2]
        return alone is not None and alone.sparse

    def mix(self, steps: tuple[Step, ...]) -> Mix | None:
        """The sums of columns that the last of the transformers makes; None where it makes none."""
        alone = self._chain(steps)[2]
        return None if alone is None else alone.mix

    def _chain(
        self, steps: tuple[Step, ...]
    ) -> tuple[tuple[Step, ...], tuple[int, ...], Preprocessing | None]:
        key = tuple(id(step) for _, step in steps)
        if key not in self._chains:
            alone = read_preprocessing([steps], self.names, self.X) if steps else None
            width = len(self.names) if alone is None else len(alone.tracks)
            self._chains[key] = steps, tuple(range(self._width, self._width + width)), alone
            self._width += width
        return self._chains[key]

    def code(self, codes: Mapping[int, Codes], place: Place) -> None:
        """State which raw columns a model itself treats as labels, with the numbers that its trees compare.

        Raises
        ------
        Unsupported
            Transformers come before the model, or another part of it reads the columns as numbers.
        """
        if not codes:
            return
        if place.steps or len(self._chains) > 1 or any(self.native.get(k, v) != v for k, v in codes.items()):
            got = "labels that a model takes as they are, behind a transformer or beside other models"
            allowed = "such a model alone, or labels behind OneHotEncoder or OrdinalEncoder"
            raise refuse(place.where, got, allowed)
        self.native |= codes

    def zeros_are_gaps(self, place: Place) -> None:
        """State that a model takes the zeros of its sparse columns as missing values."""
        self._zeros.update(place.columns)

    def preprocessing(self) -> Preprocessing:
        """All chains, one after the other."""
        chains = list(self._chains.values())
        made = chains[0][2] if len(chains) == 1 and not self.native and not self._open_to else None
        if made is None:
            made = read_preprocessing(
                [steps for steps, *_ in chains], self.names, self.X, self.native, self._open_to
            )
        return made.with_gaps(self._zeros) if self._zeros else made

"""How X's raw columns enter a linear model or a network: the maps before its first layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.features import Encoding
from milp_recourse.readers.column import Column
from milp_recourse.readers.layers import UNIT, Layers
from milp_recourse.readers.margins import Entry
from milp_recourse.readers.operations import apply, curved, marks_of
from milp_recourse.readers.pieces import KNOTS, Pieces, is_short, pieces_of
from milp_recourse.readers.refusal import refuse
from milp_recourse.readers.steps_before import Preprocessing
from milp_recourse.readers.track import Track

Array = NDArray[np.float64]


def entry(
    preprocessing: Preprocessing, order: Sequence[object]
) -> tuple[tuple[Column, ...], tuple[Entry, ...], Layers]:
    """The columns of X that are used, their entries, and layers that make what reaches the classifier.

    Raises
    ------
    Unsupported
        A label becomes no number, or a number is transformed in a way that is no piecewise linear function.
    """
    made = _curves(preprocessing)
    columns: list[Column] = []
    starts: dict[int, int] = {}
    count = 0
    for raw in preprocessing.used(order):
        starts[raw] = count
        labels = preprocessing.labels.get(raw)
        kind: Encoding = "code" if labels is None else "one-hot"
        name, filled, gaps = preprocessing.names[raw], preprocessing.filled(raw), preprocessing.gaps(raw)
        within = made[raw].within if raw in made else None
        whole = raw in made and made[raw].whole
        columns.append(Column(name, labels, kind, None, filled, False, gaps, within, whole))
        count += columns[-1].width
    entries: list[Entry] = []
    rows: list[Array] = []
    at: dict[int, int] = {}  # the entry of each track, or of the raw column whose curves it is made of
    next_column: dict[int, int] = {}  # of a raw column's table
    for k, track in enumerate(preprocessing.tracks):
        start, labels, row = starts[track.raw], preprocessing.labels.get(track.raw), np.zeros(count)
        if labels is None and curved(track.operations):
            if ~track.raw not in at:
                at[~track.raw] = len(entries)
                row[start] = 1.0
                entries.append(Entry(start))
                rows.append(row)
            continue
        at[k] = len(entries)
        if labels is None:
            row[start] = 1.0
            entries.append(Entry(start, None, _apart(track)))
        else:
            values = preprocessing.tables[track.raw][:, next_column.setdefault(track.raw, 0)]
            next_column[track.raw] += 1
            if not np.isfinite(values).all():
                where = f"column {preprocessing.names[track.raw]!r}"
                raise refuse(where, "a label that becomes no number", "a number for it")
            row[start : start + len(values)] = values
            entries.append(Entry(start, tuple(values.tolist())))
        rows.append(row)
    layers = Layers(count)
    layers.affine(np.array(rows).reshape(len(rows), count), np.zeros(len(rows)), "model")
    if made:
        _bend(preprocessing, layers, entries, at, made)
    _scale(preprocessing, layers)
    return tuple(columns), tuple(entries), layers


def _curves(preprocessing: Preprocessing) -> dict[int, Pieces]:
    """For each raw column that functions are applied to, the piecewise linear functions in their place."""
    found: dict[int, list[Track]] = {}
    for track in preprocessing.tracks:
        if track.raw not in preprocessing.labels and curved(track.operations):
            found.setdefault(track.raw, []).append(track)
    made = {}
    long = sum(not is_short(preprocessing.numbers[raw]) for raw in found)
    most = max(KNOTS // max(long, 1), 24)
    for raw, tracks in found.items():
        where = f"column {preprocessing.names[raw]!r}"
        if preprocessing.narrow:
            raise refuse("X", "float32 columns before a transformer", "float64: X.astype('float64')")
        chains = [[o for o in track.operations if o.kind != "round"] for track in tracks]
        marks = [own for chain in chains for own in marks_of(chain)]
        stepped = [any(o.stepped for o in chain) for chain in chains]
        functions = [partial(apply, chain) for chain in chains]
        seen = preprocessing.numbers[raw]
        known = preprocessing.within(raw)
        filled = preprocessing.filled(raw)
        name = next(o.name for o in tracks[0].operations if curved([o]))
        gap = None if filled is None else float(filled)  # type: ignore[arg-type]
        own_marks = np.concatenate(marks)
        pieces = pieces_of(functions, seen, own_marks, stepped, known, gap, most, where, name)
        rounded = np.array([_rounded_by(track, pieces.within) for track in tracks])
        made[raw] = replace(pieces, off=pieces.off + rounded)
    return made


def _rounded_by(track: Track, within: tuple[float, float]) -> float:
    """How far roundings to float32 between sums, products and clips can move a number."""
    ends, off = np.array(within), 0.0
    for o in track.operations:
        if o.kind == "round":
            off += 2 * UNIT["float32"] * float(np.abs(ends).max()) + float(np.finfo(np.float32).tiny)
        else:
            ends = apply([o], ends)
            off *= abs(o.a) if o.kind == "multiply" else 1.0 / abs(o.a) if o.kind == "divide" else 1.0
    return off


def _bend(
    preprocessing: Preprocessing,
    layers: Layers,
    entries: Sequence[Entry],
    at: dict[int, int],
    made: dict[int, Pieces],
) -> None:
    """Append the piecewise linear functions; other columns pass unchanged.

    A number z passes as :math:`c + \\max(0, z - c) - \\max(0, c - z)`, a label's as the first two of these.
    """
    units: dict[int, list[tuple[int, float]]] = {}  # by entry: place of the unit, and what is taken off
    rows: list[tuple[int, float, float]] = []  # entry, sign, shift
    for key, place in at.items():
        values = entries[place].values
        if key < 0:
            new = [(place, 1.0, -float(t)) for t in made[~key].knots]
        elif values is not None:
            new = [(place, 1.0, -min(values))]
        else:
            seen = preprocessing.numbers[preprocessing.tracks[key].raw]
            low = float(np.nanmin(seen)) if np.isfinite(seen).any() else 0.0
            new = [(place, 1.0, -low), (place, -1.0, low)]
        units[place] = [(len(rows) + k, one[2]) for k, one in enumerate(new)]
        rows += new
    weight, shift = np.zeros((len(rows), len(entries))), np.array([one[2] for one in rows])
    for k, (place, sign, _) in enumerate(rows):
        weight[k, place] = sign
    layers.affine(weight, shift, "model")
    layers.relu("model")
    width = len(preprocessing.tracks)
    back, constant, off = np.zeros((width, len(rows))), np.zeros(width), np.zeros(width)
    taken: dict[int, int] = {}
    for k, track in enumerate(preprocessing.tracks):
        if k in at:
            first, *rest = units[at[k]]
            back[k, first[0]], constant[k] = 1.0, -first[1]
            for place, _ in rest:
                back[k, place] = -1.0
            continue
        pieces, number = made[track.raw], taken.setdefault(track.raw, 0)
        taken[track.raw] += 1
        places = [place for place, _ in units[at[~track.raw]]]
        back[k, places] = pieces.weights[number]
        constant[k], off[k] = pieces.constants[number], pieces.off[number]
    layers.affine(back, constant, "model", off=off)


def _apart(track: Track) -> float:
    """:attr:`Entry.apart` of a column: twice the distance, as computed in doubles."""
    if not isinstance(track.filled, int | float):
        return 0.0
    taken, stands = apply(track.operations, np.array([np.nan, float(track.filled)]))
    factor = 1.0
    for o in track.operations:
        factor *= o.a if o.kind == "multiply" else 1 / o.a if o.kind == "divide" else 1.0
    return 2 * abs(float(taken - stands)) / abs(factor)


def _scale(preprocessing: Preprocessing, layers: Layers) -> None:
    """Append the scalers' operations on numbers: map d applies the d-th operation of every column."""
    unit = UNIT["float32" if preprocessing.narrow or preprocessing.rounds else "float64"]
    chains = [
        []
        if t.raw in preprocessing.labels or curved(t.operations)
        else [o for o in t.operations if o.kind not in ("impute", "known", "round")]
        for t in preprocessing.tracks
    ]
    for depth in range(max((len(chain) for chain in chains), default=0)):
        factor, shift = np.ones(len(chains)), np.zeros(len(chains))
        for k, chain in enumerate(chains):
            if depth >= len(chain):
                continue
            o = chain[depth]
            if o.kind == "add":
                shift[k] = o.a
            else:
                factor[k] = o.a if o.kind == "multiply" else 1.0 / o.a
        layers.rescale(factor, shift, "model", unit, np.abs(shift))

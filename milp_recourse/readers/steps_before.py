"""The fitted transformers before a classifier: how each of its columns is computed from X's raw columns."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import BadInput, RecourseError
from milp_recourse.readers.blends import Blend, Mix, is_matrix, mix_of
from milp_recourse.readers.classes import OTHER, plain
from milp_recourse.readers.gaps import first_gaps, gap
from milp_recourse.readers.operations import Operation, apply, known_between
from milp_recourse.readers.refusal import listed, refuse
from milp_recourse.readers.track import Track
from milp_recourse.readers.transformers import Walk, add_labels
from milp_recourse.readers.tree_parts import LARGEST

_ROWS = 256  # number of rows of X on which the operations are checked
_WRITINGS = (  # LightGBM's names, XGBoost's, and XGBoost's of columns of several levels
    lambda name: "_".join(str(name).split(" ")),
    str,
    lambda name: " ".join(map(str, name)) if isinstance(name, tuple) else str(name),
)


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """How the fitted steps before a classifier compute its columns from X's.

    Attributes
    ----------
    names
        X's columns in the order in which the model takes them. A raw column is given by its position here.
    tracks
        One per column of the classifier: the raw column that it is made of, and how.
    labels
        The labels of each raw column that holds labels.
    tables
        For each raw column that holds labels, the numbers of every label in the classifier's columns, shape
        (labels, tracks of the column).
    sparse
        Whether the classifier receives a sparse matrix.
    narrow
        Whether a column of numbers is float32 or float16 in X, so that the steps do not compute in doubles.
    numbers
        The numbers of X in each raw column of numbers.
    mix
        Of one chain of steps: the sums of the tracks that reach the classifier in place of the tracks.
    """

    names: tuple[object, ...]
    tracks: tuple[Track, ...]
    labels: dict[int, tuple[object, ...]]
    tables: dict[int, NDArray[np.float64]]
    sparse: bool = False
    narrow: bool = False
    numbers: dict[int, NDArray[np.float64]] = field(default_factory=dict)
    mix: Mix | None = None

    def used(self, order: Sequence[object]) -> list[int]:
        """Raw columns that reach the classifier, in the given order of names."""
        reached = {track.raw for track in self.tracks}
        place = {name: k for k, name in enumerate(order)}
        return sorted(reached, key=lambda raw: place[self.names[raw]])

    def with_gaps(self, sparse: Collection[int]) -> Preprocessing:
        """The same where zeros of some tracks are missing values."""
        tables = {raw: table.copy() for raw, table in self.tables.items()}
        tracks, next_column = [], dict.fromkeys(tables, 0)
        for k, track in enumerate(self.tracks):
            at = next_column.get(track.raw, -1)
            if at >= 0:
                next_column[track.raw] += 1
            if k in sparse and at >= 0:
                column = tables[track.raw][:, at]
                tables[track.raw][:, at] = np.where(column == 0.0, np.nan, column)
            zeros = k in sparse and at < 0
            added = (Operation("sparse", 0.0),) if zeros else ()
            tracks.append(replace(track, operations=(*track.operations, *added)))
        return replace(self, tracks=tuple(tracks), tables=tables)

    def filled(self, raw: int) -> object | None:
        """The raw value that replaces a missing one in all tracks of a raw column; None if there is none."""
        return _imputed([track for track in self.tracks if track.raw == raw])[0]

    def gaps(self, raw: int) -> frozenset[str]:
        """The missing values of a raw column that the imputer replaces; see :attr:`Column.gaps`."""
        return _imputed([track for track in self.tracks if track.raw == raw])[1]

    def imputed_unevenly(self, raw: int) -> bool:
        """Whether some of a raw column's tracks are imputed, but not all with the same value."""
        return self.filled(raw) is None and any(t.filled is not None for t in self.tracks if t.raw == raw)

    def scaled(self) -> bool:
        """Whether a number is changed, other than by imputing, before it reaches the classifier."""
        numbers = [track for track in self.tracks if track.raw not in self.labels]
        return any(o.kind not in ("impute", "known", "sparse") for track in numbers for o in track.operations)

    def within(self, raw: int) -> tuple[float, float] | None:
        """Between which numbers all functions of a raw column are known; None without functions."""
        chains = [t.operations for t in self.tracks if t.raw == raw]
        if not any(o.kind in ("function", "curve") for chain in chains for o in chain):
            return None
        ends = [known_between(chain) for chain in chains]
        low, high = max(low for low, _ in ends), min(high for _, high in ends)
        return None if (low, high) == (-LARGEST, LARGEST) else (low, high)

    def keeps_gaps(self, raw: int) -> bool:
        """Whether the steps take a missing value of a raw column."""
        return all(o.gaps for t in self.tracks if t.raw == raw for o in t.operations)

    @property
    def rounds(self) -> bool:
        """Whether steps round numbers to float32, as ONNX graphs do."""
        return any(o.kind == "round" for track in self.tracks for o in track.operations)

    def plain(self) -> bool:
        """Whether the classifier receives all columns as the raw numbers."""
        return not self.labels and not self.scaled()


def check_frame(X: Any) -> None:
    """Raise BadInput unless X is a DataFrame with rows and columns, each column once."""
    import pandas as pd

    if not isinstance(X, pd.DataFrame):
        raise BadInput("X", type(X).__name__, "the pandas DataFrame that the model was fitted on")
    if not len(X) or not len(X.columns):
        raise BadInput("X", f"{len(X)} rows and {len(X.columns)} columns", "a table with both")
    if X.columns.has_duplicates:
        twice = X.columns[X.columns.duplicated()][0]
        raise BadInput("X", f"two columns called {twice!r}", "each name once")


def model_columns(model: Any, X: Any) -> list[object]:
    """Names of X's columns in the order the model takes them: ``model.predict(X[model_columns(model, X)])``.

    Parameters
    ----------
    model
        A fitted model. The names that it was fitted with are looked up in X, in any order; a model without
        names takes X's columns in order.
    X
        A DataFrame.

    Raises
    ------
    BadInput
        X is no DataFrame, names a column twice, or lacks one that the model names.
    Unsupported
        The model knows no names, and the number of columns of X is not the one that it takes.
    """
    check_frame(X)
    names = _known_names(model)
    if names is None:
        count = _count(model)
        if count is not None and count != X.shape[1]:
            raise refuse(
                "X",
                f"{X.shape[1]} columns",
                f"{count}, as many as the model was fitted on (it knows no names)",
            )
        return list(X.columns)
    known: dict[object, list[object]] = {}
    for column in X.columns:
        for name in {column, *(write(column) for write in _WRITINGS)}:
            known.setdefault(name, []).append(column)
    found = []
    for name in names:
        columns = [c for c in known.get(name, []) if c == name or c not in names]
        if not columns:
            raise BadInput("X", f"no column {name!r}", f"the model's columns {listed(names)}, in any order")
        if len(columns) > 1:
            allowed = f"only the one of them that the model was fitted on and calls {name!r}"
            raise BadInput("X", f"the columns {listed(columns)}", allowed)
        found += columns
    return found


def read_preprocessing(
    chains: Sequence[Sequence[tuple[str, Any]]],
    names: Sequence[object],
    X: Any,
    native: Mapping[int, Sequence[tuple[object, float]]] | None = None,
    open_to: Collection[object] = (),
) -> Preprocessing:
    """Follow X's columns through chains of fitted steps; what the chains make stands one after the other.

    Parameters
    ----------
    chains
        Of each chain pairs of a name for messages and a fitted transformer, in order. A chain without steps
        passes the columns on.
    names
        X's columns in the model's order.
    X
        The DataFrame the model was fitted on.
    native
        Only without steps: the raw columns that the classifier itself treats as categories, with pairs of
        label and code.
    open_to
        The columns whose labels shall include :data:`milp_recourse.readers.classes.OTHER`, if their encoders
        take unknown labels.

    Raises
    ------
    Unsupported
        A step is of an unknown kind, or its results on X are not those that follow from its attributes.
    """
    frame = X[list(names)]
    known_labels: dict[int, list[object]] = {}
    walked: list[_Walked] = []
    for steps in chains:
        walk = Walk(names, known_labels, numbers=lambda raw: _numbers(frame.iloc[:, raw], names[raw]))
        walked.append(_walk(walk, steps, len(names)))
    tracks = [track for own in walked for track in own.tracks]
    reached = {track.raw for track in tracks}
    coded = native or {}
    labels = {
        raw: _labels(known_labels[raw], frame.iloc[:, raw], [t for t in tracks if t.raw == raw])
        for raw in sorted(reached & set(known_labels))
    }
    for raw, known in labels.items():
        if names[raw] in open_to and _takes_others(walked, frame, raw, known):
            known.append(OTHER)
    numbers = {raw: _numbers(frame.iloc[:, raw], names[raw]) for raw in sorted(reached - {*labels, *coded})}
    narrow = any(str(frame.iloc[:, raw].dtype).lower() == "float32" for raw in numbers)
    if any(hasattr(step, "follow") for steps in chains for _, step in steps):
        narrow = False  # a graph rounds by operations of its own
    if not any(chains):
        own_labels = {raw: tuple(label for label, _ in pairs) for raw, pairs in coded.items()}
        codes = {raw: np.array([[code] for _, code in pairs]) for raw, pairs in coded.items()}
        made_of = tuple(names), tuple(tracks), own_labels, codes
        return Preprocessing(*made_of, narrow=narrow, numbers=numbers)
    made = [_tables(own, frame, labels) for own in walked]
    tables = {raw: np.hstack([each[raw] for each, _ in made]) for raw in labels}
    sparse = any(one for _, one in made)
    fixed_labels = {raw: tuple(known) for raw, known in labels.items()}
    mix = walked[0].mix if len(walked) == 1 else None
    preprocessing = Preprocessing(
        tuple(names), tuple(tracks), fixed_labels, tables, sparse, narrow, numbers, mix
    )
    for steps, own in zip(chains, walked, strict=True):
        if not narrow and steps:
            _check(own, frame, replace(preprocessing, tracks=own.tracks))
    return preprocessing


@dataclass(frozen=True, eq=False)
class _Walked:
    """One chain of steps.

    Attributes
    ----------
    steps
        Those whose output holds the tracks: all, or those before a matrix.
    tracks, places
        The tracks, and the column of that output in which each is; -1 where it is in none.
    mix
        What the classifier gets in place of the tracks; None: the tracks.
    """

    steps: Sequence[tuple[str, Any]]
    tracks: tuple[Track, ...]
    places: tuple[int, ...]
    mix: Mix | None = None


def _walk(walk: Walk, steps: Sequence[tuple[str, Any]], count: int) -> _Walked:
    """The tracks behind a chain of steps."""
    between: list[Track | Blend] = [Track(raw) for raw in range(count)]
    cut = None
    for k, (where, step) in enumerate(steps):
        if cut is None and is_matrix(step) and all(isinstance(one, Track) for one in between):
            between = [replace(one) for one in between if isinstance(one, Track)]  # each is its own
            cut, before = k, between
        between = walk.through(step, between, where)
    if not any(isinstance(one, Blend) for one in between):
        tracks = tuple(one for one in between if isinstance(one, Track))
        return _Walked(steps, tracks, tuple(range(len(tracks))))
    if cut is not None:
        tracks = tuple(one for one in before if isinstance(one, Track))
        return _Walked(steps[:cut], tracks, tuple(range(len(tracks))), mix_of(between, tracks))
    own = {id(one): k for k, one in enumerate(between) if isinstance(one, Track)}
    parts = {id(p): p for one in between for p in ([one] if isinstance(one, Track) else one.parts)}
    places = tuple(own.get(key, -1) for key in parts)
    inside = next((t for t, at in zip(parts.values(), places, strict=True) if at < 0 and t.coded), None)
    if inside is not None:
        got = f"labels of {walk.names[inside.raw]!r} in a matrix inside a ColumnTransformer"
        raise refuse("model", got, "the matrix as a step behind it")
    return _Walked(steps, tuple(parts.values()), places, mix_of(between, tuple(parts.values())))


def _labels(known: list[object], column: Any, own: Sequence[Track]) -> list[object]:
    """The labels of a raw column: those that encoders know, in their order, then others of X."""
    held = [plain(label) for label in column.dropna().unique()]
    truth = [v for v in held if isinstance(v, bool)]  # an encoder has category columns' as 0.0, 1.0
    labels = [next((label for label in truth if label == own_label), own_label) for own_label in known]
    add_labels(labels, iter(held))
    filled, imputed = _imputed(own)
    add_labels(labels, iter([] if filled is None else [filled]))
    missing = first_gaps(column[column.isna()].tolist())
    add_labels(labels, (cell for cell in missing if gap(cell) not in imputed))
    return labels


def _takes_others(chains: Sequence[_Walked], frame: Any, raw: int, known: list[object]) -> bool:
    """Whether the encoders of a column of texts make numbers of a text that they do not know."""
    if not all(isinstance(label, str) for label in known):
        return False
    row = frame.head(1).copy()
    row[frame.columns[raw]] = [_unknown(known)]
    try:
        made = [run(own.steps, row)[0] for own in chains]
    except RecourseError:
        return False
    reached = [
        values[0, at]
        for own, values in zip(chains, made, strict=True)
        for track, at in zip(own.tracks, own.places, strict=True)
        if track.raw == raw
    ]
    return bool(np.isfinite(reached).all())


def _unknown(known: Sequence[object]) -> str:
    """A text that is none of the labels."""
    text = str(OTHER)
    while text in known:
        text += "'"
    return text


def run(steps: Sequence[tuple[str, Any]], frame: Any) -> tuple[NDArray[np.float64], bool]:
    """The steps' output for rows of X as a dense array, and whether the output was sparse.

    Raises
    ------
    Unsupported
        A step raises an error.
    """
    z = frame if not steps or hasattr(steps[0][1], "feature_names_in_") else frame.to_numpy()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _, step in steps:
                if step is not None and not isinstance(step, str):
                    z = step.transform(z)
            sparse = hasattr(z, "toarray")
            return np.asarray(z.toarray() if sparse else z, dtype=np.float64), sparse
    except RecourseError:
        raise
    except Exception as error:
        raise refuse(
            "model", f"{type(error).__name__} on X: {error}", "the X that the model was fitted on"
        ) from error


def _tables(
    walked: _Walked, frame: Any, labels: dict[int, list[object]]
) -> tuple[dict[int, NDArray[np.float64]], bool]:
    """:attr:`tables` and :attr:`sparse`, from the steps' output for rows that hold every label once."""
    import pandas as pd

    count = max((len(known) for known in labels.values()), default=1)
    probe = frame.iloc[np.zeros(count, dtype=int)].reset_index(drop=True)
    for raw, known in labels.items():
        cycled = [known[k % len(known)] for k in range(count)]
        cycled = [_unknown(known) if label is OTHER else label for label in cycled]
        dtype = frame.dtypes.iloc[raw]
        try:
            column = pd.Series(cycled, dtype=object if str(dtype) == "category" else dtype)
        except (TypeError, ValueError):
            column = pd.Series(cycled, dtype=object)
        probe[frame.columns[raw]] = column
    values, sparse = run(walked.steps, probe)
    made = len(walked.tracks) if walked.mix is None or -1 not in walked.places else len(walked.mix.weights)
    if values.shape[1] != made:
        raise refuse("model", f"{values.shape[1]} columns before the classifier", f"{made}")
    pairs = list(zip(walked.tracks, walked.places, strict=True))
    return {
        raw: values[: len(known), [at for t, at in pairs if t.raw == raw]] for raw, known in labels.items()
    }, sparse and walked.mix is None


def _imputed(tracks: Sequence[Track]) -> tuple[object | None, frozenset[str]]:
    """The raw value that replaces a missing one in all tracks of a raw column, and the missing values that it
    replaces; None if there is none."""
    first = tracks[0]
    if any(t.filled is None or t.filled != first.filled or t.gaps != first.gaps for t in tracks):
        return None, frozenset()
    return first.filled, first.gaps


def _check(walked: _Walked, frame: Any, preprocessing: Preprocessing) -> None:
    """Compare the tracks' operations with the steps' output, bit for bit, on rows of X.

    Raises
    ------
    Unsupported
        They differ.
    """
    at = np.unique(np.linspace(0, len(frame) - 1, min(_ROWS, len(frame))).astype(int))
    values, _ = run(walked.steps, frame.iloc[at])
    for track, k in zip(preprocessing.tracks, walked.places, strict=True):
        if track.raw in preprocessing.labels or k < 0:
            continue
        raw = preprocessing.numbers[track.raw][at]
        made = ~np.isnan(raw) | all(o.kind != "known" for o in track.operations)  # not of other columns
        if not np.array_equal(apply(track.operations, raw)[made], values[made, k], equal_nan=True):
            got = (
                f"column {preprocessing.names[track.raw]!r} computed otherwise than the steps' attributes say"
            )
            raise refuse("model", got, "the fitted transformers of a supported scikit-learn on dense columns")


def _numbers(column: Any, name: object) -> NDArray[np.float64]:
    dtype = column.dtype
    if dtype in (np.float16, np.longdouble) or dtype.kind in "cmM":  # computed in that precision throughout
        raise refuse(f"column {name!r}", f"numbers of {dtype}", "float32, float64 or integers")
    try:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError) as error:
        shown = next((v for v in column.dropna().unique() if not isinstance(v, int | float)), column.iloc[0])
        raise refuse(
            f"column {name!r}", f"{shown!r} where the model takes a number", "an encoder before it"
        ) from error


def _known_names(model: Any) -> list[object] | None:
    """The column names that a model was fitted with; None if it was fitted without."""
    try:
        names = getattr(model, "feature_names_in_", None)
    except Exception:
        names = None
    if names is not None:
        return [plain(name) for name in names]
    named = getattr(
        model, "feature_names_", None
    )  # CatBoost's, which writes '0', '1', ... where there were none
    if named is not None and hasattr(model, "calc_leaf_indexes"):
        return None if list(named) == [str(k) for k in range(len(named))] else list(named)
    booster = getattr(model, "feature_names", None)
    if booster is not None and hasattr(model, "save_raw"):
        return list(booster)
    own = getattr(model, "feature_name", None)  # LightGBM's Booster
    if callable(own) and hasattr(model, "dump_model"):
        given = list(own())
        return None if given == [f"Column_{k}" for k in range(len(given))] else given
    return None


def _count(model: Any) -> int | None:
    try:
        count = getattr(model, "n_features_in_", None)
        if count is None and hasattr(model, "num_features"):
            count = model.num_features()
        elif count is None and callable(getattr(model, "num_feature", None)):
            count = model.num_feature()
    except Exception:
        return None
    return None if count is None else int(count)

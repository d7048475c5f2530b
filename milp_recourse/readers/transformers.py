"""Follow raw columns through fitted transformers: which raw column each output column is made of, and how."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from milp_recourse.readers.blends import Blend, blended, is_matrix, no_blends
from milp_recourse.readers.classes import plain
from milp_recourse.readers.gaps import gap, imputed_gaps
from milp_recourse.readers.operations import Operation, apply, stand_in
from milp_recourse.readers.overrides import refuse_overrides
from milp_recourse.readers.refusal import OR_ASK, refuse
from milp_recourse.readers.rising import is_function, rising
from milp_recourse.readers.several_columns import functions_of, is_declared, makes_several
from milp_recourse.readers.track import Track

ALLOWED = (
    "Pipeline, ColumnTransformer, FeatureUnion, StandardScaler, MinMaxScaler, RobustScaler, MaxAbsScaler, "
    "OneHotEncoder, OrdinalEncoder, TargetEncoder, imputers, feature selection, functions and bins of "
    "columns (docs/models.md has all), a transformer that says by piecewise() what it computes, "
    f"{OR_ASK}"
)


Between = Track | Blend
"""A column between two steps."""


@dataclass
class Walk:
    """Follows tracks from step to step, and collects the labels that encoders know.

    Attributes
    ----------
    names
        Names of the raw columns, for messages.
    labels
        For each raw column that an encoder treats as labels, the labels that it knows, in its order.
    sparse
        Whether the matrix is sparse at this point. Scalers multiply a sparse matrix by reciprocals.
    numbers
        The numbers of X in a raw column, which says where a function has to be known.
    """

    names: Sequence[object]
    labels: dict[int, list[object]] = field(default_factory=dict)
    sparse: bool = False
    numbers: Callable[[int], np.ndarray] = lambda raw: np.zeros(0)

    def through(self, step: Any, tracks: list[Between], where: str) -> list[Between]:
        """The tracks after a fitted step.

        Raises
        ------
        Unsupported
            The step is of a kind or has an option that cannot be read, or takes another number of columns.
        """
        if hasattr(step, "follow"):  # a tensor of an ONNX graph
            return list(step.follow(self, tracks, where))
        from sklearn import compose, feature_selection, pipeline
        from sklearn.preprocessing import FunctionTransformer

        if step is None or (isinstance(step, str) and step == "passthrough"):
            return tracks
        selects = isinstance(step, feature_selection.SelectorMixin)
        asked = ("get_support", "_get_support_mask") if selects else ()
        if not is_declared(step):
            refuse_overrides(step, where, "sklearn", asked, uses=("transform",))
        if isinstance(step, pipeline.Pipeline):
            for name, inner in step.steps:
                tracks = self.through(inner, tracks, f"{where} step {name!r}")
            return tracks
        if isinstance(step, compose.ColumnTransformer):
            return self._by_columns(step, tracks, where)
        if isinstance(step, pipeline.FeatureUnion):
            return self._side_by_side(step, tracks, where)
        if type(step) is FunctionTransformer and (step.func is None or _only_checks(step)):
            return tracks
        return self._columns(step, tracks, where, selects)

    def _columns(self, step: Any, tracks: list[Between], where: str, selects: bool) -> list[Between]:
        """The tracks after a step that takes all columns that reach it."""
        if selects:
            self._fitted(step, tracks, where)
            return [t for t, kept in zip(tracks, step.get_support(), strict=True) if kept]
        if is_matrix(step):
            self._fitted(step, tracks, where)
            self.sparse = False
            return [*blended(step, tracks, where)]
        scale = self._scalers().get(type(step))
        if scale is not None:
            self._fitted(step, tracks, where)
            return self._scaled(scale(step, len(tracks)), tracks, where)
        follow = self._followers().get(type(step))
        if follow is None and not (is_function(step) or makes_several(step)):
            raise refuse(where, type(step).__name__, ALLOWED)
        plain_tracks = no_blends(tracks, step, where)
        if follow is not None:
            self._fitted(step, tracks, where)
            return [*follow(step, plain_tracks, where)]
        read = self._function if is_function(step) else self._several
        return [*read(step, plain_tracks, where)]

    def _followers(self) -> dict[type, Callable[[Any, list[Track], str], list[Track]]]:
        from sklearn import impute, preprocessing

        return {
            preprocessing.OneHotEncoder: self._encode,
            preprocessing.OrdinalEncoder: self._encode,
            preprocessing.TargetEncoder: self._encode,
            impute.SimpleImputer: self._impute,
            impute.KNNImputer: self._impute_from_others,
            **self._iterative(),
        }

    @staticmethod
    def _scalers() -> dict[type, Callable[[Any, int], list[list[Operation]]]]:
        from sklearn import preprocessing

        return {
            preprocessing.StandardScaler: _standard,
            preprocessing.MinMaxScaler: _minmax,
            preprocessing.RobustScaler: _robust,
            preprocessing.MaxAbsScaler: _maxabs,
        }

    def _iterative(self) -> dict[type, Callable[[Any, list[Track], str], list[Track]]]:
        """scikit-learn's iterative imputer, which has to be enabled before it can be imported."""
        from sklearn import impute

        kind = vars(impute).get("IterativeImputer")
        return {} if kind is None else {kind: self._impute_from_others}

    def _scaled(self, added: list[list[Operation]], tracks: list[Between], where: str) -> list[Between]:
        if self.sparse:
            added = [[_reciprocal(o) for o in each] for each in added]
        return [
            t.after(each, where) if isinstance(t, Blend) else replace(t, operations=(*t.operations, *each))
            for t, each in zip(tracks, added, strict=True)
        ]

    def _function(self, step: Any, tracks: list[Track], where: str) -> list[Track]:
        self._fitted(step, tracks, where)
        if any(track.coded for track in tracks):
            raise refuse(where, f"{type(step).__name__} after an encoder", "one of columns of numbers alone")
        columns = [apply(track.operations, self.numbers(track.raw)) for track in tracks]
        pairs = zip(tracks, rising(step, columns, where), strict=True)
        return [replace(t, operations=(*t.operations, added)) for t, added in pairs]

    def _several(self, step: Any, tracks: list[Track], where: str) -> list[Track]:
        if not is_declared(step):
            self._fitted(step, tracks, where)
        if any(track.coded for track in tracks):
            raise refuse(where, f"{type(step).__name__} after an encoder", "one of columns of numbers alone")
        columns = [apply(track.operations, self.numbers(track.raw)) for track in tracks]
        made = functions_of(step, columns, where)
        self.sparse = getattr(step, "encode", "") == "onehot" or bool(getattr(step, "sparse_output", False))
        return [replace(tracks[k], operations=(*tracks[k].operations, one)) for k, one in made]

    def _fitted(self, step: Any, tracks: Sequence[Between], where: str) -> None:
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(step)
        if step.n_features_in_ != len(tracks):
            raise refuse(
                where, f"{len(tracks)} columns", f"{step.n_features_in_}, as many as it was fitted on"
            )

    def _by_columns(self, step: Any, tracks: list[Between], where: str) -> list[Between]:
        self._fitted(step, tracks, where)
        if step.transformer_weights:
            raise refuse(where, "transformer_weights", "none: scale the columns in a step of their own")
        output: list[Between] = []
        before = self.sparse
        for name, inner, _ in step.transformers_:
            self.sparse = before
            at = step.output_indices_.get(name, slice(0, 0))
            picked = [tracks[k] for k in step._transformer_to_input_indices[name]]
            if (isinstance(inner, str) and inner == "drop") or not picked:
                continue
            after = self.through(inner, picked, f"{where} {name!r}")
            if (at.start, at.stop) != (len(output), len(output) + len(after)):
                raise refuse(
                    f"{where} {name!r}", f"output columns {at.start} to {at.stop}", f"{len(after)} columns"
                )
            output += after
        self.sparse = bool(step.sparse_output_)
        return output

    def _side_by_side(self, step: Any, tracks: list[Between], where: str) -> list[Between]:
        if step.transformer_weights:
            raise refuse(where, "transformer_weights", "none: scale the columns in a step of their own")
        output: list[Between] = []
        before, after = self.sparse, False
        for name, inner in step.transformer_list:
            if isinstance(inner, str) and inner == "drop":
                continue
            self.sparse = before
            output += self.through(inner, tracks, f"{where} {name!r}")
            after = after or self.sparse
        self.sparse = after
        return output

    def _impute(self, step: Any, tracks: list[Track], where: str) -> list[Track]:
        value = step.missing_values
        imputes_missing = value is None or _missing(value)
        output = []
        for track, statistic in zip(tracks, step.statistics_, strict=True):
            filled = plain(statistic)
            number = isinstance(filled, int | float)
            if _missing(filled):
                name = f"{where} column {self.names[track.raw]!r}"
                raise refuse(name, "no value to impute", "a column that is not all missing")
            if number and not imputes_missing and not track.coded:
                raise refuse(
                    where, f"SimpleImputer(missing_values={value!r})", "missing_values=nan for numbers"
                )
            left = track.coded or not imputes_missing
            output.append(track if left else after_imputer(track, filled, imputed_gaps(value), where))
        return output + self._indicators(step, tracks, where)

    def _impute_from_others(self, step: Any, tracks: list[Track], where: str) -> list[Track]:
        """A number that is there stays; one that is missing is made of the others, so that nobody who misses
        one can be read."""
        if step.missing_values is not None and not _missing(step.missing_values):
            allowed = "missing_values=nan"
            raise refuse(where, f"{type(step).__name__}(missing_values={step.missing_values!r})", allowed)
        empty = getattr(step, "_mask_fit_X", None)
        kept = ~np.all(empty, axis=0) if empty is not None else np.isfinite(step.initial_imputer_.statistics_)
        if not np.all(kept) and not step.keep_empty_features:
            raise refuse(where, "a column that is all missing", "a table without it")
        whole = Operation("known", 0.0, gaps=False, name=type(step).__name__)
        same = [replace(track, operations=(*track.operations, whole)) for track in tracks]
        return same + self._indicators(step, tracks, where)

    def _indicators(self, step: Any, tracks: list[Track], where: str) -> list[Track]:
        """The columns that say which numbers were missing."""
        found = [tracks[int(k)] for k in step.indicator_.features_] if step.add_indicator else []
        if any(track.coded for track in found):
            raise refuse(where, "add_indicator=True after an encoder", "the imputer before the encoder")
        added = Operation("indicator", 0.0)
        return [replace(t, operations=(*t.operations, added), filled=None, gaps=frozenset()) for t in found]

    def _encode(self, step: Any, tracks: list[Track], where: str) -> list[Track]:
        counts = getattr(step, "_n_features_outs", None) or [1] * len(tracks)
        if getattr(step, "target_type_", "binary") == "multiclass":
            raise refuse(where, "TargetEncoder for several classes", "OneHotEncoder or OrdinalEncoder")
        output: list[Track] = []
        for track, categories, count in zip(tracks, step.categories_, counts, strict=True):
            if not track.coded:
                if any(o.kind != "impute" for o in track.operations):
                    kind = type(step).__name__
                    raise refuse(where, f"{kind} after a scaler", f"{kind} on the raw column")
                known = self.labels.setdefault(track.raw, [])
                add_labels(known, iter(categories))
            after = replace(track, coded=True)
            if getattr(step, "handle_unknown", "") == "error" and _key(track.filled) not in set(
                map(_key, categories)
            ):
                after = replace(
                    after, filled=None, gaps=frozenset()
                )  # the encoder refuses the imputer's value
            output += [replace(after) for _ in range(int(count))]  # each is its own
        self.sparse = bool(getattr(step, "sparse_output", False))
        return output


def after_imputer(track: Track, value: object, gaps: frozenset[str], where: str) -> Track:
    """The track after an imputer; after a second one it is the same, since no number is missing any more."""
    if track.filled is not None:
        return track
    if not isinstance(value, int | float):
        return replace(track, filled=value, gaps=gaps)
    if any(o.kind == "clip" for o in track.operations):
        raise refuse(
            where, "SimpleImputer after a scaler with clip=True", "SimpleImputer first, then the scaler"
        )
    filled = stand_in(track.operations, float(value)) if track.operations else value
    operations = (*track.operations, Operation("impute", float(value)))
    return replace(track, filled=filled, gaps=gaps, operations=operations)


def _missing(value: object) -> bool:
    """Whether a value is nan or pandas' NA."""
    return type(value).__name__ == "NAType" or (isinstance(value, float) and math.isnan(value))


def _only_checks(step: Any) -> bool:
    """Whether a FunctionTransformer only applies scikit-learn's ``check_array``, without changing doubles.

    Its ``dtype`` must be missing or float64. Histogram boosting puts such a step before its numeric columns.
    """
    from sklearn.utils import check_array

    if getattr(step.func, "func", None) is not check_array or step.func.args:
        return False
    dtype = {**step.func.keywords, **(step.kw_args or {})}.get("dtype")
    kinds = dtype if isinstance(dtype, list | tuple) else [dtype]
    return all(kind in (None, "numeric") or np.dtype(kind) == np.float64 for kind in kinds)


def add_labels(known: list[object], more: Iterator[object]) -> None:
    """Append the labels that are not among those known."""
    keys = set(map(_key, known))
    for label in map(plain, more):
        if _key(label) not in keys:
            keys.add(_key(label))
            known.append(label)


def _key(label: object) -> tuple[bool, object]:
    """What two labels have in common if they are the same one: they are equal, or missing alike."""
    missing = label is None or _missing(label)
    return missing, gap(label) if missing else label


def _reciprocal(operation: Operation) -> Operation:
    """Multiplication by the reciprocal in place of a division, as scalers compute on sparse matrices."""
    return Operation("multiply", 1.0 / operation.a) if operation.kind == "divide" else operation


def _standard(step: Any, count: int) -> list[list[Operation]]:
    mean = step.mean_ if step.with_mean else None
    return _shift_and_divide(mean, step.scale_ if step.with_std else None, count)


def _robust(step: Any, count: int) -> list[list[Operation]]:
    center = step.center_ if step.with_centering else None
    return _shift_and_divide(center, step.scale_ if step.with_scaling else None, count)


def _maxabs(step: Any, count: int) -> list[list[Operation]]:
    divided = _shift_and_divide(None, step.scale_, count)
    return [[*o, Operation("clip", -1.0, 1.0)] for o in divided] if getattr(step, "clip", False) else divided


def _minmax(step: Any, count: int) -> list[list[Operation]]:
    low, high = (float(end) for end in step.feature_range)
    ends = [Operation("clip", low, high)] if step.clip else []
    pairs = zip(step.scale_.tolist(), step.min_.tolist(), strict=True)
    return [[Operation("multiply", scale), Operation("add", shift), *ends] for scale, shift in pairs]


def _shift_and_divide(shift: Any, scale: Any, count: int) -> list[list[Operation]]:
    operations: list[list[Operation]] = [[] for _ in range(count)]
    for k in range(count):
        if shift is not None:
            operations[k].append(Operation("add", -float(shift[k])))
        if scale is not None:
            operations[k].append(Operation("divide", float(scale[k])))
    return operations

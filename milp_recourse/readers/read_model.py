"""Read a fitted classifier or a whole Pipeline as a classifier of its DataFrame's raw columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from milp_recourse.problem.features import Encoding
from milp_recourse.problem.instance import Acceptance
from milp_recourse.problem.log_sum_exp import excess
from milp_recourse.problem.network import DType
from milp_recourse.readers.categories import has_own_categories, native_labels
from milp_recourse.readers.classes import Target, choose_logit, choose_target, plain
from milp_recourse.readers.column import Column, Reading
from milp_recourse.readers.confidence import (
    at_confidence,
    check_confidence,
    choose_odds,
    cutoff_at,
    refuse_boosting,
)
from milp_recourse.readers.cutoff import Cutoff, inner, is_cutoff, is_frozen, read_cutoff
from milp_recourse.readers.from_lightgbm import class_count as lightgbm_classes
from milp_recourse.readers.from_lightgbm import is_lightgbm, lightgbm_decision
from milp_recourse.readers.from_onnx import append_onnx
from milp_recourse.readers.from_sklearn_trees import boosts, is_sklearn_trees, sklearn_trees_decision
from milp_recourse.readers.from_torch import append_torch
from milp_recourse.readers.from_xgboost import class_count as xgboost_classes
from milp_recourse.readers.from_xgboost import is_xgboost, xgboost_decision
from milp_recourse.readers.layers import UNIT, Layers
from milp_recourse.readers.linear import is_linear, logit_from, read_linear
from milp_recourse.readers.margins import Arithmetic, Entry, margins_of
from milp_recourse.readers.operations import apply
from milp_recourse.readers.overrides import refuse_overrides
from milp_recourse.readers.raw_trees import on_raw_columns
from milp_recourse.readers.refusal import not_fitted, refuse, require
from milp_recourse.readers.steps_before import Preprocessing, model_columns, read_preprocessing
from milp_recourse.readers.transformers import Track
from milp_recourse.readers.tree_parts import TreeDecision

_ALLOWED = (
    "a linear classifier, MLPClassifier, or trees of scikit-learn, XGBoost or LightGBM, alone or in a "
    "Pipeline, a search or a classifier with a threshold; a torch module; an ONNX model"
)


def read_model(
    model: Any, X: Any, desired: object = None, confidence: float | None = None, margin: bool = False
) -> Reading:
    """Read a fitted model as a classifier of X's raw columns.

    Trees take every branch as deployed, bit for bit. Scalers and encoders before a linear model or a network
    are folded into its first layer, which rounds. :func:`rounding_margin` covers this together with the
    model's own rounding. Numbers of X are taken as float64.

    Parameters
    ----------
    model
        A classifier, a scikit-learn Pipeline or a search's result that ends in one, a torch module, or an
        ONNX model or file.
    X
        The DataFrame it was fitted on. Columns are matched by name if the model knows names.
    desired
        A class, or ``{"not": class}``; None for the second of two classes.
    confidence
        The least probability of the desired class; None: the class that is predicted.
    margin
        Whether a margin will be asked for: then the score of a single tree is its leaf's probability.

    Returns
    -------
    Reading
        Columns, classifier and the model's own decision.

    Raises
    ------
    Unsupported
        The model, or a step of it, cannot be read; the message says what to do.
    BadInput
        X is no DataFrame with rows and columns, has a column twice or lacks one that the model names; the
        model has no such class, or has more than two and ``desired`` is None.
    """
    if isinstance(model, str | PathLike) and not Path(model).is_file():
        raise refuse("model", f"{str(model)!r}, which is no file", "a fitted classifier, or an ONNX file")
    steps, final, cutoff = _unwrap(model, "model")
    names = model_columns(model, X)
    graph = None if steps or cutoff else _graph(final)
    if graph is not None:
        if confidence is not None:
            got = f"{type(final).__name__}, which has no predict_proba"
            raise refuse("confidence", got, "a classifier with predict_proba, or margin, of the logit")
        return _read_graph(graph, final, read_preprocessing([], names, X), X, desired)
    by_xgboost = is_xgboost(final)
    if by_xgboost or is_lightgbm(final):
        decide = xgboost_decision if by_xgboost else lightgbm_decision
        count = xgboost_classes if by_xgboost else lightgbm_classes
        classes = _classes(final, count)
        target = choose_target(desired, classes)
        check_confidence(confidence, final, target, classes)
        if confidence is not None and len(classes) > 2:
            raise refuse_boosting(type(final).__name__, len(classes))
        decision = at_confidence(partial(decide, final, target), cutoff, confidence, target)
        if steps and has_own_categories(final):
            raise refuse(
                "model",
                f"{type(final).__name__} on pandas categories behind a transformer",
                "categories without a transformer, or labels behind OneHotEncoder or OrdinalEncoder",
            )
        native = None if steps else native_labels(final, decision, names, X)
        preprocessing = read_preprocessing(steps, names, X, native)
        if preprocessing.sparse and by_xgboost:
            raise refuse(
                "model",
                "sparse columns before XGBoost, which takes their zeros as missing",
                "OneHotEncoder(sparse_output=False) and ColumnTransformer(sparse_threshold=0), and fit again",
            )
        return _trees(decision, preprocessing, X, classes, target)
    require("sklearn", "read_model", "sklearn")
    from sklearn.exceptions import NotFittedError

    trees = is_sklearn_trees(final)
    if not trees and not is_linear(final):
        raise refuse("model", type(final).__name__, _ALLOWED)
    try:
        classes = _classes(final)
        target = choose_target(desired, classes)
        check_confidence(confidence, final, target, classes)
        if not trees:
            preprocessing = read_preprocessing(steps, names, X)
            return _network(final, preprocessing, X, classes, target, cutoff, confidence)
        if confidence is not None and len(classes) > 2 and boosts(final):
            raise refuse_boosting(type(final).__name__, len(classes))
        own = getattr(final, "_preprocessor", None)  # of histogram boosting on categories
        preprocessing = read_preprocessing(steps if own is None else [*steps, ("model", own)], names, X)
        decide_own = partial(sklearn_trees_decision, final, target, preprocessing.sparse, margin=margin)
        decision = at_confidence(decide_own, cutoff, confidence, target)
        return _trees(decision, preprocessing, X, classes, target)
    except NotFittedError as error:
        raise not_fitted("model") from error


def rounding_margin(reading: Reading, lower: ArrayLike, upper: ArrayLike) -> float:
    """:func:`rounding_margins` of one box, one finite number per input column of the classifier."""
    return float(rounding_margins(reading, np.atleast_1d(lower)[None], np.atleast_1d(upper)[None])[0])


def rounding_margins(reading: Reading, lower: ArrayLike, upper: ArrayLike) -> NDArray[np.float64]:
    r"""For each of several boxes, a margin m: what the network accepts by m, the model itself accepts.

    For every row x of a box whose exact logit is :math:`h(x) \ge \text{threshold} + m`, the model itself
    predicts the desired class. Let z be the exact value of an affine map of n terms, :math:`\hat z` the one
    that the model computes in any order of summation, and u the unit roundoff. Then

    .. math:: |\hat z - z| \le |W| e + \gamma_{n+8} (|W| (a + e) + |b|), \quad \gamma_k = \frac{k u}{1 - k u},

    where e bounds the error of the map's inputs and a their size, from intervals over the box. Maps that are
    multiplied into one layer of the network differ from it by :math:`\gamma` times the product of their
    absolute values. A ReLU enlarges no difference, and removes it if its input is below 0 on the whole box.
    Added to this are the size of logits for which the closing sigmoid or softmax ties the classes, and the
    rounding of raw numbers to float32 by models that do so.

    Parameters
    ----------
    reading
        The result of :func:`read_model`.
    lower, upper
        The boxes, (n, input columns of the classifier), finite.

    Returns
    -------
    NDArray
        In logit units, above 0, (n,); 0 for trees, which are read bit for bit; infinite where no bound is
        finite. No box's margin depends on the others.

    References
    ----------
    Higham (2002), Accuracy and Stability of Numerical Algorithms, section 3.1,
    https://doi.org/10.1137/1.9780898718027
    """
    if reading.arithmetic is None:
        return np.zeros(len(np.asarray(lower)))
    return margins_of(reading.arithmetic, lower, upper)


def _graph(final: Any) -> Callable[[Any, Layers], DType] | None:
    """The function that appends a torch module or an ONNX model to layers; None for anything else."""
    roots = {kind.__module__.split(".")[0] for kind in type(final).__mro__}
    if "torch" in roots:
        return append_torch
    return append_onnx if "onnx" in roots or isinstance(final, str | PathLike) else None


def _read_graph(
    append: Callable[[Any, Layers], DType], final: Any, preprocessing: Preprocessing, X: Any, desired: object
) -> Reading:
    columns, entries, layers = _entry(preprocessing, list(X.columns))
    dtype = append(final, layers)
    outputs = layers.outputs or 0
    classes = tuple(range(max(outputs, 2)))
    target = choose_target(desired, classes)
    choose_logit(layers, target, len(classes))
    unit = UNIT[dtype]
    segments = tuple(tuple(segment) for segment in layers.segments)
    arithmetic = Arithmetic(entries, segments, layers.slack, unit if outputs > 1 else 0.0, unit)
    return Reading(columns, layers.network(dtype), Acceptance(), classes, target.words, arithmetic)


def _unwrap(model: Any, where: str) -> tuple[list[tuple[str, Any]], Any, Cutoff | None]:
    """The transformers in order, the classifier, and the threshold that a wrapper puts on it, if any.

    Pipelines, searches and wrappers are replaced by what they contain.
    """
    if is_frozen(model):
        refuse_overrides(model, where, "sklearn")
        return _unwrap(inner(model, where), where)
    found, piped = hasattr(model, "best_estimator_"), hasattr(model, "steps")
    if found or piped or is_cutoff(model):
        refuse_overrides(model, where, "sklearn")
        theirs = [kind for kind in type(model).__mro__ if kind.__module__.startswith("sklearn.")]
        if not any("predict" in vars(kind) for kind in theirs):
            raise refuse(where, type(model).__name__, _ALLOWED)
    if found:
        return _unwrap(model.best_estimator_, where)
    if is_cutoff(model):
        steps, final, more = _unwrap(inner(model, where), where)
        if more is not None:
            raise refuse(where, "a threshold on a threshold", "one")
        return steps, final, read_cutoff(model, where)
    if type(model).__name__.endswith("SearchCV"):
        raise refuse(
            where, f"{type(model).__name__} without best_estimator_", "a fitted search with refit=True"
        )
    if not piped:
        return [], model, None
    *before, (name, last) = model.steps
    if last is None or last == "passthrough":
        raise refuse(where, "a Pipeline without a classifier", "a classifier as the last step")
    after, final, cutoff = _unwrap(last, f"step {name!r}")
    steps = [(f"step {n!r}", s) for n, s in before if s is not None and s != "passthrough"]
    return steps + after, final, cutoff


def _classes(final: Any, count: Callable[[Any], int] | None = None) -> tuple[object, ...]:
    from_model = getattr(final, "classes_", None)
    if from_model is None:
        if count is not None and hasattr(final, "fit") and not hasattr(type(final), "predict_proba"):
            raise refuse("model", type(final).__name__, _ALLOWED)
        if count is None or hasattr(final, "fit"):
            raise not_fitted("model")
        return tuple(range(count(final)))
    if len(from_model) and isinstance(from_model[0], list | tuple | np.ndarray):
        raise refuse("model", f"{len(from_model)} outputs", "one output")
    return tuple(plain(c) for c in from_model)


def _trees(
    decision: TreeDecision, preprocessing: Preprocessing, X: Any, classes: tuple[object, ...], target: Target
) -> Reading:
    columns, ensemble = on_raw_columns(decision, preprocessing, list(X.columns))
    reading = Reading(columns, ensemble, decision.accept, classes, target.words)
    return replace(reading, measure=decision.measure, unit=decision.unit)


def _network(
    final: Any,
    preprocessing: Preprocessing,
    X: Any,
    classes: tuple[object, ...],
    target: Target,
    cutoff: Cutoff | None,
    confidence: float | None,
) -> Reading:
    columns, entries, layers = _entry(preprocessing, list(X.columns))
    softmax, within = read_linear(final, layers, "model"), 0.0
    sure = None if confidence is None else cutoff_at(confidence, target)
    least = []
    for rule in (cutoff, sure if len(classes) == 2 else None):
        if rule is not None:
            logit, slack = logit_from(final, rule, "model")
            layers.slack += slack
            least.append(logit if target.index == 1 else 0.0 - logit)
    if sure is not None and cutoff is None:  # the predicted class is wanted, too
        least.append(0.0)
    if confidence is not None and len(classes) > 2:
        least = [choose_odds(layers, target, final, len(classes), confidence)]
        # a probability that is off by d, relatively, is at odds that are off by d / (1 - p)
        unit = max(step.unit for segment in layers.segments for step in segment)
        softmax = 2.0 * unit / (1.0 - confidence)
        within = excess(len(classes) - 1)
    else:
        choose_logit(layers, target, len(classes))
    accept = Acceptance(max(least, default=0.0))
    narrow = UNIT["float32"] if preprocessing.narrow else 0.0
    segments = tuple(tuple(segment) for segment in layers.segments)
    arithmetic = Arithmetic(entries, segments, layers.slack, softmax, narrow)
    network = layers.network("float64")
    return Reading(columns, network, accept, classes, target.words, arithmetic, within=within)


def _entry(
    preprocessing: Preprocessing, order: Sequence[object]
) -> tuple[tuple[Column, ...], tuple[Entry, ...], Layers]:
    """The columns of X that are used, their entries, and layers with the maps before the classifier."""
    columns: list[Column] = []
    starts: dict[int, int] = {}
    count = 0
    for raw in preprocessing.used(order):
        starts[raw] = count
        labels = preprocessing.labels.get(raw)
        kind: Encoding = "code" if labels is None else "one-hot"
        name, filled, gaps = preprocessing.names[raw], preprocessing.filled(raw), preprocessing.gaps(raw)
        columns.append(Column(name, labels, kind, None, filled, False, gaps))
        count += columns[-1].width
    entries: list[Entry] = []
    pick = np.zeros((len(preprocessing.tracks), count))
    next_column: dict[int, int] = {}  # of a raw column's table
    for k, track in enumerate(preprocessing.tracks):
        start, labels = starts[track.raw], preprocessing.labels.get(track.raw)
        if labels is None:
            entries.append(Entry(start, None, _apart(track)))
            pick[k, start] = 1.0
            continue
        values = preprocessing.tables[track.raw][:, next_column.setdefault(track.raw, 0)]
        next_column[track.raw] += 1
        if not np.isfinite(values).all():
            where = f"column {preprocessing.names[track.raw]!r}"
            raise refuse(where, "a label that becomes no number", "a number for it")
        entries.append(Entry(start, tuple(values.tolist())))
        pick[k, start : start + len(values)] = values
    layers = Layers(count)
    layers.affine(pick, np.zeros(len(pick)), "model")
    _scale(preprocessing, layers)
    return tuple(columns), tuple(entries), layers


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
    unit = UNIT["float32" if preprocessing.narrow else "float64"]
    chains = [
        [] if t.raw in preprocessing.labels else [o for o in t.operations if o.kind != "impute"]
        for t in preprocessing.tracks
    ]
    for depth in range(max((len(chain) for chain in chains), default=0)):
        factor, shift = np.ones(len(chains)), np.zeros(len(chains))
        for k, chain in enumerate(chains):
            if depth >= len(chain):
                continue
            o = chain[depth]
            if o.kind == "clip":
                raise refuse("model", "a scaler with clip=True before a network", "clip=False, and fit again")
            if o.kind == "add":
                shift[k] = o.a
            else:
                factor[k] = o.a if o.kind == "multiply" else 1.0 / o.a
        layers.rescale(factor, shift, "model", unit, np.abs(shift))

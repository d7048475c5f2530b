"""Read a fitted model or a whole Pipeline as a classifier of its DataFrame's raw columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from milp_recourse.problem.instance import Acceptance
from milp_recourse.readers.classes import choose_interval, choose_logit, choose_target
from milp_recourse.readers.column import Reading
from milp_recourse.readers.confidence import at_confidence
from milp_recourse.readers.entering import entry
from milp_recourse.readers.formulas import Formula, Wish, network_decision, tree_decision
from milp_recourse.readers.from_onnx import graph_of, is_onnx
from milp_recourse.readers.from_torch import append_torch, is_torch
from milp_recourse.readers.layers import UNIT
from milp_recourse.readers.margins import Arithmetic
from milp_recourse.readers.member import Member
from milp_recourse.readers.members import read_member
from milp_recourse.readers.places import Chains, Place
from milp_recourse.readers.raw_trees import on_raw_columns
from milp_recourse.readers.refusal import refuse
from milp_recourse.readers.stepped import as_trees, is_stepped
from milp_recourse.readers.steps_before import Preprocessing, check_frame, model_columns, read_preprocessing


def read_model(
    model: Any,
    X: Any,
    desired: object = None,
    confidence: float | None = None,
    margin: bool = False,
    open_to: Collection[object] = (),
) -> Reading:
    """Read a fitted model as a classifier of X's raw columns.

    Trees take every branch as deployed, bit for bit. Scalers and encoders before a linear model or a network
    are folded into its first layer, which rounds. :func:`milp_recourse.readers.rounding_margin` covers this
    together with the model's own rounding. Numbers of X are taken as float64.

    Parameters
    ----------
    model
        A classifier, a regression or a detector of outliers, a scikit-learn Pipeline or a search's result
        that ends in one, a torch module, or an ONNX model or file (docs/models.md lists them).
    X
        The DataFrame it was fitted on. Columns are matched by name if the model knows names.
    desired
        A class, or ``{"not": class}``; None for the second of two classes. For a regression (low, high), None
        for an open end.
    confidence
        The least probability of the desired class; None: the class that is predicted.
    margin
        Whether a margin will be asked for: then the score of a single tree is its leaf's probability.
    open_to
        The columns whose labels shall include :data:`milp_recourse.readers.classes.OTHER` for all that X does
        not hold, if their encoders take these.

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
        model has no such class, or has more than two and ``desired`` is None; or ``desired`` is no interval
        and the model is a regression.
    """
    if isinstance(model, str | PathLike) and not Path(model).is_file():
        raise refuse("model", f"{str(model)!r}, which is no file", "a fitted classifier, or an ONNX file")
    check_frame(X)
    graph = graph_of(model, X) if is_onnx(model) else None
    names = graph.inputs.names if graph is not None else model_columns(model, X)
    if confidence is not None and not hasattr(model, "predict_proba"):
        got = f"{type(model).__name__}, which has no predict_proba"
        raise refuse("confidence", got, "a classifier with predict_proba, or margin, of its score")
    if is_torch(model):
        return _read_torch(model, read_preprocessing([()], names, X), X, desired)
    chains = Chains(names, X, open_to)
    place = Place(chains, "model")
    member = read_member(model, place) if graph is None else graph.member(place, desired)
    if member.classes:
        wish: Wish = choose_target(desired, member.classes)
    else:
        wish = choose_interval(desired, member.name)
    if margin:
        member = member.on_probabilities()
    if confidence is not None:
        member = at_confidence(member, confidence, wish)
    formula = member.rule(wish)
    if not member.of_trees:
        preprocessing = chains.preprocessing()
        if is_stepped(member, preprocessing):
            return _scorecard(formula, member, preprocessing, list(X.columns), wish)
        return _network(formula, member, preprocessing, list(X.columns), wish)
    decision = tree_decision(formula, member.scores, chains.width, "model")
    columns, ensemble = on_raw_columns(decision, chains.preprocessing(), list(X.columns))
    own = (columns, ensemble, decision.accept, member.classes, wish)
    return Reading(*own, near=decision.near, measure=member.measure, unit=decision.unit)


def _read_torch(final: Any, preprocessing: Preprocessing, X: Any, desired: object) -> Reading:
    columns, entries, layers = entry(preprocessing, list(X.columns))
    dtype = append_torch(final, layers)
    outputs = layers.outputs or 0
    classes = tuple(range(max(outputs, 2)))
    target = choose_target(desired, classes)
    choose_logit(layers, target, len(classes))
    unit = UNIT[dtype]
    segments = tuple(tuple(segment) for segment in layers.segments)
    rest = tuple(layers.bends), layers.slack, unit if outputs > 1 else 0.0, unit
    arithmetic = Arithmetic(entries, segments, *rest)
    return Reading(columns, layers.network(dtype), Acceptance(), classes, target, arithmetic)


def _scorecard(
    formula: Formula, member: Member, preprocessing: Preprocessing, order: Sequence[object], wish: Wish
) -> Reading:
    columns, member = as_trees(member, preprocessing, order)
    decision = tree_decision(formula, member.scores, len(columns), "model")
    own = (columns, decision.ensemble, decision.accept, member.classes, wish)
    return Reading(*own, near=decision.near, measure=member.measure, unit=decision.unit)


def _network(
    formula: Formula, member: Member, preprocessing: Preprocessing, order: Sequence[object], wish: Wish
) -> Reading:
    columns, entries, layers = entry(preprocessing, order)
    accept, softmax = network_decision(formula, member.scores, layers)
    narrow = UNIT["float32"] if preprocessing.narrow or preprocessing.rounds else 0.0
    segments = tuple(tuple(segment) for segment in layers.segments)
    arithmetic = Arithmetic(entries, segments, tuple(layers.bends), layers.slack, softmax, narrow)
    network = layers.network("float64")
    own = (columns, network, accept, member.classes, wish, arithmetic)
    return Reading(*own, near=member.near, measure=member.measure)

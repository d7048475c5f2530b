"""Features from JSON and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from milp_recourse.errors import BadInput, shown
from milp_recourse.formats.schema import FeatureModel
from milp_recourse.problem.features import Feature


def build_features(models: Sequence[FeatureModel]) -> tuple[Feature, ...]:
    """The features.

    Raises
    ------
    BadInput
        A name is used twice, or fields of a feature do not fit each other. The error names the path, e.g.
        ``features.3.bounds``.
    """
    seen: set[str] = set()
    for k, model in enumerate(models):
        if model.name in seen:
            raise BadInput(f"features.{k}.name", model.name, "each name once")
        seen.add(model.name)
    return tuple(_feature(model, f"features.{k}") for k, model in enumerate(models))


def features_to_list(features: Sequence[Feature]) -> list[dict[str, Any]]:
    """The inverse of :func:`build_features`, as JSON."""
    written = []
    for f in features:
        item: dict[str, Any] = {"name": f.name, "kind": f.kind, "actionable": f.actionable}
        if f.bounds is not None:
            item["bounds"] = list(f.bounds)
        if f.categories is not None:
            item |= {"categories": list(f.categories), "encoding": f.encoding}
        if f.table is not None:
            item["table"] = [list(row) for row in f.table]
        if f.domain is not None:
            item["domain"] = list(f.domain)
        if f.monotone is not None:
            item["monotone"] = f.monotone
        written.append(item)
    return written


def ordered(interval: Sequence[float] | None, path: str) -> tuple[float, float] | None:
    """An interval ``[lo, hi]`` as a pair, after a check that lo <= hi; None for None."""
    if interval is None:
        return None
    low, high = interval
    if low > high:
        raise BadInput(path, f"[{low!r}, {high!r}]", "[lo, hi] with lo <= hi")
    return low, high


def _feature(model: FeatureModel, path: str) -> Feature:
    labelled = model.kind in ("ordinal", "categorical")
    bounds = ordered(model.bounds, f"{path}.bounds")
    domain = ordered(model.domain, f"{path}.domain")
    if labelled:
        _check_labels(model, path)
    else:
        _check_numeric(model, path)
    default = "one-hot" if model.kind == "categorical" else "code"
    return Feature(
        name=model.name,
        kind=model.kind,
        actionable=model.actionable,
        bounds=bounds,
        categories=None if model.categories is None else tuple(model.categories),
        domain=domain,
        monotone=model.monotone,
        encoding=model.encoding or default,  # type: ignore[arg-type]
        table=None if model.table is None else tuple(map(tuple, model.table)),
    )


def _check_labels(model: FeatureModel, path: str) -> None:
    if model.categories is None:
        raise BadInput(f"{path}.categories", "nothing", f"a list of labels for {model.kind}")
    last = len(model.categories) - 1
    if model.bounds is not None and not all(0 <= k <= last and float(k).is_integer() for k in model.bounds):
        raise BadInput(
            f"{path}.bounds", shown(model.bounds), f"indices of labels, whole numbers from 0 to {last}"
        )
    seen: set[str] = set()
    for k, label in enumerate(model.categories):
        if label in seen:
            raise BadInput(f"{path}.categories.{k}", label, "each label once")
        seen.add(label)
    if model.kind == "categorical":
        for key in ("domain", "monotone"):
            if getattr(model, key) is not None:
                raise BadInput(f"{path}.{key}", shown(getattr(model, key)), "nothing: labels have no order")
    _check_table(model, len(model.categories), path)


def _check_table(model: FeatureModel, labels: int, path: str) -> None:
    """Check that there is a table exactly if the encoding is ``table``, with one row per label."""
    if (model.encoding == "table") != (model.table is not None):
        allowed = (
            f"one row of numbers per label, {labels}"
            if model.table is None
            else "nothing, unless encoding is table"
        )
        raise BadInput(f"{path}.table", "nothing" if model.table is None else shown(model.table), allowed)
    if model.table is None:
        return
    if len(model.table) != labels:
        raise BadInput(f"{path}.table", f"{len(model.table)} rows", f"{labels}, one per label")
    for k, row in enumerate(model.table):
        if len(row) != len(model.table[0]):
            raise BadInput(f"{path}.table.{k}", f"{len(row)} numbers", f"{len(model.table[0])}, as in row 0")


def _check_numeric(model: FeatureModel, path: str) -> None:
    if model.categories is not None:
        raise BadInput(f"{path}.categories", shown(model.categories), f"nothing: {model.kind} is numeric")
    if model.encoding not in (None, "code"):
        raise BadInput(f"{path}.encoding", model.encoding, f"code: {model.kind} is one column")
    if model.table is not None:
        raise BadInput(f"{path}.table", shown(model.table), f"nothing: {model.kind} has no labels")
    if model.actionable and model.bounds is None:
        raise BadInput(f"{path}.bounds", "nothing", "[lo, hi], needed because the feature is actionable")
    if model.kind == "binary":
        for key in ("bounds", "domain"):
            interval = getattr(model, key)
            if interval is not None and not (interval[0] >= 0 and interval[1] <= 1):
                raise BadInput(f"{path}.{key}", interval, "an interval within 0 and 1 for a binary feature")

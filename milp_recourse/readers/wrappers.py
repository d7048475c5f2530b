"""Pipelines, searches and wrappers: models that ask one other model, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from milp_recourse.readers.cutoff import inner, is_frozen
from milp_recourse.readers.overrides import refuse_overrides
from milp_recourse.readers.places import Place
from milp_recourse.readers.refusal import not_fitted, refuse

_ASKING = ("RANSACRegressor", "SelfTrainingClassifier")
"""scikit-learn's that ask their ``estimator_``."""


def contained(model: Any, place: Place, uses: Sequence[str], allowed: str) -> tuple[Any, Place] | None:
    """The model that another one asks, and its place; None if it is none of these.

    Steps of imbalanced-learn that sample rows act at the fit only.

    Parameters
    ----------
    uses
        The methods by which the model is asked.
    allowed
        What can be read, for a message.

    Raises
    ------
    Unsupported
        The model is not fitted, has no last step, or computes otherwise than its class.
    """
    found, piped = hasattr(model, "best_estimator_"), hasattr(model, "steps")
    if type(model).__name__.endswith("SearchCV") and not found:
        got = f"{type(model).__name__} without best_estimator_"
        raise refuse(place.where, got, "a fitted search with refit=True")
    selects, asks = _is_selection(model), _named(model, *_ASKING)
    if not (found or piped or selects or asks or is_frozen(model)):
        return None
    sampling = any(kind.__module__ == "imblearn.pipeline" for kind in type(model).__mro__)
    libraries = ("sklearn", "imblearn") if sampling else ("sklearn",)
    refuse_overrides(model, place.where, libraries, uses=uses)
    if not is_frozen(model) and not any("predict" in vars(k) for k in _theirs(model, libraries)):
        raise refuse(place.where, type(model).__name__, allowed)
    if found:
        return model.best_estimator_, place
    if is_frozen(model):
        return inner(model, place.where), place
    if not piped:
        if not hasattr(model, "estimator_"):
            raise not_fitted(place.where)
        return model.estimator_, place.after([("selection", model)] if selects else [], place.where)
    *before, (name, last) = model.steps
    if last is None or last == "passthrough":
        raise refuse(place.where, "a Pipeline without a classifier", "a classifier as the last step")
    steps = [(f"step {n!r}", s) for n, s in before if s is not None and s != "passthrough"]
    acting = [(n, s) for n, s in steps if not (sampling and hasattr(s, "fit_resample"))]
    return last, place.after(acting, f"step {name!r}")


def _theirs(model: Any, libraries: Sequence[str]) -> list[type]:
    return [kind for kind in type(model).__mro__ if kind.__module__.split(".")[0] in libraries]


def _named(model: Any, *names: str) -> bool:
    return any(
        kind.__module__.startswith("sklearn.") and kind.__name__ in names for kind in type(model).__mro__
    )


def _is_selection(model: Any) -> bool:
    """Whether a model selects columns before it asks the model inside: RFE and RFECV."""
    return _named(model, "RFE")

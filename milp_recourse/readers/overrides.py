"""Classes and objects that compute otherwise than the library class they are made from.

A reader takes the numbers that a model has learnt, and relies on the library's own methods to predict from
them. A subclass, or an object to which a method was assigned, may compute something else.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from milp_recourse.readers.refusal import refuse

_ASIDE = {
    "extra_repr",
    "fit",
    "fit_predict",
    "fit_transform",
    "get_feature_names_out",
    "get_params",
    "load_state_dict",
    "partial_fit",
    "reset_parameters",
    "score",
    "set_params",
    "state_dict",
    "train",
}
"""Methods that no prediction calls: they fit, configure, describe, evaluate, save or restore."""

_CALLED = {"__call__", "__getattr__", "__getattribute__", "__getitem__", "__iter__", "__len__"}
"""Of methods whose names begin with two underscores, those that a prediction may call."""


def refuse_overrides(model: Any, where: str, library: str, *asked: str) -> None:
    """Check that a model computes with the methods of the library that it is from.

    No method and no property of the library's classes may be replaced, in a subclass or in the object, other
    than those that no prediction calls. Classes of the library itself may replace each other's.

    Parameters
    ----------
    model
        A fitted model, a step of a pipeline, or a layer.
    where
        Where it is, for the message.
    library
        The library's top-level package.
    asked
        Methods that may be replaced because the reader calls them.

    Raises
    ------
    Unsupported
        A method or property is replaced.
    """
    kinds, held = type(model).__mro__, getattr(model, "__dict__", {})
    known = [kind for kind in kinds if kind.__module__.split(".")[0] in (library, "builtins")]
    names = {name for kind in kinds if kind not in known for name in vars(kind)} | set(held)
    for name in sorted(names - _ASIDE - set(asked)):
        if name.startswith("__") and name not in _CALLED:
            continue
        if name.startswith("set_") and name.endswith("_request"):  # scikit-learn's own, one per class
            continue
        theirs = next((vars(kind)[name] for kind in known if name in vars(kind)), None)
        if not (callable(theirs) or hasattr(theirs, "__get__")):
            continue
        assigned = name in held and not (hasattr(theirs, "__set__") or isinstance(theirs, cached_property))
        if assigned or next(kind for kind in kinds if name in vars(kind)) not in known:
            got = f"{type(model).__name__} with a {name} of its own"
            raise refuse(where, got, f"the {name} of {library}'s own class, which is what is read")

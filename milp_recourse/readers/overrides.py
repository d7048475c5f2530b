"""Classes and objects that compute otherwise than the library class they are made from.

A reader takes the numbers that a model has learnt, and relies on the library's own methods to predict from
them. A subclass, or an object to which a method was assigned, may compute something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from types import CodeType
from typing import Any

from milp_recourse.readers.refusal import refuse

_CALLED = {"__call__", "__getattr__", "__getattribute__", "__getitem__", "__iter__", "__len__"}
"""Of methods whose names begin with two underscores, those that a prediction may call."""


def refuse_overrides(
    model: Any,
    where: str,
    library: str | Sequence[str],
    asked: Sequence[str] = (),
    uses: Sequence[str] = ("predict",),
) -> None:
    """Check that a model computes with the methods of the library that it is from.

    Of the library's classes no method and no property may be replaced, in a subclass or in the object, that
    the methods in ``uses`` need. Which they need is read off the library's code: the names that it mentions,
    and those that their code mentions. Classes of the library itself may replace each other's.

    Parameters
    ----------
    model
        A fitted model, a step of a pipeline, or a layer.
    where
        Where it is, for the message.
    library
        The library's top-level package, or several.
    asked
        Methods that may be replaced because the reader calls them.
    uses
        The methods by which the model is asked.

    Raises
    ------
    Unsupported
        A method or property is replaced.
    """
    kinds, held = type(model).__mro__, getattr(model, "__dict__", {})
    libraries = (library,) if isinstance(library, str) else tuple(library)
    known = [kind for kind in kinds if kind.__module__.split(".")[0] in (*libraries, "builtins")]
    names = {name for kind in kinds if kind not in known for name in vars(kind)} | set(held)
    if not names:
        return
    needed = _needed(known, uses)
    for name in sorted(names - set(asked)):
        if name not in needed and name not in _CALLED:
            continue
        theirs = next((vars(kind)[name] for kind in known if name in vars(kind)), None)
        if not (callable(theirs) or hasattr(theirs, "__get__")):
            continue
        assigned = name in held and not (hasattr(theirs, "__set__") or isinstance(theirs, cached_property))
        if assigned or next(kind for kind in kinds if name in vars(kind)) not in known:
            got = f"{type(model).__name__} with a {name} of its own"
            raise refuse(where, got, f"the {name} of {libraries[0]}'s own class, which is what is read")


def _needed(kinds: Sequence[type], uses: Sequence[str]) -> set[str]:
    """The names in classes that the code of their methods mentions, then the code of these, and so on."""
    found: set[str] = set()
    left = list(uses)
    while left:
        name = left.pop()
        if name in found:
            continue
        found.add(name)
        for kind in kinds:
            for code in _codes(vars(kind).get(name)):
                left += [other for other in _mentioned(code) if any(other in vars(k) for k in kinds)]
    return found


def _codes(attribute: Any) -> Iterator[CodeType]:
    """The code of a function, and of those that a property or another descriptor holds."""
    if isinstance(attribute, property):
        inner = [attribute.fget]
    else:  # static methods, decorated functions, cached properties, scikit-learn's available_if
        names = ("__func__", "__wrapped__", "func", "fn", "check") if hasattr(attribute, "__get__") else ()
        inner = [getattr(attribute, name, None) for name in names]
    if isinstance(getattr(attribute, "__code__", None), CodeType):
        yield attribute.__code__
    for one in inner:
        if one is not attribute and one is not None:
            yield from _codes(one)


def _mentioned(code: CodeType) -> Iterator[str]:
    """The names and texts in a function's code and in the functions inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple):
            yield from (one for one in constant if isinstance(one, str))
        elif isinstance(constant, CodeType):
            yield from _mentioned(constant)

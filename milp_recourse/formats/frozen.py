"""Frozen types of :mod:`milp_recourse.problem` as files state them: read and written by one declaration, that
of their fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache, singledispatch
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pydantic import create_model

from milp_recourse.formats.validate import Known, Strict
from milp_recourse.problem.result import Status

Labels = Mapping[str, Sequence[str]] | None
"""Each feature's labels, where conditions are to show them; None: they show indices."""


def states(kind: type, names: Mapping[str, Any] | None = None, /, **own: Any) -> type[Strict]:
    """The model that states a frozen type by its fields, and builds it; :func:`as_json` writes it so, too.

    Parameters
    ----------
    names
        What names in the type's annotations stand for in files: ``{"Condition": StatedCondition}``.
    own
        What the annotations do not say: pydantic's Field, for another key or a default, or (annotation,
        Field or default). Further fields come first, a kind say.
    """
    hints = get_type_hints(kind, localns=names and dict(names), include_extras=True)
    stated = {name: given for name, given in own.items() if name not in hints}
    defaults = {field.name: ... if field.default is MISSING else field.default for field in fields(kind)}
    for name, default in defaults.items():
        hint, given = hints[name], own.get(name)
        if get_origin(hint) is tuple:
            hint = list[get_args(hint)[0]]  # type: ignore[misc]
        stated[name] = given if isinstance(given, tuple) else (hint, default if given is None else given)
    said = (kind.__doc__ or "").partition("\n\n")[0]
    model = create_model(f"{kind.__name__}Model", __base__=Strict, __doc__=said, **stated)

    def build(self: Strict, _: Known) -> Any:
        return kind(*[frozen(getattr(self, name)) for name in defaults])

    model.build = build  # type: ignore[attr-defined]
    as_json.register(kind, lambda value, labels=None: document(model, value, labels))
    return model


@singledispatch
def as_json(value: Any, labels: Labels = None) -> Any:
    """A value as JSON: tuples as lists, and frozen types by their keys."""
    return value


@as_json.register(tuple)
def _(value: tuple[Any, ...], labels: Labels = None) -> list[Any]:
    return [as_json(one, labels) for one in value]


@as_json.register(Mapping)
def _(value: Mapping[str, Any], labels: Labels = None) -> dict[str, Any]:
    return {key: as_json(one, labels) for key, one in value.items()}


@as_json.register(Status)
def _(value: Status, _: Labels = None) -> str:
    return str(value.value)


def document(model: type[Strict], source: object, labels: Labels = None, /, **own: Any) -> dict[str, Any]:
    """An answer, or a part of a problem, as JSON: the keys of a model, in its order.

    A value is what ``own`` gives for the field, or else the only word that the field may be, or else the
    attribute of ``source``. Keys that may be left out are left out where the value is None.
    """
    found: dict[str, Any] = {}
    for name, key, words, required in _keys(model):
        value = own[name] if name in own else words[0] if len(words) == 1 else getattr(source, name)
        if value is not None or required:
            found[key] = as_json(value, labels)
    return found


@cache
def _keys(model: type[Strict]) -> list[tuple[str, str, tuple[Any, ...], bool]]:
    """Of each field its name, its key, the only words that it may be, and whether it must be there."""
    return [
        (name, field.alias or name, _words(field.annotation), field.is_required())
        for name, field in model.model_fields.items()
    ]


def _words(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def frozen(value: Any) -> Any:
    """A value of a model as frozen types have it: lists as tuples."""
    return tuple(map(frozen, value)) if isinstance(value, list) else value

"""Validation by pydantic, with errors turned into one :class:`BadInput` line."""

from __future__ import annotations

import json
from typing import Any, NoReturn, TypeVar

from pydantic import TypeAdapter, ValidationError

from milp_recourse.errors import BadInput, dotted, shown
from milp_recourse.problem.cost import KINDS

M = TypeVar("M")

_KINDS = {
    "float_type": "a number",
    "float_parsing": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "string_type": "text",
    "string_unicode": "Unicode text",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "finite_number": "a finite number",
}
_DEEPEST_PATH = 30
_DISCRIMINATOR = {"scm": "name"}
_TAGS = {
    "scm": "'loan', 'loan-as-printed', 'independent', 'explicit'",
    "classifier": "'relu-network', 'tree-ensemble', or a path and its sha256",
    "cost": ", ".join(f"'{kind}'" for kind in (*KINDS, "mixture")),
    "noise": "'normal', 'gamma', 'bernoulli'",
}


def validate(kind: Any, data: Any, prefix: str = "") -> Any:
    """``data`` as the pydantic type ``kind``.

    Parameters
    ----------
    prefix
        The path of ``data`` in its file, for the error.

    Raises
    ------
    BadInput
        ``data`` does not fit; the error is about the first fault.
    """
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        _refuse(error.errors(include_url=False)[0], data, prefix)
    except RecursionError:
        raise BadInput(prefix or "top level", "nesting too deep to read", "fewer levels of nesting") from None


def _refuse(error: Any, data: Any, prefix: str) -> NoReturn:
    kind, context = error["type"], error.get("ctx", {})
    loc = _real_path(error, data)
    got = shown(error["input"])
    if kind in _KINDS and isinstance(error["input"], str):
        got = json.dumps(error["input"])
    if kind == "missing":
        got, allowed = "nothing", "this field is required"
    elif kind == "unknown_key":
        loc, got, allowed = (*loc, context["key"]), "an unknown key", context["known"]
    elif kind == "unknown_form" and isinstance(error["input"], dict) and error["input"]:
        got, allowed = f"the unknown operator {next(iter(error['input']))!r}", error["msg"]
    elif kind in ("union_tag_not_found", "union_tag_invalid"):
        field = _DISCRIMINATOR.get(str(loc[-1]) if loc else prefix, "kind")
        value = error["input"].get(field) if isinstance(error["input"], dict) else None
        if isinstance(error["input"], dict):
            loc = (*loc, field)
            got = shown(value) if field in error["input"] else "nothing"
        allowed = _TAGS.get(str(loc[-2]) if len(loc) > 1 else "", f"an object with a known {field}")
    else:
        allowed = _allowed(kind, context, error["msg"])
    path = dotted(prefix, *loc)
    raise BadInput(path or "top level", got, allowed) from None


def _allowed(kind: str, context: dict[str, Any], message: str) -> str:
    if kind in _KINDS:
        return _KINDS[kind]
    if kind.startswith("recursion"):
        return "fewer levels of nesting"
    if kind == "greater_than":
        return f"a number above {context['gt']:g}"
    if kind == "greater_than_equal":
        return f"a number at least {context['ge']:g}"
    if kind == "less_than_equal":
        return f"a number at most {context['le']:g}"
    if kind in ("too_short", "too_long"):
        count = context.get("min_length", context.get("max_length"))
        return f"{count} {'or more' if kind == 'too_short' else 'or fewer'} in the list"
    if kind == "literal_error":
        return str(context["expected"])
    if kind == "string_pattern_mismatch":
        return "64 hexadecimal digits" if "64" in context["pattern"] else "text without control characters"
    if kind in ("string_too_short", "string_too_long"):
        return "text of 1 to 200 characters"
    return " ".join(message.split())


def _real_path(error: Any, data: Any) -> tuple[str | int, ...]:
    """pydantic's location without the names of union members, which the file does not contain."""
    loc, kind = error["loc"], error["type"]
    path: list[str | int] = []
    value: Any = data
    for position, step in enumerate(loc):
        if kind == "unknown_key" and value is error["input"]:
            break
        entries = range(len(value)) if isinstance(value, list) else value if isinstance(value, dict) else ()
        fits = step in entries
        if fits:
            value = value[step]
        elif not (kind == "missing" and position == len(loc) - 1):
            continue
        path.append(step)
    return tuple(path[:_DEEPEST_PATH])

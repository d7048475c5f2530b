"""Types that the pydantic models of the formats share, and validation, whose errors are one line each."""

from __future__ import annotations

import json
from typing import Annotated, Any, NoReturn

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from milp_recourse.errors import BadInput, dotted, shown
from milp_recourse.problem.cost import KINDS

Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Word = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""A name or a label: no control characters, so that it fits one cell of a table."""

Interval = Annotated[list[Number], Field(min_length=2, max_length=2)]


def _number_or_label(value: Any) -> str:
    return "label" if isinstance(value, str) else "number"


Value = Annotated[
    Annotated[Number, Tag("number")] | Annotated[str, Tag("label")], Discriminator(_number_or_label)
]
"""A number, or the label of an ordinal or categorical feature."""


class Strict(BaseModel):
    """A JSON object whose keys are exactly those named; booleans are not numbers."""

    model_config = ConfigDict(extra="forbid", defer_build=True, strict=True, allow_inf_nan=False, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            known = [info.alias or name for name, info in cls.model_fields.items()]
            for key in data:
                if key not in known:
                    raise PydanticCustomError(
                        "unknown_key", "unknown key", {"key": str(key), "known": ", ".join(known)}
                    )
        return data


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
    "noise": "'normal', 'gamma', 'bernoulli', 'mixture'",
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

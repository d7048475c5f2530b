"""Parts of problems and answers as files state them: read, checked and written by one declaration.

A part is one class: its fields are what files state, its ``build`` checks what spans several fields, and
returns the frozen type of :mod:`milp_recourse.problem`; where it would only repeat that type's fields,
:func:`states` makes it. A feature that is read so is ``Annotated[Feature, Stated(FeatureModel)]``. Paths in
errors are pydantic's, and a ``build`` names only what lies below its own part. :func:`document` writes the
fields of a class, and :func:`as_json` a frozen type that one states.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache, singledispatch
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NoReturn,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    StringConstraints,
    Tag,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from milp_recourse.errors import BadInput, dotted, got_text
from milp_recourse.problem.cost import KINDS
from milp_recourse.problem.features import Feature, input_columns
from milp_recourse.problem.instance import Classifier
from milp_recourse.problem.result import Status

if TYPE_CHECKING:
    from typing_extensions import TypeForm

_Read = TypeVar("_Read")

Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Word = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""A name or a label: no control characters, so that it fits one cell of a table."""


def _number_or_label(value: Any) -> str:
    return "label" if isinstance(value, str) else "number"


Value = Annotated[
    Annotated[Number, Tag("number")] | Annotated[str, Tag("label")], Discriminator(_number_or_label)
]
"""A number, or the label of an ordinal or categorical feature."""


class Forms:
    """``Annotated[Any, Forms({"any": AnyModel, ...}, "...")]``: an object whose form is seen from its keys.

    Parameters
    ----------
    forms
        By key. Filled later where forms hold one another.
    allowed
        What to say where no key fits; the keys follow.
    others
        What is no object, by its types.
    """

    def __init__(self, forms: dict[str, Any], allowed: str, others: dict[Any, Any] | None = None) -> None:
        self.forms, self.allowed, self.others = forms, allowed, others or {}

    def __get_pydantic_core_schema__(self, _: Any, handler: GetCoreSchemaHandler) -> Any:
        members = [Annotated[form, Tag(_tag(key))] for key, form in {**self.others, **self.forms}.items()]
        seen = Discriminator(self._form, "unknown_form", self.allowed + ", ".join(self.forms))
        return handler.generate_schema(Annotated[Union[tuple(members)], seen])  # noqa: UP007

    def _form(self, value: Any) -> str | None:
        if isinstance(value, dict):
            for key in self.forms:
                if key in value:
                    return _tag(key)
        elif not isinstance(value, bool):
            for kind in self.others:
                if isinstance(value, kind):
                    return _tag(kind)
        return None


@cache
def _tag(key: Any) -> str:
    """The tag of a form: unlike any key, so that error paths omit it."""
    return f"{key}: ..."


class Strict(BaseModel):
    """A JSON object whose keys are exactly those named; booleans are not numbers."""

    model_config = ConfigDict(extra="forbid", defer_build=True, strict=True, allow_inf_nan=False, frozen=True)

    @classmethod
    def json_keys(cls) -> list[str]:
        """The keys, in the fields' order."""
        return [info.alias or name for name, info in cls.model_fields.items()]

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, dict):
            known = cls.json_keys()
            for key in data:
                if key not in known:
                    raise PydanticCustomError(
                        "unknown_key", "unknown key", {"key": str(key), "known": ", ".join(known)}
                    )
        return data


class Known:
    """What is known of a problem when a part of it is read: what it is about, and what earlier fields said.

    Attributes
    ----------
    features
        By name; none as long as they are not read, or if they break the format.
    folder
        The folder to which paths are relative.
    classifier
        None as long as it is not read, or if it breaks the format.
    levels
        How many levels conditions are nested where one is being read.
    """

    def __init__(self, features: Iterable[Feature] = (), folder: str | Path = ".") -> None:
        self.features = {f.name: f for f in features}
        self.folder = Path(folder)
        self.classifier: Classifier | None = None
        self.levels = 0

    @property
    def columns(self) -> int:
        """The number of model columns that the features make."""
        return len(input_columns(tuple(self.features.values())))

    def feature(self, name: str, path: str) -> Feature:
        """The feature of this name.

        Raises
        ------
        BadInput
            There is none.
        """
        if name not in self.features:
            raise BadInput(path, f"{name}, an unknown feature", ", ".join(self.features))
        return self.features[name]


def then(make: Callable[[Any, Known], Any]) -> AfterValidator:
    """In an annotation: the value becomes what ``make`` returns.

    The path of its BadInput is relative to the value, unless it begins with "/" or the error names a file.
    """

    def made(value: Any, info: ValidationInfo) -> Any:
        try:
            return make(value, info.context or Known())
        except BadInput as fault:
            raise refused(fault) from None

    return AfterValidator(made)


def refused(fault: BadInput) -> PydanticCustomError:
    """A fault as pydantic collects it; its path is relative to where it is raised."""
    return PydanticCustomError("refused", "refused", {"fault": fault})


def _built(stated: Any, known: Known) -> Any:
    return stated.build(known) if hasattr(stated, "build") else stated


class Stated:
    """``Annotated[Feature, Stated(FeatureModel)]``: a Feature, stated as a FeatureModel, which builds it."""

    def __init__(self, model: Any, make: Callable[[Any, Known], Any] = _built) -> None:
        self.model, self.make = model, make

    def __get_pydantic_core_schema__(self, _: Any, handler: GetCoreSchemaHandler) -> Any:
        return handler.generate_schema(Annotated[self.model, then(self.make)])


def _ordered(ends: list[float], _: Known) -> tuple[float, float]:
    low, high = ends
    if low > high:
        raise BadInput("", f"[{low!r}, {high!r}]", "[lo, hi] with lo <= hi")
    return low, high


Interval = Annotated[
    tuple[float, float],
    Stated(Annotated[list[Number], Field(min_length=2, max_length=2)], _ordered),
]


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
        (name, key, _words(field.annotation), field.is_required())
        for (name, field), key in zip(model.model_fields.items(), model.json_keys(), strict=True)
    ]


def _words(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def frozen(value: Any) -> Any:
    """A value of a model as frozen types have it: lists as tuples."""
    return tuple(map(frozen, value)) if isinstance(value, list) else value


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


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def validate(kind: TypeForm[_Read], data: Any, prefix: str = "", known: Known | None = None) -> _Read:
    """``data`` as the pydantic type ``kind``.

    Parameters
    ----------
    prefix
        The path of ``data`` in its file, for the error.
    known
        What ``data`` is about.

    Raises
    ------
    BadInput
        ``data`` does not fit; the error is about the first fault in keys, types and numbers, or else about
        the first of what a ``build`` refuses.
    """
    try:
        read: _Read = _adapter(kind).validate_python(data, context=known or Known())
        return read
    except ValidationError as error:
        faults = error.errors(include_url=False)
        _refuse(next((one for one in faults if one["type"] != "refused"), faults[0]), data, prefix)
    except RecursionError:
        raise BadInput(prefix or "top level", "nesting too deep to read", "fewer levels of nesting") from None


def _refuse(error: Any, data: Any, prefix: str) -> NoReturn:
    kind, context = error["type"], error.get("ctx", {})
    loc = _real_path(error, data)
    if kind == "refused":
        fault = context["fault"]
        whole = fault.file or fault.field.startswith("/")
        path = fault.field.lstrip("/") if whole else dotted(prefix, *loc, fault.field)
        raise BadInput(path, fault.got, fault.allowed, fault.file) from None
    got = got_text(error["input"])
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
            got = got_text(value) if field in error["input"] else "nothing"
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

"""Conditions about the columns of a table, given as lines of text, JSON values or Condition objects.

Some lines say which columns move together, and become equations of the causal model::

    age moves with months_on_book by 1 per 12
    limit, balance move with income by -0.5

A column that moves with another is set by nobody: whenever the other moves by d, through an action or as an
effect, it moves by the stated number of times d (1 if none is stated). A *clock* is a column that only
rises, with which others move: who waits pays for the clock's move alone, so that its weight is the price of
time.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, get_args

import pandas as pd

from milp_recourse.errors import BadInput, dotted, nearest
from milp_recourse.formats.schema_conditions import StatedCondition, condition_to_dict
from milp_recourse.formats.stated import Known, validate
from milp_recourse.problem.conditions import Condition, condition_from_text
from milp_recourse.problem.conditions.words import Token, tokens
from milp_recourse.problem.expression import Constant, Product, Variable
from milp_recourse.problem.scm import Mechanism, StructuralCausalModel
from milp_recourse.tables.columns import TableColumn, got_repr


def conditions_of(
    given: Sequence[Any] | None, columns: Sequence[TableColumn], where: str = "conditions"
) -> tuple[Condition, ...]:
    """The conditions of a list.

    Parameters
    ----------
    given
        Lines such as ``"at most 2 actions"``, JSON values as in files with the table's names of columns, or
        objects of :mod:`milp_recourse.problem.conditions`.

    Raises
    ------
    BadInput
        It is no list, or a condition breaks the format. The error names the place, e.g.
        ``conditions.0.feature``.
    """
    if given is None:
        return ()
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence):
        raise BadInput(where, got_repr(given), "a list of conditions: lines of text, or objects as in files")
    return tuple(_one(one, columns, dotted(where, k)) for k, one in enumerate(given))


def _one(one: Any, columns: Sequence[TableColumn], where: str) -> Condition:
    features = [c.feature for c in columns]
    if isinstance(one, str):
        if says_together(one, [f.name for f in features]):
            raise BadInput(where, one, "conditions of everybody: how columns move together is one model")
        return condition_from_text(one, {f.name: f for f in features}, where)
    if isinstance(one, get_args(Condition)):
        try:
            value = condition_to_dict(one, features)
        except (KeyError, IndexError):
            raise BadInput(where, got_repr(one), "features and labels that exist") from None
    elif isinstance(one, Mapping):
        value = _plain(one, {c.key: c for c in columns})
    else:
        raise BadInput(where, got_repr(one), "a line of text, or an object as in files")
    return validate(StatedCondition, value, where, Known(features))


def _plain(one: Any, columns: Mapping[Any, TableColumn]) -> Any:
    """The JSON value of a condition, with features in place of columns and labels as text."""
    if isinstance(one, list | tuple):
        return [_plain(part, columns) for part in one]
    if not isinstance(one, Mapping):
        return one
    plain: dict[str, Any] = {}
    for key, value in one.items():
        if key in ("feature", "acted"):
            plain[key] = columns[value].name if _among(value, columns) else str(value)
        elif key == "sum" and isinstance(value, Mapping):
            plain[key] = {columns[k].name if k in columns else str(k): c for k, c in value.items()}
        elif key == "products" and isinstance(value, Sequence) and not isinstance(value, str):
            name = {k: column.name for k, column in columns.items()}
            plain[key] = [[c, *(name.get(k, str(k)) for k in names)] for c, *names in value]
        elif key == "in" and isinstance(value, Sequence) and not isinstance(value, str):
            plain[key] = [_label(label, one.get("feature"), columns) for label in value]
        elif key in ("at_least", "at_most"):
            plain[key] = _label(value, one.get("feature"), columns)
        else:
            plain[str(key)] = _plain(value, columns)
    return plain


def _among(key: Any, columns: Mapping[Any, TableColumn]) -> bool:
    return isinstance(key, str | int | float | tuple) and key in columns


def _label(value: Any, feature: Any, columns: Mapping[Any, TableColumn]) -> Any:
    """The text of a label of the table; numbers are returned as they are."""
    column = columns.get(feature) if _among(feature, columns) else None
    if column is not None and column.labels is not None and column.feature.categories is not None:
        found = [k for k, label in enumerate(column.labels) if type(label) is type(value) and label == value]
        if found:
            return column.feature.categories[found[0]]
    return value.item() if hasattr(value, "item") else value


_FORM = "A moves with B, A moves with B by 2, or A, C move with B by 1 per 12"


class Tie(NamedTuple):
    """A column that moves ``times`` as far as another; ``where`` and ``text``: the line that says so."""

    column: str
    other: str
    times: float
    where: str
    text: str


def says_together(line: Any, columns: Sequence[str]) -> bool:
    """Whether a condition is a line about columns that move together."""
    if not isinstance(line, str) or " with " not in f" {line} ":
        return False
    try:
        found = [token.text for token in tokens(line, "conditions", columns)]
    except BadInput:  # whoever reads the line as a condition says where it is
        return False
    return any(a in ("move", "moves") and b == "with" for a, b in pairwise(found))


def split_ties(conditions: Sequence[Any] | None, X: pd.DataFrame) -> tuple[list[Tie], Any]:
    """The ties that lines of a list state, and the list's other conditions.

    Raises
    ------
    BadInput
        A line names an unknown column, or is not of the form above.
    """
    if isinstance(conditions, str) or not isinstance(conditions, Sequence):
        return [], conditions
    columns = [str(c) for c in X.columns]
    ties, rest = list[Tie](), list[Any]()
    for k, one in enumerate(conditions):
        if says_together(one, columns):
            ties += _Line(one, columns, dotted("conditions", k)).ties()
        else:
            rest.append(one)
    return ties, rest


class _Line:
    """Reads one line."""

    def __init__(self, text: str, columns: Sequence[str], where: str) -> None:
        self.text, self.columns, self.where = text, columns, where
        self.tokens = tokens(text, where, columns)

    def ties(self) -> list[Tie]:
        followers = [self._column()]
        while self._take(","):
            followers.append(self._column())
        if not (self._take("moves") or self._take("move")) or not self._take("with"):
            raise self._fault()
        other, times = self._column(), 1.0
        if self._take("by"):
            times = self._number()
            if self._take("per"):
                divisor = self._number()
                if not divisor:
                    raise self._fault()
                times /= divisor
        if self.tokens or not times:
            raise self._fault()
        return [Tie(name, other, times, self.where, self.text) for name in followers]

    def _fault(self) -> BadInput:
        return BadInput(self.where, self.text, _FORM)

    def _next(self) -> Token:
        if not self.tokens:
            raise self._fault()
        return self.tokens.pop(0)

    def _take(self, text: str) -> bool:
        if not self.tokens or self.tokens[0].text != text:
            return False
        self.tokens.pop(0)
        return True

    def _number(self) -> float:
        sign = -1.0 if self._take("-") else 1.0
        token = self._next()
        if token.kind != "number":
            raise self._fault()
        return sign * float(token.text)

    def _column(self) -> str:
        name = self._next().text
        if name not in self.columns:
            close = nearest(name, self.columns)
            meant = f" (did you mean {close}?)" if close else ""
            allowed = f"a column where it says {name!r}{meant}: {', '.join(self.columns)}"
            raise BadInput(self.where, self.text, allowed)
        return name


def with_ties(scm: Any, ties: Sequence[Tie]) -> Any:
    """The causal model, in the form in which it is given, with an equation for every tie.

    Raises
    ------
    BadInput
        A column follows from others already, moves with itself, or moves with two others.
    """
    if not ties:
        return scm
    given = scm.mechanisms if isinstance(scm, StructuralCausalModel) else (scm or {}).get("mechanisms", {})
    taken = {f for f, m in given.items() if not isinstance(m, Mechanism) or m.equation.parents}
    for tie in ties:
        if tie.column in taken or tie.column == tie.other:
            allowed = f"one other column that {tie.column} moves with"
            raise BadInput(tie.where, tie.text, allowed)
        taken.add(tie.column)
    if isinstance(scm, StructuralCausalModel):
        own = {t.column: Mechanism(Product((Constant(t.times), Variable(t.other)))) for t in ties}
        names = tuple(dict.fromkeys([*scm.features, *(f for t in ties for f in (t.column, t.other))]))
        return StructuralCausalModel(names, {**scm.mechanisms, **own}, "explicit")
    if scm is not None and (not isinstance(scm, Mapping) or scm.get("name") != "explicit"):
        raise BadInput(ties[0].where, ties[0].text, "an explicit causal model beside it, or none")
    more = {t.column: {"equation": {"product": [t.times, t.other]}} for t in ties}
    return {**(scm or {"name": "explicit"}), "mechanisms": {**given, **more}}


def followers(ties: Sequence[Tie], X: pd.DataFrame) -> list[Hashable]:
    """The columns that move with others."""
    names = {str(c): c for c in X.columns}
    return [names[tie.column] for tie in ties]

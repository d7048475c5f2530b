"""Features as files have them: their canonical content, their labels, and values in numbers (section 1)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from string import hexdigits
from typing import Any

from verify.files.reading import interval, word
from verify.files.shapes import anything, conform, maybe, positive, refuse
from verify.kernel.checks import Rejected
from verify.kernel.lattice import Lattice, Steps, Values
from verify.kernel.problem import Feature

WHOLE = Steps(Fraction(1), Fraction(0))
"""What an action may set of whole numbers and labels."""


def _step(value: Any, where: str) -> dict[str, Any]:
    """Steps as their canonical content, with the origin filled in."""
    if not isinstance(value, dict):
        return {"step": positive(value, where), "from": 0.0}
    given = conform(value, {"step": positive, "from?": maybe(float)}, where)
    return {"step": given["step"], "from": given["from"] or 0.0}


FEATURE = {
    "name": word,
    "kind": {"continuous", "integer", "binary", "ordinal", "categorical"},
    "actionable": bool,
    "bounds?": maybe(interval),
    "categories?": maybe([word]),
    "domain?": maybe(interval),
    "monotone?": maybe({"increase", "decrease"}),
    "encoding?": maybe({"code", "one-hot", "table"}),
    "table?": maybe([[float]]),
    "step?": maybe(_step),
    "values?": maybe([anything]),
}


def table_cells(content: Mapping[str, Any]) -> int:
    """How many numbers a feature's table of labels has; one-hot counts as labels times labels."""
    count = len(content["categories"] or ())
    width = count if content["encoding"] == "one-hot" else len((content.get("table") or [[]])[0])
    return count * width


class Variable:
    """A feature with its labels; the kernel knows labels only by number.

    Attributes
    ----------
    feature
        The feature for the kernel.
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.name: str = content["name"]
        self.kind: str = content["kind"]
        self.labels: list[str] | None = content["categories"]
        count, rows = len(self.labels or ()), content.get("table")
        table = None if rows is None else [list(map(Fraction, row)) for row in rows]
        if content["encoding"] == "one-hot":
            zeros, one = [Fraction(0)] * count, [Fraction(1)]  # two numbers, however many labels
            table = [zeros[:k] + one + zeros[k + 1 :] for k in range(count)]
        self.feature = Feature(
            self.name,
            whole=self.kind != "continuous",
            lattice=self._lattice(content),
            domain=content["domain"],
            table=table,
        )

    def _lattice(self, content: Mapping[str, Any]) -> Lattice | None:
        """What an action may set within the limits; None for all doubles. Steps are read as decimals."""
        if "values" in content:
            return Values(tuple(self.value(v, f"{self.name}.values") for v in content["values"]))
        if "step" in content:
            return Steps(Fraction(repr(content["step"]["step"])), Fraction(repr(content["step"]["from"])))
        return None if self.kind == "continuous" else WHOLE

    def value(self, given: Any, where: str, factual: bool = False) -> Fraction:
        """A file's number, or the index of its label.

        Raises :class:`Rejected` where the feature cannot have that value. The factual value of an integer
        feature may be a fraction.
        """
        if self.labels is not None:
            if given not in self.labels:
                refuse(where, given, "one of " + ", ".join(self.labels))
            return Fraction(self.labels.index(given))
        value = Fraction(conform(given, float, where))
        fraction = value.denominator != 1 and not (factual and self.kind == "integer")
        if (self.kind != "continuous" and fraction) or (self.kind == "binary" and value not in (0, 1)):
            raise Rejected(f"{where}: {given!r} is not a value of a feature that is {self.kind}")
        return value


def feature_content(content: dict[str, Any], where: str) -> dict[str, Any]:
    """A feature's canonical content; raise :class:`Rejected` where its entries do not go together."""
    kind, labels, table = content["kind"], content["categories"], content["table"]
    labelled, ordered = kind in ("ordinal", "categorical"), kind != "categorical"
    content["encoding"] = content["encoding"] or ("code" if ordered else "one-hot")
    if (content["encoding"] == "table") != (table is not None):
        raise Rejected(f"{where}.table: needed if encoding is 'table', and allowed only then")
    if table is None:
        del content["table"]
    elif labelled and (
        len(table) != len(labels or ()) or not table or not table[0] or len({len(row) for row in table}) > 1
    ):
        raise Rejected(f"{where}.table: allowed: one row per label, all of one length, 1 or more")
    count, bounds, step = len(labels or ()), content["bounds"] or (), content["step"]
    values = None if content["values"] is None else _listed(content, f"{where}.values")
    for key, given in (("step", step), ("values", values)):
        if given is None:
            del content[key]
        else:
            content[key] = given
    for wrong, allowed in (
        (labelled and not labels, "categories: allowed: one label or more"),
        (not labelled and labels is not None, "categories: allowed: none"),
        (len(set(labels or ())) < count, "categories: allowed: each label once"),
        (labelled and any(k not in range(count) for k in bounds), "bounds: allowed: numbers of labels"),
        (kind == "binary" and not all(0 <= end <= 1 for end in bounds), "bounds: allowed: from 0 to 1"),
        (content["actionable"] and not labelled and not bounds, "bounds: needed, as it is actionable"),
        (not ordered and (content["domain"] or content["monotone"]), "domain, monotone: allowed: none"),
        (not labelled and content["encoding"] != "code", "encoding: allowed: code"),
        (step is not None and (labelled or kind == "binary"), "step: allowed: none"),
        (step is not None and values is not None, "values: allowed: none beside step"),
        (kind == "integer" and any(v % 1 for v in (step or {}).values()), "step: allowed: whole"),
    ):
        if wrong:
            raise Rejected(f"{where}.{allowed}, for a feature that is {kind}")
    if len(content["name"]) == 16 and set(content["name"]) <= set(hexdigits.lower()):
        raise Rejected(f"{where}.name: got 16 characters 0-9a-f, which the digest takes for a number")
    return content


def _listed(content: Mapping[str, Any], where: str) -> list[Any]:
    """The values that an action may set, ascending; labels in the order of ``categories``."""
    labels, given = content["categories"], content["values"]
    shape = float if labels is None else set(labels)
    numbers = [conform(value, shape, f"{where}.{k}") for k, value in enumerate(given)]
    found = sorted(set(numbers), key=None if labels is None else labels.index)
    if not found or len(found) < len(given):
        raise Rejected(f"{where}: allowed: one value or more, each once")
    return [v + 0.0 for v in found] if labels is None else found

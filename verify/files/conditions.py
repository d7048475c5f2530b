"""From conditions as files have them to their canonical form (section 11)."""

from __future__ import annotations

from typing import Any

from verify.files.features import Variable
from verify.files.shapes import anything, conform, maybe, refuse
from verify.kernel.checks import Rejected

DEEPEST = 40
VIEWS = {"factual", "counterfactual", "change", "relative-change"}
SHAPES: dict[str, dict[str, Any]] = {
    "at_most_actions": {"at_most_actions": float},
    "feature": {
        "feature": str,
        "of": VIEWS,
        "at_least?": anything,
        "at_most?": anything,
        "in?": maybe([anything]),
    },
    "sum": {
        "sum": {str: float},
        "products?": [(float, str, str)],
        "of": VIEWS,
        "at_least?": maybe(float),
        "at_most?": maybe(float),
    },
    "acted": {"acted": str},
    "if": {"if": anything, "then": anything},
    "any": {"any": [anything]},
    "all": {"all": [anything]},
    "not": {"not": anything},
}


def canonical(condition: Any, features: dict[str, Variable], where: str, depth: int = 0) -> dict[str, Any]:
    """The canonical form of one condition: bounds as sums of one feature, labels as ascending indices."""
    if depth > DEEPEST:
        raise Rejected(f"{where}: nested more than {DEEPEST} deep")
    form = next((f for f in SHAPES if isinstance(condition, dict) and f in condition), None)
    if form is None:
        refuse(where, condition, "an object with one of the keys " + ", ".join(SHAPES))
    given: dict[str, Any] = conform(condition, SHAPES[form], where)
    if form == "at_most_actions":
        if not (given[form].is_integer() and given[form] >= 0):
            refuse(where, given[form], "a whole number, 0 or more")
        return given
    if form in ("any", "all"):
        parts = enumerate(given[form])
        return {form: [canonical(part, features, f"{where}.{form}.{k}", depth + 1) for k, part in parts]}
    if form in ("if", "not"):
        return {key: canonical(part, features, f"{where}.{key}", depth + 1) for key, part in given.items()}
    products = (given["products"] or []) if form == "sum" else []
    names = [*given["sum"], *(f for _, *pair in products for f in pair)] if form == "sum" else [given[form]]
    if not names or not set(names) <= features.keys():
        raise Rejected(f"{where}.{form}: got {list(names)!r:.60}; allowed: one or more of the features")
    if form == "sum":
        if any(features[name].kind == "categorical" for name in names):
            raise Rejected(f"{where}.sum: got a categorical feature; allowed: features with an order")
        head = {"sum": given["sum"], "of": given["of"]}
        if products:
            head["products"] = [[c, *sorted(pair)] for c, *pair in products]
        return _checked(head, given["at_least"], given["at_most"], where)
    return given if form == "acted" else _of_feature(given, features[given["feature"]], where)


def _of_feature(given: dict[str, Any], feature: Variable, where: str) -> dict[str, Any]:
    """A condition on one feature: its bounds as a sum, its labels as indices or its numbers as any of
    their equalities, or both."""
    of, parts = given["of"], list[dict[str, Any]]()
    by_label = feature.labels is not None and of in ("factual", "counterfactual")
    if given["at_least"] is not None or given["at_most"] is not None:
        if feature.kind == "categorical":
            raise Rejected(f"{where}: got at_least or at_most of a categorical feature; allowed: in")
        low, high = (
            None if given[key] is None else _end(given[key], feature, by_label, where)
            for key in ("at_least", "at_most")
        )
        parts.append(_checked({"sum": {feature.name: 1.0}, "of": of}, low, high, where))
    if given["in"] is not None:
        if of not in ("factual", "counterfactual") or not given["in"]:
            raise Rejected(f"{where}.in: allowed: one value or more, and as of factual or counterfactual")
        if by_label:
            found = sorted({_label(label, feature, where) for label in given["in"]})
            parts.append({"feature": feature.name, "of": of, "in": found})
        else:  # any of these numbers
            numbers = sorted({_end(v, feature, False, where) for v in given["in"]})
            sums = [_checked({"sum": {feature.name: 1.0}, "of": of}, v, v, where) for v in numbers]
            parts.append(sums[0] if len(sums) == 1 else {"any": sums})
    if not parts:
        raise Rejected(f"{where}: no bound; allowed: at_least, at_most, in, or several of them")
    return parts[0] if len(parts) == 1 else {"all": parts}


def _checked(head: dict[str, Any], low: float | None, high: float | None, where: str) -> dict[str, Any]:
    if (low is None and high is None) or (low is not None and high is not None and low > high):
        raise Rejected(f"{where}: no bound, or at_least above at_most")
    return head | {"at_least": low, "at_most": high}


def _end(end: Any, feature: Variable, by_label: bool, where: str) -> float:
    if isinstance(end, str) and by_label:
        return _label(end, feature, where)
    return float(conform(end, float, where))


def _label(label: Any, feature: Variable, where: str) -> float:
    """A label's index, given as the label or as the index."""
    labels = feature.labels or []
    if isinstance(label, str) and label in labels:
        return float(labels.index(label))
    if not (type(label) is float and label.is_integer() and 0 <= label < len(labels)):
        refuse(where, label, "one of " + ", ".join(labels) + ", or its index")
    return float(label)

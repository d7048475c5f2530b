"""The instance a certificate belongs to: its canonical content, digest and levers (sections 2 and 3)."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import json
import math
import re
import struct
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from string import hexdigits
from typing import Any

from verify.loan import LOAN_FEATURES, LOANS
from verify.network import LAYERS, Network
from verify.reading import (
    Rejected,
    anything,
    by,
    conform,
    index,
    interval,
    maybe,
    not_negative,
    parse_json,
    positive,
    read_bytes,
    read_raw,
    refuse,
    share,
    unpacked,
    word,
)
from verify.trees import FOREST, Ensemble, float32, forest

PARTS = ("l0", "l1", "l2-squared", "linf")
DEEPEST = 50

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
}
CLASSIFIER = by(
    "kind",
    {
        "relu-network": {"dtype": {"float32", "float64"}, "layers": LAYERS},
        "tree-ensemble": FOREST,
    },
)
SCALE = {str: positive}
COST = by(
    "kind",
    {part: {"scale?" if part == "l0" else "scale": SCALE} for part in PARTS}
    | {"mixture": {f"{part}?": not_negative for part in PARTS} | {"scale?": SCALE}},
)
NOISE = by(
    "kind",
    {"normal": {"sd": positive}, "gamma": {"shape": positive, "scale": positive}, "bernoulli": {"p": share}},
)
MECHANISM = {
    "equation": anything,
    "link?": maybe({"kind": {"sigmoid"}, "offset?": float, "scale?": float}),
    "noise?": maybe(NOISE),
}
SCM = by(
    "name",
    {name: {} for name in (*LOANS, "independent")} | {"explicit": {"mechanisms": {str: MECHANISM}}},
)
PREFERENCES = {"actionable": [str], "weights?": {str: positive}, "ranges?": {str: interval}}
SHARED = {
    "name?": maybe(str),
    "description?": maybe(str),
    "features": [FEATURE],
    "scm": SCM,
    "classifier": anything,
    "accept?": {"at_least?": maybe(float), "margin?": maybe(not_negative), "above?": maybe(float)},
    "cost": COST,
    "plausibility?": maybe({"kind": {"scm-density"}, "at_least": {"factual"}}),
}
REFERENCE = {
    "status": {"optimal", "infeasible", "limit", "found", "not-found"},
    "cost?": maybe(float),
    "lower_bound?": maybe(float),
}
FILE = by(
    "format",
    {
        "milp-recourse/instance-1": SHARED
        | {"factual": anything, "preferences": anything, "reference?": maybe(REFERENCE)},
        "milp-recourse/population-1": SHARED | {"factuals": anything, "preferences": anything},
    },
)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
NOTHING: dict[str, Any] = {"equation": 0.0, "link": None, "noise": None}


class Feature:
    """One feature, as its canonical content describes it."""

    def __init__(self, content: dict[str, Any], where: str) -> None:
        self.name: str = content["name"]
        self.kind: str = content["kind"]
        self.labels: list[str] | None = content["categories"]
        self.domain: list[float] | None = content["domain"]
        self.monotone: str | None = content["monotone"]
        self.whole = self.kind != "continuous"
        labelled, ordered = self.kind in ("ordinal", "categorical"), self.kind != "categorical"
        content["encoding"] = content["encoding"] or ("code" if ordered else "one-hot")
        self.table = _numbers(content, where) if labelled else None
        ends = [*(content["bounds"] or ()), *(self.domain or ())]
        if content["table"] is None:
            del content["table"]
        if (
            labelled != bool(self.labels)
            or len(set(self.labels or ())) < len(self.labels or ())
            or (labelled and any(k not in range(len(self.labels or ())) for k in content["bounds"] or ()))
            or (self.labels == [] and not labelled)
            or (self.kind == "binary" and not all(0 <= end <= 1 for end in ends))
            or (content["actionable"] and not labelled and not content["bounds"])
            or (not ordered and (self.domain or self.monotone))
            or (not labelled and (content["encoding"] != "code" or "table" in content))
        ):
            raise Rejected(f"{where}: what it has does not go with a feature that is {self.kind}")
        if len(self.name) == 16 and set(self.name) <= set(hexdigits.lower()):
            raise Rejected(f"{where}.name: reads as a number in the digest (section 2)")
        self.bounds = content["bounds"] or [0.0, len(self.labels or ()) - 1.0]

    @property
    def width(self) -> int:
        """How many of the classifier's columns it fills."""
        return len(self.table[0]) if self.table else 1

    def value(self, given: Any, where: str, factual: bool = False) -> Fraction:
        """A file's number or label as the number the model reads; an integer's factual may be a fraction."""
        if self.labels is not None:
            if given not in self.labels:
                refuse(where, given, "one of " + ", ".join(self.labels))
            return Fraction(self.labels.index(given))
        value = Fraction(conform(given, float, where))
        fraction = value.denominator != 1 and not (factual and self.kind == "integer")
        if (self.whole and fraction) or (self.kind == "binary" and value not in (0, 1)):
            raise Rejected(f"{where}: {given!r} is not a value of a feature that is {self.kind}")
        return value


class Instance:
    """One applicant's problem, built from the very content that the digest covers."""

    def __init__(self, model: Model, factual: Any, preferences: Any, where: str) -> None:
        self.model, self.features = model, model.features
        factual = conform(factual, {str: anything}, f"{where}factual")
        if factual.keys() != {f.name for f in self.features}:
            raise Rejected(f"{where}factual: not exactly the features")
        given = conform(preferences, PREFERENCES, f"{where}preferences")
        weights, ranges, scale = given["weights"] or {}, given["ranges"] or {}, model.content["cost"]["scale"]
        movable = [f["name"] for f in model.content["features"] if f["actionable"]]
        if not {*given["actionable"], *weights, *ranges} <= set(movable):
            raise Rejected(f"{where}preferences: name what is not actionable")
        if any(f.name in ranges and f.kind == "categorical" for f in self.features):
            raise Rejected(f"{where}preferences.ranges: labels that have no order")
        actionable = [f for f in movable if f in given["actionable"]]
        if len(given["actionable"]) > len(actionable):
            raise Rejected(f"{where}preferences.actionable: a name twice")
        if any(model.content["cost"][part] for part in PARTS[1:]) and not set(actionable) <= set(scale):
            raise Rejected("cost.scale: not for every individually actionable feature")
        self.content: dict[str, Any] = model.content | {
            "factual": factual,
            "actionable": actionable,
            "weights": {f: weights.get(f, 1.0) for f in actionable},
            "ranges": {f: ranges.get(f) for f in actionable},
            "cost": model.content["cost"] | {"scale": {f: scale.get(f, 1.0) for f in actionable}},
        }
        self.missing = {name for name, given in factual.items() if given is None}
        self.factual = {  # 0 stands for a missing value, which nothing reads
            f.name: Fraction(0)
            if f.name in self.missing
            else f.value(factual[f.name], f"{where}factual.{f.name}", factual=True)
            for f in self.features
        }
        column = 0
        for f in self.features:
            if f.name in self.missing:
                self._check_missing(f"{where}factual.{f.name}", set(range(column, column + f.width)))
            column += f.width
        self.part = {part: Fraction(model.content["cost"][part]) for part in PARTS}
        self.weight = {f: Fraction(w) for f, w in self.content["weights"].items()}
        self.scale = {f: Fraction(s) for f, s in self.content["cost"]["scale"].items()}

    def _check_missing(self, where: str, columns: set[int]) -> None:
        """A value may be missing where the trees have a rule for it and nothing else reads it (section 2)."""
        if self.model.network or self.model.trees.without_rule & columns:
            raise Rejected(f"{where}: missing, and the classifier has no rule for it")
        if self.content["plausibility"] or any(self.model.parents.values()):
            raise Rejected(f"{where}: missing inside a causal model, or under plausibility")

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical content (section 2)."""
        own = {key: hexed(value) for key, value in self.content.items() if key not in self.model.hexed}
        text = json.dumps(self.model.hexed | own, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    @cached_property
    def levers(self) -> dict[str, tuple[Fraction, Fraction]]:
        """Feature -> lever interval where it is not empty, in the order of ``features`` (section 3)."""
        found = {}
        for f in self.features:
            if f.name not in self.weight:
                continue
            low, high = map(Fraction, f.bounds)
            for limits in (self.content["ranges"][f.name], f.domain):
                if limits is not None:
                    low, high = max(low, Fraction(limits[0])), min(high, Fraction(limits[1]))
            monotone = None if f.name in self.missing else f.monotone
            if monotone == "increase":
                low = max(low, self.factual[f.name])
            if monotone == "decrease":
                high = min(high, self.factual[f.name])
            if f.whole:
                low, high = Fraction(math.ceil(low)), Fraction(math.floor(high))
            if low <= high:
                found[f.name] = (low, high)
        return found


class Model:
    """What a file says about everyone: features, equations, classifier, cost."""

    def __init__(self, data: dict[str, Any], folder: Path) -> None:
        listed = data["features"]
        self.features = [Feature(f, f"features.{k}") for k, f in enumerate(listed)]
        names = [f.name for f in self.features]
        if len(set(names)) < len(names) or not names:
            raise Rejected("features: a name twice, or none")
        scm, self.mechanisms, self.order, self.parents = _scm(data["scm"], names)
        self._check_whole({f["name"] for f in listed if f["actionable"]})
        if data["plausibility"] and any(self.mechanisms.get(f, NOTHING)["noise"] is None for f in names):
            raise Rejected("plausibility: the causal model does not state the noise of every feature")
        classifier = _classifier(data["classifier"], folder)
        columns = sum(f.width for f in self.features)
        accept: dict[str, Any] = data["accept"] or dict.fromkeys(("at_least", "margin", "above"))
        self.network: Network | None = None
        if accept["above" if "layers" in classifier else "margin"] is not None:
            raise Rejected("accept: another classifier's")
        if "layers" in classifier:
            accept = {key: accept[key] or 0.0 for key in ("at_least", "margin")}
            needed = Fraction(accept["at_least"]) + Fraction(accept["margin"])
            self.network = Network(classifier["layers"], columns, needed)
            if classifier["dtype"] == "float32":
                numbers = [accept["at_least"]]
                for layer in classifier["layers"]:
                    numbers += itertools.chain(layer["bias"], *layer["weight"])
                if any(float32(number) != number for number in numbers):
                    raise Rejected("classifier: a number that is no float32, as its dtype says")
        else:
            usual = 0.0 if "aggregate" in classifier else 0.5
            given = {key: accept[key] for key in ("above", "at_least") if accept[key] is not None}
            if len(given) > 1:
                raise Rejected("accept: both above and at_least")
            accept = given or {"above": usual}
            self.trees = Ensemble(classifier, columns, accept)
        if set(data["cost"]["scale"] or ()) - set(names):
            raise Rejected("cost.scale: names no feature")
        cost = dict.fromkeys(PARTS, 0.0) | {data["cost"]["kind"]: 1.0} | data["cost"]
        if not any(cost[part] for part in PARTS):
            raise Rejected("cost: coefficients that are all 0")
        self.content: dict[str, Any] = {
            "features": listed,
            "scm": scm,
            "classifier": classifier,
            "accept": accept,
            "cost": {part: cost[part] or 0.0 for part in PARTS} | {"scale": cost["scale"] or {}},
            "plausibility": data["plausibility"] is not None,
        }
        self.hexed = {key: hexed(value) for key, value in self.content.items() if key != "cost"}

    def _check_whole(self, moved: set[str]) -> None:
        """Whole numbers and labels are moved by actions on themselves only (section 2).

        ``moved``: what can be acted on, to which what follows from it is added.
        """
        kinds = {f.name: f for f in self.features}
        for name in self.order:
            causes = self.parents[name]
            if (causes and kinds[name].labels) or any(kinds[f].kind == "categorical" for f in causes):
                raise Rejected(f"scm: {name}: equations neither move labels nor read those without order")
            if causes & moved:
                moved.add(name)
                if kinds[name].whole:
                    raise Rejected(
                        f"scm: actions on other features move {name}, which is no continuous feature"
                    )


class Source:
    """An instance's or a population's file."""

    def __init__(self, path: Path) -> None:
        data = conform(parse_json(read_bytes(path), path.name), FILE, path.name)
        self.population = "factuals" in data
        self.name = None if self.population else data["name"]
        self.model = Model(data, path.parent)
        self.factuals = data["factuals"] if self.population else [data["factual"]]
        self.preferences = data["preferences"]
        self.ids: list[str] = []
        if isinstance(self.factuals, dict):
            table = conform(self.factuals, {"csv": str}, "factuals")["csv"]
            self.factuals, self.ids = _table(path.parent / table, self.model.features)
        if not conform(self.factuals, [anything], "factuals"):
            raise Rejected("factuals: nobody")
        if isinstance(self.preferences, list) and len(self.preferences) != len(self.factuals):
            raise Rejected("preferences: not as many as applicants")

    def id(self, applicant: Any) -> str | None:
        """An applicant's own identifier, in one line; None where the file has none."""
        if not self.ids:
            return None
        return " ".join(self.ids[index(len(self.ids))(applicant, "index")].split())

    def instance(self, applicant: Any) -> Instance:
        """The instance a certificate's ``index`` names; None in an instance's own file (section 2)."""
        if self.population != (applicant is not None):
            raise Rejected(f"index: {'needed for' if self.population else 'only for'} a population")
        k = index(len(self.factuals))(applicant, "index") if self.population else 0
        chosen = self.preferences[k] if isinstance(self.preferences, list) else self.preferences
        return Instance(self.model, self.factuals[k], chosen, f"{k}: " if self.population else "")


def _numbers(content: dict[str, Any], where: str) -> list[list[Fraction]] | None:
    """Per label, its numbers in the classifier's columns; None: only its index (section 4)."""
    table, encoding, count = content["table"], content["encoding"], len(content["categories"] or ())
    if (encoding == "table") != (table is not None):
        raise Rejected(f"{where}.table: there exactly where encoding is table")
    if encoding == "one-hot":
        return [[Fraction(k == column) for column in range(count)] for k in range(count)]
    if table is None:
        return None
    if len(table) != count or not table or not table[0] or any(len(row) != len(table[0]) for row in table):
        raise Rejected(f"{where}.table: not one row per label, all of one length")
    return [[Fraction(number) for number in row] for row in table]


def hexed(value: Any) -> Any:
    """The value with every number as the hex digits of its double (section 2)."""
    if isinstance(value, float):
        return struct.pack(">d", conform(value, float, "a number") + 0.0).hex()  # -0.0 + 0.0 is 0.0
    if isinstance(value, dict):
        return {key: hexed(item) for key, item in value.items()}
    return [hexed(item) for item in value] if isinstance(value, list) else value


def _classifier(data: Any, folder: Path) -> dict[str, Any]:
    if isinstance(data, dict) and "path" in data:
        given = conform(data, {"path": str, "sha256": str}, "classifier")
        file = folder / given["path"]
        raw = read_raw(file)
        if hashlib.sha256(raw).hexdigest() != given["sha256"].lower():
            raise Rejected(f"classifier: {file.name} is not the file with the sha256 that the instance gives")
        data = parse_json(unpacked(raw, file), file.name)
    found: dict[str, Any] = conform(data, CLASSIFIER, "classifier")
    return forest(found) if "trees" in found else found


def _table(path: Path, features: list[Feature]) -> tuple[list[dict[str, Any]], list[str]]:
    """Applicants from CSV, and their ``id``; an empty cell is null, text that is no number stays text."""
    try:
        text = io.StringIO(read_bytes(path).decode("utf-8-sig"), newline="")
        header, *rows = [row for row in csv.reader(text) if row]
        labelled = {f.name for f in features if f.labels is not None}
        names = {f.name for f in features}
        ids = [row[header.index("id")] for row in rows] if "id" in header and "id" not in names else []
        if sorted(header) != sorted(names | ({"id"} if ids else set())):
            raise Rejected(f"{path.name}: the header is not the features")
        return [
            {
                name: _cell(cell, name in labelled)
                for name, cell in zip(header, row, strict=True)
                if name in names
            }
            for row in rows
        ], ids
    except (IndexError, ValueError, csv.Error) as error:
        raise Rejected(f"{path.name}: {error}") from None


def _cell(cell: str, label: bool) -> str | float | None:
    if not cell.strip():
        return None
    if label or not NUMBER.fullmatch(cell.strip()):
        return cell
    return float(cell)


def _scm(
    data: dict[str, Any], names: list[str]
) -> tuple[dict[str, Any], dict[str, Any], list[str], dict[str, set[str]]]:
    """Canonical SCM; feature -> mechanism; causal order; feature -> causes."""
    mechanisms: dict[str, Any] = LOANS.get(data["name"], {})
    if mechanisms and names != LOAN_FEATURES:
        raise Rejected(f"scm: {data['name']} wants exactly the features {', '.join(LOAN_FEATURES)}")
    if "mechanisms" in data:
        for f, mechanism in data["mechanisms"].items():
            _parents(mechanism["equation"], names)
            link = mechanism["link"]
            if f not in names or (link and link["scale"] == 0):
                raise Rejected(f"scm.mechanisms.{f}: no such feature, or scale 0")
            if link:
                link["offset"], link["scale"] = link["offset"] or 0.0, link["scale"] or 1.0
        data["mechanisms"] = mechanisms = {f: m for f, m in data["mechanisms"].items() if m != NOTHING}
    parents = {f: set(_parents(mechanisms.get(f, NOTHING)["equation"], names)) for f in names}
    order: list[str] = []
    while len(order) < len(names):
        ready = [f for f in names if f not in order and parents[f] <= set(order)]
        if not ready:
            raise Rejected("scm: a cycle")
        order.append(ready[0])
    return data, mechanisms, order, parents


def _parents(expression: Any, names: list[str], depth: int = 0) -> list[str]:
    """The features an equation reads; its form is checked on the way."""
    if depth > DEEPEST:
        raise Rejected(f"scm: an equation nested more than {DEEPEST} deep")
    if not isinstance(expression, dict):
        shape: Any = float if isinstance(expression, float) else set(names)
        return [f for f in (conform(expression, shape, "scm: an equation"),) if isinstance(f, str)]
    if "network" in expression:
        shape = {"network": {"layers": LAYERS}, "inputs": [anything]}
        parts = conform(expression, shape, "scm: an equation")["inputs"]
        Network(expression["network"]["layers"], len(parts), Fraction(0))
    else:
        form = next(iter(expression), None) if len(expression) == 1 else None
        conform(form, {"sum", "product", "relu", "sigmoid", "square"}, "scm: an equation")
        many = form in ("sum", "product")
        parts = conform(expression[form], list, f"scm: {form}") if many else [expression[form]]
    if not parts:
        raise Rejected("scm: an equation of nothing")
    return [name for part in parts for name in _parents(part, names, depth + 1)]

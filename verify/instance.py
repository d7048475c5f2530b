"""The instance a certificate belongs to: its canonical content, digest and levers (sections 2 and 3)."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import struct
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from verify.loan import LOAN_FEATURES, LOANS
from verify.network import Network
from verify.reading import (
    Rejected,
    a_list,
    a_number,
    a_word,
    an_index,
    an_interval,
    an_object,
    parse_json,
    positive,
    read_bytes,
    read_json,
)
from verify.trees import Ensemble

KINDS = ("continuous", "integer", "binary", "ordinal", "categorical")
PARTS = ("l0", "l1", "l2-squared", "linf")
DEEPEST = 50
NOTHING: dict[str, Any] = {"equation": 0.0, "link": None, "noise": None}


class Feature:
    """One feature, as its canonical content describes it."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.name: str = content["name"]
        self.kind: str = content["kind"]
        self.labels: list[str] | None = content["categories"]
        self.bounds = content["bounds"] if self.labels is None else [0.0, len(self.labels) - 1.0]
        self.domain: list[float] | None = content["domain"]
        self.monotone: str | None = content["monotone"]
        self.one_hot = content["encoding"] == "one-hot"
        self.whole = self.kind != "continuous"

    def value(self, given: Any, where: str) -> Fraction:
        """A file's number or label as the number the model reads."""
        if self.labels is not None:
            return Fraction(self.labels.index(a_word(given, where, self.labels)))
        value = Fraction(a_number(given, where))
        if (self.whole and value.denominator != 1) or (self.kind == "binary" and value not in (0, 1)):
            raise Rejected(f"{where}: {given!r} is not a value of a feature that is {self.kind}")
        return value


class Instance:
    """One applicant's problem, built from the very content that the digest covers."""

    def __init__(self, model: Model, factual: Any, preferences: Any, where: str) -> None:
        given = an_object(preferences, f"{where}preferences", ["actionable"], ["weights", "ranges"], {})
        names = [f["name"] for f in model.content["features"]]
        wanted = a_list(given["actionable"], f"{where}actionable")
        movable = [f["name"] for f in model.content["features"] if f["actionable"]]
        if len(set(map(str, wanted))) < len(wanted) or not all(name in movable for name in wanted):
            raise Rejected(f"{where}actionable: names what is not actionable, or a name twice")
        actionable = [name for name in names if name in wanted]
        weights, ranges = given["weights"], given["ranges"]
        for key, chosen in (("weights", weights), ("ranges", ranges)):
            an_object(chosen, f"{where}{key}", (), movable)
        self.model, self.features = model, model.features
        cost = model.content["cost"]
        self.content: dict[str, Any] = model.content | {
            "factual": an_object(factual, f"{where}factual", names),
            "actionable": actionable,
            "weights": {f: positive(weights.get(f, 1.0), f"{where}weights.{f}") for f in actionable},
            "ranges": {f: an_interval(ranges[f], f"{where}ranges.{f}") if f in ranges else None
                       for f in actionable},
            "cost": cost | {"scale": {f: positive(cost["scale"].get(f, 1.0), f"cost.scale.{f}")
                                      for f in actionable}},
        }  # fmt: skip
        if any(cost[part] for part in PARTS[1:]) and not all(f in cost["scale"] for f in actionable):
            raise Rejected("cost.scale: names not every individually actionable feature")
        self.factual = {f.name: f.value(factual[f.name], f"{where}factual.{f.name}") for f in self.features}
        self.part = {part: Fraction(cost[part]) for part in PARTS}
        self.weight = {f: Fraction(w) for f, w in self.content["weights"].items()}
        self.scale = {f: Fraction(s) for f, s in self.content["cost"]["scale"].items()}

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
            for interval in (self.content["ranges"][f.name], f.domain):
                if interval is not None:
                    low, high = max(low, Fraction(interval[0])), min(high, Fraction(interval[1]))
            if f.monotone == "increase":
                low = max(low, self.factual[f.name])
            if f.monotone == "decrease":
                high = min(high, self.factual[f.name])
            if f.whole:
                low, high = Fraction(math.ceil(low)), Fraction(math.floor(high))
            if low <= high:
                found[f.name] = (low, high)
        return found


class Model:
    """What a file says about everyone: features, equations, classifier, cost."""

    def __init__(self, data: dict[str, Any], folder: Path) -> None:
        listed = [_feature(f, f"features.{k}") for k, f in enumerate(a_list(data["features"], "features"))]
        names = [f["name"] for f in listed]
        if len(set(names)) < len(names):
            raise Rejected("features: a name twice")
        scm, self.mechanisms, self.order = _scm(data["scm"], names)
        classifier = _classifier(data["classifier"], folder)
        self.features = [Feature(f) for f in listed]
        columns = sum(len(f.labels or ()) if f.one_hot else 1 for f in self.features)
        accept = data["accept"] or {}
        self.network: Network | None = None
        if classifier["kind"] == "relu-network":
            given = an_object(accept, "accept", (), ("at_least", "margin"))
            margin = a_number(given["margin"] or 0.0, "accept.margin", 0.0)
            accept = {"at_least": a_number(given["at_least"] or 0.0, "accept.at_least"), "margin": margin}
            needed = Fraction(accept["at_least"]) + Fraction(accept["margin"])
            self.network = Network(classifier["layers"], columns, needed)
        else:
            given = an_object(accept, "accept", (), ("above",))
            accept = {"above": 0.5 if given["above"] is None else a_number(given["above"], "accept.above")}
            self.trees = Ensemble(classifier["trees"], columns, accept["above"])
            for tree in classifier["trees"]:  # a leaf's feature means nothing
                tree["feature"] = [max(number, -2.0) for number in tree["feature"]]
        plausibility = data["plausibility"]
        if plausibility is not None:
            an_object(plausibility, "plausibility", ("kind", "at_least"))
            a_word(plausibility["kind"], "plausibility.kind", ("scm-density",))
            a_word(plausibility["at_least"], "plausibility.at_least", ("factual",))
        self.content: dict[str, Any] = {
            "features": listed,
            "scm": scm,
            "classifier": classifier,
            "accept": accept,
            "cost": _cost(data["cost"], names),
            "plausibility": plausibility is not None,
        }
        self.hexed = {key: hexed(value) for key, value in self.content.items() if key != "cost"}


class Source:
    """An instance's or a population's file."""

    def __init__(self, path: Path) -> None:
        data = read_json(path)
        kind = kind_of(data, "format")
        self.population = kind == "milp-recourse/population-1"
        if not self.population and kind != "milp-recourse/instance-1":
            raise Rejected(f"{path.name}: neither an instance nor a population")
        own = ("factuals", "preferences") if self.population else ("factual", "preferences")
        optional = ("name", "description", "accept", "plausibility") + ("reference",) * (not self.population)
        data = an_object(data, path.name, ("format", "features", "scm", "classifier", "cost", *own), optional)
        self.model = Model(data, path.parent)
        self.factuals = data["factuals"] if self.population else [data["factual"]]
        self.preferences = data["preferences"]
        if isinstance(self.factuals, dict):
            table = a_word(an_object(self.factuals, "factuals", ("csv",))["csv"], "factuals.csv")
            self.factuals = _table(path.parent / table, self.model.features)
        if self.population and isinstance(self.preferences, list):
            a_list(self.preferences, "preferences", len(a_list(self.factuals, "factuals")))

    def instance(self, index: Any) -> Instance:
        """The instance a certificate's ``index`` names; None in an instance's own file (section 2)."""
        if self.population != (index is not None):
            raise Rejected(f"index: {'needed for' if self.population else 'only for'} a population")
        k = an_index(index, "index", len(self.factuals)) if self.population else 0
        chosen = self.preferences[k] if isinstance(self.preferences, list) else self.preferences
        return Instance(self.model, self.factuals[k], chosen, f"{k}: " if self.population else "")


def kind_of(data: Any, key: str = "kind") -> Any:
    """What an object says it is."""
    return data.get(key) if isinstance(data, dict) else None


def hexed(value: Any) -> Any:
    """The value with every number as the hex digits of its double (section 2)."""
    if isinstance(value, float):
        a_number(value, "a number of the instance")
        return struct.pack(">d", value + 0.0).hex()  # -0.0 + 0.0 is 0.0
    if isinstance(value, dict):
        return {key: hexed(item) for key, item in value.items()}
    return [hexed(item) for item in value] if isinstance(value, list) else value


def _feature(data: Any, where: str) -> dict[str, Any]:
    optional = ("bounds", "categories", "domain", "monotone", "encoding")
    f = an_object(data, where, ("name", "kind", "actionable"), optional)
    a_word(f["name"], f"{where}.name")
    kind = a_word(f["kind"], f"{where}.kind", KINDS)
    if not isinstance(f["actionable"], bool):
        raise Rejected(f"{where}.actionable: allowed: true or false")
    for key in ("bounds", "domain"):
        if f[key] is not None:
            f[key] = an_interval(f[key], f"{where}.{key}")
    labelled = kind in ("ordinal", "categorical")
    if labelled:
        labels = [a_word(label, where) for label in a_list(f["categories"], f"{where}.categories")]
        if not labels or len(set(labels)) < len(labels):
            raise Rejected(f"{where}.categories: none, or a label twice")
    elif f["categories"] is not None or (f["actionable"] and f["bounds"] is None):
        raise Rejected(f"{where}: numbers have bounds, labels have categories")
    if (labelled and f["bounds"]) or (kind == "categorical" and (f["domain"] or f["monotone"])):
        raise Rejected(f"{where}: labels have no bounds, and categories no order")
    if f["monotone"] is not None:
        a_word(f["monotone"], f"{where}.monotone", ("increase", "decrease"))
    default = "one-hot" if kind == "categorical" else "code"
    f["encoding"] = a_word(f["encoding"] or default, f"{where}.encoding", ("code", "one-hot")[: 1 + labelled])
    return f


def _cost(data: Any, names: list[str]) -> dict[str, Any]:
    kind = a_word(kind_of(data), "cost.kind")
    if kind.startswith("percentile"):
        raise Rejected("cost: percentiles are not covered by version 1 (section 9)")
    a_word(kind, "cost.kind", (*PARTS, "mixture"))
    given = an_object(data, "cost", ("kind",), (*PARTS, "scale") if kind == "mixture" else ("scale",))
    scale = an_object(given["scale"] or {}, "cost.scale", (), names)
    if kind == "mixture":
        cost = {part: a_number(given[part] or 0.0, f"cost.{part}", 0.0) for part in PARTS}
    else:
        cost = {part: float(part == kind) for part in PARTS}
    return cost | {"scale": {f: s for f, s in scale.items() if s is not None}}


def _classifier(data: Any, folder: Path) -> dict[str, Any]:
    if isinstance(data, dict) and "path" in data:
        given = an_object(data, "classifier", ("path", "sha256"))
        file = folder / a_word(given["path"], "classifier.path")
        raw = file.read_bytes() if file.is_file() else b""
        if hashlib.sha256(raw).hexdigest() != a_word(given["sha256"], "classifier.sha256").lower():
            raise Rejected(f"classifier: {file.name} is not the file with the sha256 that the instance gives")
        data = parse_json(read_bytes(file), file.name)
    kind = a_word(kind_of(data), "classifier.kind")
    if kind == "relu-network":
        an_object(data, "classifier", ("kind", "dtype", "layers"))
    else:
        a_word(kind, "classifier.kind", ("tree-ensemble",))
        an_object(data, "classifier", ("kind", "dtype", "trees"))
        a_word(data["dtype"], "classifier.dtype of trees", ("float32",))
    a_word(data["dtype"], "classifier.dtype", ("float32", "float64"))
    return dict(data)


def _table(path: Path, features: list[Feature]) -> list[dict[str, Any]]:
    """Applicants from CSV; labels stay text, everything else is a number."""
    try:
        text = io.StringIO(read_bytes(path).decode("utf-8-sig"), newline="")
        rows = [row for row in csv.reader(text) if row]
        labelled = {f.name for f in features if f.labels is not None}
        if not rows or sorted(rows[0]) != sorted(f.name for f in features):
            raise Rejected(f"{path.name}: the header is not the features")
        return [
            {name: cell if name in labelled else float(cell) for name, cell in zip(rows[0], row, strict=True)}
            for row in rows[1:]
        ]
    except (ValueError, csv.Error) as error:
        raise Rejected(f"{path.name}: {error}") from None


def _scm(data: Any, names: list[str]) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Canonical SCM; feature -> mechanism; causal order."""
    name = a_word(kind_of(data, "name"), "scm.name")
    an_object(data, "scm", ("name", "mechanisms") if name == "explicit" else ("name",))
    if name in LOANS:
        if names != LOAN_FEATURES:
            raise Rejected(f"scm: {name} wants exactly the features {', '.join(LOAN_FEATURES)}")
        mechanisms: dict[str, Any] = LOANS[name]
    elif name == "explicit":
        given = an_object(data["mechanisms"], "scm.mechanisms", (), names)
        mechanisms = {f: _mechanism(m, f"scm.mechanisms.{f}") for f, m in given.items() if m is not None}
        mechanisms = {f: m for f, m in mechanisms.items() if m != NOTHING}
    else:
        a_word(name, "scm.name", ("independent",))
        mechanisms = {}
    parents = {f: set(_parents(mechanisms.get(f, NOTHING)["equation"], names)) for f in names}
    order: list[str] = []
    while len(order) < len(names):
        ready = [f for f in names if f not in order and parents[f] <= set(order)]
        if not ready:
            raise Rejected("scm: a cycle")
        order.append(ready[0])
    canonical = {"name": name, "mechanisms": mechanisms} if name == "explicit" else {"name": name}
    return canonical, mechanisms, order


def _mechanism(data: Any, where: str) -> dict[str, Any]:
    m = an_object(data, where, ("equation",), ("link", "noise"))
    if m["link"] is not None:
        link = an_object(m["link"], f"{where}.link", ("kind",), ("offset", "scale"))
        a_word(link["kind"], f"{where}.link.kind", ("sigmoid",))
        scale = 1.0 if link["scale"] is None else a_number(link["scale"], f"{where}.link.scale")
        m["link"] = {"kind": "sigmoid", "offset": a_number(link["offset"] or 0.0, where), "scale": scale}
    if m["noise"] is not None:
        keys = {"normal": ("sd",), "gamma": ("shape", "scale"), "bernoulli": ("p",)}
        kind = a_word(kind_of(m["noise"]), f"{where}.noise", keys)
        an_object(m["noise"], f"{where}.noise", ("kind", *keys[kind]))
        for key in keys[kind]:
            (a_number if key == "p" else positive)(m["noise"][key], f"{where}.noise.{key}")
    return m


def _parents(expression: Any, names: list[str], depth: int = 0) -> list[str]:
    """The features an equation reads; its form is checked on the way."""
    if depth > DEEPEST:
        raise Rejected(f"scm: an equation nested more than {DEEPEST} deep")
    if isinstance(expression, float):
        return []
    if isinstance(expression, str):
        return [a_word(expression, "scm: an equation", names)]
    if isinstance(expression, dict) and set(expression) == {"network", "inputs"}:
        parts = a_list(expression["inputs"], "inputs")
        Network(an_object(expression["network"], "network", ("layers",))["layers"], len(parts), Fraction(0))
    else:
        form = next(iter(expression), None) if isinstance(expression, dict) and len(expression) == 1 else None
        a_word(form, "scm: an equation", ("sum", "product", "relu", "sigmoid", "square"))
        parts = a_list(expression[form], f"{form}") if form in ("sum", "product") else [expression[form]]
    return [name for part in parts for name in _parents(part, names, depth + 1)]

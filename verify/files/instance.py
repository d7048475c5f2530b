"""Reads instances and populations, fills in defaults, digests them, makes the kernel's problem (section 1).

This decides which problem a verdict is about; all that follows is the kernel's.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any, NamedTuple

from verify.certain.outcomes import Withstood, reads
from verify.files.classifier import (
    LAYERS,
    accepted,
    check_layers,
    ensembles,
    parted,
    read_classifier,
)
from verify.files.conditions import canonical
from verify.files.costs import COST, PARTS, canonical_cost, lever, own_scale, term
from verify.files.demands import Reader, counted, limited, settled
from verify.files.features import FEATURE, Variable, feature_content, table_cells
from verify.files.lines import Lines
from verify.files.loan import LOAN_FEATURES, LOANS
from verify.files.reading import INSTANCE, by, interval, parse_json, read_bytes, share
from verify.files.shapes import anything, conform, index, maybe, not_negative, placed, positive
from verify.kernel.checks import Rejected
from verify.kernel.checks import index as checked_index
from verify.kernel.problem import Mechanism, Model, Noise, Problem

DEEPEST = 50
MOST_FEATURES = 10_000
MOST_CONDITIONS = 10_000
MOST_CELLS = 4_000_000
NOTHING: dict[str, Any] = {"equation": 0.0, "link": None, "noise": None}


NOISE = by(
    "kind",
    {
        "normal": {"sd": positive},
        "gamma": {"shape": positive, "scale": positive},
        "bernoulli": {"p": share},
        "mixture": {"weights": [positive], "means": [float], "sds": [positive]},
    },
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
PREFERENCES = {
    "actionable": [str],
    "weights?": {str: positive},
    "ranges?": {str: interval},
    "conditions?": [anything],
    "density_offset?": maybe(float),
}
SHARED = {
    "name?": maybe(str),
    "description?": maybe(str),
    "features": [FEATURE],
    "scm": SCM,
    "classifier": anything,
    "accept?": {"at_least?": maybe(float), "margin?": maybe(not_negative), "above?": maybe(float)},
    "cost": COST,
    "plausibility?": maybe({"kind": {"scm-density"}, "at_least": {"factual"}, "offset?": maybe(float)}),
    "conditions?": [anything],
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
        "milp-recourse/population-1": SHARED
        | {"factuals": anything, "preferences": anything, "ids?": maybe([str])}
        | {"margins?": maybe([maybe(not_negative)])},
    },
)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class Applicant(NamedTuple):
    """One applicant's problem, and the digest of the content that the problem was made of.

    Attributes
    ----------
    variables
        The features with their labels.
    """

    problem: Problem
    digest: str
    variables: dict[str, Variable]

    def numbers(self, action: dict[str, Any] | None) -> dict[str, Fraction]:
        """A certificate's action with labels by their numbers.

        A feature that is no lever gets 0: the kernel rejects the action by the feature's name.
        """
        return {
            name: self.variables[name].value(given, f"action.{name}")
            if name in self.problem.levers
            else Fraction(0)
            for name, given in (action or {}).items()
        }

    def check_withstood(self, withstood: Withstood) -> None:
        """Reject distances and noise that section 12.1 does not allow."""
        for part in (withstood.missed, withstood.noise, *(p for one in withstood.scenarios for p in one)):
            if unknown := part.keys() - self.variables.keys():
                raise Rejected(f"withstands: {min(unknown)[:40]!r} is no feature")
        for f, distance in withstood.missed.items():
            kind = self.variables[f].kind
            if kind not in ("continuous", "integer") or (kind == "integer" and distance.denominator != 1):
                raise Rejected(f"withstands.missed.{f}: allowed: numbers, whole ones if it is integer")
        for f, (low, high) in withstood.noise.items():
            if self.variables[f].feature.whole or not low <= 0 <= high:
                raise Rejected(f"withstands.noise.{f}: allowed: if it is continuous, with 0 inside")


class Everyone:
    """What all applicants of a file share, in canonical form (section 1).

    Attributes
    ----------
    content, written
        Canonical content by key; its JSON text for the digest, without the cost, whose scale is each
        applicant's.
    model
        The same for the kernel.
    parents
        By feature, the features that its equation reads.
    """

    def __init__(self, data: dict[str, Any], folder: Path) -> None:
        if len(data["features"]) > MOST_FEATURES:
            raise Rejected(f"features: more than {MOST_FEATURES} (section 9)")
        features = [feature_content(f, f"features.{k}") for k, f in enumerate(data["features"])]
        if sum(table_cells(f) for f in features) > MOST_CELLS:
            raise Rejected(
                f"features: tables of more than {MOST_CELLS} numbers, one-hot included (section 9)"
            )
        self.variables = {f["name"]: Variable(f) for f in features}
        if len(self.variables) < len(features) or not features:
            raise Rejected("features: allowed: one or more, each with a name of its own")
        scm, mechanisms = _scm(data["scm"], list(self.variables))
        self.content: dict[str, Any] = {
            "features": features,
            "scm": scm,
            "classifier": read_classifier(data["classifier"], folder),
            "cost": canonical_cost(data["cost"], features),
            "plausibility": data["plausibility"] is not None,
        }
        self.offset: float = (data["plausibility"] or {}).get("offset") or 0.0
        kernels = [one.feature for one in self.variables.values()]
        widths = [len(f.table[0]) if f.table else 1 for f in kernels]
        classifier = self.content["classifier"]
        accept = accepted(classifier, data["accept"], sum(widths))
        self.content["accept"] = accept
        self.written = {key: written(value) for key, value in self.content.items() if key != "cost"}
        self.parents = {
            name: set(reads(mechanisms.get(name, NOTHING)["equation"])) for name in self.variables
        }
        order = causes_first(self.parents)
        places = [(i, k) for i, width in enumerate(widths) for k in range(width)]
        front, layers = parted(classifier.get("layers"))
        self.model = Model(
            features=kernels,
            mechanisms={name: _mechanism(mechanisms.get(name, NOTHING)) for name in order},
            plausible=self.content["plausibility"],
            front=front,
            layers=layers,
            single=classifier["dtype"] == "float32",
            at_least=accept.get("at_least", 0.0),
            margin=accept.get("margin", 0.0),
            forests=ensembles(classifier, accept, places),
            one_suffices=classifier.get("combine") == "largest" and len(classifier["parts"]) > 1,
        )
        self._check_whole({f["name"] for f in features if f["actionable"]})
        noises = {f: own["noise"] or {} for f, own in mechanisms.items()}
        self.mixtures = {f for f, noise in noises.items() if noise.get("kind") == "mixture"}
        if data["plausibility"] and any(mechanisms.get(name, NOTHING)["noise"] is None for name in order):
            raise Rejected("plausibility: the causal model does not state the noise of every feature")
        self.conditions = self.canonical_conditions(data["conditions"], "conditions")

    @cached_property
    def without_rule(self) -> set[int]:
        """The numbers of features on which some tree splits without a rule for missing values."""
        every = (node for forest in self.model.forests for tree in forest.trees for node in tree)
        lacking = {node[0] for node in every if isinstance(node, tuple) and node[4] is None}
        return {forest.places[column][0] for forest in self.model.forests for column in lacking}

    def canonical_conditions(self, conditions: list[Any] | None, where: str) -> list[dict[str, Any]]:
        """Conditions in canonical form."""
        if sum(map(_conditions_in, conditions or [])) > MOST_CONDITIONS:
            raise Rejected(f"{where}: more than {MOST_CONDITIONS} (section 9)")
        return [canonical(one, self.variables, f"{where}.{k}") for k, one in enumerate(conditions or [])]

    def _check_whole(self, moved: set[str]) -> None:
        """Reject equations that section 1 rules out.

        Only an action on itself may move a whole-valued feature; a feature with labels has no causes, and a
        categorical one has no effects. ``moved``: the features that can be acted on; their effects are added.
        """
        for name in self.model.mechanisms:
            if any(self.variables[cause].kind == "categorical" for cause in self.parents[name]):
                raise Rejected(f"scm: the equation of {name} reads a categorical feature; allowed: others")
            if self.parents[name] and self.variables[name].labels is not None:
                raise Rejected(f"scm: {name} has labels; allowed: an equation that reads no feature")
            if self.parents[name] & moved:
                moved.add(name)
                if self.variables[name].feature.whole:
                    raise Rejected(
                        f"scm: actions on other features move {name}; allowed: only if it is continuous"
                    )

    def applicant(self, factual: Any, preferences: Any, margin: float | None = None) -> Applicant:
        """One applicant's problem, from factual values, preferences and margin as the file has them (None:
        everybody's margin)."""
        factual = conform(factual, {str: anything}, "factual")
        if odd := factual.keys() ^ self.variables.keys():
            raise Rejected(f"factual: {min(odd)[:40]!r} is missing, or no feature")
        given = conform(preferences, PREFERENCES, "preferences")
        weights, ranges, scale = given["weights"] or {}, given["ranges"] or {}, self.content["cost"]["scale"]
        movable = [f["name"] for f in self.content["features"] if f["actionable"]]
        if wrong := {*given["actionable"], *weights, *ranges} - set(movable):
            raise Rejected(f"preferences: {min(wrong)[:40]!r} is named; allowed: actionable features")
        actionable = [f for f in movable if f in given["actionable"]]
        if len(given["actionable"]) > len(actionable):
            raise Rejected("preferences.actionable: a name twice")
        if any(self.content["cost"][part] for part in PARTS[1:]) and (rest := {*actionable} - {*scale}):
            raise Rejected(f"cost: no scale or quantiles for {min(rest)[:40]}, which is actionable")
        person: dict[str, Any] = {
            "factual": factual,
            "actionable": actionable,
            "weights": {f: weights.get(f, 1.0) for f in actionable},
            "ranges": {f: ranges.get(f) for f in actionable},
            "cost": self.content["cost"]
            | {"scale": {f: own_scale(scale.get(f, 1.0), factual[f], f) for f in actionable}},
        }
        own = given["density_offset"]
        if own is not None and not self.content["plausibility"]:
            raise Rejected("preferences.density_offset: plausibility is not asked for")
        offset = self.offset if own is None else own
        if offset:
            person["density_offset"] = offset
        if "quantiles" in person["cost"]:
            person["cost"]["quantiles"] = {
                f: knots for f, knots in person["cost"]["quantiles"].items() if f in actionable
            }
        own_conditions = self.canonical_conditions(given["conditions"], "preferences.conditions")
        conditions = self.conditions + own_conditions
        if conditions:
            person["conditions"] = conditions
        if margin is not None:
            person["accept"] = self.content["accept"] | {"margin": margin}
        problem = self._problem(person)
        parts = self.written | {key: written(value) for key, value in person.items()}
        return Applicant(problem, digest(parts), self.variables)

    def _problem(self, person: dict[str, Any]) -> Problem:
        """Make the kernel's problem of an applicant's canonical content."""
        missing = {name for name, given in person["factual"].items() if given is None}
        factual = {
            name: Fraction(0)
            if name in missing
            else one.value(person["factual"][name], f"factual.{name}", factual=True)
            for name, one in self.variables.items()
        }
        self._check_missing(missing)
        known = {f: None if f in missing else x for f, x in factual.items()}
        contents = {f["name"]: f for f in self.content["features"] if f["name"] in person["ranges"]}
        lattices = {f: self.variables[f].feature.lattice for f in contents}
        may = {f: lever(one, lattices[f], person["ranges"][f], known[f]) for f, one in contents.items()}
        levers = {f: ends for f, ends in may.items() if ends}
        for f in levers if self.model.plausible else ():
            if f in self.mixtures:
                raise Rejected(f"plausibility: {f} is acted on; allowed: noise that is no mixture")
        cost, weights = person["cost"], person["weights"]
        conditions = person.get("conditions", [])
        moved = set(levers)
        for name in self.model.mechanisms:  # causes before effects
            if self.parents[name] & moved:
                moved.add(name)
        demand = Reader(self.variables, factual, missing, self.variables.keys() - moved).all(conditions)
        most, demand = limited(demand, levers)
        own = replace(self.model, margin=person["accept"]["margin"]) if "accept" in person else self.model
        return Problem(
            own,
            factual,
            missing,
            levers=levers,
            terms={
                f: term(cost, f, weights[f], contents[f]["kind"] == "categorical", known[f], lattices[f])
                for f in levers
            },
            fixed={f: Fraction(cost["l0"]) * Fraction(weights[f]) for f in levers},
            power=1 + cost.get("root", False),
            offset=Fraction(person.get("density_offset", 0.0)),
            demand=partial(settled, demand),
            asked_about=counted(demand) & levers.keys(),
            most=most,
            under=lambda some: self._problem(
                person | {"conditions": [conditions[checked_index(k, len(conditions))] for k in some]}
            ),
        )

    def _check_missing(self, missing: set[str]) -> None:
        """Reject a missing value for which the classifier has no rule, or which anything else reads."""
        for i, f in enumerate(self.model.features):
            if f.name not in missing:
                continue
            if self.model.layers or i in self.without_rule:
                raise Rejected(f"factual.{f.name}: missing, and the classifier has no rule for it")
            if self.model.plausible or any(self.parents.values()):
                raise Rejected(f"factual.{f.name}: missing inside a causal model, or under plausibility")


def _mechanism(given: dict[str, Any]) -> Mechanism:
    """A feature's mechanism for the kernel: equation, link, and the noise's -log density (section 2)."""
    link, noise = given["link"], given["noise"] or {}
    kind = noise.get("kind")
    size = {key: Fraction(n) for key, n in noise.items() if key != "kind" and kind != "mixture"}
    known = Noise()
    if kind == "normal":
        known = Noise(square=1 / (2 * size["sd"] ** 2))
    elif kind == "gamma":
        known = Noise(linear=1 / size["scale"], logs=((1 - size["shape"], Fraction(0), Fraction(1)),))
    elif kind == "bernoulli":
        p = size["p"]
        known = Noise(logs=((Fraction(-1), 1 - p, 2 * p - 1),) if 2 * p != 1 else (), coin=True)
    sigmoid = None if link is None else (Fraction(link["offset"]), Fraction(link["scale"]))
    return Mechanism(given["equation"], sigmoid, known)


def _conditions_in(condition: Any) -> int:
    """How many objects and labels a condition is made of, itself included."""
    parts = condition.values() if isinstance(condition, dict) else condition
    return 1 + sum(map(_conditions_in, parts)) if isinstance(condition, dict | list) else 1


def causes_first(parents: Mapping[str, set[str]]) -> list[str]:
    """The features, each after those that its equation reads."""
    waits, effects = {f: len(causes) for f, causes in parents.items()}, dict[str, list[str]]()
    for f, causes in parents.items():
        for cause in causes:
            effects.setdefault(cause, []).append(f)
    order = [f for f, count in waits.items() if not count]
    for f in order:  # the loop appends to it
        for effect in effects.get(f, ()):
            waits[effect] -= 1
            order += [effect] if not waits[effect] else []
    if len(order) < len(parents):
        raise Rejected(f"scm: the causes of {next(f for f in waits if waits[f])} lead in a circle")
    return order


class Source:
    """An instance's or a population's file.

    Attributes
    ----------
    files
        All files that the problem is read from: this one, and those of the classifier and the table if they
        have files of their own.
    """

    def __init__(self, path: Path) -> None:
        data = conform(parse_json(read_bytes(path, INSTANCE), path.name, INSTANCE), FILE, path.name)
        self.population = "factuals" in data
        self.name = None if self.population else data["name"]
        with placed(path.name):
            self.everyone = Everyone(data, path.parent)
        self.factuals: Any = data["factuals"] if self.population else [data["factual"]]
        self.preferences = data["preferences"]
        self.ids: list[str] = (data["ids"] or []) if self.population else []
        if self.ids and (isinstance(self.factuals, dict) or len(self.ids) != len(self.factuals)):
            raise Rejected(f"{path.name}: ids: allowed: one per applicant, and only where factuals is a list")
        self.files = [path]
        named = data["classifier"].get("path") if isinstance(data["classifier"], dict) else None
        self.files += [path.parent / named] if isinstance(named, str) else []
        if isinstance(self.factuals, dict):
            self.files.append(path.parent / conform(self.factuals, {"csv": str}, path.name)["csv"])
            self.factuals = People(self.files[-1], list(self.everyone.variables.values()))
        else:
            conform(self.factuals, [anything], f"{path.name}.factuals")
        if not len(self.factuals):
            raise Rejected(f"{path.name}: factuals: got nobody; allowed: one applicant or more")
        if isinstance(self.preferences, list) and len(self.preferences) != len(self.factuals):
            raise Rejected(f"{path.name}: preferences: allowed: a list of {len(self.factuals)}, or an object")
        self.margins: list[float | None] | None = data["margins"] if self.population else None
        one_each = self.margins is None or len(self.margins) == len(self.factuals)
        if not one_each or (self.margins is not None and not self.everyone.model.layers):
            raise Rejected(f"{path.name}: margins: allowed: one per applicant, and only for a network")

    def id(self, applicant: Any) -> str | None:
        """The identifier that the file gives an applicant, in one line; None where it gives none."""
        if not self.ids and not isinstance(self.factuals, People):
            return None
        k = index(len(self.factuals))(applicant, "index")
        return " ".join(self.ids[k].split()) if self.ids else self.factuals.id(k)

    def applicant(self, which: Any) -> Applicant:
        """The problem of the applicant with this ``index``; None for the one of an instance."""
        if self.population != (which is not None):
            raise Rejected(f"index: {'needed for' if self.population else 'only for'} a population")
        k = index(len(self.factuals))(which, "index") if self.population else 0
        chosen = self.preferences[k] if isinstance(self.preferences, list) else self.preferences
        with placed(f"{self.files[0].name}: applicant {k}" if self.population else self.files[0].name):
            margin = None if self.margins is None else self.margins[k]
            return self.everyone.applicant(self.factuals[k], chosen, margin)


def written(value: Any) -> str:
    """The JSON text that is digested: keys sorted, numbers as the hex digits of their doubles (section 1)."""
    return "".join(_pieces(value))


def _pieces(value: Any) -> Iterator[str]:
    """The same piece by piece, as there may be millions of numbers."""
    kinds = {float} if isinstance(value, array) else {*map(type, value)} if isinstance(value, list) else set()
    if isinstance(value, dict):
        yield from _object({key: _pieces(item) for key, item in value.items()})
    elif isinstance(value, float):
        yield _digits([value])
    elif not isinstance(value, list | array) or kinds <= {bool, str}:
        yield json.dumps(value, separators=(",", ":"))
    elif kinds == {float}:
        yield f"[{_digits(value)}]"
    else:
        for before, item in zip(chain("[", repeat(",")), value, strict=False):
            yield before
            yield from _pieces(item)
        yield "]"


def _object(parts: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """An object's text from the pieces of its values."""
    yield "{"
    for k, key in enumerate(sorted(parts)):
        yield f"{',' if k else ''}{json.dumps(key)}:"
        yield from parts[key]
    yield "}"


def _digits(value: Sequence[float]) -> str:
    """One or more numbers as the hex digits of their doubles."""
    for item in value if isinstance(value, list) and not all(map(math.isfinite, value)) else ():
        conform(item, float, "a number of the instance")
    doubles = array("d", value)
    if sys.byteorder == "little":
        doubles.byteswap()
    raw = doubles.tobytes()
    digits = raw.hex(",", 8)
    if b"\x80" + bytes(7) in raw:  # perhaps -0.0
        digits = digits.replace("8000000000000000", "0" * 16)
    return '"' + digits.replace(",", '","') + '"'


def digest(parts: Mapping[str, str]) -> str:
    """The sha256 of an object of which the values are written already."""
    found = hashlib.sha256()
    for piece in _object({key: [text] for key, text in parts.items()}):
        found.update(piece.encode("ascii"))
    return found.hexdigest()


class People:
    """Applicants from a CSV file; each is read when it is asked for.

    An empty cell becomes None, a cell that is no number becomes text.
    """

    def __init__(self, path: Path, features: list[Variable]) -> None:
        self.lines, names = Lines(path), {f.name for f in features}
        self.labelled = {f.name for f in features if f.labels is not None}
        self.ids = "id" in self.lines.header and "id" not in names and len(self.lines) > 0
        if sorted(self.lines.header) != sorted(names | ({"id"} if self.ids else set())):
            raise Rejected(f"{path.name}: the header: allowed: each feature once, and perhaps id")

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, k: int) -> dict[str, Any]:
        row = self._row(k)
        return {
            name: _cell(cell, name in self.labelled)
            for name, cell in row.items()
            if name != "id" or not self.ids
        }

    def id(self, k: int) -> str | None:
        """The identifier in an applicant's row, in one line; None where there is no such column."""
        return " ".join(self._row(k)["id"].split()) if self.ids else None

    def _row(self, k: int) -> dict[str, str]:
        cells = self.lines[k]
        if len(cells) != len(self.lines.header):
            raise Rejected(f"{self.lines.path.name}: row {k}: got {len(cells)} cells, unlike the header")
        return dict(zip(self.lines.header, cells, strict=True))


def _cell(cell: str, label: bool) -> str | float | None:
    if not cell.strip():
        return None
    if label or not NUMBER.fullmatch(cell.strip()):
        return cell
    return float(cell)


def _scm(data: dict[str, Any], names: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The canonical causal model, and its mechanisms; a built-in model's mechanisms are written out."""
    if data["name"] in LOANS and names != LOAN_FEATURES:
        raise Rejected(f"scm: {data['name']} wants exactly the features {', '.join(LOAN_FEATURES)}")
    known = set(names)
    for f, mechanism in data.get("mechanisms", {}).items():
        with placed(f"scm.mechanisms.{f}"):
            _check_equation(mechanism["equation"], known)
        link = mechanism["link"]
        if f not in known or (link and link["scale"] == 0):
            raise Rejected(f"scm.mechanisms.{f}: there is no such feature, or its link has scale 0")
        if link:
            link["offset"], link["scale"] = link["offset"] or 0.0, link["scale"] or 1.0
    if "mechanisms" in data:
        data["mechanisms"] = {f: m for f, m in data["mechanisms"].items() if m != NOTHING}
    return data, data.get("mechanisms") or LOANS.get(data["name"], {})


def _check_equation(expression: Any, names: set[str], depth: int = 0) -> None:
    """Reject an equation that is not of a known form, reads an unknown feature, or is nested too deeply."""
    if depth > DEEPEST:
        raise Rejected(f"equation: nested more than {DEEPEST} deep")
    if not isinstance(expression, dict):
        conform(expression, float if isinstance(expression, float) else names, "equation")
        return
    if "network" in expression:
        shape = {"network": {"layers": LAYERS}, "inputs": [anything]}
        parts = conform(expression, shape, "equation")["inputs"]
        check_layers(expression["network"]["layers"], len(parts))
    else:
        form = next(iter(expression), None) if len(expression) == 1 else None
        conform(form, {"sum", "product", "relu", "sigmoid", "square"}, "equation")
        many = form in ("sum", "product")
        parts = conform(expression[form], list, f"equation: {form}") if many else [expression[form]]
    if not parts:
        raise Rejected("equation: a sum, product or inputs of nothing; allowed: of one or more")
    for part in parts:
        _check_equation(part, names, depth + 1)

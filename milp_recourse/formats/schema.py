"""Instances, populations and their costs: how files state them, and how they are read; every rule of the
format is checked.

The JSON Schema files in ``schemas/`` are generated from these models.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag

from milp_recourse.errors import BadInput, dotted, got_text
from milp_recourse.formats.people_csv import people_rows
from milp_recourse.formats.schema_classifiers import AcceptModel, StatedClassifier
from milp_recourse.formats.schema_conditions import StatedCondition
from milp_recourse.formats.schema_features import StatedFeatures, StatedPreferences
from milp_recourse.formats.schema_scm import StatedScm
from milp_recourse.formats.stated import (
    Known,
    Labels,
    NonNegative,
    Number,
    Positive,
    Stated,
    Strict,
    Value,
    as_json,
    frozen,
    states,
    validate,
)
from milp_recourse.formats.strict_json import read_json
from milp_recourse.problem.cost import (
    KINDS,
    MEASURES,
    PERCENTILES,
    Cost,
    CostKind,
    Distance,
    Measure,
    Quantiles,
    Ranks,
)
from milp_recourse.problem.features import build_factual
from milp_recourse.problem.instance import (
    Acceptance,
    Instance,
    Preferences,
    Reference,
    check_abduction,
    check_density,
)
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.population import ID, FactualTable, Population, as_table, undefined_values

INSTANCE_FORMAT = "milp-recourse/instance-1"
POPULATION_FORMAT = "milp-recourse/population-1"


_OBJECTS = {
    one: states(one, **{name: Field(alias=key) for name, key in one.keys.items()})
    for one in MEASURES
    if one.word is None
}
_KEYS = {one: model.json_keys() for one, model in _OBJECTS.items()}
_WORDS = {one.word: one for one in MEASURES if one.word is not None}


def _scale_form(value: Any) -> str:
    if isinstance(value, dict):
        # of those with most keys in common, one with fewest others
        likeliest = max(_KEYS, key=lambda one: (len(value.keys() & _KEYS[one]), -len(_KEYS[one])))
        return f"{likeliest.__name__}: ..."
    return "word" if isinstance(value, str) else "number"


_FORMS = (
    Annotated[Positive, Tag("number")],
    Annotated[Literal[tuple(_WORDS)], Tag("word")],
    *(Annotated[model, Tag(f"{one.__name__}: ...")] for one, model in _OBJECTS.items()),
)
_SAID = [f"{word}: {(one.__doc__ or '').splitlines()[0]}" for word, one in _WORDS.items()]
ScaleOf: Any = Annotated[
    reduce(or_, _FORMS), Discriminator(_scale_form), Field(description="; ".join(["s > 0", *_SAID]))
]
"""How a file states a feature's measure: a scale, or as one of :data:`MEASURES`."""

_SHOWN = [", ".join(f'"{key}": s' for key in keys) for keys in _KEYS.values()]
SCALE_FORMS = ", ".join(
    ["a finite number above 0", *(f"{{{keys}}}" for keys in _SHOWN), *(f'or "{word}"' for word in _WORDS)]
)
"""The same in words."""


def _measure(stated: Any, known: Known) -> Measure:
    """The measure; BadInput if its numbers do not fit each other, with the key of the one that it names."""
    if isinstance(stated, float):
        return Distance(stated, stated)
    if isinstance(stated, str):
        return _WORDS[stated]()
    try:
        measure: Measure = stated.build(known)
    except ValueError as fault:
        got, allowed, *names = fault.args
        keys = [type(stated).model_fields[name].alias or name for name in names]
        raise BadInput(dotted(*keys), got, allowed) from None
    return measure


_of_two = as_json.dispatch(Distance)


@as_json.register(Distance)
def _(measure: Distance, labels: Labels = None) -> Any:
    return measure.rise if measure.rise == measure.fall else _of_two(measure, labels)


for _one in _WORDS.values():
    as_json.register(_one, lambda measure, labels=None: measure.word)


@as_json.register(Ranks)
def _(measure: Ranks, _: Labels = None) -> Any:
    return measure.levels.knots


OneScale = Annotated[Measure, Stated(ScaleOf, _measure)]
"""A feature's measure, read from such a form."""
Scale = dict[str, OneScale]


def _kinds(choose: Callable[[CostKind], bool]) -> Any:
    """A type of the names of those costs that ``choose`` is true of."""
    return Literal[tuple(name for name, kind in KINDS.items() if choose(kind))]


if TYPE_CHECKING:
    ScaledKind = str
    CountKind = str
    PercentileKind = str
else:
    ScaledKind = _kinds(lambda kind: kind.axis == "value" and set(kind.parts) != {"l0"})
    CountKind = _kinds(lambda kind: set(kind.parts) == {"l0"})
    PercentileKind = _kinds(lambda kind: kind.axis != "value")


def _check_measures(measures: Mapping[str, Measure], known: Known) -> None:
    """Check that the features exist, and can have the measures that they are given."""
    for name, own in measures.items():
        if name not in known.features:
            raise BadInput(dotted(own.field, name), "an unknown feature", ", ".join(known.features))
        if fault := own.why_not(known.features[name].kind):
            raise BadInput(dotted(own.field, name), *fault)


class ScaledModel(Strict):
    """A cost of changes in units of the features' scales."""

    kind: ScaledKind
    scale: Scale

    def build(self, known: Known) -> Cost:
        """The cost; BadInput if a feature is unknown, or cannot have its scale."""
        _check_measures(self.scale, known)
        return Cost.pure(self.kind, self.scale)


class CountModel(ScaledModel):
    """The cost l0: the sum of w over the features acted on."""

    kind: CountKind
    scale: Scale = Field(default_factory=dict)


class MixtureModel(Strict):
    """A non-negative combination of the costs l2-squared, l1, linf and l0; some coefficient is positive."""

    kind: Literal["mixture"]
    l2_squared: NonNegative = Field(default=0.0, alias="l2-squared")
    l1: NonNegative = 0.0
    linf: NonNegative = 0.0
    l0: NonNegative = 0.0
    scale: Scale = Field(default_factory=dict)

    def build(self, known: Known) -> Cost:
        """The cost; BadInput also if all coefficients are 0."""
        _check_measures(self.scale, known)
        parts = {name: getattr(self, name) for name in ("l0", "l2_squared", "l1", "linf")}
        if not any(parts.values()):
            raise BadInput("", "coefficients that are all 0", "l0, l1, l2-squared or linf above 0")
        return Cost(**parts, measures=self.scale)


Knot = Annotated[
    list[Number],
    Field(
        min_length=2, max_length=2, description="value, and its probability p (log-percentile: -log(1 - p))"
    ),
]


class PercentileModel(Strict):
    """Sum (or maximum) of w |Q(a) - Q(x)|, Q being piecewise linear through the knots."""

    kind: PercentileKind
    quantiles: dict[str, Annotated[list[Knot], Field(min_length=2)]]

    def build(self, known: Known) -> Cost:
        """The cost; BadInput also if knots are not those of a distribution function."""
        quantiles = {name: Quantiles(*zip(*knots, strict=True)) for name, knots in self.quantiles.items()}
        categorical = [f.name for f in known.features.values() if f.kind == "categorical"]
        cost = Cost.percentile(self.kind, quantiles, categorical)
        _check_measures({name: cost.measures[name] for name in quantiles}, known)
        for name, knots in self.quantiles.items():
            for k, knot in enumerate(knots):
                if allowed := self._why_not(knot, knots[k - 1] if k else None):
                    raise BadInput(dotted("quantiles", name, k), list(knot), allowed)
        return cost

    def _why_not(self, knot: list[float], before: list[float] | None) -> str | None:
        """What is allowed, if a knot is not: values ascend, probabilities (or logarithms) never fall, and
        slopes are finite."""
        logarithms = KINDS[self.kind].axis == "log-percentile"
        if not 0 <= knot[1] <= (math.inf if logarithms else 1.0):
            return "-log(1 - p), 0 or more" if logarithms else "a probability from 0 to 1"
        if before is None:
            return None
        step, rise = knot[0] - before[0], knot[1] - before[1]
        if not (step > 0 and rise >= 0):
            return "a value above the knot before, and a probability not below it"
        finite = math.isfinite(step) and math.isfinite(rise / step)
        return None if finite else "a value at a distance whose inverse is a number"


CostModel = Annotated[ScaledModel | CountModel | MixtureModel | PercentileModel, Field(discriminator="kind")]
StatedCost = Annotated[Cost, Stated(CostModel)]


def check_scale(cost: Cost, preferences: Preferences, path: str = "preferences") -> None:
    """Check that every individually actionable feature has a scale (or quantiles), unless the cost is l0."""
    field, wanted = ("quantiles", "knots") if cost.kind in PERCENTILES else ("scale", "a number above 0")
    for name in preferences.actionable:
        if not cost.covers(name):
            allowed = f"{wanted}, since {path}.actionable names it"
            raise BadInput(dotted(f"cost.{field}", name), "nothing", allowed)


def scales_to_dict(cost: Cost) -> dict[str, Any]:
    """The scales as JSON: a number, an object of two, or ``"factual"`` per feature; 1 under percentiles."""
    return {name: as_json(own) if own.field == "scale" else 1.0 for name, own in cost.measures.items()}


def cost_to_dict(cost: Cost) -> dict[str, Any]:
    """The cost as JSON."""
    if cost.kind in PERCENTILES:
        ranks = {name: as_json(own) for name, own in cost.measures.items() if own.field == "quantiles"}
        return {"kind": cost.kind, "quantiles": ranks}
    written: dict[str, Any] = {"kind": cost.kind, "scale": scales_to_dict(cost)}
    if cost.kind == "mixture":
        written |= cost.written_parts
    return written


def settled_cost_to_dict(cost: Cost, names: Sequence[str]) -> dict[str, Any]:
    """The cost of changing these features as an instance's digest has it: coefficients, the scales (1 where
    there is none), and in percentiles the knots of the distribution functions."""
    own = {name: cost.measures[name].settled for name in names if name in cost.measures}
    stated = {
        field: {name: as_json(one) for name, one in own.items() if one.field == field}
        for field in ("scale", "quantiles")
    }
    scale = {**dict.fromkeys(names, 1.0), **stated["scale"]}
    measures = {**stated, "scale": scale} if cost.kind in PERCENTILES else {"scale": scale}
    return {**cost.written_parts, **measures, **({"root": True} if cost.is_root else {})}


class PlausibilityModel(Strict):
    """log p(counterfactual) >= log p(factual) + offset under the SCM."""

    kind: Literal["scm-density"]
    at_least: Literal["factual"]
    offset: Number = Field(default=0.0, description="in nats; below 0, the density may fall so far")


ReferenceModel = states(
    Reference, status=(Literal["optimal", "infeasible", "limit", "found", "not-found"], ...)
)


class Problem(Strict):
    """What an instance and a population share."""

    name: str | None = None
    description: str | None = None
    features: StatedFeatures
    scm: StatedScm
    classifier: StatedClassifier
    accept: Annotated[Acceptance, Stated(AcceptModel)] = Field(AcceptModel(), validate_default=True)
    cost: StatedCost
    plausibility: PlausibilityModel | None = None
    conditions: list[StatedCondition] = Field(
        default_factory=list, description="conditions for every applicant; all must hold"
    )

    def shared(self) -> dict[str, Any]:
        """What all applicants have in common, as fields of :class:`Instance`."""
        if self.plausibility is not None:
            check_density(self.scm)
        own = {name: frozen(getattr(self, name)) for name in Problem.model_fields if name != "plausibility"}
        offset = 0.0 if self.plausibility is None else self.plausibility.offset
        return {**own, "plausible": self.plausibility is not None, "density_offset": offset}

    def check(self, preferences: Preferences, path: str) -> None:
        """Check that scales are given, and no density offset without plausibility, where it would mean
        nothing."""
        check_scale(self.cost, preferences, path)
        if self.plausibility is None and preferences.density_offset is not None:
            offset = preferences.density_offset
            raise BadInput(f"{path}.density_offset", offset, "nothing: plausibility is not asked for")


class InstanceModel(Problem):
    """One applicant's recourse problem."""

    format: Literal["milp-recourse/instance-1"]
    factual: dict[str, Value | None] = Field(
        description="value per feature; null if it is missing, which trees with missing_left allow"
    )
    preferences: StatedPreferences
    reference: Annotated[Reference, Stated(ReferenceModel)] | None = None

    def build(self, _: Known) -> Instance:
        """The instance.

        Raises
        ------
        BadInput
            The parts do not fit each other.
        """
        shared = self.shared()
        self.check(self.preferences, "preferences")
        factual = build_factual(self.factual, self.features, "factual")
        instance = Instance(**shared, factual=factual, preferences=self.preferences, reference=self.reference)
        check_abduction(instance, factual)
        return instance


StatedInstance = Annotated[Instance, Stated(InstanceModel)]


class CsvModel(Strict):
    """A CSV table with a column per feature, and perhaps a column id; one applicant per row."""

    csv: Annotated[str, StringConstraints(min_length=1)] = Field(description="relative to this file")


def _list_or_object(value: Any) -> str:
    return "list" if isinstance(value, list) else "object"


class PopulationModel(Problem):
    """Many applicants, one model."""

    format: Literal["milp-recourse/population-1"]
    factuals: Annotated[
        Annotated[list[dict[str, Value | None]], Field(min_length=1), Tag("list")]
        | Annotated[CsvModel, Tag("object")],
        Discriminator(_list_or_object),
    ]
    preferences: Annotated[
        Annotated[list[StatedPreferences], Tag("list")] | Annotated[StatedPreferences, Tag("object")],
        Discriminator(_list_or_object),
    ]
    ids: list[str] | None = Field(
        None, description="the applicants' own identifiers, beside a list of factuals"
    )
    margins: list[NonNegative | None] | None = Field(
        None, description="networks: each applicant's margin; null, or no list: accept.margin"
    )

    def build(self, known: Known) -> Population:
        """The population. The errors of applicants whose values cannot be read are kept in it.

        Raises
        ------
        BadInput
            The parts do not fit each other, or no applicant can be read (then the error is the first one's).
        """
        problem = Instance(**self.shared(), factual={}, preferences=Preferences())
        factuals, unreadable, ids = self._people(problem, known)
        several = isinstance(self.preferences, list)
        preferences = self.preferences if isinstance(self.preferences, list) else [self.preferences]
        for k, one in enumerate(preferences):
            self.check(one, f"preferences.{k}" if several else "preferences")
        preferences = preferences if several else preferences * len(factuals)
        _check_count("preferences", preferences, len(factuals), ", or one object for all")
        unreadable |= undefined_values(
            problem.features, problem.conditions, factuals, preferences, unreadable, self.cost
        )
        margins = self._margins(len(factuals))
        return Population.of(problem, factuals, preferences, unreadable, ids, margins)

    def _people(
        self, problem: Instance, known: Known
    ) -> tuple[FactualTable, dict[int, BadInput], tuple[str, ...] | None]:
        """The applicants' numbers, the errors of those who could not be read, and identifiers or None."""
        if not isinstance(self.factuals, CsvModel):
            people = ((f"factuals.{k}", one) for k, one in enumerate(self.factuals))
            _check_count("ids", self.ids, len(self.factuals))
            return *as_table(people, problem), None if self.ids is None else tuple(self.ids)
        if self.ids is not None:
            raise BadInput("ids", "a list beside a CSV file", f"a column {ID!r} of that file")
        file, ids = known.folder / self.factuals.csv, list[str]()
        try:
            table, unreadable = as_table(people_rows(file, problem.features, ids), problem, str(file))
        except BadInput as error:
            raise error.in_file(str(file)) from None
        return table, unreadable, tuple(ids) if ids else None

    def _margins(self, count: int) -> list[float] | None:
        """Each applicant's margin; None if all have that of ``accept``."""
        if self.margins is None:
            return None
        if not isinstance(self.classifier, ReluNetwork):
            raise BadInput("margins", f"a list of {len(self.margins)}", "nothing: margins are for a network")
        _check_count("margins", self.margins, count)
        return [self.accept.margin if margin is None else margin for margin in self.margins]


def _check_count(field: str, given: list[Any] | None, count: int, more: str = "") -> None:
    """Check that a list has an entry per applicant."""
    if given is not None and len(given) != count:
        raise BadInput(field, f"a list of {len(given)}", f"{count}, one per applicant{more}")


StatedPopulation = Annotated[Population, Stated(PopulationModel)]


def read_instance(path: str | Path) -> Instance:
    """The instance in a ``.json`` or ``.json.gz`` file.

    Raises
    ------
    BadInput
        The file breaks the format. The error is one line with file, field, what was got and what is allowed.
    """
    return _read(path, (INSTANCE_FORMAT,))  # type: ignore[return-value]


def read_population(path: str | Path) -> Population:
    """The population in a ``.json`` or ``.json.gz`` file; its classifier is read once.

    Raises
    ------
    BadInput
        As :func:`read_instance`.
    """
    return _read(path, (POPULATION_FORMAT,))  # type: ignore[return-value]


def read_any(path: str | Path) -> Instance | Population:
    """The instance or the population in a file, as its ``format`` says.

    Raises
    ------
    BadInput
        As :func:`read_instance`.
    """
    return _read(path, (INSTANCE_FORMAT, POPULATION_FORMAT))


def instance_from_dict(data: Any, folder: str | Path = ".") -> Instance:
    """An instance from its JSON value.

    Parameters
    ----------
    folder
        The folder to which the path of a classifier's own file is relative.

    Raises
    ------
    BadInput
        The value breaks the format.
    """
    return validate(StatedInstance, data, known=Known(folder=folder))


def population_from_dict(data: Any, folder: str | Path = ".") -> Population:
    """A population from its JSON value; ``folder`` as in :func:`instance_from_dict`.

    The error of an applicant whose values cannot be read is kept in ``Population.unreadable``.

    Raises
    ------
    BadInput
        The model side breaks the format, or no applicant can be read (then the error is the first one's).
    """
    return validate(StatedPopulation, data, known=Known(folder=folder))


def _read(path: str | Path, formats: Sequence[str]) -> Instance | Population:
    file = Path(path)
    data = read_json(file)
    try:
        if not isinstance(data, dict):
            raise BadInput("top level", got_text(data), "an object")
        form = data.get("format")
        if form not in formats:
            got = got_text(form) if "format" in data else "nothing"
            raise BadInput("format", got, " or ".join(formats))
        build = instance_from_dict if form == INSTANCE_FORMAT else population_from_dict
        return build(data, file.parent)
    except BadInput as error:
        raise error.in_file(str(path)) from None

"""Features, and the structural causal models over them, from JSON and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from milp_recourse.errors import BadInput, shown
from milp_recourse.formats import schema_scm as schema
from milp_recourse.formats.classifier_json import build_network
from milp_recourse.formats.schema import FeatureModel, StepModel
from milp_recourse.formats.validate import validate
from milp_recourse.problem.expression import (
    Constant,
    Expression,
    NetworkOutput,
    Product,
    Relu,
    Sigmoid,
    Square,
    Sum,
    Variable,
)
from milp_recourse.problem.features import MOST_VALUES, Feature, Lattice, Steps, Values
from milp_recourse.problem.loan import FEATURES, loan, loan_as_printed
from milp_recourse.problem.scm import (
    Bernoulli,
    Gamma,
    Link,
    Mechanism,
    Mixture,
    Normal,
    StructuralCausalModel,
    independent,
)
from milp_recourse.readers.json_form import layers_to_json


def build_features(models: Sequence[FeatureModel]) -> tuple[Feature, ...]:
    """The features.

    Raises
    ------
    BadInput
        A name is used twice, or fields of a feature do not fit each other. The error names the path, e.g.
        ``features.3.bounds``.
    """
    seen: set[str] = set()
    for k, model in enumerate(models):
        if model.name in seen:
            raise BadInput(f"features.{k}.name", model.name, "each name once")
        seen.add(model.name)
    return tuple(_feature(model, f"features.{k}") for k, model in enumerate(models))


def features_to_list(features: Sequence[Feature]) -> list[dict[str, Any]]:
    """The inverse of :func:`build_features`, as JSON."""
    written = []
    for f in features:
        item: dict[str, Any] = {"name": f.name, "kind": f.kind, "actionable": f.actionable}
        if f.bounds is not None:
            item["bounds"] = list(f.bounds)
        if f.categories is not None:
            item |= {"categories": list(f.categories), "encoding": f.encoding}
        if f.table is not None:
            item["table"] = [list(row) for row in f.table]
        if f.domain is not None:
            item["domain"] = list(f.domain)
        if f.monotone is not None:
            item["monotone"] = f.monotone
        if f.only is not None:
            item |= lattice_to_dict(f)
        written.append(item)
    return written


def lattice_to_dict(feature: Feature) -> dict[str, Any]:
    """A feature's steps or values as in files, with every default filled in; nothing where it has none."""
    only = feature.only
    if isinstance(only, Steps):
        return {"step": {"step": only.step, "from": only.origin}}
    return {} if only is None else {"values": [feature.show(v) for v in only.values]}


def steps_of(feature: Feature, step: float, origin: float, path: str) -> Steps:
    """The steps of a numeric feature.

    Raises
    ------
    BadInput
        Its kind has no steps, or not these; or too many values are within its bounds.
    """
    if feature.labelled or feature.kind == "binary":
        raise BadInput(path, shown(step), f"nothing: it is {feature.kind}; values can list what may be set")
    if feature.integral and not (float(step).is_integer() and float(origin).is_integer()):
        raise BadInput(path, shown([step, origin]), "whole numbers: it is integer; else make it continuous")
    steps = Steps(float(step), float(origin))
    if feature.bounds is not None and steps.count(*feature.bounds) > MOST_VALUES:
        few = f"at most {MOST_VALUES} values within the bounds: make the step larger, or leave it out"
        raise BadInput(path, shown(step), few)
    return steps


def values_of(feature: Feature, given: Sequence[Any], path: str) -> Values:
    """The listed values of a feature, labels by their index.

    Raises
    ------
    BadInput
        One is no value of the feature, or is listed twice; or there are too many.
    """
    if not 1 <= len(given) <= MOST_VALUES:
        raise BadInput(path, f"{len(given)} values", f"1 to {MOST_VALUES} values")
    numbers = [_listed(feature, value, f"{path}.{k}") for k, value in enumerate(given)]
    if len(set(numbers)) < len(numbers):
        twice = next(value for k, value in enumerate(given) if numbers[k] in numbers[:k])
        raise BadInput(path, f"{shown(twice)} twice", "each value once")
    return Values(tuple(sorted(numbers)))


def _listed(feature: Feature, value: Any, path: str) -> float:
    if feature.categories is not None:
        if value not in feature.categories:
            raise BadInput(path, shown(value), "one of " + ", ".join(feature.categories))
        return float(feature.categories.index(value))
    if isinstance(value, str):
        raise BadInput(path, shown(value), f"a number: {feature.kind} has no labels")
    if feature.integral and not float(value).is_integer():
        raise BadInput(path, shown(value), f"a whole number: it is {feature.kind}")
    if feature.kind == "binary" and value not in (0, 1):
        raise BadInput(path, shown(value), "0 or 1: it is binary")
    return float(value) + 0.0


def ordered(interval: Sequence[float] | None, path: str) -> tuple[float, float] | None:
    """An interval ``[lo, hi]`` as a pair, after a check that lo <= hi; None for None."""
    if interval is None:
        return None
    low, high = interval
    if low > high:
        raise BadInput(path, f"[{low!r}, {high!r}]", "[lo, hi] with lo <= hi")
    return low, high


def _feature(model: FeatureModel, path: str) -> Feature:
    labelled = model.kind in ("ordinal", "categorical")
    bounds = ordered(model.bounds, f"{path}.bounds")
    domain = ordered(model.domain, f"{path}.domain")
    if labelled:
        _check_labels(model, path)
    else:
        _check_numeric(model, path)
    default = "one-hot" if model.kind == "categorical" else "code"
    feature = Feature(
        name=model.name,
        kind=model.kind,
        actionable=model.actionable,
        bounds=bounds,
        categories=None if model.categories is None else tuple(model.categories),
        domain=domain,
        monotone=model.monotone,
        encoding=model.encoding or default,  # type: ignore[arg-type]
        table=None if model.table is None else tuple(map(tuple, model.table)),
    )
    return replace(feature, only=_only(feature, model, path))


def _only(feature: Feature, model: FeatureModel, path: str) -> Lattice | None:
    if model.step is not None and model.values is not None:
        raise BadInput(f"{path}.values", shown(model.values), "nothing, as step says which values there are")
    if isinstance(model.step, StepModel):
        return steps_of(feature, model.step.step, model.step.origin, f"{path}.step")
    if model.step is not None:
        return steps_of(feature, model.step, 0.0, f"{path}.step")
    return None if model.values is None else values_of(feature, model.values, f"{path}.values")


def _check_labels(model: FeatureModel, path: str) -> None:
    if model.categories is None:
        raise BadInput(f"{path}.categories", "nothing", f"a list of labels for {model.kind}")
    last = len(model.categories) - 1
    if model.bounds is not None and not all(0 <= k <= last and float(k).is_integer() for k in model.bounds):
        raise BadInput(
            f"{path}.bounds", shown(model.bounds), f"indices of labels, whole numbers from 0 to {last}"
        )
    seen: set[str] = set()
    for k, label in enumerate(model.categories):
        if label in seen:
            raise BadInput(f"{path}.categories.{k}", label, "each label once")
        seen.add(label)
    if model.kind == "categorical":
        for key in ("domain", "monotone"):
            if getattr(model, key) is not None:
                raise BadInput(f"{path}.{key}", shown(getattr(model, key)), "nothing: labels have no order")
    _check_table(model, len(model.categories), path)


def _check_table(model: FeatureModel, labels: int, path: str) -> None:
    """Check that there is a table exactly if the encoding is ``table``, with one row per label."""
    if (model.encoding == "table") != (model.table is not None):
        allowed = (
            f"one row of numbers per label, {labels}"
            if model.table is None
            else "nothing, unless encoding is table"
        )
        raise BadInput(f"{path}.table", "nothing" if model.table is None else shown(model.table), allowed)
    if model.table is None:
        return
    if len(model.table) != labels:
        raise BadInput(f"{path}.table", f"{len(model.table)} rows", f"{labels}, one per label")
    for k, row in enumerate(model.table):
        if len(row) != len(model.table[0]):
            raise BadInput(f"{path}.table.{k}", f"{len(row)} numbers", f"{len(model.table[0])}, as in row 0")


def _check_numeric(model: FeatureModel, path: str) -> None:
    if model.categories is not None:
        raise BadInput(f"{path}.categories", shown(model.categories), f"nothing: {model.kind} is numeric")
    if model.encoding not in (None, "code"):
        raise BadInput(f"{path}.encoding", model.encoding, f"code: {model.kind} is one column")
    if model.table is not None:
        raise BadInput(f"{path}.table", shown(model.table), f"nothing: {model.kind} has no labels")
    if model.actionable and model.bounds is None:
        raise BadInput(f"{path}.bounds", "nothing", "[lo, hi], needed because the feature is actionable")
    if model.kind == "binary":
        for key in ("bounds", "domain"):
            interval = getattr(model, key)
            if interval is not None and not (interval[0] >= 0 and interval[1] <= 1):
                raise BadInput(f"{path}.{key}", interval, "an interval within 0 and 1 for a binary feature")


_LOANS: dict[str, Callable[[], StructuralCausalModel]] = {"loan": loan, "loan-as-printed": loan_as_printed}
_NOISES: dict[str, Any] = {"normal": Normal, "gamma": Gamma, "bernoulli": Bernoulli, "mixture": Mixture}
_UNARY: dict[type, tuple[str, Callable[[Expression], Expression]]] = {
    schema.ReluExpr: ("relu", Relu),
    schema.SigmoidExpr: ("sigmoid", Sigmoid),
    schema.SquareExpr: ("square", Square),
}


def build_scm(model: Any, features: Sequence[Feature]) -> StructuralCausalModel:
    """The SCM over the instance's features.

    Raises
    ------
    BadInput
        A feature is unknown, the equations have a cycle, a link has scale 0, the layers of an equation's
        network do not fit each other or its inputs, or the features are not those of a built-in model. Labels
        are checked later (:func:`~milp_recourse.problem.instance.check_whole`).
    """
    names = [f.name for f in features]
    if model.name in _LOANS:
        if tuple(names) != FEATURES:
            allowed = f"exactly {', '.join(FEATURES)} for scm {model.name}"
            raise BadInput("features", ", ".join(names), allowed)
        return _LOANS[model.name]()
    return _explicit(model, names) if isinstance(model, schema.ExplicitModel) else independent(names)


def scm_to_dict(scm: StructuralCausalModel, explicit: bool = False) -> dict[str, Any]:
    """The inverse of :func:`build_scm`, as JSON.

    Parameters
    ----------
    explicit
        Whether to write the equations of a built-in model instead of its name.
    """
    if scm.name in (*_LOANS, "independent") and not explicit:
        return {"name": scm.name}
    written = {f: _mechanism_to_dict(m) for f, m in scm.mechanisms.items() if m != Mechanism()}
    return {"name": "explicit", "mechanisms": written}


def scm_of_dict(content: Any, names: Sequence[str]) -> StructuralCausalModel:
    """The SCM of a JSON value, over numeric features with these names.

    Raises
    ------
    BadInput
        The value breaks the format, or :func:`build_scm` refuses it.
    """
    return build_scm(validate(schema.ScmModel, content, "scm"), [Feature(name) for name in names])


def build_expression(model: Any, path: str, names: Sequence[str]) -> Expression:
    """An expression over the features called ``names``."""
    if isinstance(model, str):
        if model not in names:
            raise BadInput(path, model, "a number, an expression, or one of " + ", ".join(names))
        return Variable(model)
    if isinstance(model, schema.SumExpr):
        return Sum(_expressions(model.sum, f"{path}.sum", names))
    if isinstance(model, schema.ProductExpr):
        return Product(_expressions(model.product, f"{path}.product", names))
    if isinstance(model, schema.NetworkExpr):
        network = build_network(model.network.layers, "float64", f"{path}.network")
        if len(model.inputs) != network.inputs:
            allowed = f"{network.inputs}, as layer 0 reads"
            raise BadInput(f"{path}.inputs", f"{len(model.inputs)} inputs", allowed)
        return NetworkOutput(network, _expressions(model.inputs, f"{path}.inputs", names))
    if type(model) in _UNARY:
        key, form = _UNARY[type(model)]
        return form(build_expression(getattr(model, key), f"{path}.{key}", names))
    return Constant(float(model))


def expression_to_json(expression: Expression) -> Any:
    """The inverse of :func:`build_expression`."""
    if isinstance(expression, Constant):
        return expression.value
    if isinstance(expression, Variable):
        return expression.name
    parts = [expression_to_json(child) for child in expression.children]
    if isinstance(expression, Sum):
        return {"sum": parts}
    if isinstance(expression, Product):
        return {"product": parts}
    if isinstance(expression, NetworkOutput):
        return {"network": {"layers": layers_to_json(expression.network)}, "inputs": parts}
    for key, form in _UNARY.values():
        if type(expression) is form:
            return {key: parts[0]}
    raise TypeError(f"{type(expression).__name__} has no JSON form")


def _explicit(model: schema.ExplicitModel, names: Sequence[str]) -> StructuralCausalModel:
    mechanisms = {}
    for feature, mechanism in model.mechanisms.items():
        path = f"scm.mechanisms.{feature}"
        if feature not in names:
            raise BadInput(path, "an unknown feature", ", ".join(names))
        mechanisms[feature] = _mechanism(mechanism, path, names)
    try:
        return StructuralCausalModel(names, mechanisms)
    except ValueError as error:
        raise BadInput("scm.mechanisms", str(error), "equations without a cycle") from None


def _mechanism(model: schema.MechanismModel, path: str, names: Sequence[str]) -> Mechanism:
    equation = build_expression(model.equation, f"{path}.equation", names)
    link = Link()
    if model.link is not None:
        if model.link.scale == 0:
            raise BadInput(f"{path}.link.scale", 0, "a number other than 0")
        link = Link("sigmoid", model.link.offset, model.link.scale)
    noise = None
    if model.noise is not None:
        given = model.noise.model_dump(exclude={"kind"})
        lists = {key: tuple(value) for key, value in given.items() if isinstance(value, list)}
        if len({len(value) for value in lists.values()}) > 1:
            lengths = ", ".join(f"{len(value)} {key}" for key, value in lists.items())
            raise BadInput(f"{path}.noise", lengths, "as many of each")
        noise = _NOISES[model.noise.kind](**given | lists)
    return Mechanism(equation, link, noise)


def _expressions(models: Sequence[Any], path: str, names: Sequence[str]) -> tuple[Expression, ...]:
    return tuple(build_expression(model, f"{path}.{k}", names) for k, model in enumerate(models))


def _mechanism_to_dict(mechanism: Mechanism) -> dict[str, Any]:
    written: dict[str, Any] = {"equation": expression_to_json(mechanism.equation)}
    link, noise = mechanism.link, mechanism.noise
    if link.kind == "sigmoid":
        written["link"] = {"kind": "sigmoid", "offset": link.offset, "scale": link.scale}
    if noise is not None:
        kind = next(name for name, noise_type in _NOISES.items() if isinstance(noise, noise_type))
        written["noise"] = {"kind": kind} | {
            key: list(value) if isinstance(value, tuple) else value for key, value in asdict(noise).items()
        }
    return written

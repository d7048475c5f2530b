"""Structural causal models and their expressions, from JSON and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from milp_recourse.errors import BadInput
from milp_recourse.formats import schema_scm as schema
from milp_recourse.formats.classifier_json import build_network
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
from milp_recourse.problem.features import Feature
from milp_recourse.problem.scm import (
    FEATURES,
    Bernoulli,
    Gamma,
    Link,
    Mechanism,
    Mixture,
    Normal,
    StructuralCausalModel,
    independent,
    loan,
    loan_as_printed,
)
from milp_recourse.readers.json_form import layers_to_json

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
    parts = [expression_to_json(child) for child in expression.children()]
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

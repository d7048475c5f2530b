"""Structural causal models: how files state them, from JSON and back. Built-in ones have names, others are
equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag
from typing_extensions import TypeAliasType

from milp_recourse.errors import BadInput
from milp_recourse.formats.schema_classifiers import Layer, network_of
from milp_recourse.formats.validate import (
    Known,
    Number,
    Positive,
    Share,
    Stated,
    Strict,
    Word,
    keyed,
    then,
    validate,
)
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
from milp_recourse.problem.loan import FEATURES, loan, loan_as_printed
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.noise import Bernoulli, Gamma, Mixture, Noise, Normal
from milp_recourse.problem.scm import Link, Mechanism, StructuralCausalModel, independent


class Layers(Strict):
    """A ReLU network inside a structural equation: ReLU between layers, one output."""

    layers: Annotated[list[Layer], Field(min_length=1)]


_FORMS = ("sum", "product", "relu", "sigmoid", "square", "network")


def _form(value: Any) -> str | None:
    if isinstance(value, str):
        return "feature"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return "number" if number else keyed(value, _FORMS)


def _variable(name: str, known: Known) -> Expression:
    if name not in known.features:
        raise BadInput("", name, "a number, an expression, or one of " + ", ".join(known.features))
    return Variable(name)


Expr = TypeAliasType(
    "Expr",
    Annotated[
        Annotated[Number, then(lambda number, _: Constant(float(number))), Tag("number")]
        | Annotated[Word, then(_variable), Tag("feature")]
        | Annotated["SumExpr", then(lambda e, _: Sum(tuple(e.sum))), Tag("sum: ...")]
        | Annotated["ProductExpr", then(lambda e, _: Product(tuple(e.product))), Tag("product: ...")]
        | Annotated["ReluExpr", then(lambda e, _: Relu(e.relu)), Tag("relu: ...")]
        | Annotated["SigmoidExpr", then(lambda e, _: Sigmoid(e.sigmoid)), Tag("sigmoid: ...")]
        | Annotated["SquareExpr", then(lambda e, _: Square(e.square)), Tag("square: ...")]
        | Annotated["NetworkExpr", then(lambda e, _: e.build()), Tag("network: ...")],
        Discriminator(
            _form,
            custom_error_type="unknown_form",
            custom_error_message="a number, a feature, or " + ", ".join(_FORMS),
        ),
    ],
)
"""A number, the name of a feature, or one of the forms below."""

StatedExpression = Annotated[Expression, Stated(Expr)]
StatedExpressions = Annotated[list[StatedExpression], Field(min_length=1)]


class SumExpr(Strict):
    """t_1 + ... + t_n."""

    sum: StatedExpressions


class ProductExpr(Strict):
    """f_1 * ... * f_n."""

    product: StatedExpressions


class ReluExpr(Strict):
    """max(0, argument)."""

    relu: StatedExpression


class SigmoidExpr(Strict):
    """1 / (1 + exp(-argument))."""

    sigmoid: StatedExpression


class SquareExpr(Strict):
    """argument^2."""

    square: StatedExpression


class NetworkExpr(Strict):
    """The single output of a ReLU network."""

    network: Annotated[ReluNetwork, Stated(Layers, lambda stated, _: network_of(stated.layers, "float64"))]
    inputs: StatedExpressions

    def build(self) -> Expression:
        """The output; BadInput if the network has another number of inputs."""
        if len(self.inputs) != self.network.inputs:
            allowed = f"{self.network.inputs}, as layer 0 reads"
            raise BadInput("inputs", f"{len(self.inputs)} inputs", allowed)
        return NetworkOutput(self.network, tuple(self.inputs))


class LinkModel(Strict):
    """offset + scale * sigmoid(equation + noise); without a link the value is equation + noise."""

    kind: Literal["sigmoid"]
    offset: Number = 0.0
    scale: Number = Field(default=1.0, description="not 0")

    def build(self, _: Known) -> Link:
        """The link; BadInput if its scale is 0."""
        if self.scale == 0:
            raise BadInput("scale", 0, "a number other than 0")
        return Link(self.kind, self.offset, self.scale)


class NormalModel(Strict):
    """N(0, sd^2)."""

    kind: Literal["normal"]
    sd: Positive


class GammaModel(Strict):
    """Gamma(shape, scale)."""

    kind: Literal["gamma"]
    shape: Positive
    scale: Positive


class BernoulliModel(Strict):
    """1 with probability p, else 0."""

    kind: Literal["bernoulli"]
    p: Share


class MixtureModel(Strict):
    """Normal with means[k] and sds[k], with a probability in proportion to weights[k]."""

    kind: Literal["mixture"]
    weights: Annotated[list[Positive], Field(min_length=1)]
    means: list[Number]
    sds: list[Positive]


NoiseModel = Annotated[NormalModel | GammaModel | BernoulliModel | MixtureModel, Field(discriminator="kind")]

_NOISES: dict[str, type[Noise]]
_NOISES = {"normal": Normal, "gamma": Gamma, "bernoulli": Bernoulli, "mixture": Mixture}


def _noise(stated: Any, _: Known) -> Noise:
    given = stated.model_dump(exclude={"kind"})
    lists = {key: tuple(value) for key, value in given.items() if isinstance(value, list)}
    if len({len(value) for value in lists.values()}) > 1:
        lengths = ", ".join(f"{len(value)} {key}" for key, value in lists.items())
        raise BadInput("", lengths, "as many of each")
    return _NOISES[stated.kind](**given | lists)


class MechanismModel(Strict):
    """One structural equation: value = link(equation(parents) + noise)."""

    equation: StatedExpression
    link: Annotated[Link, Stated(LinkModel)] | None = None
    noise: Annotated[Noise, Stated(NoiseModel, _noise)] | None = None

    def build(self, _: Known) -> Mechanism:
        """The mechanism."""
        return Mechanism(self.equation, self.link or Link(), self.noise)


def _feature(name: str, known: Known) -> str:
    if name not in known.features:
        raise BadInput("", "an unknown feature", ", ".join(known.features))
    return name


_LOANS: dict[str, Callable[[], StructuralCausalModel]] = {"loan": loan, "loan-as-printed": loan_as_printed}


class NamedModel(Strict):
    """The paper's model, as released or as its appendix prints it; or no feature moves another."""

    name: Literal["loan", "loan-as-printed", "independent"]

    def build(self, known: Known) -> StructuralCausalModel:
        """The built-in model; BadInput if the features are not those of Loan."""
        if self.name not in _LOANS:
            return independent(tuple(known.features))
        if tuple(known.features) != FEATURES:
            allowed = f"exactly {', '.join(FEATURES)} for scm {self.name}"
            raise BadInput("/features", ", ".join(known.features), allowed)
        return _LOANS[self.name]()


class ExplicitModel(Strict):
    """Structural equations by feature; a feature not named is a root without stated noise."""

    name: Literal["explicit"]
    mechanisms: dict[Annotated[Word, then(_feature)], Annotated[Mechanism, Stated(MechanismModel)]]

    def build(self, known: Known) -> StructuralCausalModel:
        """The model; BadInput if the equations have a cycle. Labels are checked later
        (:func:`~milp_recourse.problem.instance.check_whole`)."""
        try:
            return StructuralCausalModel(tuple(known.features), self.mechanisms)
        except ValueError as error:
            raise BadInput("mechanisms", str(error), "equations without a cycle") from None


ScmModel = Annotated[NamedModel | ExplicitModel, Field(discriminator="name")]
StatedScm = Annotated[StructuralCausalModel, Stated(ScmModel)]


def scm_of_dict(content: Any, names: Sequence[str]) -> StructuralCausalModel:
    """The SCM of a JSON value, over numeric features with these names.

    Raises
    ------
    BadInput
        The value breaks the format.
    """
    known = Known([Feature(name) for name in names])
    return validate(StatedScm, content, "scm", known)


def scm_to_dict(scm: StructuralCausalModel, explicit: bool = False) -> dict[str, Any]:
    """The SCM as JSON.

    Parameters
    ----------
    explicit
        Whether to write the equations of a built-in model instead of its name.
    """
    if scm.name in (*_LOANS, "independent") and not explicit:
        return {"name": scm.name}
    written = {f: _mechanism_to_dict(m) for f, m in scm.mechanisms.items() if m != Mechanism()}
    return {"name": "explicit", "mechanisms": written}


def _mechanism_to_dict(mechanism: Mechanism) -> dict[str, Any]:
    written: dict[str, Any] = {"equation": expression_to_json(mechanism.equation)}
    link, noise = mechanism.link, mechanism.noise
    if link.kind == "sigmoid":
        written["link"] = asdict(link)
    if noise is not None:
        kind = next(name for name, form in _NOISES.items() if isinstance(noise, form))
        numbers = asdict(noise).items()
        written["noise"] = {"kind": kind} | {k: list(v) if isinstance(v, tuple) else v for k, v in numbers}
    return written


def expression_to_json(expression: Expression) -> Any:
    """An expression as JSON."""
    parts = [expression_to_json(child) for child in expression.children]
    match expression:
        case Constant(value):
            return value
        case Variable(name):
            return name
        case NetworkOutput(network):
            return {"network": {"layers": network.written["layers"]}, "inputs": parts}
        case Sum() | Product():
            return {type(expression).__name__.lower(): parts}
        case Relu() | Sigmoid() | Square():
            return {type(expression).__name__.lower(): parts[0]}
    raise TypeError(f"{type(expression).__name__} has no JSON form")

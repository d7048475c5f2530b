"""Structural causal models: how files state them, from JSON and back. Built-in ones have names, others are
equations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from milp_recourse.errors import BadInput
from milp_recourse.formats.schema_classifiers import Layer, network_of
from milp_recourse.formats.stated import (
    Forms,
    Known,
    Number,
    Stated,
    Strict,
    Word,
    as_json,
    document,
    states,
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


_FORMS: dict[str, Any] = {}  # filled below, as expressions hold expressions


def _variable(name: str, known: Known) -> Expression:
    if name not in known.features:
        raise BadInput("", name, "a number, an expression, or one of " + ", ".join(known.features))
    return Variable(name)


_NUMBER = Annotated[Number, then(lambda number, _: Constant(float(number)))]
_OTHERS = {(int, float): _NUMBER, str: Annotated[Word, then(_variable)]}
Expr = TypeAliasType("Expr", Annotated[Any, Forms(_FORMS, "a number, a feature, or ", _OTHERS)])
"""A number, the name of a feature, or one of the forms below."""

StatedExpression = Annotated[Expression, Stated(Expr)]
StatedExpressions = Annotated[list[StatedExpression], Field(min_length=1)]


class NetworkExpr(Strict):
    """The single output of a ReLU network."""

    network: Annotated[ReluNetwork, Stated(Layers, lambda stated, _: network_of(stated.layers, "float64"))]
    inputs: StatedExpressions

    def build(self, _: Known) -> Expression:
        """The output; BadInput if the network has another number of inputs."""
        if len(self.inputs) != self.network.inputs:
            allowed = f"{self.network.inputs}, as layer 0 reads"
            raise BadInput("inputs", f"{len(self.inputs)} inputs", allowed)
        return NetworkOutput(self.network, tuple(self.inputs))


_INSIDE = {"Expression": StatedExpression}
_FORMS |= {
    "sum": states(Sum, _INSIDE, terms=Field(alias="sum", min_length=1)),
    "product": states(Product, _INSIDE, factors=Field(alias="product", min_length=1)),
    "relu": states(Relu, _INSIDE, argument=Field(alias="relu")),
    "sigmoid": states(Sigmoid, _INSIDE, argument=Field(alias="sigmoid")),
    "square": states(Square, _INSIDE, argument=Field(alias="square")),
    "network": NetworkExpr,
}


def _invertible(link: Link, _: Known) -> Link:
    if link.scale == 0:
        raise BadInput("scale", 0, "a number other than 0")
    return link


LinkModel = states(Link, kind=(Literal["sigmoid"], ...), scale=Field(1.0, description="not 0"))
StatedLink = Annotated[Link, Stated(LinkModel), then(_invertible)]


def _even(noise: Noise, _: Known) -> Noise:
    lists = {key: value for key, value in vars(noise).items() if isinstance(value, tuple)}
    if len({len(value) for value in lists.values()}) > 1:
        lengths = ", ".join(f"{len(value)} {key}" for key, value in lists.items())
        raise BadInput("", lengths, "as many of each")
    return noise


NoiseModel: Any = Annotated[
    states(Normal, kind=(Literal["normal"], ...))
    | states(Gamma, kind=(Literal["gamma"], ...))
    | states(Bernoulli, kind=(Literal["bernoulli"], ...))
    | states(Mixture, kind=(Literal["mixture"], ...), weights=Field(min_length=1)),
    Field(discriminator="kind"),
]
StatedNoise = Annotated[Noise, Stated(NoiseModel), then(_even)]


class MechanismModel(Strict):
    """One structural equation: value = link(equation(parents) + noise)."""

    equation: StatedExpression
    link: StatedLink | None = None
    noise: StatedNoise | None = None

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
    written = {f: as_json(m) for f, m in scm.mechanisms.items() if m != Mechanism()}
    return {"name": "explicit", "mechanisms": written}


as_json.register(Constant, lambda constant, _=None: constant.value)
as_json.register(Variable, lambda variable, _=None: variable.name)


@as_json.register(NetworkOutput)
def _(output: NetworkOutput, _: Any = None) -> dict[str, Any]:
    return {"network": {"layers": output.network.written["layers"]}, "inputs": as_json(output.inputs)}


@as_json.register(Mechanism)
def _(mechanism: Mechanism, _: Any = None) -> dict[str, Any]:
    return document(
        MechanismModel, mechanism, link=mechanism.link if mechanism.link.kind == "sigmoid" else None
    )

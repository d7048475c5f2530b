"""Pydantic models of structural causal models: built-in ones by name, others as expressions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag
from typing_extensions import TypeAliasType

from milp_recourse.formats.validate import Number, Positive, Share, Strict, Word

Row = Annotated[list[Number], Field(min_length=1)]


class Layer(Strict):
    """One layer z = weight x + bias."""

    weight: Annotated[list[Row], Field(min_length=1)] = Field(description="outputs x inputs")
    bias: Row


class Layers(Strict):
    """A ReLU network inside a structural equation: ReLU between layers, one output."""

    layers: Annotated[list[Layer], Field(min_length=1)]


_FORMS = ("sum", "product", "relu", "sigmoid", "square", "network")


def _form(value: Any) -> str | None:
    if isinstance(value, str):
        return "feature"
    if isinstance(value, dict):
        return next((form for form in _FORMS if form in value), None)
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else None


Expr = TypeAliasType(
    "Expr",
    Annotated[
        Annotated[Number, Tag("number")]
        | Annotated[Word, Tag("feature")]
        | Annotated["SumExpr", Tag("sum")]
        | Annotated["ProductExpr", Tag("product")]
        | Annotated["ReluExpr", Tag("relu")]
        | Annotated["SigmoidExpr", Tag("sigmoid")]
        | Annotated["SquareExpr", Tag("square")]
        | Annotated["NetworkExpr", Tag("network")],
        Discriminator(
            _form,
            custom_error_type="unknown_form",
            custom_error_message="a number, a feature, or " + ", ".join(_FORMS),
        ),
    ],
)
"""A number, the name of a feature, or one of the forms below."""


class SumExpr(Strict):
    """t_1 + ... + t_n."""

    sum: Annotated[list[Expr], Field(min_length=1)]


class ProductExpr(Strict):
    """f_1 * ... * f_n."""

    product: Annotated[list[Expr], Field(min_length=1)]


class ReluExpr(Strict):
    """max(0, argument)."""

    relu: Expr


class SigmoidExpr(Strict):
    """1 / (1 + exp(-argument))."""

    sigmoid: Expr


class SquareExpr(Strict):
    """argument^2."""

    square: Expr


class NetworkExpr(Strict):
    """The single output of a ReLU network."""

    network: Layers
    inputs: Annotated[list[Expr], Field(min_length=1)]


class LinkModel(Strict):
    """offset + scale * sigmoid(equation + noise); without a link the value is equation + noise."""

    kind: Literal["sigmoid"]
    offset: Number = 0.0
    scale: Number = Field(default=1.0, description="not 0")


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


class MechanismModel(Strict):
    """One structural equation: value = link(equation(parents) + noise)."""

    equation: Expr
    link: LinkModel | None = None
    noise: NoiseModel | None = None


class NamedModel(Strict):
    """The paper's model, as released or as its appendix prints it; or no feature moves another."""

    name: Literal["loan", "loan-as-printed", "independent"]


class ExplicitModel(Strict):
    """Structural equations by feature; a feature not named is a root without stated noise."""

    name: Literal["explicit"]
    mechanisms: dict[Word, MechanismModel]


ScmModel = Annotated[NamedModel | ExplicitModel, Field(discriminator="name")]

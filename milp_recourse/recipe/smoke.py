"""The smoke instances: tiny problems whose answers are derived by hand in their descriptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from milp_recourse.recipe.files import write_json

Json = dict[str, Any]


@dataclass(frozen=True)
class Smoke:
    """One tiny instance and its answer.

    Parameters
    ----------
    content
        The instance file, reference included.
    action
        An action that attains the reference cost, up to rounding inward; labels as labels.
        None where there is none.
    """

    content: Json
    action: Mapping[str, float | str] | None

    @property
    def name(self) -> str:
        """The file's stem."""
        return str(self.content["name"])


def number(
    name: str,
    bounds: tuple[float, float] | None = None,
    kind: str = "continuous",
    domain: tuple[float, float] | None = None,
    monotone: str | None = None,
) -> Json:
    """A numeric feature, actionable when it has bounds."""
    feature: Json = {"name": name, "kind": kind, "actionable": bounds is not None}
    if bounds is not None:
        feature["bounds"] = list(bounds)
    if domain is not None:
        feature["domain"] = list(domain)
    if monotone is not None:
        feature["monotone"] = monotone
    return feature


def labels(name: str, kind: str, categories: Sequence[str], encoding: str | None = None) -> Json:
    """An actionable ordinal or categorical feature."""
    feature: Json = {"name": name, "kind": kind, "categories": list(categories), "actionable": True}
    return feature | ({"encoding": encoding} if encoding else {})


def linear(weight: Sequence[float], bias: float, dtype: str = "float64") -> Json:
    """A network without hidden layer: logit = weight . x + bias."""
    return network(([list(weight)], [bias]), dtype=dtype)


def network(*layers: tuple[Sequence[Sequence[float]], Sequence[float]], dtype: str = "float64") -> Json:
    """A ReLU network from (weight, bias) pairs."""
    written = [{"weight": [list(row) for row in w], "bias": list(b)} for w, b in layers]
    return {"kind": "relu-network", "dtype": dtype, "layers": written}


def explicit(**mechanisms: Json) -> Json:
    """An explicit SCM; features not named are roots about which nothing is known."""
    return {"name": "explicit", "mechanisms": mechanisms}


def normal(equation: Any = 0, sd: float = 1.0) -> Json:
    """A mechanism with noise N(0, sd^2)."""
    return {"equation": equation, "noise": {"kind": "normal", "sd": sd}}


def smoke(  # every keyword is a key of the file
    name: str,
    description: str,
    *,
    features: Sequence[Json],
    classifier: Json,
    factual: Mapping[str, float | str],
    cost: float | None,
    action: Mapping[str, float | str] | None = None,
    scm: Json | None = None,
    accept: Json | None = None,
    actionable: Sequence[str] | None = None,
    weights: Mapping[str, float] | None = None,
    ranges: Mapping[str, Sequence[float]] | None = None,
    measure: str | Json = "l2-squared",
    scale: Mapping[str, float] | None = None,
    plausible: bool = False,
) -> Smoke:
    """Put a case together; scales are 1 and every actionable feature is the applicant's unless said.

    Parameters
    ----------
    cost
        The optimal cost; None for infeasible.
    measure
        A cost kind, or the coefficients of a mixture.
    """
    everyone = [f["name"] for f in features if f["actionable"]]
    preferences: Json = {"actionable": list(everyone if actionable is None else actionable)}
    if weights:
        preferences["weights"] = dict(weights)
    if ranges:
        preferences["ranges"] = {f: list(interval) for f, interval in ranges.items()}
    written: Json = {"kind": measure} if isinstance(measure, str) else {"kind": "mixture"} | measure
    if measure != "l0":
        written["scale"] = {f: (scale or {}).get(f, 1) for f in everyone}
    status = "infeasible" if cost is None else "optimal"
    content: Json = {
        "format": "milp-recourse/instance-1",
        "name": name,
        "description": " ".join(description.split()),
        "features": list(features),
        "scm": scm or {"name": "independent"},
        "classifier": classifier,
        "factual": dict(factual),
        "preferences": preferences,
        "cost": written,
        "plausibility": {"kind": "scm-density", "at_least": "factual"} if plausible else None,
        "reference": {"status": status, "cost": cost, "lower_bound": cost},
    }
    if accept:
        content["accept"] = accept
    return Smoke(content, action)


def write_smoke(out: Path) -> list[str]:
    """Write every smoke instance as OUT/NAME.json; returns the names."""
    from milp_recourse.recipe.smoke_cases import all_cases

    cases = all_cases()
    for case in cases:
        write_json(out / f"{case.name}.json", case.content)
    return [case.name for case in cases]

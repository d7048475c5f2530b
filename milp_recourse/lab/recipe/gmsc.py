"""Classifier, learned causal model and applicants of Give Me Some Credit, from the owner's file.

The classifier is a 32 x 32 network, trained with a loss in which defaults have a larger weight (iCARMA paper,
appendix C.3.2). The paper prints neither the weight nor the number of epochs; it reports that a tenth of the
applicants is refused. So of :data:`WEIGHTS` the one is taken whose share of refused validation rows is
nearest a tenth; :data:`DECISION` has the other settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from milp_recourse.elicitation.schemes import CostProfile, cut, named_weights, sample_rankings
from milp_recourse.formats import read_population, scm_to_dict
from milp_recourse.formats.schema_classifiers import StatedClassifier
from milp_recourse.formats.schema_scm import scm_of_dict
from milp_recourse.formats.stated import Known, validate
from milp_recourse.formats.strict_json import write_json
from milp_recourse.lab.arrays import FloatArray
from milp_recourse.lab.icarma.relu_fit import ReluTraining, fit_relu
from milp_recourse.lab.recipe.files import kept, write_model
from milp_recourse.lab.recipe.float32_margin import margin_over
from milp_recourse.lab.recipe.gmsc_data import FEATURES, LEVERS, PARENTS, GmscData, dequantised
from milp_recourse.lab.recipe.learned_scm import equation_training, fit_scm
from milp_recourse.lab.recipe.training import deployed_logits
from milp_recourse.problem.features import Feature
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Status
from milp_recourse.problem.scm import Link, StructuralCausalModel, linked, unlinked
from milp_recourse.questions.solve import solve
from milp_recourse.readers import to_json

DECISION = ReluTraining((32, 32), epochs=30)
"""The published architecture, batch size and rate (Adam); the number of epochs is ours."""

WEIGHTS = (3.0, 4.0, 5.0, 6.0, 7.0)
"""Weights of a default in the loss that are tried."""

REFUSED = 0.1
"""The share of applicants that the published classifier refuses."""


@dataclass(frozen=True)
class Form:
    """What a learned causal model is made of.

    Parameters
    ----------
    units
        Hidden ReLUs per structural equation.
    links
        Whether levers have sigmoid links.
    mixtures
        Whether the noise of features that nobody acts on is a mixture of normals, and not normal.
    """

    units: int
    links: bool = False
    mixtures: bool = True


FORMS = {f"{units} ReLUs": Form(units) for units in (2, 4, 8, 16)} | {
    "8 ReLUs, normal noise": Form(8, mixtures=False),
    "8 ReLUs, links": Form(8, links=True),
}
"""The models that are fitted and compared."""

ROOM = {
    "income": (0.1, 1.5),
    "credit_lines": (0.05, 2.0),
    "real_estate_loans": (0.01, 0.5),
    "utilization": (0.05, 0.05),
}
"""By lever, how far its sigmoid link reaches below and above the rows, in their ranges. Utilization has many
rows at both ends; with less room its density would gain, but plausible actions could come so near the ends
of the link that nothing could be proven."""

POINTS = 20_000
"""The number of points at which the float32 error is observed."""

CHOSEN = "8 ReLUs"
"""The model used in the certified problems; docs/results/gmsc compares all of :data:`FORMS`. Links fit
better, but some certificates would then take more than is allowed."""


def train_decision(
    data: GmscData, seed: int, folder: Path, advance: Callable[[], None]
) -> tuple[ReluNetwork, list[dict[str, float]]]:
    """Train the classifier; return it, and the numbers of each attempt on the validation rows.

    Attempts that ``folder`` has are not made again.
    """

    def attempt(weight: float) -> dict[str, Any]:
        network = fit_relu(
            (data.train.rows, data.train.labels.astype(np.float64)),
            (data.validation.rows, data.validation.labels.astype(np.float64)),
            DECISION,
            seed,
            "logistic",
            np.where(data.train.labels == 0, weight, 1.0),
            "float32",
            advance,
        )
        logits = network.evaluate(data.validation.rows)[:, 0]
        refused = float((logits < 0).mean())
        numbers = {
            "weight": weight,
            "refused": refused,
            "accuracy": float(((logits >= 0) == data.validation.labels).mean()),
            "logit_sd": float(logits.std()),
        }
        return {"numbers": numbers, "network": to_json(network)}

    made = [kept(folder / f"classifier_{weight:g}.json", partial(attempt, weight)) for weight in WEIGHTS]
    best = min(made, key=lambda one: abs(one["numbers"]["refused"] - REFUSED))
    network = validate(StatedClassifier, best["network"], "network", Known(map(Feature, FEATURES), folder))
    assert isinstance(network, ReluNetwork)
    return network, [one["numbers"] for one in made]


def fit_equations(
    data: GmscData, seed: int, folder: Path, forms: Sequence[str], advance: Callable[[], None]
) -> tuple[dict[str, StructuralCausalModel], list[dict[str, Any]]]:
    """Fit a causal model for some of :data:`FORMS`; also returns mean log densities of the test rows.

    Models that ``folder`` has are not fitted again.
    """
    train, validation, test = (
        dequantised(part.rows, seed + k) for k, part in enumerate((data.train, data.validation, data.test))
    )
    every = np.concatenate([train, validation, test])
    links = {}
    for f, (below, above) in ROOM.items():
        column = every[:, FEATURES.index(f)]
        span = float(column.max() - column.min())
        links[f] = Link("sigmoid", float(column.min()) - below * span, (1 + below + above) * span)
    mixed = [f for f in FEATURES if f not in LEVERS]

    def fit(form: Form) -> dict[str, Any]:
        training = equation_training(form.units)
        own = links if form.links else {}, mixed if form.mixtures else []
        return scm_to_dict(
            fit_scm(FEATURES, PARENTS, train, validation, training, seed, lambda _: advance(), *own)
        )

    models, rows = {}, []
    for units in forms:
        content = kept(folder / f"scm, {units}.json", partial(fit, FORMS[units]))
        scm = models[units] = scm_of_dict(content, FEATURES)
        density = np.stack(scm.log_densities(test)).mean(axis=-1)
        rows.append(
            {
                "units": units,
                **dict(zip(FEATURES, density.tolist(), strict=True)),
                "all": float(density.sum()),
            }
        )
    return models, rows


def population(
    folder: Path,
    name: str,
    description: str,
    rows: FloatArray,
    network: ReluNetwork,
    scm: StructuralCausalModel,
    bounds: Mapping[str, tuple[float, float]],
    seed: int,
    preferences: Sequence[Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Write classifier.json, applicants.csv and population.json; return the report of the float32 margin.

    A change of a lever costs its square in units of the width of ``bounds``: with the train rows' extremes
    as bounds, this is the paper's distance between rows that are scaled to [0, 1].
    """
    entry = write_model(network, folder / "classifier.json")
    pd.DataFrame(rows, columns=FEATURES).to_csv(folder / "applicants.csv", index=False, lineterminator="\n")
    rng = np.random.default_rng([seed, 1])
    margin = margin_over(network, reachable_box(rows, scm, bounds), POINTS, rng, boxes=20_000)
    features = [
        {"name": f, "kind": "continuous", "actionable": f in LEVERS}
        | ({"bounds": list(bounds[f])} if f in LEVERS else {})
        for f in FEATURES
    ]
    spans = {f: high - low for f, (low, high) in bounds.items()}
    write_json(
        {
            "format": "milp-recourse/population-1",
            "name": name,
            "description": description,
            "features": features,
            "scm": scm_to_dict(scm),
            "classifier": entry,
            "accept": {"at_least": 0, "margin": margin.margin},
            "factuals": {"csv": "applicants.csv"},
            "preferences": {"actionable": list(LEVERS)} if preferences is None else list(preferences),
            "cost": {"kind": "l2-squared", "scale": spans},
            "plausibility": {"kind": "scm-density", "at_least": "factual"},
        },
        folder / "population.json",
    )
    return margin.report(POINTS)


def reachable_box(
    rows: FloatArray, scm: StructuralCausalModel, bounds: Mapping[str, tuple[float, float]]
) -> tuple[FloatArray, FloatArray]:
    """A box that contains every counterfactual of the rows under actions within bounds.

    A feature that follows its causes moves by at most the width of its equation's interval over their box.
    Interval arithmetic is not rounded outward here, because only the choice of a margin uses the box.
    """
    lower, upper = rows.min(axis=0), rows.max(axis=0)
    columns = {f: k for k, f in enumerate(scm.features)}
    moved: set[str] = set()
    for f in scm.order:
        k = columns[f]
        if scm.parents(f) & moved:
            causes = [columns[p] for p in PARENTS[f]]
            m = scm.mechanisms[f]
            span = _span(m.equation.network, lower[causes], upper[causes])  # type: ignore[attr-defined]
            lower[k] = linked(unlinked(lower[k], m.link) - span, m.link)
            upper[k] = linked(unlinked(upper[k], m.link) + span, m.link)
            moved.add(f)
        if f in LEVERS:
            lower[k], upper[k] = min(lower[k], bounds[f][0]), max(upper[k], bounds[f][1])
            moved.add(f)
    return lower, upper


def _span(network: ReluNetwork, low: FloatArray, high: FloatArray) -> float:
    """The width of the interval of a network's output over a box."""
    for k, (w, b) in enumerate(zip(network.weights, network.biases, strict=True)):
        if k:
            low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
        plus, minus = np.maximum(w, 0.0), np.minimum(w, 0.0)
        low, high = plus @ low + minus @ high + b, plus @ high + minus @ low + b
    return float(high[0] - low[0])


def lever_bounds(train: FloatArray) -> dict[str, tuple[float, float]]:
    """The levers' extremes over the train rows."""
    columns = {f: train[:, FEATURES.index(f)] for f in LEVERS}
    return {f: (float(values.min()), float(values.max())) for f, values in columns.items()}


def write_synthetic(models: Path, folder: Path, applicants: int, seed: int) -> dict[str, Any]:
    """Write a population of refused people who are drawn from the learned causal model, not from the data.

    Draws are dropped if a value is negative, the debt ratio is above 1, the age is below 18 or a lever is
    outside its bounds. Every other person can act on all levers; the rest act on three features that they
    rank, with linear weights. The first people with recourse and the first without are kept, as many of each.

    Parameters
    ----------
    models
        The folder ``models`` that ``milp-recourse lab gmsc`` wrote; its rows are not read.

    Returns
    -------
    dict
        The margin, how many draws were solved (``drawn``), and how many people were written (``people``): at
        most ``applicants``, and fewer if not enough draws are with recourse or not enough without.
    """
    people = read_population(models / "population.json")
    network, scm = people.template.classifier, people.template.scm
    assert isinstance(network, ReluNetwork)
    bounds = {f.name: f.action_bounds for f in people.template.features if f.actionable}
    rng = np.random.default_rng([seed, 31])
    drawn_rows: list[FloatArray] = []
    while sum(map(len, drawn_rows)) < 8 * applicants:
        rows = scm.sample(1000, rng)
        of = {f: rows[:, k] for k, f in enumerate(FEATURES)}
        good = (rows >= 0).all(axis=1) & (of["age"] >= 18) & (of["debt_ratio"] <= 1)
        for f, (low, high) in bounds.items():
            good &= (of[f] >= low) & (of[f] <= high)
        drawn_rows.append(refused(network, rows[good]))
    rows = np.concatenate(drawn_rows)[: 8 * applicants]
    ranks = sample_rankings("uniform", len(rows), np.random.default_rng([seed, 32]))
    scores = cut(LEVERS, ranks, np.full(len(ranks), 4))
    weights = named_weights(scores, CostProfile.named("linear").weights(scores))
    wanted: list[dict[str, Any]] = [
        {"actionable": list(one), "weights": one} if k % 2 else {"actionable": list(LEVERS)}
        for k, one in enumerate(weights)
    ]
    words = "Refused people drawn from a causal model learned from Give Me Some Credit: nobody's row."

    def write(chosen: Sequence[int]) -> dict[str, Any]:
        own = [wanted[k] for k in chosen]
        name = "gmsc_synthetic"
        return population(
            folder, name, words, rows[list(chosen)], network, scm, bounds, seed, preferences=own
        )

    write(range(len(rows)))
    drawn = read_population(folder / "population.json")
    found: dict[Status, list[int]] = {Status.OPTIMAL: [], Status.INFEASIBLE: []}
    for k in range(len(drawn)):
        status = solve(drawn[k], "bab", 10.0).status
        if status in found and len(found[status]) < applicants // 2:
            found[status].append(k)
        if all(len(one) == applicants // 2 for one in found.values()):
            break
    kept = sorted(k for one in found.values() for k in one)
    return {"drawn": k + 1, "people": len(kept), "margin": write(kept)}


def refused(network: ReluNetwork, rows: FloatArray) -> FloatArray:
    """The rows that the deployed classifier refuses, in their order."""
    return rows[deployed_logits(network, rows) < 0]


def measures(network: ReluNetwork, data: GmscData) -> dict[str, Any]:
    """Per split, the classifier's accuracy, share of refusals and standard deviation of the logit."""
    found = {}
    for name, part in (("train", data.train), ("validation", data.validation), ("test", data.test)):
        logits = network.evaluate(part.rows)[:, 0]
        found[name] = {
            "rows": len(logits),
            "accuracy": float(((logits >= 0) == part.labels).mean()),
            "refused": float((logits < 0).mean()),
            "defaults": float((part.labels == 0).mean()),
            "logit_sd": float(logits.std()),
        }
    return found

"""Makes the shipped Loan instances: sample rows, train the classifier, choose the margin, write the files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milp_recourse.elicitation.schemes import LOAN_ACTIONABLE as ACTIONABLE
from milp_recourse.elicitation.schemes import CostProfile, cut, named_weights, sample_rankings
from milp_recourse.formats.strict_json import write_json
from milp_recourse.lab.arrays import FloatArray
from milp_recourse.lab.recipe.files import write_instance, write_model
from milp_recourse.lab.recipe.float32_margin import MarginChoice, margin_over
from milp_recourse.lab.recipe.loan_rows import RELEASED_SIZES, LoanData, sample_loan
from milp_recourse.lab.recipe.training import Training, deployed_logits, train_network
from milp_recourse.lab.run_table import write_table
from milp_recourse.problem.loan import FEATURES
from milp_recourse.problem.network import ReluNetwork

PROFILE = CostProfile.named("linear", w_min=1.0, w_max=7.0)
"""Weights of the ranked applicants: linear from 1 (rank 1) to 7 (iCARMA paper, figure 2)."""

RELEASED = {"accuracy": 0.913, "refused_test_rows": 2364, "test_rows": 5000, "logit_sd": 4.1}
"""Numbers of the classifier that the CARMA authors released, for comparison."""


@dataclass(frozen=True)
class LoanSettings:
    """Settings of :func:`write_loan`; the defaults make ``instances/loan``.

    Parameters
    ----------
    sizes
        Rows of the train, validation and test split.
    training
        Of the classifier.
    applicants
        How many of the refused test rows become instances of their own.
    points
        The number of points at which the float32 error is observed.
    attempts
        How many classifiers are trained on the same rows, with the seeds seed, seed + 1, ... If there are
        several, all are listed in attempts.csv. The first is shipped, so that none is chosen by its results.
    printed
        Whether rows and causal model are those that the iCARMA paper prints.
    """

    sizes: tuple[int, int, int] = RELEASED_SIZES
    training: Training = field(default_factory=Training)
    applicants: int = 240
    points: int = 100_000
    attempts: int = 1
    printed: bool = False

    @staticmethod
    def smooth() -> LoanSettings:
        """The settings that make ``instances/loan_smooth``."""
        return LoanSettings(training=Training.released(), applicants=0, attempts=10)

    @staticmethod
    def as_printed() -> LoanSettings:
        """The settings that make ``instances/loan_printed``."""
        return LoanSettings(training=Training.released(), applicants=0, printed=True)


@dataclass(frozen=True)
class LoanModel:
    """The classifier and the numbers that all Loan instances of a folder share.

    Attributes
    ----------
    network
        The deployed float32 network on raw features.
    low, high
        Bounds of the actionable features: extremes over the negatively classified train rows.
    scale
        s_i = sqrt(k sd_i (high_i - low_i)), k = 4, with sd over the full train split. The cost is then the
        mean over the k features of weight * (delta / sd)^2 / (range / sd), as in the oracle that the CARMA
        authors released.
    margin
        The acceptance margin and the error bounds that it was chosen by.
    refused
        Row numbers of the refused test rows.
    """

    network: ReluNetwork
    low: dict[str, float]
    high: dict[str, float]
    scale: dict[str, float]
    margin: MarginChoice
    refused: NDArray[np.int64]


def write_loan(
    out: Path, seed: int, settings: LoanSettings, on_epoch: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """Make a Loan classifier and its instances; ``seed`` determines every file.

    Parameters
    ----------
    out
        Folder that receives classifier.json, loan_000.json ..., population.json, refused.csv,
        report.json and, with several attempts, attempts.csv.
    on_epoch
        Called after every training epoch.

    Returns
    -------
    dict
        The content of report.json.
    """
    data = sample_loan(seed, settings.sizes, settings.printed)
    networks = [
        train_network(data.train, seed + k, settings.training, on_epoch) for k in range(settings.attempts)
    ]
    network = networks[0]
    if settings.attempts > 1:
        _write_attempts(out / "attempts.csv", seed, data, networks)
    model = describe(data, network, settings.points, np.random.default_rng([seed, 1]))
    entry = write_model(network, out / "classifier.json")
    rankings = sample_rankings("uniform", settings.applicants, np.random.default_rng([seed, 2]))
    for index, row in enumerate(model.refused[: settings.applicants]):
        content = _applicant(index, int(row), data, model, rankings[index])
        content["classifier"] = entry
        write_instance(out / f"loan_{index:03d}.json", content)
    _write_population(out, data, model, entry, settings.printed)
    report = _report(seed, settings, data, model)
    write_json(report, out / "report.json")
    return report


def describe(data: LoanData, network: ReluNetwork, points: int, rng: np.random.Generator) -> LoanModel:
    """Compute bounds, scales, margin and refused rows for a trained network."""
    refused = np.flatnonzero(deployed_logits(network, data.test.rows) < 0)
    low, high, scale = lever_ranges(data.train.rows, network)
    margin = margin_over(network, reachable_box(data.test.rows[refused], low, high), points, rng)
    return LoanModel(network, low, high, scale, margin, refused)


def lever_ranges(
    train: FloatArray, network: ReluNetwork
) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Bounds and scales of the actionable features, as :class:`LoanModel` has them."""
    negative = train[deployed_logits(network, train) < 0]
    low = {f: float(negative[:, FEATURES.index(f)].min()) for f in ACTIONABLE}
    high = {f: float(negative[:, FEATURES.index(f)].max()) for f in ACTIONABLE}
    sd = dict(zip(FEATURES, train.std(axis=0), strict=True))
    scale = {f: float(np.sqrt(len(ACTIONABLE) * sd[f] * (high[f] - low[f]))) for f in ACTIONABLE}
    return low, high, scale


def reachable_box(
    rows: FloatArray, low: dict[str, float], high: dict[str, float]
) -> tuple[FloatArray, FloatArray]:
    """A box that contains every counterfactual of the rows under actions within bounds.

    Features that are acted on lie in their bounds. Others keep their value or follow: duration moves with
    amount, savings by 1.5 times the change of relu(income).
    """
    lower, upper = rows.min(axis=0), rows.max(axis=0)
    amount, duration, income, savings = (rows[:, FEATURES.index(f)] for f in ACTIONABLE)
    follows = {
        "amount": (amount, 0.0, 0.0),
        "duration": (duration - amount, *_hull(amount, low["amount"], high["amount"])),
        "income": (income, 0.0, 0.0),
        "savings": (
            savings - 1.5 * np.maximum(income, 0.0),
            *1.5 * np.maximum(_hull(income, low["income"], high["income"]), 0.0),
        ),
    }
    for name, (base, shift_low, shift_high) in follows.items():
        k = FEATURES.index(name)
        lower[k] = min(low[name], lower[k], base.min() + shift_low)
        upper[k] = max(high[name], upper[k], base.max() + shift_high)
    return lower, upper


def applicant_design(index: int) -> tuple[int, bool, bool]:
    """For instance ``index``: (number of actionable features, are weights ranked, is plausibility asked for).

    0 to 79: four, constant, plausible. 80 to 119: four, ranked, plausible. From 120 on, in turn, the sixteen
    combinations of 3, 2, 1 or 4 features, constant or ranked weights, plausibility asked for or not.
    """
    if index < 120:
        return 4, index >= 80, True
    combinations = list(product((True, False), (False, True), (3, 2, 1, 4)))
    plausible, ranked, count = combinations[(index - 120) % len(combinations)]
    return count, ranked, plausible


def _applicant(index: int, row: int, data: LoanData, model: LoanModel, ranks: FloatArray) -> dict[str, Any]:
    """The content of one instance file; the ranking chooses the actionable features and, where
    :func:`applicant_design` says ranked, their weights."""
    count, ranked, plausible = applicant_design(index)
    scores = cut(ACTIONABLE, ranks, count + 1)
    weights = named_weights(scores, PROFILE.weights(scores))[0]
    preferences: dict[str, Any] = {"actionable": list(weights)}
    if ranked:
        preferences["weights"] = weights
    words = (
        f"Refused test row {row}: {count} actionable, {'ranked' if ranked else 'constant'} weights, "
        f"{'plausible' if plausible else 'plausibility not asked'}."
    )
    content = _shared(f"loan_{index:03d}", words, model, plausible)
    content["factual"] = dict(zip(FEATURES, _row(data, row), strict=True))
    content["preferences"] = preferences
    return content


def _write_population(
    out: Path, data: LoanData, model: LoanModel, entry: dict[str, str], printed: bool
) -> None:
    refused = pd.DataFrame(data.test.rows[model.refused], columns=FEATURES).astype({"gender": int})
    refused.to_csv(out / "refused.csv", index=False, lineterminator="\n")
    words = f"All {len(model.refused)} refused test rows: four actionable, constant weights, plausible."
    content = _shared("loan_population", words, model, plausible=True)
    content["scm"] = {"name": "loan-as-printed" if printed else "loan"}
    content |= {
        "format": "milp-recourse/population-1",
        "classifier": entry,
        "factuals": {"csv": "refused.csv"},
        "preferences": {"actionable": list(ACTIONABLE)},
    }
    write_json(content, out / "population.json")


def _write_attempts(path: Path, seed: int, data: LoanData, networks: list[ReluNetwork]) -> None:
    """Write a row per classifier, with numbers that are known before any recourse is computed."""
    rows = []
    for k, network in enumerate(networks):
        logits = deployed_logits(network, data.test.rows)
        row = {"seed": seed + k, "shipped": "yes" if k == 0 else "no"}
        row |= {"test_accuracy": f"{((logits >= 0) == data.test.labels).mean():.4f}"}
        row |= {"refused_test_rows": int((logits < 0).sum()), "logit_sd_test_rows": f"{logits.std():.4f}"}
        rows.append(row)
    write_table(path, rows)


def _shared(name: str, description: str, model: LoanModel, plausible: bool) -> dict[str, Any]:
    features: list[dict[str, Any]] = []
    for f in FEATURES:
        feature: dict[str, Any] = {"name": f, "kind": "binary" if f == "gender" else "continuous"}
        if f in ACTIONABLE:
            feature["bounds"] = [model.low[f], model.high[f]]
        features.append(feature | {"actionable": f in ACTIONABLE})
    return {
        "format": "milp-recourse/instance-1",
        "name": name,
        "description": description,
        "features": features,
        "scm": {"name": "loan"},
        "classifier": None,
        "accept": {"at_least": 0, "margin": model.margin.margin},
        "cost": {"kind": "l2-squared", "scale": model.scale},
        "plausibility": {"kind": "scm-density", "at_least": "factual"} if plausible else None,
    }


def _row(data: LoanData, row: int) -> list[float]:
    values: list[float] = data.test.rows[row].tolist()
    return [int(values[0]), *values[1:]]


def _hull(values: FloatArray, low: float, high: float) -> FloatArray:
    return np.array([min(values.min(), low), max(values.max(), high)])


def _report(seed: int, settings: LoanSettings, data: LoanData, model: LoanModel) -> dict[str, Any]:
    splits = {"train": data.train, "validation": data.validation, "test": data.test}
    logits = {name: deployed_logits(model.network, split.rows) for name, split in splits.items()}
    accepted = {name: values >= 0 for name, values in logits.items()}
    accuracy = {name: float((accepted[name] == split.labels).mean()) for name, split in splits.items()}
    return {
        "seed": seed,
        "rows": dict(zip(splits, settings.sizes, strict=True)),
        "training": asdict(settings.training),
        "accuracy": accuracy,
        "logit_sd_test_rows": float(logits["test"].std()),
        "refused_test_rows": len(model.refused),
        "released_classifier": RELEASED,
        "margin": model.margin.report(settings.points),
    }

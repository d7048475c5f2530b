r"""The shipped credit applicants: synthetic data, a decision tree, learned weights, personal ranges.

They follow the Acceptability and Weighted Proximity study. These choices are ours, because the study does not
make them:

* income is log-normal, median 42000 and sigma 0.8, drawn again if it is outside 10000..500000;
* the credit score is 300 + 550 Beta(4, 2), rounded to a whole number. The study prints Beta(2, 4), but calls
  the score left-skewed with mean 700; Beta(4, 2) is left-skewed, with mean 667;
* amount is uniform on 1000..50000; shares and desirability of education and employment are :data:`EDUCATION`
  and :data:`EMPLOYMENT`;
* desirability = 0.5 score + 0.3 income/amount + 0.12 education + 0.08 employment, the first two min-max
  normalised; the lower half of 100000 profiles is denied.

A weight is 1 less the feature's strength in a Bradley-Terry model, which is fitted to the applicant's
simulated choices between pairs of features (the one that is easier to change wins); strengths add up to 1.
The study's acceptability thresholds become personal ranges.

References
----------
Bradley and Terry (1952), https://doi.org/10.2307/2334029; Hunter (2004), https://doi.org/10.1214/aos/1079120141
(the iteration)
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.formats import instance_from_dict, read_instance
from milp_recourse.formats.strict_json import write_json
from milp_recourse.formats.write import result_part
from milp_recourse.lab.recipe.files import write_model
from milp_recourse.questions.alternatives import alternatives
from milp_recourse.questions.solve import solve
from milp_recourse.readers import read_sklearn_trees

EDUCATION = (
    ("no diploma", 0.09, 0.0),
    ("high school", 0.28, 0.25),
    ("some college", 0.25, 0.45),
    ("bachelor", 0.24, 0.75),
    ("graduate", 0.14, 1.0),
)
"""Label, share, desirability."""

EMPLOYMENT = (
    ("unemployed", 0.05, 0.0),
    ("self-employed", 0.1, 0.4),
    ("private", 0.69, 0.7),
    ("government", 0.16, 1.0),
)

DESIRABILITY = {"credit_score": 0.5, "ratio": 0.3, "education": 0.12, "employment": 0.08}
NAMES = ("income", "credit_score", "amount", "education", "employment")


def _numeric(name: str, kind: str, bounds: tuple[int, int], monotone: str) -> dict[str, Any]:
    feature = {"name": name, "kind": kind, "actionable": True}
    return feature | {"bounds": list(bounds), "monotone": monotone}


FEATURES = [
    _numeric("income", "continuous", (10000, 500000), "increase"),
    _numeric("credit_score", "integer", (300, 850), "increase"),
    _numeric("amount", "continuous", (1000, 50000), "decrease"),
    {"name": "education", "kind": "ordinal", "actionable": True}
    | {"categories": [label for label, *_ in EDUCATION], "monotone": "increase"},
    {"name": "employment", "kind": "categorical", "actionable": True}
    | {"categories": [label for label, *_ in EMPLOYMENT]},
]
"""The features as instance files have them."""

SCALE = dict(zip(NAMES, (490000.0, 550.0, 49000.0, 4.0, 1.0), strict=True))

CHOICES = 25
"""Pairwise choices per applicant, as in the study's first session."""

ROUNDS = 200
"""Steps of the iteration that fits strengths."""

NEAREST = 15
"""Alternatives listed per applicant."""


@dataclass(frozen=True)
class CreditSettings:
    """How many profiles are sampled, leaves the tree may have, and applicants are written.

    The defaults reproduce the shipped files.
    """

    profiles: int = 100_000
    leaves: int = 400
    applicants: int = 40


@dataclass(frozen=True)
class Profiles:
    """Rows (n, 5) in the order of :data:`NAMES`, labels by index, and 1 for approved."""

    rows: NDArray[np.float64]
    approved: NDArray[np.int64]


def sample_profiles(rng: np.random.Generator, count: int) -> Profiles:
    """Sample profiles, with the bank's decision: the more desirable half is approved."""
    income = np.empty(0)
    while len(income) < count:
        drawn = rng.lognormal(np.log(42000.0), 0.8, count)
        income = np.concatenate([income, drawn[(drawn >= 10000) & (drawn <= 500000)]])
    score = np.round(300 + 550 * rng.beta(4, 2, count))
    amount = rng.uniform(1000, 50000, count)
    education, employment = (
        rng.choice(len(kinds), count, p=[share for _, share, _ in kinds]) for kinds in (EDUCATION, EMPLOYMENT)
    )
    rows = np.column_stack([np.round(income[:count], 2), score, np.round(amount, 2), education, employment])
    return Profiles(rows, _approved(rows))


def _approved(rows: NDArray[np.float64]) -> NDArray[np.int64]:
    def normal(v: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((v - v.min()) / (v.max() - v.min()))

    desirable = (
        DESIRABILITY["credit_score"] * normal(rows[:, 1])
        + DESIRABILITY["ratio"] * normal(rows[:, 0] / rows[:, 2])
        + DESIRABILITY["education"] * np.array([d for *_, d in EDUCATION])[rows[:, 3].astype(int)]
        + DESIRABILITY["employment"] * np.array([d for *_, d in EMPLOYMENT])[rows[:, 4].astype(int)]
    )
    order = np.argsort(desirable, kind="stable")
    approved = np.zeros(len(rows), dtype=np.int64)
    approved[order[len(rows) // 2 :]] = 1
    return approved


def bradley_terry(wins: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Strengths, which add up to 1, fitted to wins[i, j], how often i was preferred to j.

    Hunter's iteration is :math:`s_i \leftarrow W_i / \sum_j n_{ij} / (s_i + s_j)`. Half a win is added for
    each pair in both directions, so that all strengths are positive.
    """
    wins = wins + 0.5 * (1 - np.eye(len(wins)))
    games = wins + wins.T
    strength = np.full(len(wins), 1.0 / len(wins))
    for _ in range(ROUNDS):
        rates = games / (strength[:, None] + strength)
        strength = wins.sum(axis=1) / rates.sum(axis=1)
        strength /= strength.sum()
    return strength


def personal_weights(rng: np.random.Generator) -> dict[str, float]:
    """One applicant's weights: 25 simulated choices, then 1 - strength."""
    ease = rng.dirichlet(np.full(len(NAMES), 1.5)) + 1e-3
    wins = np.zeros((len(NAMES), len(NAMES)))
    for _ in range(CHOICES):
        i, j = rng.choice(len(NAMES), 2, replace=False)
        first = rng.random() < ease[i] / (ease[i] + ease[j])
        wins[(i, j) if first else (j, i)] += 1
    strength = bradley_terry(wins)
    return {n: float(np.round(1 - s, 4)) for n, s in zip(NAMES, strength, strict=True)}


def limits(rng: np.random.Generator, row: NDArray[np.float64]) -> dict[str, list[float]]:
    """One applicant's personal ranges by feature; a feature may have none."""
    ranges: dict[str, list[float]] = {}
    if rng.random() < 0.7:
        ranges["income"] = [0.0, float(np.round(row[0] * (1 + rng.uniform(0.1, 1.0)), 2))]
    if rng.random() < 0.7:
        ranges["credit_score"] = [300.0, float(min(850, row[1] + rng.integers(20, 200)))]
    if rng.random() < 0.6:
        ranges["amount"] = [float(np.round(row[2] * rng.uniform(0.3, 0.9), 2)), 50000.0]
    if rng.random() < 0.5:
        ranges["education"] = [0.0, float(min(len(EDUCATION) - 1, row[3] + rng.integers(0, 3)))]
    return ranges


def write_credit(folder: Path, seed: int = 0, settings: CreditSettings | None = None) -> dict[str, Any]:
    """Write tree.json, the applicants' instances, nearest.json and report.json; return the report.

    Raises
    ------
    RuntimeError
        ``bab`` and ``cpsat`` disagree about an applicant.
    """
    from sklearn.tree import DecisionTreeClassifier

    settings = settings or CreditSettings()
    rng = np.random.default_rng(seed)
    profiles = sample_profiles(rng, settings.profiles)
    inputs = np.column_stack(
        [profiles.rows[:, :4], *(profiles.rows[:, 4] == k for k in range(len(EMPLOYMENT)))]
    )
    cut = int(0.8 * len(inputs))
    tree = DecisionTreeClassifier(max_leaf_nodes=settings.leaves, random_state=seed)
    tree.fit(inputs[:cut], profiles.approved[:cut])
    entry = write_model(read_sklearn_trees(tree), folder / "tree.json")
    denied = profiles.rows[cut:][tree.predict(inputs[cut:]) == 0]
    nearest: dict[str, Any] = {}
    for k in range(settings.applicants):
        content = _content(f"credit_{k:03d}", entry, denied[k], rng)
        instance = instance_from_dict(content, folder)
        found, confirmed = solve(instance, "bab"), solve(instance, "cpsat")
        if found.status is not confirmed.status or abs((found.cost or 0) - (confirmed.cost or 0)) > 1e-9:
            raise RuntimeError(f"{instance.name}: bab and cpsat disagree")
        content["reference"] = result_part(found, "cost", "lower_bound")
        write_json(content, folder / f"credit_{k:03d}.json")
        listed = alternatives(read_instance(folder / f"credit_{k:03d}.json"), NEAREST)
        nearest[f"credit_{k:03d}"] = [
            {"leaf": a.leaf, "cost": a.cost, "action": dict(a.action)} for a in listed
        ]
    (folder / "nearest.json").write_text(_one_per_line(nearest), encoding="utf-8")
    report = {
        "seed": seed,
        "profiles": settings.profiles,
        "leaves": int(tree.get_n_leaves()),
        "test_accuracy": float(tree.score(inputs[cut:], profiles.approved[cut:])),
        "denied_test_rows": len(denied),
        "without_recourse": sum(not listed for listed in nearest.values()),
        "with_15_or_more": sum(len(listed) == NEAREST for listed in nearest.values()),
    }
    write_json(report, folder / "report.json")
    return report


def _content(
    name: str, entry: dict[str, str], row: NDArray[np.float64], rng: np.random.Generator
) -> dict[str, Any]:
    ranges, weights = limits(rng, row), personal_weights(rng)
    acted = [n for n in NAMES if n != "employment" or rng.random() < 0.7]
    return {
        "format": "milp-recourse/instance-1",
        "name": name,
        "features": FEATURES,
        "scm": {"name": "independent"},
        "classifier": entry,
        "factual": {
            "income": float(row[0]),
            "credit_score": int(row[1]),
            "amount": float(row[2]),
            "education": EDUCATION[int(row[3])][0],
            "employment": EMPLOYMENT[int(row[4])][0],
        },
        "preferences": {
            "actionable": acted,
            "weights": {n: w for n, w in weights.items() if n in acted},
            "ranges": {n: r for n, r in ranges.items() if n in acted},
        },
        "cost": {"kind": "l1", "scale": {n: s for n, s in SCALE.items() if n in acted}},
        "plausibility": None,
        "accept": {"above": 0.5},
    }


def _one_per_line(nearest: dict[str, Any]) -> str:
    """JSON with one recourse a line."""
    blocks = [
        f" {json.dumps(name)}: [\n" + ",\n".join(f"  {json.dumps(a)}" for a in listed) + "\n ]"
        if listed
        else f" {json.dumps(name)}: []"
        for name, listed in nearest.items()
    ]
    return "{\n" + ",\n".join(blocks) + "\n}\n"

"""Which rule predicts what people choose: a simulation of the two studies behind AWP.

Synthetic loans, a decision tree, and for a refused person the nearest of 15 accepting leaves; income and
credit score may only rise. People have weights, a limit on each feature's change, and errors, all of them
known here; the published numbers beside ours are of people. What the paper does not give is chosen: shares
and desirabilities of the categories (evenly spaced), the bank's weights (:data:`BANK`), how people's
weights (uniform) and limits (:data:`LIMIT` of the range) are spread, and that proximity is the sum of
scaled changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from milp_recourse.elicitation.bradley_terry import Outcome, feature_level, fit
from milp_recourse.elicitation.weight_samples import FloatArray
from milp_recourse.lab.means import bootstrap, interval
from milp_recourse.lab.run_table import Row
from milp_recourse.reports.drawing import panels, save

FEATURES = ("income", "credit_score", "amount", "education", "employment")
BANK = np.array([0.4, 0.3, 0.15, 0.15])
"""Of credit score, income to amount, education and employment."""

LEAVES, LIMIT = 15, (0.05, 0.6)
PUBLISHED = {
    ("pilot", "proximity"): 0.6381, ("pilot", "sparsity"): 0.6951, ("pilot", "global weights"): 0.3629,
    ("second", "personal weights against proximity"): 0.802, ("second", "AWP"): 0.8437,
}  # fmt: skip


@dataclass(frozen=True)
class Bank:
    """Refused people as (n, 5) with their recourses' scaled changes (n, 15, 5), and the tree's accuracy."""

    changes: FloatArray
    accuracy: float


def loans(rng: np.random.Generator, count: int) -> tuple[FloatArray, FloatArray]:
    """Profiles with categories as 0 to 4, and whether each is approved."""
    income = np.exp(rng.normal(np.log(42_000), 0.8, 3 * count))
    income = income[(income > 10_000) & (income < 500_000)][:count]
    score = np.round(300 + 550 * rng.beta(2, 4, count))
    amount = rng.uniform(1_000, 50_000, count)
    education, employment = rng.integers(0, 5, (2, count)).astype(float)
    x = np.column_stack([income, score, amount, education, employment])
    parts = np.column_stack([score, income / amount, education, employment])
    parts = (parts - parts.min(axis=0)) / np.ptp(parts, axis=0)
    desirable = parts @ BANK
    return x, desirable > np.median(desirable)


def bank(people: int, seed: int, rows: int = 100_000) -> Bank:
    """Train the tree on four fifths of the loans; find the recourses of refused people of the last fifth."""
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng([seed, 4])
    x, approved = loans(rng, rows)
    cut = rows * 4 // 5
    tree = DecisionTreeClassifier(random_state=seed, min_samples_leaf=20).fit(x[:cut], approved[:cut])
    spans = np.ptp(x, axis=0)
    low, high = _accepting(tree.tree_, x.shape[1])
    said = tree.predict(x[cut:])
    refused = x[cut:][~said][: 4 * people]
    changes = []
    for one in refused:
        nearest = np.clip(one, low, high)
        nearest[:, 3:] = np.where(nearest[:, 3:] > one[3:], np.ceil(nearest[:, 3:]), np.floor(nearest[:, 3:]))
        allowed = (nearest[:, :2] >= one[:2]).all(axis=1) & tree.predict(nearest)
        moved = np.unique(np.abs(nearest[allowed] - one) / spans, axis=0)
        if len(moved) >= LEAVES:
            changes.append(moved[np.argsort(moved.sum(axis=1), kind="stable")[:LEAVES]])
    return Bank(np.array(changes[:people]), float((said == approved[cut:]).mean()))


def _accepting(tree: Any, features: int) -> tuple[FloatArray, FloatArray]:
    """The boxes of the accepting leaves, their open lower ends a little inside."""
    boxes, todo = [], [(0, np.full(features, -np.inf), np.full(features, np.inf))]
    while todo:
        node, low, high = todo.pop()
        f, at = tree.feature[node], tree.threshold[node]
        if tree.children_left[node] < 0:
            if tree.value[node][0][1] > tree.value[node][0][0]:
                boxes.append((low, high))
            continue
        left, right = high.copy(), low.copy()
        left[f], right[f] = min(high[f], at), max(low[f], at + 1e-6 * max(1.0, abs(at)))
        todo += [(tree.children_left[node], low, left), (tree.children_right[node], right, high)]
    return np.array([b[0] for b in boxes]), np.array([b[1] for b in boxes])


@dataclass
class Chooser:
    """Someone with weights, limits on scaled changes, and errors."""

    weights: FloatArray
    limits: FloatArray
    noise: float
    rng: np.random.Generator

    def choose(self, a: FloatArray, b: FloatArray) -> Outcome:
        """The better one of those that are possible."""
        able = (a <= self.limits).all(), (b <= self.limits).all()
        if not all(able):
            return "neither" if not any(able) else "first" if able[0] else "second"
        mean = float((a + b) @ self.weights) / 2
        error = self.rng.logistic() * self.noise * mean
        return "first" if a @ self.weights + error < b @ self.weights else "second"

    def probed(self, feature: int, steps: int = 10) -> float:
        """The limit as ``steps`` probes find it: halfway from the last change accepted to the first not."""
        if self.limits[feature] >= 1:
            return np.inf
        low, high = 0.0, 1.0
        for _ in range(steps):
            middle = (low + high) / 2
            low, high = (middle, high) if middle <= self.limits[feature] else (low, middle)
        return (low + high) / 2


def choosers(people: int, noise: float, limited: bool, seed: int) -> list[Chooser]:
    """People with weights uniform on the simplex."""
    found = []
    for k in range(people):
        rng = np.random.default_rng([seed, k, 41])
        limits = rng.uniform(*LIMIT, len(FEATURES)) if limited else np.full(len(FEATURES), np.inf)
        found.append(Chooser(rng.dirichlet(np.ones(len(FEATURES))) * len(FEATURES), limits, noise, rng))
    return found


def _pairs(rng: np.random.Generator, changes: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    who = rng.integers(len(changes), size=count)
    two = np.array([rng.permutation(changes.shape[1])[:2] for _ in range(count)])
    return changes[who, two[:, 0]], changes[who, two[:, 1]]


def _agrees(measure: FloatArray, outcomes: Sequence[Outcome]) -> FloatArray:
    """1 where the chosen recourse has the lower measure (columns: first, second); nan for a tie."""
    first = np.array([one == "first" for one in outcomes])
    chosen = np.array([one != "neither" for one in outcomes])
    known = chosen & (np.abs(measure[:, 0] - measure[:, 1]) > 1e-12)
    return np.where(known, ((measure[:, 0] < measure[:, 1]) == first).astype(float), np.nan)


def pilot(people: Sequence[Chooser], changes: FloatArray, seed: int) -> dict[str, FloatArray]:
    """20 pairs each: per person the share of choices that agree with each measure."""
    worth = np.array([BANK[1] / 2, BANK[0], BANK[1] / 2, BANK[2], BANK[3]])
    measures: dict[str, Callable[[FloatArray], FloatArray]] = {
        "proximity": lambda c: c.sum(axis=1),
        "sparsity": lambda c: (c > 0).sum(axis=1).astype(float),
        "global weights": lambda c: c @ worth,
    }
    shares: dict[str, list[float]] = {name: [] for name in measures}
    for k, someone in enumerate(people):
        a, b = _pairs(np.random.default_rng([seed, k, 20]), changes, 20)
        outcomes = [someone.choose(*pair) for pair in zip(a, b, strict=True)]
        for name, measure in measures.items():
            agreed = _agrees(np.column_stack([measure(a), measure(b)]), outcomes)
            shares[name].append(float(np.nanmean(agreed)) if not np.isnan(agreed).all() else np.nan)
    return {name: np.array(values) for name, values in shares.items()}


def second(people: Sequence[Chooser], changes: FloatArray, seed: int) -> dict[str, FloatArray]:
    """Weights from 25 pairs, limits from probes; the share of 400 further choices that each rule predicts."""
    shares: dict[str, list[float]] = {}
    for k, someone in enumerate(people):
        rng = np.random.default_rng([seed, k, 25])
        a, b = _pairs(rng, changes, 25)
        outcomes = [someone.choose(*pair) for pair in zip(a, b, strict=True)]
        weights = fit(a, b, outcomes, level=None).weights
        by_feature = feature_level(a, b, outcomes)
        limits = np.array([someone.probed(f) for f in range(len(FEATURES))])
        a, b = _pairs(rng, changes, 400)
        outcomes = [someone.choose(*pair) for pair in zip(a, b, strict=True)]
        plain = np.column_stack([a.sum(axis=1), b.sum(axis=1)])
        own = np.column_stack([a @ weights, b @ weights])
        features = np.column_stack([a @ by_feature, b @ by_feature])
        able = np.column_stack([(a <= limits).all(axis=1), (b <= limits).all(axis=1)])
        awp = np.where(able, own, own + 1e3)
        differ = (own[:, 0] < own[:, 1]) != (plain[:, 0] < plain[:, 1])
        for name, rule in (
            ("proximity", plain), ("personal weights", own), ("1 - beta", features), ("AWP", awp)
        ):  # fmt: skip
            shares.setdefault(name, []).append(float(np.nanmean(_agrees(rule, outcomes))))
        chosen = _agrees(own, outcomes)[differ]
        chosen = chosen[~np.isnan(chosen)][:15]
        name = "personal weights against proximity"
        shares.setdefault(name, []).append(float(chosen.mean()) if len(chosen) else np.nan)
    return {name: np.array(values) for name, values in shares.items()}


def run(pilots: int, others: int, seed: int = 0, rows: int = 100_000) -> list[Row]:
    """Both studies by noise, with limits and without: mean shares, intervals over people, the published."""
    ours = bank(300, seed, rows)
    found = []
    for limited in (True, False):
        for noise in (0.0, 0.2, 0.5):
            studies = {
                "pilot": pilot(choosers(pilots, noise, limited, seed), ours.changes, seed),
                "second": second(choosers(others, noise, limited, seed + 1), ours.changes, seed),
            }
            for study, shares in studies.items():
                for rule, values in shares.items():
                    known = values[~np.isnan(values)]
                    low, high = interval(bootstrap(known, np.random.default_rng(0)))
                    found.append(
                        {
                            "study": study,
                            "limits": limited,
                            "noise": noise,
                            "rule": rule,
                            "people": len(known),
                            "share": float(known.mean()),
                            "low": low,
                            "high": high,
                            "published": PUBLISHED.get((study, rule)),
                            "tree_accuracy": ours.accuracy,
                        }
                    )
    return found


def draw(rows: Sequence[Row], *paths: Path) -> Path:
    """The share of choices that each rule predicts, by noise, with limits."""
    figure, axes = panels((11, 4), 1, 2, grid="x")
    for axis, study in zip(axes, ("pilot", "second"), strict=True):
        own = [row for row in rows if row["study"] == study and row["limits"]]
        rules = list(dict.fromkeys(row["rule"] for row in own))
        for k, noise in enumerate(sorted({row["noise"] for row in own})):
            some = [next(r for r in own if (r["rule"], r["noise"]) == (rule, noise)) for rule in rules]
            y = np.arange(len(rules)) + 0.2 * (k - 1)
            ends = [[r["share"] - r["low"] for r in some], [r["high"] - r["share"] for r in some]]
            shares, words = [r["share"] for r in some], f"simulated, noise {noise:g}"
            axis.errorbar(shares, y, xerr=ends, fmt="o", label=words)
        said = [(r["published"], rules.index(r["rule"])) for r in own if r["published"] and not r["noise"]]
        axis.plot([p for p, _ in said], [y for _, y in said], "k*", markersize=11, label="published (people)")
        axis.set_yticks(range(len(rules)), [rule.replace(" against", "\nagainst") for rule in rules])
        axis.set_xlim(0, 1.02)
        axis.set_title({"pilot": "pilot: 20 pairs each", "second": "second study"}[study], fontsize=10)
        axis.set_xlabel("share of choices predicted")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return save(figure, *paths)

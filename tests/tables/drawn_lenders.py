"""Pipelines over drawn tables of 8 to 55 columns, asked through the DataFrame interface.

    python -m tests.tables.drawn_lenders --first 0 --models 30 --csv docs/results/dataframes/drawn_lenders.csv

Columns are numbers, counts, skewed amounts, truth values and labels, some with missing values; the model is
a network of one to three layers behind an imputer, a scaler and one-hot labels. Three refused people of each:
at the 10th, 50th and 90th hundredth of the refused scores. A row per person; limits are 15 s for a search and
for its proof.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.progress import track
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from milp_recourse import Recourse

SHAPES = [(16,), (32,), (16, 16), (32, 32), (64,), (24, 24, 24), (100,)]
COSTS = ["l1", "l1", "l2-squared", "linf", "l2"]


def lender(seed: int) -> tuple[Any, pd.DataFrame, list[int], str]:
    """A fitted pipeline, its table, the rows of three refused people, and a cost."""
    rng = np.random.default_rng(seed)
    width = int(rng.choice([8, 12, 20, 35, 55]))
    drawn, y = make_classification(
        3000, width, n_informative=max(4, width // 2), n_redundant=width // 5, flip_y=0.05, class_sep=0.7,
        random_state=seed,
    )  # fmt: skip
    columns = {f"c{k}": _column(rng, drawn[:, k]) for k in range(width)}
    X = pd.DataFrame(columns)
    labels = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    numbers = [name for name in X if name not in labels]
    for name in numbers:
        if rng.random() < 0.15:
            X[name] = X[name].astype(float).mask(rng.random(3000) < 0.05)
    shape = SHAPES[int(rng.integers(len(SHAPES)))]
    scaler = StandardScaler() if rng.random() < 0.6 else MinMaxScaler()
    before = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), scaler), numbers),
        (OneHotEncoder(handle_unknown="ignore"), labels),
    )
    alpha = float(rng.choice([1e-4, 1e-2, 1.0]))
    model = make_pipeline(before, MLPClassifier(shape, max_iter=80, random_state=seed, alpha=alpha)).fit(X, y)
    scores = model.predict_proba(X)[:, 1]
    refused = np.flatnonzero(scores < 0.5)
    order = refused[np.argsort(scores[refused])]
    people = [int(order[int(share * (len(order) - 1))]) for share in (0.1, 0.5, 0.9)]
    return model, X, people, str(rng.choice(COSTS))


def _column(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    """What a table may hold of a drawn number."""
    kind = rng.choice(["number", "count", "amount", "label", "truth"], p=[0.3, 0.25, 0.15, 0.2, 0.1])
    if kind == "number":
        return np.round(z * rng.uniform(0.1, 50.0), 3)
    if kind == "count":
        return np.floor((z - z.min()) * rng.uniform(0.5, 5.0)).astype(int)
    if kind == "amount":
        return (np.exp(0.8 * z / z.std()) * rng.choice([100, 3000, 40000])).astype(int)
    if kind == "truth":
        return (z > 0).astype(int)
    count = int(rng.integers(3, 9))
    ends = np.quantile(z, np.linspace(0.0, 1.0, count + 1)[1:-1])
    return np.array([f"v{k}" for k in range(count)])[np.searchsorted(ends, z)]


def main() -> None:
    """Ask for everybody and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--models", type=int, default=30)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = []
    for seed in track(range(options.first, options.first + options.models), description="models"):
        model, X, people, cost = lender(seed)
        answers = Recourse(model, X, cost=cost).certify(X.loc[people], time_limit=15.0, certificates=True)
        for person, answer, result in zip(
            people, answers.table.to_dict("records"), answers.results, strict=True
        ):
            sizes = model[-1].hidden_layer_sizes
            rows.append(
                {
                    "seed": seed,
                    "columns": X.shape[1],
                    "network": "x".join(map(str, sizes)),
                    "cost_kind": cost,
                    "person": person,
                    **{key: answer[key] for key in ("status", "cost", "lower_bound", "proof")},
                    "confirmed": answer["confirmed"],
                    "seconds": round(answer["seconds"], 3),
                    "nodes": result.nodes,
                    "certificate": result.evidence is not None,
                }
            )
    table = pd.DataFrame(rows)
    print(table.groupby("status").size().to_string())
    certified, confirmed = table["certificate"].sum(), table["confirmed"].sum()
    print(f"{certified} of {len(table)} with a certificate, {confirmed} confirmed")
    print(f"seconds: median {table['seconds'].median():.2f}, 90% {table['seconds'].quantile(0.9):.2f}")
    if options.csv is not None:
        table.to_csv(options.csv, index=False)


if __name__ == "__main__":
    main()

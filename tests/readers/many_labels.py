"""A column of 2000 labels: how long reading takes, and answering 330 refused people.

    python -m tests.readers.many_labels --json FILE

Seconds are of the processor and of the clock, once the search is compiled.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from milp_recourse import Recourse

MODELS: dict[str, Any] = {
    "logistic": LogisticRegression(max_iter=1000),
    "perceptron": MLPClassifier((8,), max_iter=30, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=50, random_state=0),
}
NUMBERS = ["age", "income", "debt"]


def table(labels: int, rows: int = 8000) -> tuple[pd.DataFrame, pd.Series]:
    """A table with a column of so many labels, each of which counts, and a decision."""
    rng = np.random.default_rng(0)
    towns = np.array([f"town {k}" for k in range(labels)])
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows).astype(float),
            "income": rng.gamma(2, 1500, rows).round(2),
            "debt": rng.uniform(0, 1, rows),
            "town": np.concatenate([towns, rng.choice(towns, rows - labels)]),
        }
    )
    effects = X.town.map(dict(zip(towns, rng.normal(size=labels), strict=True)))
    score = X.income / 3000 - 2 * X.debt + effects + rng.normal(size=rows) * 0.5
    return X, (score > 0.3).astype(int)


def measured(model: Any, X: pd.DataFrame, y: pd.Series, people: int) -> dict[str, Any]:
    """Seconds to read the model and to answer, and what the answers are."""
    before = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(), ["town"]))
    fitted = make_pipeline(before, model).fit(X, y)
    refused = X[fitted.predict(X) == 0].head(people)
    Recourse(fitted, X, immutable=["age"]).certify(refused.head(2))  # compiles
    marks = [(time.process_time(), time.perf_counter())]
    recourse = Recourse(fitted, X, immutable=["age"])
    marks.append((time.process_time(), time.perf_counter()))
    answers = recourse.certify(refused).table
    marks.append((time.process_time(), time.perf_counter()))
    spent = np.diff(np.array(marks), axis=0).round(2).tolist()
    return {
        "read": {"processor": spent[0][0], "clock": spent[0][1]},
        "answered": {"processor": spent[1][0], "clock": spent[1][1]},
        "people": len(refused),
        "optimal": int((answers.status == "optimal").sum()),
        "confirmed": int(answers.confirmed.fillna(False).sum()),
    }


def main() -> None:
    """Measure every model, and write what came out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--labels", type=int, default=2000)
    parser.add_argument("--people", type=int, default=330)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = table(given.labels)
    models = {name: measured(model, X, y, given.people) for name, model in MODELS.items()}
    text = json.dumps({"labels": given.labels, "seconds": models}, indent=1)
    print(text)
    if given.json is not None:
        given.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

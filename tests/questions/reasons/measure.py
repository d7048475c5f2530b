"""Seconds a person for the reasons of 23 levers, 276 sets, on Give Me Some Credit and XGBoost.

The data set has 10 columns; 13 more are its own times log-normal noise, so that many levers move together.

    MILP_RECOURSE_DATA=FOLDER python -m tests.questions.reasons.measure [PEOPLE]
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

MOST_SECONDS = 5.0


def main(people: int = 40) -> int:
    """Print a line per person and the median; 1 if that is above :data:`MOST_SECONDS`."""
    from xgboost import XGBClassifier

    from milp_recourse import Recourse

    folder = os.environ.get("MILP_RECOURSE_DATA")
    file = Path(folder or ".") / "gmsc-cs-training.csv.zip"
    if not file.is_file():
        print(f"no {file.name}: MILP_RECOURSE_DATA names the folder with the owner's file", file=sys.stderr)
        return 2
    table = pd.read_csv(file, index_col=0).head(30000)
    X, y = table.drop(columns="SeriousDlqin2yrs"), 1 - table["SeriousDlqin2yrs"]
    rng = np.random.default_rng(0)
    for k, name in enumerate((list(X.columns) * 2)[:13]):
        X[f"{name} again {k}"] = X[name] * rng.lognormal(0, 0.5, len(X))
    model = XGBClassifier(n_estimators=100, max_depth=4, scale_pos_weight=0.07).fit(X, y)
    answers = Recourse(model, X).certify(X[model.predict(X) == 0].head(people))
    seconds = []
    for person in answers.table.index:
        begun = time.perf_counter()
        found = answers.reasons(person)
        seconds.append(time.perf_counter() - begun)
        counts = Counter(found["status"])
        print(f"{person}: {len(found)} sets, {seconds[-1]:.2f} s, {dict(counts)}", flush=True)
    median = float(np.median(seconds))
    print(f"median {median:.2f} s, most {max(seconds):.2f} s, {len(seconds)} people")
    return int(median > MOST_SECONDS)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))

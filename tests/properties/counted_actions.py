"""What "at most k actions" costs on Give Me Some Credit and boosted trees, and whether the proofs hold.

``python -m tests.properties.counted_actions --json docs/results/conditions/counted.json``
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import pandas as pd
from xgboost import XGBClassifier

from milp_recourse import Recourse


def measure(count: int, trees: int) -> dict[str, Any]:
    """Per k (0: no condition) processor seconds of solving with proofs and of checking, and the verdict."""
    table = pd.read_csv(os.environ["MILP_RECOURSE_DATA"] + "/gmsc-cs-training.csv.zip", index_col=0)
    table = table.sample(30000, random_state=0)
    X, y = table.drop(columns="SeriousDlqin2yrs"), 1 - table["SeriousDlqin2yrs"]
    model = XGBClassifier(n_estimators=trees, max_depth=4, n_jobs=1, scale_pos_weight=0.07).fit(X, y)
    people, found, plain = X[model.predict(X) == 0].head(count), dict[str, Any](), None
    for k in (0, 0, 3, 2, 1):  # the first time everything is compiled
        conditions = [f"at most {k} actions"] if k else []
        recourse = Recourse(model, X, immutable=["age"], increase=["MonthlyIncome"], conditions=conditions)
        start = sum(os.times()[:4])
        answers = recourse.certify(people, time_limit=30, certificates=True)
        solved = sum(os.times()[:4])
        said = str(answers.verify()).split(";")[0]
        costs = answers.table["cost"]
        plain = costs if not k else plain
        found[str(k)] = {
            "binds": int((~(costs <= plain * (1 + 1e-5) + 1e-12)).sum()),
            "solving": round(solved - start, 2),
            "checking": round(sum(os.times()[:4]) - solved, 2),
            "verdict": said,
        }
    return {"people": count, "trees": trees, "at most": found}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=25)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    text = json.dumps(measure(given.people, given.trees), indent=1) + "\n"
    print(text)
    if given.json:
        given.json.write_text(text)

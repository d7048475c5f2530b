"""Studios to drive in a browser: ``python -m tests.studio.lent loan | boosted | asked | gmsc | slow``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from milp_recourse import Recourse

ROOT = Path(__file__).parents[2]


def table(count: int = 600, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Applicants with a label and gaps, and who was lent to."""
    rng = np.random.default_rng(seed)
    income = rng.integers(10, 90, count) * 100.0
    frame = pd.DataFrame(
        {
            "income": np.where(rng.random(count) < 0.1, np.nan, income),
            "debt": rng.integers(0, 60, count) * 250.0,
            "years": rng.integers(0, 25, count),
            "home": pd.Categorical(rng.choice(["rents", "owns", "family"], count)),
        }
    )
    worth = (
        np.nan_to_num(income) / 1000 - frame["debt"] / 4000 + frame["years"] / 6 + (frame["home"] == "owns")
    )
    return frame, (worth + rng.normal(0, 0.5, count) > 4.5).astype(int)


def boosted() -> tuple[Recourse, pd.DataFrame]:
    """A boosted model that takes labels and gaps as they are, and people whom it refuses."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    X, y = table()
    model = HistGradientBoostingClassifier(
        max_iter=60, categorical_features="from_dtype", random_state=0
    ).fit(X, y)
    refused = X[model.predict(X) == 0].head(6)
    words = {
        "names": {"income": "income a month", "home": "home <b>"},
        "units": {"income": "EUR", "debt": "EUR"},
    }
    return Recourse(model, X, increase=["years"], **words), refused


def asked() -> tuple[Recourse, pd.DataFrame]:
    """A function that is only asked, with steps; and people whom it refuses."""
    X, _ = table()
    X = X.dropna()

    def lends(frame: pd.DataFrame) -> Any:
        return ((frame["income"] / 1000 - frame["debt"] / 4000 + frame["years"] / 6) > 4.5).astype(int)

    steps = {"income": 250, "debt": 500, "years": 1}
    return Recourse(lends, X, desired=1, steps=steps, immutable=["home"]), X[lends(X) == 0].head(3)


def slow() -> tuple[Recourse, pd.DataFrame]:
    """A function that accepts owners alone, asked about all that somebody who rents could do."""
    X, _ = table()
    X = X.dropna()
    owns = lambda frame: (frame["home"] == "owns").astype(int)  # noqa: E731
    steps = {"income": 1, "debt": 1, "years": 1}
    return Recourse(owns, X, desired=1, steps=steps, immutable=["home"]), X[X["home"] == "rents"].head(1)


def gmsc() -> tuple[Recourse, pd.DataFrame]:
    """A boosted model of Give Me Some Credit, and people whom it refuses."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    X = pd.read_csv(Path(os.environ["MILP_RECOURSE_DATA"]) / "gmsc-cs-training.csv.zip", index_col=0)
    y = (X.pop("SeriousDlqin2yrs") == 0).astype(int)
    model = HistGradientBoostingClassifier(max_iter=100, random_state=0).fit(X, y)
    return Recourse(model, X, immutable=["age", "NumberOfDependents"]), X[model.predict(X) == 0].head(6)


def main(name: str) -> None:
    """Serve one of them; its address is the first line."""
    if name == "loan":
        from milp_recourse.cli import main as command

        command(["studio", str(ROOT / "instances" / "loan" / "loan_003.json"), "--no-browser"])
        return
    recourse, people = {"boosted": boosted, "asked": asked, "gmsc": gmsc, "slow": slow}[name]()
    recourse.studio(people, browser=False)


if __name__ == "__main__":
    main(sys.argv[1])

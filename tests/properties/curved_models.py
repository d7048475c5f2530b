"""Models with curves against a grid and against being asked: ``python -m tests.properties.curved_models``.

Per seed a random network of tanh or logistic units, GaussianNB or QuadraticDiscriminantAnalysis on three
columns, two of which are levers. Of two refused people: predict accepts every action, certificates verify,
no row of a grid that predict accepts costs less than the bound, and where levers take steps, the model that
is read and the one that is asked (every row of these steps) cost the same, unless the search was stopped.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from milp_recourse import Recourse
from tests.properties.repeated import Checked, repeated

PEOPLE, GRID, STEPS = 2, 150, 12


def random_model(seed: int, rng: np.random.Generator) -> tuple[str, Any, pd.DataFrame, Any]:
    """A fitted model, its kind, the table it was fitted on, and the class that is wished for."""
    X = pd.DataFrame(rng.normal(rng.uniform(-50, 50, 3), 10.0 ** rng.integers(0, 3, 3), (250, 3)))
    X.columns = ["a", "b", "c"]
    z = (X - X.mean()) / X.std()
    score = z["a"] * rng.normal() + z["b"] * rng.normal() + z["a"] * z["b"] * rng.normal() + z["c"] ** 2 / 2
    y = np.digitize(score + rng.normal(0, 0.3, len(X)), np.quantile(score, [0.5, 0.8][: rng.integers(1, 3)]))
    kind = str(rng.choice(["tanh", "logistic", "gaussian", "quadratic"]))
    last: Any = {"gaussian": GaussianNB(), "quadratic": QuadraticDiscriminantAnalysis()}.get(kind)
    if last is None:
        widths = tuple(int(w) for w in rng.integers(2, 9, rng.integers(1, 3)))
        last = MLPClassifier(widths, activation=kind, solver="lbfgs", max_iter=100, random_state=seed)
    scaled = kind in ("tanh", "logistic") or rng.random() < 0.5
    model = make_pipeline(StandardScaler(), last) if scaled else last
    return kind, model.fit(X, y), X, int(rng.integers(y.max() + 1))


def check(seed: int) -> Checked:
    """What is found of one model: counts, and a line for each fault."""
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fits that do not converge
        kind, model, X, wish = random_model(seed, rng)
    people = X[model.predict(X) != wish].head(PEOPLE)
    recourse = Recourse(model, X, desired=wish, immutable=["c"])
    answers = recourse.certify(people, time_limit=30, certificates=True)
    counts, wrong = Counter({"models": 1, kind: 1}), []
    width = X.max() - X.min()
    ticks = [np.linspace(X[name].min(), X[name].max(), GRID) for name in "ab"]
    grid = pd.DataFrame(list(product(*ticks)), columns=["a", "b"])
    for k, (label, person) in enumerate(people.iterrows()):
        found = answers.table.iloc[k]
        counts[str(found["status"])] += 1
        rows = grid.assign(c=person["c"])[list(X.columns)]
        accepted = rows[model.predict(rows) == wish]
        cheapest = ((accepted - person).abs() / width).sum(axis=1).min() if len(accepted) else np.inf
        if found["status"] == "infeasible" and len(accepted):
            wrong.append(f"seed {seed}, row {label}: infeasible, but predict accepts {len(accepted)} rows")
        elif cheapest < found["lower_bound"]:
            wrong.append(f"seed {seed}, row {label}: a row costs {cheapest}, below {found['lower_bound']}")
        if found["cost"] == found["cost"] and not found["confirmed"]:
            wrong.append(f"seed {seed}, row {label}: predict refuses the action")
    closed = answers.table["status"].isin(["optimal", "infeasible"]).sum()
    said = str(answers.verify())
    made = sum(1 for one in answers.results if one.evidence is not None)
    counts["certificates"] += made
    if made and not said.startswith(f"VERIFIED {made} of {made}"):
        wrong.append(f"seed {seed}: {said[:200]}")
    if made < closed:
        counts["without a certificate"] += int(closed) - made
    steps = {name: float(width[name]) / STEPS for name in "ab"}
    read = Recourse(model, X, desired=wish, immutable=["c"], steps=steps).certify(people, time_limit=30)
    asked = Recourse(lambda frame: model.predict(frame) == wish, X, immutable=["c"], steps=steps)
    costs = asked.certify(people, time_limit=30).table
    for k in range(len(people)):
        one, other = read.table.iloc[k], costs.iloc[k]
        if one["status"] == "limit" and one["lower_bound"] <= other["cost"]:
            counts["stopped where levers take steps"] += 1
            continue
        same = one["status"] == other["status"]
        if not same or (one["status"] == "optimal" and not np.isclose(one["cost"], other["cost"], rtol=2e-6)):
            wrong.append(f"seed {seed}, person {k}: read {one['cost']}, asked {other['cost']}")
    return counts, wrong


if __name__ == "__main__":
    sys.exit(repeated(__doc__, check, 100))

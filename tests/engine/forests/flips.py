"""Returned actions handed to the deployed models of every library, floats exactly as returned.

Factuals sit on thresholds, on the last double that goes left and on the next one; optima always sit on an
edge of a cell, because that is where costs are least.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.formats import read_instance, write_result
from milp_recourse.formats.write import write_instance
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.result import Result, Status
from milp_recourse.problem.scm import independent
from milp_recourse.questions.solve import solve
from milp_recourse.readers import read_lightgbm, read_sklearn_trees, read_xgboost, safe_threshold

NAMES = ("income", "age", "debt", "rooms", "score")
COSTS = ("l2-squared", "l1", "linf", "l0")


@dataclass(frozen=True)
class Family:
    """A fitted model, as read, and its own prediction of rows of doubles."""

    name: str
    forest: TreeEnsemble
    above: float
    predict: Callable[[NDArray[np.float64]], NDArray[Any]]


def data(seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows of different sizes and a noisy label; rooms are whole numbers."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(3000, 5)) * [15000.0, 12.0, 0.3, 2.0, 1.0] + [40000.0, 45.0, 0.5, 4.0, 0.0]
    rows[:, 3] = np.round(rows[:, 3])
    logit = (rows[:, 0] - 45000) / 15000 - 3 * (rows[:, 2] - 0.4) + 0.3 * (rows[:, 3] - 4) + rows[:, 4]
    return rows, (logit + rng.logistic(size=3000) * 0.4 > 0).astype(np.int64)


def families() -> Iterator[Family]:
    """One model per family whose library is installed."""
    from sklearn import ensemble, tree

    rows, labels = data()
    for name, estimator in {
        "decision tree": tree.DecisionTreeClassifier(max_depth=8, random_state=0),
        "random forest": ensemble.RandomForestClassifier(15, max_depth=5, random_state=0),
        "extra trees": ensemble.ExtraTreesClassifier(15, max_depth=5, random_state=0),
        "gradient boosting": ensemble.GradientBoostingClassifier(n_estimators=15, random_state=0),
        "histogram boosting": ensemble.HistGradientBoostingClassifier(max_iter=12, max_depth=4),
    }.items():
        estimator.fit(rows, labels)
        forest = read_sklearn_trees(estimator)
        yield Family(name, forest, safe_threshold(forest, at_zero=True), estimator.predict)
    try:
        import xgboost
    except ImportError:
        pass
    else:
        boosted = xgboost.XGBClassifier(n_estimators=15, max_depth=4, n_jobs=1).fit(rows, labels)
        forest = read_xgboost(boosted)
        yield Family("xgboost", forest, safe_threshold(forest), boosted.predict)
    try:
        import lightgbm
    except ImportError:
        return
    light = lightgbm.LGBMClassifier(n_estimators=15, max_depth=4, n_jobs=1, verbose=-1).fit(rows, labels)
    forest = read_lightgbm(light)
    booster = light.booster_
    yield Family("lightgbm", forest, safe_threshold(forest), lambda x: (booster.predict(x) > 0.5) * 1)


def applicants(family: Family, count: int, seed: int = 1) -> Iterator[Instance]:
    """Refused applicants, half of them with values on thresholds or one double beside them."""
    rng = np.random.default_rng(seed)
    rows, _ = data(seed)
    spread = rows.std(axis=0)
    kinds = ("continuous", "continuous", "continuous", "integer", "continuous")
    features = tuple(
        Feature(n, kind, True, (float(np.floor(rows[:, k].min())), float(np.ceil(rows[:, k].max()))))
        for k, (n, kind) in enumerate(zip(NAMES, kinds, strict=True))
    )
    made = 0
    while made < count:
        row = rows[rng.integers(len(rows))].copy()
        if made % 2:
            for k in (0, 1, 2, 4):
                cuts = family.forest.cuts[k]
                if len(cuts) and rng.random() < 0.7:
                    cut = cuts[np.abs(cuts - row[k]).argmin()]
                    row[k] = rng.choice([cut, np.nextafter(cut, np.inf), float(np.float32(cut))])
        if family.forest.score(row) > family.above:
            continue
        made += 1
        acted = tuple(n for n in NAMES if rng.random() < 0.8) or NAMES
        scale = dict(zip(NAMES, spread.tolist(), strict=True))
        yield Instance(
            features,
            independent(NAMES),
            family.forest,
            dict(zip(NAMES, row.tolist(), strict=True)),
            Preferences(acted, {n: float(np.round(rng.uniform(0.5, 3), 2)) for n in acted}),
            Cost.pure(str(rng.choice(COSTS)), scale),
            Acceptance(family.above, 0.0, strict=True),
            name=f"{family.name}-{made}",
        )


def flipped(family: Family, instance: Instance, result: Result) -> bool:
    """Whether the deployed model accepts the row that the action makes."""
    row = instance.factual_row
    for name, value in (result.action or {}).items():
        row[NAMES.index(name)] = value
    return int(family.predict(row[None])[0]) == 1


def on_a_cut(family: Family, instance: Instance, result: Result) -> bool:
    """Whether an acted value is the first or last double of a cell."""
    for name, value in (result.action or {}).items():
        cuts = family.forest.cuts[NAMES.index(name)]
        if value in cuts or np.nextafter(float(value), -np.inf) in cuts:
            return True
    return False


def run(count: int, folder: Path, seed: int = 1) -> dict[str, dict[str, int]]:
    """Solve ``count`` applicants per family and count what the deployed models say."""
    tally: dict[str, dict[str, int]] = {}
    for family in families():
        seen = dict.fromkeys(("applicants", "actions", "failed", "failed after JSON", "on a cut"), 0)
        for instance in applicants(family, count, seed):
            seen["applicants"] += 1
            result = solve(instance)
            assert result.status in (Status.OPTIMAL, Status.INFEASIBLE), result
            if result.action is None:
                continue
            seen["actions"] += 1
            seen["failed"] += not flipped(family, instance, result)
            seen["on a cut"] += on_a_cut(family, instance, result)
            write_result(result, folder / "result.json")
            back = json.loads((folder / "result.json").read_text(encoding="utf-8"))["action"]
            row = instance.factual_row
            for name, value in back.items():
                row[NAMES.index(name)] = value
            seen["failed after JSON"] += int(family.predict(row[None])[0]) != 1
            if seen["actions"] % 50 == 1:  # the whole instance through JSON: the same answer
                write_instance(instance, folder / "instance.json")
                assert solve(read_instance(folder / "instance.json")).action == result.action
        tally[family.name] = seen
    return tally

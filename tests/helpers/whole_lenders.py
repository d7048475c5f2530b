"""Fitted models over tables of few whole numbers and labels, asked so that every action can be tried.

What an action may set is finite: whole numbers between bounds, labels. Other numbers only follow from
causes, or never move. :mod:`tests.helpers.pipelines` draws the model; here is drawn what is asked: costs,
scales by direction, ranges, domains, causes, plausibility.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier

from milp_recourse.problem.cost import KINDS
from tests.helpers.drawn_causes import Mechanism, drawn_causes
from tests.helpers.pipelines import FINALS, LINEAR, NATIVE, TAKES_GAPS, fitted_on
from tests.helpers.unread_models import AT_LEAST_HALF, UNREAD, unread_on

MOST_ACTIONS = 2500
"""Of one person, about."""


@dataclass(frozen=True)
class Lender:
    """A model and how it is asked.

    Attributes
    ----------
    arguments
        Of ``Recourse``, beside model, X and desired.
    people, preferences
        Who is asked about, and their own preferences without conditions.
    causes
        Mechanisms of columns, causes before effects; empty if nothing causes anything.
    backend
        Who is asked, unless the problem is refused; None: the default back end.
    """

    seed: int
    final: str
    model: Any
    X: pd.DataFrame
    desired: Any
    arguments: dict[str, Any]
    people: pd.DataFrame
    preferences: list[dict[str, Any]]
    causes: dict[str, Mechanism]
    backend: str | None


def lender(
    seed: int,
    plausibility: str | None = None,
    count: int = 6,
    final: str | None = None,
    plain: bool = False,
    tight: bool = False,
    whole: bool = True,
) -> Lender:
    """A lender and ``count`` people.

    Parameters
    ----------
    plausibility
        A kind to ask for, or "any".
    final
        The classifier, one of ``FINALS`` or ``UNREAD``; "unread": one of the latter; None: one of the former.
    plain
        Without causes.
    tight
        People's own ranges are narrow, so that many have no recourse.
    whole
        Whether actions set whole numbers and labels only; else other numbers, too.
    """
    rng = np.random.default_rng([seed, 4])
    final = str(rng.choice(["tree", *FINALS])) if final is None else final
    final = str(rng.choice(UNREAD)) if final == "unread" else final
    if plausibility == "any":
        plausibility = [None, None, "near-data", "domain", "scm-density"][int(rng.integers(5))]
    density = plausibility == "scm-density"
    causal = density or (not plain and rng.random() < 0.35)
    native = final in NATIVE and not causal and rng.random() < 0.4
    bare = native or density or rng.random() < (0.7 if final == "perceptron" else 0.15)
    X = _table(rng, native or not bare, not causal and (not bare or final in TAKES_GAPS), bare)
    if native:
        X = X.astype({c: "category" for c in X.columns if c.startswith(("label", "code"))})
    several = bool(final in (*LINEAR, "forest", "boosting", "xgboost", "lightgbm") and rng.random() < 0.25)
    model, y = unread_on(rng, X, final) if final in UNREAD else fitted_on(rng, X, final, several, bare)
    if not several and final not in (*UNREAD, "svc", "sgd", "ridge", "perceptron") and rng.random() < 0.15:
        share = float(rng.choice([0.3, 0.5, 0.7]))
        model = FixedThresholdClassifier(FrozenEstimator(model), threshold=share).fit(X, y)
    classes = list(pd.unique(y))
    desired = classes[int(rng.integers(len(classes)))]
    if several and rng.random() < 0.4:
        desired = {"not": desired}
    if final == "callable":
        desired = AT_LEAST_HALF
    causes = drawn_causes(rng, X, final in LINEAR) if causal else {}
    arguments: dict[str, Any] = {}
    if causal:
        said = {name: mechanism.said for name, mechanism in causes.items()}
        arguments["scm"] = {"name": "explicit", "mechanisms": said}
    effects = [name for name, mechanism in causes.items() if mechanism.causes]
    arguments |= _limits(rng, X, effects, whole)
    arguments |= _cost(rng, X, arguments)
    said = _plausibility(rng, X, plausibility)
    arguments |= {} if said is None else {"plausibility": said}
    if final in UNREAD:
        arguments["kinds"] = {c: "categorical" for c in X.columns if c.startswith("code")}
        if isinstance(said, dict):
            said.pop("prototypes", None)  # the check reads them from a file, which there is none of
    people = _people(rng, X, count, model, desired)
    own = [_own(rng, X, arguments, person if tight else None) for _, person in people.iterrows()]
    backend = None if rng.random() < 0.7 else str(rng.choice(["highs", "cpsat"]))
    return Lender(seed, final, model, X, desired, arguments, people, own, causes, backend)


def _table(rng: np.random.Generator, labels: bool, gaps: bool, bare: bool) -> pd.DataFrame:
    n = int(rng.integers(60, 160))
    columns: dict[str, Any] = {}
    for k in range(int(rng.integers(2, 5))):
        size, step = int(rng.integers(2, 6)), int(rng.choice([1, 1, 1, 2]))
        size = 1 if rng.random() < 0.05 else size
        column = rng.integers(0, size, n) * step + int(rng.choice([0, 0, -2, 10]))
        if rng.random() < 0.06:
            column += 2**24 - 3  # float32 does not tell these apart
        elif rng.random() < 0.2:
            column = column.astype(rng.choice(["float32" if bare else "int16", "int8", "int32"]))
        columns[f"whole {k}"] = column
    for k in range(int(rng.integers(1, 3))):
        columns[f"number {k}"] = np.round(rng.normal(0, 4, n) * 8) / 8
    if rng.random() < 0.4:
        columns["flag"] = rng.random(n) < 0.5
    for k in range(int(rng.integers(1, 3)) if labels else 0):
        drawn = np.minimum(rng.geometric(0.4, n) - 1, int(rng.integers(2, 5)) - 1)
        if rng.random() < 0.3:
            columns[f"code {k}"] = np.array([3, 1, 7, 0])[drawn]
        else:
            column = pd.Series(np.array(["b low", "a", "rent=own", "é"], dtype=object)[drawn])
            columns[f"label {k}"] = column.astype("category") if rng.random() < 0.5 else column
    X = pd.DataFrame(columns)
    for name in X.columns if gaps else ():
        if name.startswith(("whole", "label")) and rng.random() < 0.3:
            if name.startswith("whole"):
                X[name] = X[name].astype(float)
            X.loc[rng.random(n) < 0.1, name] = np.nan
    return X[list(rng.permutation(X.columns))]


def _limits(rng: np.random.Generator, X: pd.DataFrame, effects: list[str], whole: bool) -> dict[str, Any]:
    """Which columns may move, how far, in which direction, and where they must end."""
    numbers = [c for c in X.columns if c.startswith("number")]
    levers = [c for c in X.columns if c not in numbers]
    bounds: dict[str, tuple[float, float]] = {}
    for name in levers:
        if name.startswith("whole") and X[name].max() > max(1, X[name].min()) and rng.random() < 0.3:
            low, high = X[name].min(), X[name].max()
            bounds[name] = [(low - 1, high + 1), (low + 0.5, high - 0.5), (low, high + 1.7)][
                int(rng.integers(3))
            ]
    fixed = [c for c in numbers if whole or rng.random() < 0.3]
    fixed += [c for c in levers if rng.random() < 0.08]
    sizes = {c: _size(X, c, bounds) for c in levers if c not in fixed}
    while whole and np.prod([1.0 + s for s in sizes.values()]) > MOST_ACTIONS:
        fixed.append(str(rng.choice(list(sizes))))
        del sizes[fixed[-1]]
    said: dict[str, Any] = {"immutable": fixed, "bounds": {c: b for c, b in bounds.items() if c not in fixed}}
    for name in levers:
        if name.startswith("whole") and rng.random() < 0.15:
            said.setdefault(str(rng.choice(["increase", "decrease"])), []).append(name)
    texts = [c for c in levers if c.startswith("label") and not X[c].isna().any()]
    if texts and rng.random() < 0.4:
        said["categories"] = {texts[0]: list(rng.permutation(X[texts[0]].unique().tolist()))}
    said["domain"] = {}
    for name in [*effects, *(c for c in levers if c.startswith("whole"))]:
        if rng.random() < (0.5 if name in effects else 0.15):
            low, high = X[name].quantile([0.05, 0.95])
            wide = 20.0 * (rng.random() < 0.3)
            said["domain"][name] = float(low) - wide, float(high) + wide
    if rng.random() < 0.2:
        name = str(rng.choice([c for c in levers if c.startswith("whole")]))
        if name not in fixed:
            said["ranges"] = {name: (float(X[name].min()), float(X[name].max()) - 1)}
    return said


def _size(X: pd.DataFrame, name: str, bounds: dict[str, tuple[float, float]]) -> int:
    if name.startswith("whole"):
        low, high = bounds.get(name, (X[name].min(), X[name].max()))
        return int(np.floor(high) - np.ceil(low)) + 1
    return int(X[name].dropna().nunique())


def _cost(rng: np.random.Generator, X: pd.DataFrame, arguments: dict[str, Any]) -> dict[str, Any]:
    kinds = ["l1", *KINDS, "mix"]
    if arguments.get("categories"):
        kinds = [k for k in kinds if "percentile" not in k]
    kind: Any = str(rng.choice(kinds))
    if kind == "mix":
        parts = ["l0", "l1", "l2-squared", "linf"]
        kind = {p: float(rng.choice([0.0, 0.25, 1.0, 2.0])) for p in parts} | {"l1": 0.5}
    said: dict[str, Any] = {"cost": kind}
    if rng.random() < 0.6:
        said["scale"] = str(rng.choice(["range", "sd", "mad", "iqr", "unit", "factual"]))
    elif "percentile" not in str(kind):
        scale: dict[str, Any] = {}
        for name in X.columns:
            if not name.startswith(("whole", "flag", "number")) or rng.random() < 0.3:
                continue
            scale[name] = float(rng.choice([0.5, 1.0, 3.0]))
            if rng.random() < 0.6:
                scale[name] = {"increase": scale[name], "decrease": float(rng.choice([0.5, 1.0, 2.0]))}
        said["scale"] = scale
    if rng.random() < 0.5:
        said["weights"] = {
            c: float(rng.choice([0.5, 1.0, 2.0, 3.0])) for c in X.columns if rng.random() < 0.5
        }
        said["weights"] = {c: w for c, w in said["weights"].items() if c not in arguments["immutable"]}
    return said


def _plausibility(rng: np.random.Generator, X: pd.DataFrame, kind: str | None) -> Any:
    if kind is None or kind == "domain":
        return kind
    if kind == "scm-density":
        at_least = ["factual", {"quantile": float(rng.choice([0.05, 0.2, 0.5]))}, -float(rng.integers(6, 30))]
        said = {"kind": kind, "at_least": at_least[int(rng.integers(3))]}
        return said | ({"offset": float(rng.choice([-2.0, -0.5, 0.25, 1.0]))} if rng.random() < 0.6 else {})
    said = {"kind": kind, "within": float(rng.choice([0.01, 0.1, 0.2, 0.25, 0.3, 0.4]))}
    if rng.random() < 0.5:
        said["prototypes"] = int(rng.integers(1, 12))
    if rng.random() < 0.4:
        said["features"] = rng.choice(X.columns, int(rng.integers(1, 4)), replace=False).tolist()
    if rng.random() < 0.3:
        said["rows"] = X.iloc[rng.integers(0, len(X), 25)]
    return said


def _people(rng: np.random.Generator, X: pd.DataFrame, count: int, model: Any, desired: Any) -> pd.DataFrame:
    """People whose values are mixed from rows of X, most of them refused."""
    n = 12 * count
    people = X.iloc[rng.integers(0, len(X), n)].reset_index(drop=True)
    for name in X.columns:
        mixed = X[name].iloc[rng.integers(0, len(X), n)].reset_index(drop=True)
        people[name] = people[name].where(pd.Series(rng.random(n) < 0.5), mixed).astype(X[name].dtype)
    refused = ~wanted(model, desired, people)
    order = np.argsort(~(refused | (rng.random(n) < 0.1)), kind="stable")[:count]
    return people.iloc[order].set_axis([f"p{k}" for k in range(count)])


def wanted(model: Any, desired: Any, rows: pd.DataFrame) -> NDArray[np.bool_]:
    """Whether the model's own ``predict`` gives rows a desired class."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = np.asarray(model.predict(rows) if hasattr(model, "predict") else model(rows)).reshape(
            len(rows)
        )
    if desired is AT_LEAST_HALF:
        return np.asarray(said >= desired[0])
    return np.asarray(said != desired["not"] if isinstance(desired, dict) else said == desired)


def _own(
    rng: np.random.Generator, X: pd.DataFrame, arguments: dict[str, Any], tight: pd.Series | None
) -> dict[str, Any]:
    """One person's mask, weights and ranges, which are about today's values if they are to be tight."""
    levers = [c for c in X.columns if c not in arguments["immutable"]]
    own: dict[str, Any] = {"ranges": {}}
    if rng.random() < (0.3 if tight is None else 0.6):
        own["actionable"] = [c for c in levers if rng.random() < 0.7]
    own["weights"] = {c: float(rng.choice([0.25, 1.0, 1.5, 4.0])) for c in levers if rng.random() < 0.3}
    for name in levers:
        if not name.startswith(("whole", "number")) or rng.random() > (0.25 if tight is None else 0.8):
            continue
        low, high = X[name].min() - 1, X[name].max() + 1
        ends = np.sort(rng.uniform(low, high, 2))
        if tight is not None and not pd.isna(tight[name]) and rng.random() < 0.8:
            ends = np.array([tight[name] - rng.integers(0, 2) * 0.7, tight[name] + rng.integers(0, 2) * 0.7])
        own["ranges"][name] = tuple(np.round(ends, int(rng.integers(0, 2))).tolist())
    return own

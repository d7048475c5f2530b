"""Actions of one person, tried by plain code: the model's own ``predict``, and each restriction by its id.

Costs, equations, densities, distances and limits are computed here from their definitions in the docs.
Nothing is taken from the package but the numbers of labels and what an imputer puts in for a missing value;
conditions are read from their JSON by :mod:`tests.helpers.plain_conditions`.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import FixedThresholdClassifier

from milp_recourse.tables.columns import TableColumn
from tests.helpers.pipelines import OTHERS, SKLEARN_TREES
from tests.helpers.plain_conditions import Numbers, holds
from tests.helpers.unread_models import UNREAD
from tests.helpers.whole_lenders import Lender, wanted

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SLACK = 1e-8
"""If numbers are not whole: an action that is returned may miss limits by this, and one that contradicts must
keep them by this."""


@dataclass
class Everything:
    """Actions of one person on everybody's levers, whatever this person may do: all there are, or some.

    Attributes
    ----------
    columns
        The features.
    x
        The person's numbers (labels by index, imputed where an imputer does it, else nan).
    own
        The person's preferences as given to ``certify``.
    shared, conditions
        The conditions of everybody, and the person's own, as JSON with texts or indices of labels.
    near
        Rows of compared features' numbers, to one of which an outcome must be near; or None.
    level
        The least log density of an outcome, or None.
    margin
        By how much a logit has to pass the threshold.
    actions
        The values of ``settings``; None: all that there are, where only whole numbers and labels are set.
    slack
        By how much limits count as wider (below 0: narrower), where numbers are not whole.
    levers
        Features that anybody can act on.
    settings
        (actions x levers) what each action sets, nan where it leaves a lever alone.
    after
        (actions x features) the outcome.
    """

    lender: Lender
    columns: Sequence[TableColumn]
    x: dict[str, float]
    person: pd.Series
    own: Mapping[str, Any]
    shared: Sequence[Mapping[str, Any]]
    conditions: Sequence[Mapping[str, Any]]
    near: Array | None
    level: float | None
    margin: float
    actions: Array | None = None
    slack: float = 0.0

    def __post_init__(self) -> None:
        arguments = self.lender.arguments
        self.names = [c.name for c in self.columns]
        self.by_name = {c.name: c for c in self.columns}
        fixed = set(arguments["immutable"])
        values = {c.name: self.settable(c) for c in self.columns if c.name not in fixed}
        self.levers = list(values)
        given = self.actions
        grid = [*product(*([np.nan, *values[n]] for n in self.levers))] if given is None else given
        self.settings: Array = np.array(grid, dtype=float).reshape(len(grid), len(self.levers))
        self.acted: Mask = ~np.isnan(self.settings)
        self.count = self.acted.sum(axis=1)
        self.after = self._outcomes()

    def settable(self, column: TableColumn) -> list[float]:
        """The labels, by index, or whole numbers that anybody may set."""
        X, name = self.lender.X, column.name
        if column.labels is not None:
            held = X[name].dropna().unique().tolist()
            return [float(k) for k, label in enumerate(column.labels) if not pd.isna(label) and label in held]
        low, high = self.lender.arguments["bounds"].get(name, (X[name].min(), X[name].max()))
        return [float(v) for v in range(int(np.ceil(float(low))), int(np.floor(float(high))) + 1)]

    def _outcomes(self) -> Array:
        after = np.tile(np.array([self.x[n] for n in self.names]), (len(self.settings), 1))
        for k, name in enumerate(self.levers):
            at = self.names.index(name)
            after[:, at] = np.where(self.acted[:, k], self.settings[:, k], after[:, at])
        before = {n: np.array([v]) for n, v in self.x.items()}
        for name, mechanism in self.lender.causes.items():  # causes come first
            if not mechanism.causes:
                continue
            at = self.names.index(name)
            values = dict(zip(self.names, after.T, strict=True))
            moved = mechanism.moved(self.x[name], mechanism.equation(values) - mechanism.equation(before))
            acted = self.acted[:, self.levers.index(name)] if name in self.levers else False
            after[:, at] = np.where(acted, after[:, at], moved)
        return after

    # what the model says

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The outcomes as rows of the table."""
        X, cells = self.lender.X, {}
        for key in X.columns:
            cells[key] = np.full(len(self.after), None, dtype=object)
            cells[key][:] = self.person[key]
        for at, column in enumerate(self.columns):
            new = self.after[:, at]
            moved = ~((new == self.x[column.name]) | np.isnan(new))
            if column.name in self.levers:
                moved |= self.acted[:, self.levers.index(column.name)]
            cells[column.key][moved] = [column.value(v) for v in new[moved].tolist()]
        return pd.DataFrame({key: pd.Series(some).astype(X[key].dtype) for key, some in cells.items()})

    @cached_property
    def accepted(self) -> Mask:
        """Rows of a desired class, by the model's own ``predict``."""
        lender = self.lender
        return wanted(lender.model, lender.desired, self.rows[list(lender.X.columns)])

    @cached_property
    def unsure(self) -> Mask:
        """Accepted rows whose scores are so close that rounding, or a tie, may decide."""
        return self.accepted & close_calls(self.lender, self.rows, self.margin)

    def only(self, action: Mapping[str, float]) -> Everything:
        """The same with one action."""
        row = np.array([[action.get(name, np.nan) for name in self.levers]])
        return replace(self, actions=row, slack=0.0 if self.whole else SLACK)

    def these(self, actions: Array) -> Everything:
        """The same with these actions, and limits that leave no doubt."""
        return replace(self, actions=actions, slack=-SLACK)

    @property
    def whole(self) -> bool:
        """Whether all actions are here."""
        return self.actions is None

    # restrictions

    @cached_property
    def broken(self) -> dict[str, Mask]:
        """Restriction -> the actions that break it; ids as ``why`` has them, in its order."""
        said, own, found = self.lender.arguments, self.own, dict[str, Mask]()
        mine = own.get("actionable", self.levers)
        for k, name in enumerate(self.levers):
            if name not in mine:
                found[f"mask:{name}"] = self.acted[:, k]
        for k, name in enumerate(self.levers):
            if name in self.ranges:
                low, high = self.ranges[name]
                value = self.settings[:, k]
                found[f"range:{name}"] = (value < low) | (value > high)  # what is set is set exactly
        for k, name in enumerate(self.levers):
            for word, sign in (("increase", 1.0), ("decrease", -1.0)):
                if name in said.get(word, ()):
                    found[f"monotone:{name}"] = sign * (self.settings[:, k] - self.x[name]) < 0
        for at, column in enumerate(self.columns):
            ends = self.domain(column)
            if ends is not None:
                value = self.after[:, at]
                low, high = ends[0] - self.slack, ends[1] + self.slack
                found[f"domain:{column.name}"] = (value < low) | (value > high)
        near = [] if self.near is None else [self.is_near]  # the last of everybody's conditions
        held = [*map(self._holding, self.shared), *near, *map(self._holding, self.conditions)]
        found |= {f"condition:{k}": ~one for k, one in enumerate(held)}
        if self.level is not None:
            found["plausibility"] = self.density < self.level - (self.slack or 1e-9)
        return found

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Between which values this person is willing to set a lever."""
        return {**self.lender.arguments.get("ranges", {}), **self.own.get("ranges", {})}

    def condition(self, id: str) -> Mapping[str, Any] | None:
        """The condition of an id; None: to be near data."""
        near = [] if self.near is None else [None]
        return [*self.shared, *near, *self.conditions][int(id.partition(":")[2])]

    @property
    def doubtful(self) -> bool:
        """Whether an accepted action is so close to the threshold, or to the density asked for, that
        rounding decides."""
        if self.unsure.any():
            return True
        said = self.lender.arguments.get("plausibility")
        if self.level is None or (said["at_least"] == "factual" and not said.get("offset")):
            return False
        return bool((np.abs(self.density - self.level) < 1e-9)[self.accepted].any())

    def limits(self, name: str) -> tuple[float, float]:
        """The least and largest value that anybody may set."""
        X, column = self.lender.X, self.by_name[name]
        if column.labels is not None:
            values = self.settable(column)
            return min(values), max(values)
        low, high = self.lender.arguments["bounds"].get(name, (X[name].min(), X[name].max()))
        return float(low), float(high)

    def domain(self, column: TableColumn) -> tuple[float, float] | None:
        """Where a feature must end."""
        said, X = self.lender.arguments, self.lender.X
        ends = said["domain"].get(column.name)
        if said.get("plausibility") == "domain" and column.labels is None:
            values = X[column.key].astype(float)
            low, high = float(values.min()), float(values.max())
            ends = (low, high) if ends is None else (max(low, ends[0]), min(high, ends[1]))
        return ends

    def _holding(self, condition: Mapping[str, Any]) -> Mask:
        features = {c.name: c.feature for c in self.columns}
        held = np.zeros(len(self.after), dtype=bool)
        for k in np.flatnonzero(self.accepted):  # of the others nobody asks
            after = dict(zip(self.names, self.after[k].tolist(), strict=True))
            acted = [n for n, on in zip(self.levers, self.acted[k], strict=True) if on]
            held[k] = holds(condition, Numbers(features, self.x, after, acted, Fraction(self.slack)))
        return held

    @cached_property
    def is_near(self) -> Mask:
        """Within so many ranges of some row, in decimals as they are written."""
        assert self.near is not None
        said, X = self.lender.arguments["plausibility"], self.lender.X
        compared = said.get("features") or movable(self.lender, self.columns)
        compared = [n for n in self.names if n in compared]
        near = np.zeros(len(self.after), dtype=bool)
        for row in self.near:
            fits = np.ones(len(self.after), dtype=bool)
            for name, center in zip(compared, row, strict=True):
                column, value = self.by_name[name], self.after[:, self.names.index(name)]
                if column.feature.kind == "categorical":
                    fits &= value == center
                    continue
                if column.labels is not None:
                    width = Fraction(max(len(column.labels) - 1, 0) or 1)
                else:
                    numbers = X[name].astype(float)
                    width = Fraction(float(numbers.max() - numbers.min()) or 1.0)
                reach = Fraction(str(said["within"])) * width
                reach += Fraction(self.slack)
                known = {
                    v: abs(Fraction(v) - Fraction(center)) <= reach for v in set(value[~np.isnan(value)])
                }
                fits &= np.array([known.get(v, False) for v in value])
            near |= fits
        return near

    @cached_property
    def density(self) -> Array:
        """log p of the outcomes."""
        return log_density(self.lender, self.names, self.after)

    # costs and sets

    @cached_property
    def cost(self) -> Array:
        """What each action costs this person."""
        said = self.lender.arguments
        weights = {**said.get("weights", {}), **self.own.get("weights", {})}
        kind = said["cost"]
        parts = kind if isinstance(kind, Mapping) else PARTS[kind]
        total, widest = np.zeros(len(self.settings)), np.zeros(len(self.settings))
        for k, name in enumerate(self.levers):
            w, on = weights.get(name, 1.0), self.acted[:, k]
            counted = kind == "l0"  # a scale is not read, and may be none: a value of 0
            step = on if counted else np.where(on, self._steps(name, self.settings[:, k]), 0.0)
            total += w * (parts.get("l0", 0.0) * on + parts.get("l1", 0.0) * step)
            total += w * parts.get("l2-squared", 0.0) * step**2
            widest = np.maximum(widest, w * step)
        total += parts.get("linf", 0.0) * widest
        return np.sqrt(total) if kind == "l2" else total

    def _steps(self, name: str, values: Array) -> Array:
        """|delta| / s of each value."""
        column, x = self.by_name[name], self.x[name]
        kind = str(self.lender.arguments["cost"])
        if np.isnan(x):
            return np.ones(len(values))
        if column.feature.kind == "categorical":
            return (values != x).astype(float)
        if "percentile" in kind:
            return np.abs(self._shares(name, values) - self._shares(name, np.array([x])))
        scale = self.lender.arguments.get("scale", "range")
        if isinstance(scale, Mapping):
            scale = scale.get(name, "range")
        if scale == "factual":
            scale = 1.0 if column.labels is not None else abs(x)
        if isinstance(scale, Mapping):
            return np.where(values > x, (values - x) / scale["increase"], (x - values) / scale["decrease"])
        return np.abs(values - x) / (self.scale(name, scale) if isinstance(scale, str) else scale)

    def scale(self, name: str, rule: str) -> float:
        """A column's scale by its rule."""
        column, X = self.by_name[name], self.lender.X[name]
        labelled = column.labels is not None
        values = (
            np.arange(len(column.labels or ()), dtype=float)
            if labelled
            else X.dropna().astype(float).to_numpy()
        )
        spread = float(values.max() - values.min()) or 1.0
        if rule == "unit":
            return 1.0
        if rule == "sd":
            return float(values.std()) or 1.0
        if rule == "mad":
            return float(np.median(np.abs(values - np.median(values)))) or spread
        if rule == "iqr":
            return float(np.quantile(values, 0.75) - np.quantile(values, 0.25)) or spread
        return spread

    def _shares(self, name: str, values: Array) -> Array:
        """Q of values, or -log(1 - Q): the share of rows at or below, linear between 101 quantiles."""
        data = np.sort(self.lender.X[name].dropna().astype(float).to_numpy())
        known = np.unique(np.quantile(data, np.linspace(0, 1, 101), method="inverted_cdf"))
        share = np.searchsorted(data, known, side="right") / len(data)
        if len(known) == 1:
            known, share = np.array([known[0] - 1, known[0]]), np.array([0.0, 1.0])
        if str(self.lender.arguments["cost"]).startswith("log"):
            n = len(self.lender.X)
            share = -np.log1p(-share * n / (n + 1))
        return np.interp(values, known, share)

    def possible(self, lifted: Collection[str] = ()) -> Mask:
        """The actions that are accepted and break nothing but what is lifted."""
        fine = self.accepted & ~self.unsure if self.slack < 0 else self.accepted.copy()
        for id, broken in self.broken.items():
            if id not in lifted:
                fine &= ~broken
        return fine

    def least(self, some: Mask) -> float | None:
        """The least cost of some actions; None if there are none."""
        return float(self.cost[some].min()) if some.any() else None

    def acted_set(self, k: int) -> frozenset[str]:
        """The features that action k acts on."""
        return frozenset(n for n, on in zip(self.levers, self.acted[k], strict=True) if on)


PARTS: dict[str, dict[str, float]] = {
    "l0": {"l0": 1.0},
    "l1": {"l1": 1.0},
    "l2": {"l2-squared": 1.0},
    "l2-squared": {"l2-squared": 1.0},
    "linf": {"linf": 1.0},
    "percentile": {"l1": 1.0},
    "log-percentile": {"l1": 1.0},
    "percentile-max": {"linf": 1.0},
    "log-percentile-max": {"linf": 1.0},
}


def close_calls(lender: Lender, rows: pd.DataFrame, margin: float) -> Mask:
    """Whether the two largest scores are nearly equal, where rounding or a tie may then decide.

    Parameters
    ----------
    margin
        By how much a logit has to pass the threshold.
    """
    rows, model = rows[list(lender.X.columns)], lender.model
    if lender.final in UNREAD:  # their own word decides
        return np.zeros(len(rows), dtype=bool)
    boosted = lender.final in ("boosting", "histogram", *OTHERS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(model, FixedThresholdClassifier):
            away = np.abs(np.asarray(model.predict_proba(rows))[:, 1] - model.threshold)
            return away < (-1.0 if boosted or lender.final in SKLEARN_TREES else max(1e-9, 2 * margin))
        try:
            scores = np.asarray(model.decision_function(rows), dtype=float)
        except AttributeError:
            scores = np.asarray(model.predict_proba(rows), dtype=float)
    if boosted and (scores.ndim == 1 or scores.shape[1] == 2):
        return np.zeros(len(rows), dtype=bool)
    if scores.ndim == 1:
        return np.abs(scores) < max(1e-7, 2 * margin)
    top = np.sort(scores, axis=1)
    return np.asarray(top[:, -1] - top[:, -2] < max(1e-6, 2 * margin))


def movable(lender: Lender, columns: Sequence[TableColumn]) -> list[str]:
    """The features that somebody's action can move."""
    found = [c.name for c in columns if c.name not in lender.arguments["immutable"]]
    for name, mechanism in lender.causes.items():  # causes come first
        if name not in found and mechanism.causes & set(found):
            found.append(name)
    return found


def level(lender: Lender, columns: Sequence[TableColumn], x: Mapping[str, float]) -> float | None:
    """The least log density of a person's outcome."""
    said = lender.arguments.get("plausibility")
    if not isinstance(said, Mapping) or said["kind"] != "scm-density":
        return None
    names, at_least = [c.name for c in columns], said["at_least"]
    if at_least == "factual":
        at_least = log_density(lender, names, np.array([[x[n] for n in names]]))[0]
    elif isinstance(at_least, Mapping):
        known = log_density(lender, names, lender.X[names].astype(float).to_numpy())
        known = known[np.isfinite(known)]
        at_least = np.quantile(known, at_least["quantile"], method="inverted_cdf")
    return float(at_least + said.get("offset", 0.0))


def log_density(lender: Lender, names: Sequence[str], rows: Array) -> Array:
    """log p under the causal model."""
    values = dict(zip(names, rows.T, strict=True))
    parts = [mechanism.log_density(values[name], values) for name, mechanism in lender.causes.items()]
    return np.sum(parts, axis=0)

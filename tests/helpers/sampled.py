"""What sampling can say about a Recourse's answers: plain code, nothing of the package's search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from milp_recourse import Recourse


def sampled_rows(recourse: Recourse, person: pd.Series, count: int, rng: np.random.Generator) -> pd.DataFrame:
    """Rows that an action could make of a person, where no column causes another.

    Each row changes some levers: to a value that X holds, to one drawn between the bounds, to any label.
    """
    X, review = recourse.X, recourse.features
    rows = pd.DataFrame([person] * count).reset_index(drop=True).astype(object)
    for key, said in review[review["lever"]].iterrows():
        acted = rng.random(count) < rng.choice([0.2, 0.5, 0.9])
        rows.loc[acted, key] = drawn(recourse, key, said, person[key], int(acted.sum()), rng)
    for key, dtype in X.dtypes.items():
        if isinstance(dtype, pd.CategoricalDtype):
            known = pd.CategoricalDtype([v for v in pd.unique(rows[key]) if not pd.isna(v)])
            as_in_x = set(known.categories) <= set(dtype.categories)
            rows[key] = rows[key].astype(dtype if as_in_x else known)
        else:
            rows[key] = rows[key].astype(dtype)
    return rows


def drawn(
    recourse: Recourse, key: Any, said: pd.Series, now: Any, count: int, rng: np.random.Generator
) -> list[Any]:
    """Values that an action may set in one column."""
    column = next(c for c in recourse.columns if c.key == key)
    if column.labels is not None:
        settable = {v for v in recourse.X[key].unique().tolist() if not pd.isna(v)}  # X holds them
        order = [label for label in column.labels if label in settable]
        if column.feature.monotone and now in order:
            at = order.index(now)
            order = order[at:] if column.feature.monotone == "increase" else order[: at + 1]
        return [order[k] for k in rng.integers(0, len(order), count)]
    low, high = column.feature.bounds or (0.0, 0.0)
    if not pd.isna(now):
        low = max(low, now) if column.feature.monotone == "increase" else low
        high = min(high, now) if column.feature.monotone == "decrease" else high
    if low > high:
        return [now] * count
    known = recourse.X[key].dropna().to_numpy(dtype=float)
    known = known[(known >= low) & (known <= high)]
    values = rng.uniform(low, high, count)
    if len(known):
        values = np.where(rng.random(count) < 0.5, rng.choice(known, count), values)
    if said["kind"] != "continuous":
        values = np.clip(np.round(values), np.ceil(low), np.floor(high))
    return [column.value(float(v)) for v in values]


def costs_of(recourse: Recourse, person: pd.Series, rows: pd.DataFrame, kind: str) -> np.ndarray:
    """The cost of reaching each row, with weights 1 and nothing missing before: plain float arithmetic."""
    total, widest = np.zeros(len(rows)), np.zeros(len(rows))
    for key, said in recourse.features.iterrows():
        column = next(c for c in recourse.columns if c.key == key)
        if column.labels is None:
            delta = np.abs(rows[key].to_numpy(dtype=float) - float(person[key]))
        elif said["kind"] == "ordinal":
            order = list(column.labels)
            delta = np.array([abs(order.index(v) - order.index(person[key])) for v in rows[key]], dtype=float)
        else:
            delta = (rows[key] != person[key]).to_numpy(dtype=float)
        step = delta / (said["scale"] if kind != "l0" else 1.0)
        total += {"l1": step, "l2-squared": step**2, "linf": 0 * step, "l0": (delta != 0).astype(float)}[kind]
        widest = np.maximum(widest, step)
    return widest if kind == "linf" else total

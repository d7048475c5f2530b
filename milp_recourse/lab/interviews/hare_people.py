"""The people, classifiers and wishes of HARE's experiments, all people of a cell at once.

What the paper leaves open is read from what it prints. Its sparsity (4.00 on Adult, 3.00 on COMPAS, 7.99 of
8 on Credit) says that only numbers move, not labels; its GTD of about 1 for a base recourse close to the
person says that far wishes lie along the boundary: here, at a random place where the sphere of a radius
around the person meets the boundary.

References
----------
Encodings follow CARLA, which the paper uses: Pawelczyk et al. (2021), https://arxiv.org/abs/2108.00783
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from milp_recourse.lab.recipe.real import SETS, clean_gmsc, from_zip
from milp_recourse.preferences.hare import FloatArray

RADIUS = {"near": 0.2, "intermediate": 0.6, "far": 1.0}
"""How far a wish is from the person. The printed distances of base recourses, which are close to the person,
are about these."""

PEOPLE, ROWS = 150, 8000

FIXED = {
    "adult": ("age", "sex", "fnlwgt", "native-country", "race", "relationship"),
    "compas": ("age", "race", "sex"),
    "gmsc": ("age", "NumberOfDependents"),
}
"""The columns that the paper calls immutable."""

COLUMNS = {
    "adult": (
        ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"),
        ("workclass", "marital-status", "occupation", "relationship", "race", "sex", "native-country"),
    ),
    "compas": (
        ("age", "two_year_recid", "priors_count", "length_of_stay"),
        ("c_charge_degree", "race", "sex"),
    ),
    "gmsc": (tuple(SETS["gmsc"].columns), ()),
}
"""Numbers and labels of each data set."""


@dataclass(frozen=True)
class Setting:
    """One reading of the paper.

    Attributes
    ----------
    labels
        ``fixed``: binary, and nobody changes them; ``binary``: they move between 0 and 1; ``all``: every
        label has a coordinate of its own.
    boxed
        Coordinates stay in [0, 1], the range of the data.
    capped
        The outliers of Credit are capped before numbers are scaled, as PEAR does.
    wish
        ``boundary``: see above; ``ray``: where a random ray of the length of the radius crosses the boundary.
    """

    data: str = "adult"
    model: str = "network"
    seed: int = 0
    labels: str = "fixed"
    boxed: bool = False
    capped: bool = False
    wish: str = "boundary"


@dataclass(frozen=True)
class Crowd:
    """People and a classifier, a :class:`~milp_recourse.preferences.hare.Landscape` of points (n, k, d).

    Attributes
    ----------
    start
        The people, (n, 1, d).
    layers
        Weights and biases; ReLU between them.
    free
        1 where people can act, else 0, (d,).
    features
        Which feature each coordinate belongs to, (d,).
    """

    start: FloatArray
    layers: tuple[tuple[FloatArray, FloatArray], ...]
    free: FloatArray
    features: Any
    boxed: bool

    def score(self, points: FloatArray) -> FloatArray:
        """The logit."""
        for k, (weights, bias) in enumerate(self.layers):
            points = (np.maximum(points, 0) if k else points) @ weights + bias
        return points[..., 0]

    def gradient(self, points: FloatArray) -> FloatArray:
        """The gradient of the logit, 0 where nobody can act."""
        active = []
        for k, (weights, bias) in enumerate(self.layers):
            active.append(points > 0)
            points = (np.maximum(points, 0) if k else points) @ weights + bias
        back = np.ones_like(points)
        for k in range(len(self.layers) - 1, -1, -1):
            back = back @ self.layers[k][0].T
            back = back * active[k] if k else back
        return back * self.free

    def inside(self, points: FloatArray) -> FloatArray:
        """The nearest points that people can be at; beyond the box only if they are there already."""
        if not self.boxed:
            return points
        return np.clip(points, np.minimum(self.start, 0), np.maximum(self.start, 1))

    def only(self, chosen: Any) -> Crowd:
        """Some of the people."""
        return replace(self, start=self.start[chosen])

    @cached_property
    def size(self) -> int:
        """How many people there are."""
        return len(self.start)


def read(data: str, folder: Path, capped: bool) -> tuple[pd.DataFrame, pd.Series]:
    """The rows of a data set with the paper's columns, and which have the wanted outcome."""
    path = folder / SETS[data].file
    if data == "adult":
        rows, wanted = SETS[data].read(path)
        rows = rows.rename(columns={"country": "native-country"})
    elif data == "compas":
        rows, _ = SETS[data].read(path)
        stay = pd.to_datetime(rows["c_jail_out"]) - pd.to_datetime(rows["c_jail_in"])
        rows = rows.assign(length_of_stay=stay.dt.days.clip(lower=0)).dropna(subset=["length_of_stay"])
        wanted = rows["score_text"] != "High"
    else:
        rows = from_zip(path, "cs-training.csv", index_col=0).dropna()
        rows = clean_gmsc(rows) if capped else rows
        wanted = rows["SeriousDlqin2yrs"] == 0
    return rows, wanted.astype(int)


@dataclass(frozen=True)
class Study:
    """A fitted classifier, its refused test people, and the training rows.

    Attributes
    ----------
    seen, accepted
        Training rows as coordinates (m, d), and whether the classifier accepts them.
    fitted
        The classifier itself, of scikit-learn.
    """

    crowd: Crowd
    seen: FloatArray
    accepted: Any
    fitted: Any
    accuracy: float


def study(how: Setting, folder: Path, people: int = PEOPLE) -> Study:
    """Train a classifier on three quarters of a draw of rows; the people are the first it refuses after."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    frame, wanted = read(how.data, folder, how.capped)
    numbers, labels = COLUMNS[how.data]
    scaled = frame[list(numbers)].astype(float)
    parts, names = [(scaled - scaled.min()) / (scaled.max() - scaled.min())], list(numbers)
    for name in labels:
        if how.labels == "all":
            part = pd.get_dummies(frame[name], prefix=name).astype(float)
        else:
            part = (frame[name] == frame[name].mode()[0]).astype(float).to_frame(name)
        parts.append(part)
        names += [name] * part.shape[1]
    values = pd.concat(parts, axis=1).to_numpy(np.float64)
    order = np.random.default_rng([how.seed, 2]).permutation(len(values))[: 4 * ROWS]
    values, y = values[order], wanted.to_numpy()[order]
    cut = min(len(values) * 3 // 4, ROWS)
    seen, goal = values[:cut], y[:cut]
    rng = np.random.default_rng([how.seed, 3])
    if how.data == "gmsc":  # 93% have the wanted outcome: rows are drawn as often of either
        drawn = np.concatenate([rng.choice(np.flatnonzero(goal == k), cut // 2) for k in (0, 1)])
        x, t = seen[drawn], goal[drawn]
    else:
        x, t = seen, goal
    if how.model == "logistic":
        fitted: Any = LogisticRegression(max_iter=1000).fit(x, t)
        layers: Any = ((fitted.coef_.T, fitted.intercept_),)
    else:
        early = how.data != "compas"  # whose validation rows, 500, let it stop before it refuses anybody
        fitted = MLPClassifier((18, 9), max_iter=60, random_state=how.seed, early_stopping=early).fit(x, t)
        layers = tuple(zip(fitted.coefs_, fitted.intercepts_, strict=True))
    fixed = set(FIXED[how.data]) | (set(labels) if how.labels == "fixed" else set())
    free = np.array([float(name not in fixed) for name in names])
    crowd = Crowd(values[cut:, None, :], layers, free, np.array(names), how.boxed)
    said = crowd.score(crowd.start)[:, 0] > 0
    crowd = crowd.only(np.flatnonzero(~said)[:people])
    accuracy = float((said == (y[cut:] == 1)).mean())
    return Study(crowd, seen, crowd.score(seen) > 0, fitted, accuracy)


def wishes(crowd: Crowd, radius: float, how: str, rng: np.random.Generator, tries: int = 64) -> FloatArray:
    """A boundary point for each person, (n, 1, d), accepted; nan for whom none is found."""
    n, d = crowd.size, crowd.start.shape[-1]
    ways = rng.normal(size=(2, n, tries, d)) * crowd.free
    ways /= np.linalg.norm(ways, axis=-1, keepdims=True)
    good, bad = (crowd.inside(crowd.start + radius * one) for one in ways)
    if how == "ray":
        bad = np.broadcast_to(crowd.start, good.shape)
    found = np.asarray((crowd.score(good) > 0) & (crowd.score(bad) <= 0))
    first = found.argmax(axis=1)[:, None, None]
    good, bad = (np.take_along_axis(one, first, 1) for one in (good, bad))
    for _ in range(50):
        middle = (good + bad) / 2
        if how != "ray":  # back onto the sphere
            way = middle - crowd.start
            length = np.maximum(np.linalg.norm(way, axis=-1, keepdims=True), 1e-12)
            middle = crowd.inside(crowd.start + radius * way / length)
        yes = crowd.score(middle)[..., None] > 0
        good, bad = np.where(yes, middle, good), np.where(yes, bad, middle)
    return np.where(np.asarray(found.any(axis=1))[:, None, None], good, np.nan)

"""Read explainable boosting machines of interpret, bit for bit.

The score is an intercept plus a number from a table for each term of one feature or several.

The tables are asked of the model itself, by ``eval_terms``, for one value of every interval and every label.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.readers.classes import classes_of, plain
from milp_recourse.readers.formulas import by_largest, by_margin
from milp_recourse.readers.links import Inverse, Link, exponential, logistic
from milp_recourse.readers.member import Member, regression
from milp_recourse.readers.overrides import refuse_overrides
from milp_recourse.readers.places import Codes, Place
from milp_recourse.readers.refusal import OR_ASK, not_fitted, refuse
from milp_recourse.readers.scores import TreeScore
from milp_recourse.readers.tree_parts import ReadTree, lookup_tree

_MOST = 200_000
"""The most entries of a table."""


def is_interpret(model: Any) -> bool:
    """Whether the model's class is defined in interpret itself; a subclass of one's own is not."""
    return type(model).__module__.split(".")[0] == "interpret"


def interpret_member(model: Any, place: Place) -> Member:
    """An ExplainableBoostingClassifier or ExplainableBoostingRegressor.

    Raises
    ------
    Unsupported
        The model is another of interpret's, is not fitted, or has a table of too many entries.
    """
    name = type(model).__name__
    if not hasattr(type(model), "eval_terms"):
        allowed = f"ExplainableBoostingClassifier or ExplainableBoostingRegressor, {OR_ASK}"
        raise refuse(place.where, name, allowed)
    refuse_overrides(model, place.where, "interpret")
    if not hasattr(model, "term_scores_"):
        raise not_fitted(place.where)
    terms = _Terms(model, place)
    tables = [terms.table(t) for t in range(len(model.term_features_))]
    scores = tuple(
        TreeScore(tuple(ReadTree(lookup_tree(axes, table[..., k], True)) for axes, table in tables), base)
        for k, base in enumerate(np.ravel(model.intercept_).tolist())
    )
    scores = tuple(one.at(place.columns) for one in scores)
    link = str(model.link_)
    if not hasattr(model, "classes_"):
        if link not in ("identity", "log"):
            raise refuse(place.where, f"link {link}", "identity or log")
        return regression(name, scores[0], Inverse(exponential, rounds=True) if link == "log" else None)
    classes = classes_of(model)
    if len(scores) > 1:
        return Member(name, classes, scores, by_largest(len(scores)), scores)
    curve = Link(logistic, logistic=(1.0, 0.0), rounds=True) if link == "logit" else None
    return Member(name, classes, scores, by_margin(), scores, link=curve)


class _Terms:
    """The tables of a model's terms."""

    def __init__(self, model: Any, place: Place) -> None:
        self.model, self.place, self.labels = model, place, {}
        codes: dict[int, Codes] = {}
        for raw, kind in enumerate(model.feature_types_in_):
            if kind != "continuous":
                known = place.frame.iloc[:, raw].dropna().unique() if not place.steps else []
                self.labels[raw] = [plain(label) for label in known]
                codes[raw] = [(label, float(k)) for k, label in enumerate(self.labels[raw])]
                codes[raw].append((math.nan, math.nan))
        place.chains.code(codes, place)

    def table(self, t: int) -> tuple[list[tuple[int, Sequence[float]]], NDArray[np.float64]]:
        """The axes of a term, and its numbers for each output; the first along each axis is for a missing
        value."""
        import pandas as pd

        features = [int(f) for f in self.model.term_features_[t]]
        cuts = {f: self._cuts(f, len(features)) for f in features if f not in self.labels}
        values = [
            [np.nan, *self._inside(cuts[f])] if f in cuts else [None, *self.labels[f]] for f in features
        ]
        shape = tuple(map(len, values))
        if math.prod(shape) > _MOST:
            raise refuse(self.place.where, f"a term of {math.prod(shape)} entries", f"at most {_MOST}")
        combined = list(zip(*product(*values), strict=True))
        rows = self._rows(math.prod(shape))
        for f, held in zip(features, combined, strict=True):
            column = np.array(held, dtype=np.float64) if f in cuts else pd.Series(list(held), dtype=object)
            rows[rows.columns[f]] = column
        given = rows if hasattr(self.place.frame, "columns") and not self.place.steps else rows.to_numpy()
        found = np.asarray(self.model.eval_terms(given), dtype=np.float64)[:, t]
        axes: list[tuple[int, Sequence[float]]] = []
        for f in features:
            ends = np.nextafter(cuts[f], -np.inf) if f in cuts else np.arange(len(self.labels[f]) - 1) + 0.5
            axes.append((f, ends.tolist()))
        return axes, found.reshape(*shape, -1)

    def _cuts(self, feature: int, together: int) -> NDArray[np.float64]:
        """The least number of every interval but the first, of a feature in a term of so many features."""
        levels = self.model.bins_[feature]
        return np.asarray(levels[min(len(levels), together) - 1], dtype=np.float64)

    def _inside(self, cuts: NDArray[np.float64]) -> list[float]:
        """A number in every interval."""
        return [float(np.nextafter(cuts[0], -np.inf)) if len(cuts) else 0.0, *cuts.tolist()]

    def _rows(self, count: int) -> Any:
        """Rows of numbers and labels that the model takes, one like the other."""
        import pandas as pd

        if not self.place.steps:
            return self.place.frame.iloc[np.zeros(count, dtype=int)].reset_index(drop=True)
        return pd.DataFrame(np.zeros((count, len(self.model.feature_types_in_))))

"""Does one hostile row change anybody else's answer? ``python -m tests.properties.in_company --cases 2000``.

Each case fits a random pipeline (linear models, networks, trees, forests, boosting; labels, gaps, imputers),
asks for a few people, and asks again with one more row among them, in which one cell is huge, tiny, infinite,
missing, a label nobody has seen, or of another type. Everything that was said of the others must be the same,
to the last bit. Run from the repository root.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from milp_recourse import Recourse
from milp_recourse.errors import RecourseError
from milp_recourse.tables.answers import Answers
from tests.helpers.pipelines import FINALS, random_pipeline
from tests.properties.repeated import Checked, repeated

HOSTILE: tuple[object, ...] = (
    *(1e15, -1e15, 1e30, 1e39, -1e200, 1e308, np.inf, -np.inf),
    *(1e-300, 5e-324, -0.0, 0.5, 2**60 + 1, np.nan, None, pd.NA),
    *("unseen", "", "1e5", b"a", [1], True),
)
"""What is put into a cell; True and 0.5 are no values of some kinds of columns."""

COSTS = ("l1", "l2-squared", "linf", "l0")
PEOPLE = 4
TIME_LIMIT = 30.0
"""Only so that a run ends; an answer that needs longer is not compared."""


def check(seed: int) -> Checked:
    """One case: its counts, and a line for each thing that changed for somebody else."""
    rng = np.random.default_rng([5, seed])
    model, X, y, people = random_pipeline(seed, FINALS[seed % len(FINALS)])
    found, wrong = Counter({FINALS[seed % len(FINALS)]: 1}), list[str]()
    some = people.head(PEOPLE).set_axis([f"p{k}" for k in range(PEOPLE)])
    try:
        recourse = _recourse(rng, model, X, y, seed)
        crowd = _with_hostile(rng, some)
        proofs = bool(rng.random() < 0.25)
        alone = recourse.certify(some, time_limit=TIME_LIMIT, certificates=proofs)
    except RecourseError as refused:  # of the whole problem: nobody can be answered
        return found + Counter({f"refused: {type(refused).__name__}": 1}), wrong
    beside = recourse.certify(crowd, time_limit=TIME_LIMIT, certificates=proofs)
    for k, name in enumerate(some.index):
        mine, theirs = _said(alone, k), _said(beside, crowd.index.get_loc(name))
        if "time limit" in str(mine["message"]) + str(theirs["message"]):
            found["not compared: time"] += 1
            continue
        for key in mine:
            if not _same(mine[key], theirs[key]):
                wrong.append(f"seed {seed}, {name}: {key}: {mine[key]!r}, in company {theirs[key]!r}")
        found["people compared"] += 1
        found["certificates compared"] += mine["certificate"] is not None
        found[str(mine["status"])] += 1
    found["hostile: " + str(beside.table["status"].loc["hostile"])] += 1
    if any(result is not None and result.evidence is not None for result in beside.results):
        said = beside.verify()
        if not said.startswith("VERIFIED"):
            wrong.append(f"seed {seed}: {said.splitlines()[-1]}")
    return found, wrong


def _recourse(rng: np.random.Generator, model: Any, X: pd.DataFrame, y: pd.Series, seed: int) -> Recourse:
    """With immutable columns, and at times a domain, a condition on two columns, or a cause."""
    numbers = [c for c in X.columns if c.startswith("number")]
    kept = [c for c in X.columns if rng.random() < 0.3]
    desired = sorted(set(np.asarray(y).tolist()))[int(rng.integers(2))]
    more: dict[str, Any] = {}
    if rng.random() < 0.3:
        limit = float((X[numbers[0]] + X[numbers[1]]).quantile(0.8))
        sum_of = {"sum": {numbers[0]: 1.0, numbers[1]: 1.0}, "of": "counterfactual", "at_most": limit}
        more["conditions"] = [sum_of]
    elif rng.random() < 0.2:
        more["conditions"] = ["at most 2 actions"]
    if rng.random() < 0.2:
        ends = X[numbers[0]].quantile([0.1, 0.9])
        more["domain"] = {numbers[0]: tuple(ends)}
    if rng.random() < 0.15:
        equation = {"product": [float(rng.normal()), numbers[0]]}
        more["scm"] = {"name": "explicit", "mechanisms": {numbers[1]: {"equation": equation}}}
    return Recourse(model, X, desired=desired, immutable=kept, cost=COSTS[seed % 4], **more)


def _with_hostile(rng: np.random.Generator, some: pd.DataFrame) -> pd.DataFrame:
    """The people and one more row among them, which has a hostile cell."""
    row = some.iloc[int(rng.integers(len(some)))].copy().astype(object)
    column, value = str(rng.choice(list(some.columns))), HOSTILE[int(rng.integers(len(HOSTILE)))]
    row[column] = value
    rows = [some.iloc[k] for k in range(len(some))]
    place = int(rng.integers(len(rows) + 1))
    rows.insert(place, row)
    names = list(some.index)
    names.insert(place, "hostile")
    crowd = {}
    for name in some.columns:
        cells = [one[name] for one in rows]
        if name != column:
            crowd[name] = pd.Series(cells, names, dtype=some[name].dtype)
        else:  # as pandas makes it, which may be of another type; or of Python objects
            crowd[name] = pd.Series(cells, names, dtype=object if rng.random() < 0.5 else None)
    return pd.DataFrame(crowd)[list(some.columns)]


def _said(answers: Answers, k: int) -> dict[str, Any]:
    """Everything that is said of a person, but for the seconds."""
    row = answers.table.iloc[k].drop("seconds").to_dict()
    result = answers.results[k]
    certificate = None
    if result is not None and result.evidence is not None:
        certificate = json.loads(gzip.decompress(result.evidence))
        del certificate["index"]
    action = None if result is None else result.action
    after = answers.counterfactuals.iloc[k].to_dict() if action is not None else None
    return row | {"action": action, "after": after, "certificate": certificate}


def _same(one: Any, other: Any) -> bool:
    """Whether values are equal, missing ones included."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return isinstance(other, list) and one == other
    missing = pd.isna(one), pd.isna(other)
    return missing == (True, True) or (missing == (False, False) and bool(one == other))


if __name__ == "__main__":
    sys.exit(repeated(__doc__, check, 2000))

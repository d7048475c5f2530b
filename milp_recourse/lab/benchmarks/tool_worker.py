"""Run by a Python that has a peer and xgboost: ``python tool_worker.py FOLDER PEER``, PEER one of
treecf, ocean, dice, alibi and reachml.

It serves as ``peer_worker.py`` does, and imports nothing of this package but that. FOLDER has ``model.json``
(XGBoost's own format, which every version reads) and ``people.json``: the columns' ``names`` and ``rows`` of
whole numbers that the model was trained on. Its first line says the peer's version. A question is
{"row": [...], "low": [...], "high": [...], "limit": seconds}; a column whose two ends are the row's value is
fixed, and a change by 1 costs 1. In an answer "status" is ``optimal``, ``infeasible``, ``found`` (an action
without a claim), ``exists`` (recourse does) or ``nothing``; "row" has the action's outcome; "seconds" is the
wall time with the peer loaded and the training rows read.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

Rows = Sequence[Sequence[float]]
Names = list[str]
Question = Mapping[str, Any]
Answering = Callable[[Question], dict[str, Any]]

SEED = 42
ASKED = 4
"""Counterfactuals that DiCE is asked for."""
PROTOTYPE, STEP = 10.0, 1.0
"""alibi: the weight of its prototypes, as in its documentation, and the step of its differences."""


def frame_of(rows: Rows, names: Names) -> pd.DataFrame:
    """Whole numbers as a table, which DiCE and reachml take the columns' kinds from."""
    import pandas as pd

    return pd.DataFrame(rows, columns=names).astype(int)


def free(question: Question, names: Names) -> dict[str, list[float]]:
    """The columns that may move, each with its ends."""
    ends = zip(names, question["low"], question["high"], strict=True)
    return {name: [low, high] for name, low, high in ends if low < high}


def of_treecf(model: Any, names: Names, rows: Rows) -> Answering:
    """treecf's exact search."""
    from peer_worker import of_treecf as made

    answered = made({"model": model}, None)
    same = {"price": [1.0] * len(names), "whole": [True] * len(names)}
    return lambda question: answered({**question, **same})


def of_ocean(model: Any, names: Names, rows: Rows) -> Answering:
    """OceanPy's CP model; it has no option for fixed columns and ranges, so these are added to the model."""
    import ocean
    import pandas as pd
    from ocean.feature import parse_features
    from peer_worker import ocean_answer

    _, mapper = parse_features(
        pd.DataFrame(rows, columns=names), discretes=tuple(names), drop_na=False, drop_constant=False
    )
    model.get_booster().feature_names = names
    explainer = ocean.ConstraintProgrammingExplainer(model, mapper=mapper)

    def answer(question: Question) -> dict[str, Any]:
        for name, low, high in zip(names, question["low"], question["high"], strict=True):
            value = explainer.mapper[name].xget()
            explainer.add_garbage(explainer.Add(value >= int(low)), explainer.Add(value <= int(high)))
        asked, kinds = {**question, "norm": 1}, ["discrete"] * len(names)
        found: dict[str, Any] = ocean_answer(explainer, asked, kinds, "cp")
        return found

    return answer


class Deployed:
    """The model as DiCE calls it: on tables, whose columns the model does not know by name."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict_proba(self, frame: pd.DataFrame) -> Any:
        """Probabilities of both classes."""
        import numpy as np

        return self.model.predict_proba(np.asarray(frame, dtype=float))

    def predict(self, frame: pd.DataFrame) -> Any:
        """The class of every row."""
        import numpy as np

        return self.model.predict(np.asarray(frame, dtype=float))


def of_dice(model: Any, names: Names, rows: Rows) -> Answering:
    """DiCE's genetic method, the one that minimises a distance; the nearest of a few counterfactuals.

    Asked for one it often ends with an error.
    """
    import dice_ml
    import numpy as np

    known = frame_of(rows, names)
    known["outcome"] = model.predict(np.array(rows, dtype=float))
    data = dice_ml.Data(dataframe=known, continuous_features=names, outcome_name="outcome")
    wrapped = dice_ml.Model(model=Deployed(model), backend="sklearn", model_type="classifier")
    explainer = dice_ml.Dice(data, wrapped, method="genetic")

    def answer(question: Question) -> dict[str, Any]:
        levers = free(question, names)
        np.random.seed(SEED)
        random.seed(SEED)
        asked = {"features_to_vary": list(levers), "permitted_range": levers, "desired_class": 1}
        try:
            found = explainer.generate_counterfactuals(frame_of([question["row"]], names), ASKED, **asked)
        except Exception as problem:
            if "No counterfactuals found" in str(problem):
                return {"status": "nothing", "message": str(problem)}
            raise
        one = found.cf_examples_list[0]
        ends = one.final_cfs_df if one.final_cfs_df_sparse is None else one.final_cfs_df_sparse
        if ends is None or not len(ends):
            return {"status": "nothing"}
        nearest = (ends[names].astype(float) - question["row"]).abs().sum(axis=1).argmin()
        return {"status": "found", "row": [float(ends.iloc[nearest][name]) for name in names]}

    return answer


def of_alibi(model: Any, names: Names, rows: Rows) -> Answering:
    """alibi's CounterfactualProto with k-d trees; half the default steps of its constant, as it is slow.

    It searches real numbers, so the function that it is given rounds them.
    """
    import numpy as np
    import tensorflow as tf

    tf.compat.v1.disable_v2_behavior()
    from alibi.explainers import CounterfactualProto

    known = np.array(rows, dtype=float)

    def predict(values: Any) -> Any:
        return model.predict_proba(np.rint(values))

    def answer(question: Question) -> dict[str, Any]:
        tf.compat.v1.keras.backend.clear_session()
        ends = tuple(np.array([question[end]], dtype=float) for end in ("low", "high"))
        explainer = CounterfactualProto(
            predict,
            (1, len(names)),
            use_kdtree=True,
            theta=PROTOTYPE,
            c_init=1.0,
            c_steps=5,
            feature_range=ends,
            eps=(1e-3, STEP),
        )
        found = explainer.fit(known).explain(np.array([question["row"]], dtype=float), target_class=[1]).cf
        if found is None:
            return {"status": "nothing"}
        return {"status": "found", "row": np.rint(found["X"][0]).tolist()}

    return answer


def of_reachml(model: Any, names: Names, rows: Rows) -> Answering:
    """reachml's list of everything within reach; whether the model accepts any of it."""
    from reachml import ActionSet, ReachableSetEnumerator

    known = frame_of(rows, names)

    def answer(question: Question) -> dict[str, Any]:
        actions, levers = ActionSet(known), free(question, names)
        for name in names:
            if name in levers:
                actions[name].lb, actions[name].ub = levers[name]
            else:
                actions[name].actionable = False
        reach = ReachableSetEnumerator(actions, question["row"])
        reach.enumerate()
        points = reach.reachable_points
        accepted = bool((model.predict(points) == 1).any())
        nothing = "infeasible" if reach.complete else "nothing"
        return {"status": "exists" if accepted else nothing, "message": f"{len(points)} points"}

    return answer


TOOLS = {
    "treecf": ("treecf", of_treecf),
    "ocean": ("oceanpy", of_ocean),
    "dice": ("dice-ml", of_dice),
    "alibi": ("alibi", of_alibi),
    "reachml": ("reachml", of_reachml),
}
"""By name, what it is installed as, and what makes a function of questions."""


def ready(folder: str, tool: str) -> tuple[Mapping[str, Any], Answering]:
    """The peer's version, and its answers about the model of a folder, which take their whole wall time."""
    from importlib.metadata import version

    package, made = TOOLS[tool]
    installed = version(package)
    from xgboost import XGBClassifier

    with open(os.path.join(folder, "people.json"), encoding="utf-8") as file:
        people = json.load(file)
    model = XGBClassifier()
    model.load_model(os.path.join(folder, "model.json"))
    model.set_params(n_jobs=1)
    answered = made(model, people["names"], people["rows"])

    def answer(question: Question) -> dict[str, Any]:
        return {name: value for name, value in answered(question).items() if name != "seconds"}

    return {"version": installed}, answer


if __name__ == "__main__":
    from peer_worker import serve

    serve(lambda: ready(*sys.argv[1:]))

"""Run by a Python that has the peer: ``python peer_worker.py MODEL.joblib cp|mip|treecf``, the first two of
OceanPy (Python 3.12 or newer).

It imports nothing of this package. MODEL.joblib holds the fitted model, the kinds of the features
("continuous", "binary", or a number of labels) and rows of them, for OceanPy scaled to [0, 1], labels by
number. A question is {"row": [...], "limit": seconds} and, for OceanPy, "norm": 1 or 2; for treecf "price":
what a change by 1 costs per column, "low" and "high": [...], "whole": [whether ...]. How questions come and
answers go is said at :func:`serve`.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import time
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

TARGET = 0.5 + 1e-9
"""The probability that treecf is asked for: at 0.5 a forest's ``predict`` refuses."""

Kinds = Sequence[str | int]
Answering = Callable[[Mapping[str, Any]], dict[str, Any]]


def frame_of(rows: Sequence[Sequence[float]], kinds: Kinds) -> pd.DataFrame:
    """Rows as OceanPy reads tables: labels as numbered text, so that their order stays the same."""
    import pandas as pd

    columns = {}
    for k, kind in enumerate(kinds):
        values = [row[k] for row in rows]
        labelled = not isinstance(kind, str)
        columns[f"c{k}"] = [f"v{int(v):03d}" for v in values] if labelled else values
    return pd.DataFrame(columns)


def of_ocean(content: Mapping[str, Any], way: str) -> Answering:
    """OceanPy's answers to questions about the fitted model, as a function of them."""
    import ocean
    from ocean.feature import parse_features

    model, kinds = content["model"], content["kinds"]
    frame = frame_of(content["rows"], kinds)
    encoded = tuple(f"c{k}" for k, kind in enumerate(kinds) if not isinstance(kind, str))
    processed, mapper = parse_features(
        frame, encoded=encoded, scale=False, drop_na=False, drop_constant=False
    )
    if hasattr(model, "get_booster"):
        names = [c if isinstance(c, str) else " ".join(part for part in c if part) for c in processed.columns]
        model.get_booster().feature_names = names
    made = {"cp": ocean.ConstraintProgrammingExplainer, "mip": ocean.MixedIntegerProgramExplainer}[way]
    explainer = made(model, mapper=mapper)
    if way == "cp":
        import ocean.cp._explainer as clocked

        clocked.time = types.SimpleNamespace(time=time.process_time)  # times of solutions by the same clock
    return lambda question: ocean_answer(explainer, question, kinds, way)


def columns_of(row: Sequence[float], kinds: Kinds) -> list[float]:
    """The model's columns for a row: labels one-hot encoded."""
    found = []
    for value, kind in zip(row, kinds, strict=True):
        found += [value] if isinstance(kind, str) else [float(int(value) == k) for k in range(kind)]
    return found


def row_of(columns: Sequence[float], kinds: Kinds) -> list[float]:
    """The row for the model's columns: the inverse of :func:`columns_of`."""
    row, at = [], 0
    for kind in kinds:
        width = 1 if isinstance(kind, str) else kind
        mine = columns[at : at + width]
        row.append(
            float(mine[0])
            if width == 1 and isinstance(kind, str)
            else float(max(range(width), key=mine.__getitem__))
        )
        at += width
    return row


def ocean_answer(explainer: Any, question: Mapping[str, Any], kinds: Kinds, way: str) -> dict[str, Any]:
    """OceanPy's answer to a question; ``events`` are [seconds, best cost or None, bound]."""
    import numpy as np

    start, wall, bounds = time.process_time(), time.perf_counter(), []
    if way == "cp":
        scale = explainer._obj_scale
        explainer.solver.best_bound_callback = lambda b: bounds.append(
            (time.process_time() - start, b / scale)
        )
    row = np.array(columns_of(question["row"], kinds))
    limit = max(1, round(question["limit"]))
    how = {"max_time": limit, "num_workers": 1, "return_callback": True, "random_seed": 42}
    found = explainer.explain(row, y=1, norm=question["norm"], **how)
    answer = {
        "processor_seconds": time.process_time() - start,
        "seconds": time.perf_counter() - wall,
        "status": {"OPTIMAL": "optimal", "INFEASIBLE": "infeasible"}.get(
            explainer.get_solving_status(), "limit"
        ),
        "claimed_cost": None,
        "row": None,
        "nodes": None,
    }
    answer["lower_bound"] = max((b for _, b in bounds), default=0.0)
    if found is not None:
        answer["claimed_cost"] = float(explainer.get_objective_value())
        answer["row"] = row_of([float(v) for v in found.x], kinds)
        if answer["status"] == "optimal":
            answer["lower_bound"] = answer["claimed_cost"]
    best, proven, events = math.inf, 0.0, []
    points = [(one["time"], one["objective_value"], None) for one in explainer.get_anytime_solutions() or []]
    for seconds, cost, bound in sorted(points + [(s, None, b) for s, b in bounds], key=lambda one: one[0]):
        best, proven = min(best, cost if cost is not None else best), max(proven, bound or 0.0)
        events.append([round(seconds, 4), best if math.isfinite(best) else None, proven])
    answer["events"] = events[:: max(1, len(events) // 60)]
    return answer


def of_treecf(content: Mapping[str, Any], _: str) -> Answering:
    """treecf's answers to questions about the fitted model, as a function of them."""
    import numpy as np
    from treecf import Explainer

    model = content["model"]
    own = Explainer(model, normalizers=np.ones(model.n_features_in_)).ir
    return lambda question: treecf_answer(own, question)


def treecf_answer(model: Any, question: Mapping[str, Any]) -> dict[str, Any]:
    """treecf's answer to a question about a model in its own form."""
    import numpy as np
    import treecf

    prices, row, names = question["price"], np.array(question["row"], dtype=float), model.feature_names
    explainer = treecf.Explainer(
        model,
        normalizers=np.array([1.0 / price for price in prices]),
        constraints=[
            treecf.Range(*ends) for ends in zip(names, question["low"], question["high"], strict=True)
        ],
        value_policy={n: "integer" for n, whole in zip(names, question["whole"], strict=True) if whole},
    )
    start, wall = time.process_time(), time.perf_counter()
    kind = treecf.Target.probability if model.link.name == "SIGMOID" else treecf.Target.raw
    target = kind(op=">=", value=TARGET)
    budget = {"time_budget_s": question["limit"], "node_budget": 10**15, "seed": 42}
    found: Any = explainer.explain(row, target, backend="exact", **budget)
    answer = {
        "processor_seconds": time.process_time() - start,
        "seconds": time.perf_counter() - wall,
        "nodes": found.solver_stats.get("nodes_expanded"),
        "claimed_cost": None,
        "lower_bound": found.solver_stats.get("lower_bound") or 0.0,
        "row": None,
    }
    if isinstance(found, treecf.Infeasible):
        return answer | {"status": "infeasible" if found.proof == "certified" else "limit"}
    cost, proven = float(found.distance), found.proof == "optimal"
    bound = cost if proven else answer["lower_bound"]
    answer |= {"claimed_cost": cost, "lower_bound": bound, "row": [float(v) for v in found.x_cf]}
    # it does not say when it found the action
    answer["events"] = [[answer["processor_seconds"], cost, bound]]
    return answer | {"status": "optimal" if proven else "limit"}


PEERS = {"cp": of_ocean, "mip": of_ocean, "treecf": of_treecf}


def serve(ready: Callable[[], tuple[Mapping[str, Any], Answering]]) -> None:
    """Answer questions, one JSON text a line, until the input ends; what a peer prints is no answer.

    The first line says what is known of the peer, or why nothing can be asked of it (``refused``). An answer
    has the wall seconds that it took, if it does not state them; where a peer fails its status is ``error``.

    Parameters
    ----------
    ready
        Returns what the first line says, and the function that answers.
    """
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def write(line: Mapping[str, Any]) -> None:
        answers.write(json.dumps(line) + "\n")
        answers.flush()

    def failed(problem: Exception) -> str:
        return f"{type(problem).__name__}: {problem}"

    try:
        about, answered = ready()
    except Exception as problem:
        write({"refused": failed(problem)})
        return
    write({**about, "refused": None})
    for line in sys.stdin:
        start = time.perf_counter()
        try:
            with open(os.devnull, "w") as silent, contextlib.redirect_stderr(silent):  # bars of progress
                answer = answered(json.loads(line))
        except Exception as problem:
            answer = {"status": "error", "message": failed(problem)}
        write({"seconds": time.perf_counter() - start} | answer)


def ready(path: str, kind: str) -> tuple[Mapping[str, Any], Answering]:
    """A peer's answers about the model of a file; of the peer nothing is said."""
    import joblib

    return {}, PEERS[kind](joblib.load(path), kind)


if __name__ == "__main__":
    serve(lambda: ready(*sys.argv[1:]))

"""Run by a Python that has OceanPy (3.12 or newer): ``python ocean_worker.py MODEL.joblib cp|mip``.

It imports nothing of this package. MODEL.joblib holds the fitted model, the kinds of the features
("continuous", "binary", or a number of labels) and rows of them scaled to [0, 1], labels by number. Every
line that it reads is a question {"row": [...], "norm": 1 or 2, "limit": seconds}; it writes an answer to each
on a line. Its first line has the time for reading the model and building the explainer ("built"), which is in
no answer, and why the model is refused, if it is.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
import types
import warnings


def frame_of(rows, kinds):
    """Rows as OceanPy reads tables: labels as numbered text, so that their order stays the same."""
    import pandas as pd

    columns = {}
    for k, kind in enumerate(kinds):
        values = [row[k] for row in rows]
        labelled = not isinstance(kind, str)
        columns[f"c{k}"] = [f"v{int(v):03d}" for v in values] if labelled else values
    return pd.DataFrame(columns)


def explainer_of(content, way):
    """OceanPy's explainer of the fitted model."""
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
    return made(model, mapper=mapper)


def columns_of(row, kinds):
    """The model's columns for a row: labels one-hot encoded."""
    found = []
    for value, kind in zip(row, kinds, strict=True):
        found += [value] if isinstance(kind, str) else [float(int(value) == k) for k in range(kind)]
    return found


def row_of(columns, kinds):
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


def answered(explainer, question, kinds, way):
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


def main():
    """Read the model, say whether OceanPy takes it, then answer questions until the input ends."""
    import joblib

    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    content, way = joblib.load(sys.argv[1]), sys.argv[2]
    start = time.process_time()
    try:
        explainer, refused = explainer_of(content, way), None
        if way == "cp":
            import ocean.cp._explainer as clocked

            clocked.time = types.SimpleNamespace(
                time=time.process_time
            )  # times of solutions by the same clock
    except Exception as problem:
        explainer, refused = None, f"{type(problem).__name__}: {problem}"
    answers.write(json.dumps({"built": time.process_time() - start, "refused": refused}) + "\n")
    answers.flush()
    for line in sys.stdin:
        try:
            answer = answered(explainer, json.loads(line), content["kinds"], way)
        except Exception as problem:
            answer = {"status": "error", "message": f"{type(problem).__name__}: {problem}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()

"""Run by a Python that has treecf: ``python treecf_worker.py MODEL.joblib``.

It imports nothing of this package. Every line that it reads is a question {"row": [...], "price": what a
change by 1 costs per column, "low": [...], "high": [...], "whole": [whether ...], "limit": seconds}; it
writes an answer to each on a line. Reading the model and setting up the explainer are in no answer's time.
Its first line says why the model is refused, if it is.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings

TARGET = 0.5 + 1e-9
"""The probability that is asked for: at 0.5 a forest's ``predict`` refuses."""


def answered(model, question):
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
    found = explainer.explain(row, target, backend="exact", **budget)
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


def main():
    """Read the model, say whether treecf takes it, then answer questions until the input ends."""
    import joblib

    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    fitted, model, refused = joblib.load(sys.argv[1])["model"], None, None
    try:
        import numpy as np
        import treecf

        model = treecf.Explainer(fitted, normalizers=np.ones(fitted.n_features_in_)).ir
    except Exception as problem:
        refused = f"{type(problem).__name__}: {problem}"
    answers.write(json.dumps({"refused": refused}) + "\n")
    answers.flush()
    for line in sys.stdin:
        try:
            answer = answered(model, json.loads(line))
        except Exception as problem:
            answer = {"status": "error", "message": f"{type(problem).__name__}: {problem}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()

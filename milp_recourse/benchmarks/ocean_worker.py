"""Run by a Python that has OceanPy (3.12 or newer): ``python ocean_worker.py DATA.json MODEL.joblib LIMIT``.

Stands alone, so that it needs nothing of this package. Prints one JSON line per query: processor and wall
seconds of ``explain`` alone (building the explainer is not counted), status, distance, and the
counterfactual's class by the deployed forest.
"""

from __future__ import annotations

import json
import sys
import time
import warnings


def main() -> None:
    """Explain every query of the file."""
    import joblib
    import numpy as np
    import pandas as pd
    from ocean import ConstraintProgrammingExplainer
    from ocean.feature import parse_features

    warnings.simplefilter("ignore")
    with open(sys.argv[1], encoding="utf-8") as file:
        data = json.load(file)
    forest, limit = joblib.load(sys.argv[2]), int(float(sys.argv[3]))
    frame, mapper = parse_features(pd.DataFrame(data["rows"], columns=data["names"]), scale=False)
    explainer = ConstraintProgrammingExplainer(forest, mapper=mapper)
    assert list(frame.columns) == list(data["names"])
    for query in data["queries"]:
        wall, processor = time.perf_counter(), time.process_time()
        answer = explainer.explain(
            np.array(query), y=1, norm=1, max_time=limit, num_workers=1, random_seed=42
        )
        said = {
            "seconds": time.perf_counter() - wall,
            "processor_seconds": time.process_time() - processor,
            "status": {"OPTIMAL": "optimal", "INFEASIBLE": "infeasible"}.get(explainer.Status, "limit"),
            "cost": None,
            "flips": None,
        }
        if answer is not None:
            said["cost"] = explainer.get_objective_value()
            said["flips"] = bool(forest.predict(np.array([answer.x], dtype=float))[0] == 1)
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()

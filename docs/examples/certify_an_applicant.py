"""From a scikit-learn model to a proven answer for a refused applicant: certify_an_applicant.py FILE."""

import json
import sys
from pathlib import Path

import numpy as np
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import milp_recourse
from milp_recourse.readers import read_sklearn, to_json

NAMES = ("income", "debt", "years_employed")

# 1. Your model. Here: made-up applicants, and a network on standardised features.
rng = np.random.default_rng(0)
rows = np.column_stack([rng.gamma(4, 9, 2000), rng.gamma(2, 10, 2000), rng.integers(0, 20, 2000)])
repaid = rows[:, 0] - 0.8 * rows[:, 1] + 0.6 * rows[:, 2] + rng.normal(0, 5, 2000) > 22
model = make_pipeline(StandardScaler(), MLPClassifier((8, 8), max_iter=300, random_state=0)).fit(rows, repaid)
applicant = rows[model.predict(rows) == 0][0]
spread = dict(zip(NAMES, rows.std(axis=0).tolist(), strict=True))

# 2. The whole problem. The scaler is folded into the network's first layer.
problem = {
    "format": "milp-recourse/instance-1",
    "name": "my applicant",
    "features": [
        {"name": "income", "kind": "continuous", "actionable": True, "bounds": [0, 150]},
        {
            "name": "debt",
            "kind": "continuous",
            "actionable": True,
            "bounds": [0, 100],
            "monotone": "decrease",
        },
        {"name": "years_employed", "kind": "integer", "actionable": False},
    ],
    "scm": {
        "name": "explicit",
        "mechanisms": {
            "income": {"equation": {"sum": [10, {"product": [0.5, "years_employed"]}]}},
            "debt": {"equation": {"product": [-0.2, "income"]}},
        },
    },
    "classifier": to_json(read_sklearn(model)),
    "accept": {"at_least": 0, "margin": 1e-9},
    "factual": dict(zip(NAMES, applicant.tolist(), strict=True)),
    "preferences": {"actionable": ["income", "debt"], "weights": {"income": 3}},
    "cost": {"kind": "l2-squared", "scale": {name: spread[name] for name in ("income", "debt")}},
    "plausibility": None,
}
file = Path(sys.argv[1] if len(sys.argv) > 1 else "applicant.json")
file.write_text(json.dumps(problem, indent=1))

# 3. The answer, with its lower bound.
result = milp_recourse.solve(file)
print(f"{result.status.value} (proof: {result.proof})")
if result.action is None:  # infeasible, or stopped before anything was found
    print(result.message)
    sys.exit()
print(f"cost {result.cost:.4f}, lower bound {result.lower_bound:.4f}")
for name, value in result.action.items():
    print(f"{name} from {problem['factual'][name]:.1f} to {value:.1f}")

# 4. Ask your own model, not the one that was read from it.
after = np.array([[result.counterfactual[name] for name in NAMES]])
print(f"the model says {model.predict([applicant])[0]} before and {model.predict(after)[0]} after")

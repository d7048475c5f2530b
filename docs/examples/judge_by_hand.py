"""Check a Loan result with nothing but Python's own rationals: judge_by_hand.py INSTANCE RESULT.

Imports nothing of ours. Every number in the two files is a double, and a double is a rational.
"""

import json
import sys
from fractions import Fraction as F
from pathlib import Path

file = Path(sys.argv[1])
problem, result = json.loads(file.read_text()), json.loads(Path(sys.argv[2]).read_text())
model = problem["classifier"]
for covered, what in (
    (problem["scm"] == {"name": "loan"}, "only the Loan model"),
    ("path" in model or model["kind"] == "relu-network", "only networks"),
    (problem["cost"]["kind"] == "l2-squared", "only squared costs"),
    (result.get("action") is not None, f"no action in a result that is {result['status']}"),
):
    if not covered:
        sys.exit(f"not covered: {what}")
if "path" in model:
    model = json.loads((file.parent / model["path"]).read_text())
if model.get("kind", "relu-network") != "relu-network":
    sys.exit("not covered: only networks")
layers = model["layers"]
x = {name: F(value) for name, value in problem["factual"].items()}
a = {name: F(value) for name, value in result["action"].items()}


def relu(value):
    """max(0, value)."""
    return max(value, F(0))


def energy(gender, age, education, amount, duration, income, savings):
    """Sum of squared noise over its variance: what plausibility compares."""
    u_amount = amount - (1 + F(0.01) * (age - 5) * (5 - age) + (1 - gender))
    u_duration = duration - (-1 + F(0.1) * age + 2 * (1 - gender) + amount)
    u_income = income - (-4 + F(0.1) * (age + 35) + 2 * gender + gender * education)
    u_savings = savings - (-4 + F(1.5) * relu(income))
    return (u_amount / 2) ** 2 + (u_duration / 3) ** 2 + (u_income / 2) ** 2 + (u_savings / 5) ** 2


# The counterfactual: what is acted on is set, the rest follows, gender, age and education stay.
y = dict(x)
y["amount"] = a.get("amount", x["amount"])
y["duration"] = a.get("duration", x["duration"] + y["amount"] - x["amount"])
y["income"] = a.get("income", x["income"])
y["savings"] = a.get("savings", x["savings"] + F(1.5) * (relu(y["income"]) - relu(x["income"])))

# The classifier, layer by layer.
z = list(y.values())
for number, layer in enumerate(layers):
    inputs = z if number == 0 else [relu(value) for value in z]
    z = [F(b) for b in layer["bias"]]
    for k, row in enumerate(layer["weight"]):
        z[k] += sum(F(w) * v for w, v in zip(row, inputs, strict=True))

weights, scale = problem["preferences"].get("weights", {}), problem["cost"]["scale"]
cost = sum(F(weights.get(f, 1)) * ((a[f] - x[f]) / F(scale[f])) ** 2 for f in a)
features = {f["name"]: f for f in problem["features"]}
ranges, accept = problem["preferences"].get("ranges", {}), problem.get("accept", {})
limits = [(a[f], features[f]["bounds"]) for f in a] + [(a[f], ranges[f]) for f in a if f in ranges]
limits += [(y[f], features[f]["domain"]) for f in y if features[f].get("domain")]
risen = {f: a[f] - x[f] for f in a}
checks = {
    "only what the applicant can act on": set(a) <= set(problem["preferences"]["actionable"]),
    "inside bounds, ranges and domains": all(F(low) <= v <= F(high) for v, (low, high) in limits),
    "rises or falls only where it may": all(
        {"increase": risen[f] >= 0, "decrease": risen[f] <= 0}.get(features[f].get("monotone"), True)
        for f in a
    ),
    "logit at least threshold plus margin": z[0] >= F(accept.get("at_least", 0)) + F(accept.get("margin", 0)),
    "at least as plausible as before": problem["plausibility"] is None
    or energy(*y.values()) <= energy(*x.values()),
    "costs no more than stated": cost <= F(result["cost"]),
    "stated gap within tolerance": F(result["cost"]) - F(result["lower_bound"]) <= max(cost / 10**6, F(1e-9)),
}
for claim, holds in checks.items():
    print(f"{'yes' if holds else 'NO ':3}  {claim}")
before, after = energy(*x.values()), energy(*y.values())
print(f"cost {float(cost):.6f}, logit {float(z[0]):.4f}, energy {float(before):.4f} -> {float(after):.4f}")
sys.exit(not all(checks.values()))

"""Check a Loan result with Python's rational numbers: judge_by_hand.py INSTANCE RESULT.

The script imports nothing of milp_recourse. Every number in the two files is a double, hence rational.
Exit code 0: every line says yes; 1: some line says NO; 2: the script does not cover the problem, and a line
on stderr says why.
"""

import json
import struct
import sys
from fractions import Fraction as F
from pathlib import Path

file = Path(sys.argv[1])
problem, result = json.loads(file.read_text()), json.loads(Path(sys.argv[2]).read_text())
model, features = problem["classifier"], {f["name"]: f for f in problem["features"]}
LEVERS = ("amount", "duration", "income", "savings")


def stop(what):
    """Print what is not covered, and exit with code 2."""
    print(f"not covered: {what}", file=sys.stderr)
    sys.exit(2)


own = problem.get("preferences") if isinstance(problem.get("preferences"), dict) else {}
for covered, what in (
    ("factual" in problem, "a population: write its applicant as an instance"),
    (problem["scm"] == {"name": "loan"}, "a causal model other than loan"),
    ("path" in model or model["kind"] == "relu-network", "tree ensembles"),
    (problem["cost"]["kind"] == "l2-squared", "costs other than l2-squared"),
    (
        all(type(s) in (int, float) for s in problem["cost"].get("scale", {}).values()),
        "scales that are no numbers",
    ),
    (not problem.get("conditions") and not own.get("conditions"), "conditions"),
    (
        "offset" not in (problem.get("plausibility") or {}) and "density_offset" not in own,
        "plausibility with an offset",
    ),
    (all(type(v) in (int, float) for v in problem.get("factual", {}).values()), "labels"),
    ("action" in result, "a file that is no single result"),
    (result.get("action") is not None, f"no action in a result that is {result.get('status')}"),
    (set(result.get("action") or ()) <= set(LEVERS), f"actions on anything but {', '.join(LEVERS)}"),
):
    if not covered:
        stop(what)
if "path" in model:
    model = json.loads((file.parent / model["path"]).read_text())
x = {name: F(problem["factual"][name]) for name in features}
a = {name: F(value) for name, value in result["action"].items()}


def relu(value):
    """max(0, value)."""
    return max(value, F(0))


def energy(gender, age, education, amount, duration, income, savings):
    """The sum over features of noise squared over its variance, which plausibility compares."""
    u_amount = amount - (1 + F(0.01) * (age - 5) * (5 - age) + (1 - gender))
    u_duration = duration - (-1 + F(0.1) * age + 2 * (1 - gender) + amount)
    u_income = income - (-4 + F(0.1) * (age + 35) + 2 * gender + gender * education)
    u_savings = savings - (-4 + F(1.5) * relu(income))
    return (u_amount / 2) ** 2 + (u_duration / 3) ** 2 + (u_income / 2) ** 2 + (u_savings / 5) ** 2


# The counterfactual: features acted on are set, the other levers follow; gender, age and education stay.
y = dict(x)
y["amount"] = a.get("amount", x["amount"])
y["duration"] = a.get("duration", x["duration"] + y["amount"] - x["amount"])
y["income"] = a.get("income", x["income"])
y["savings"] = a.get("savings", x["savings"] + F(1.5) * (relu(y["income"]) - relu(x["income"])))


def exactly(value):
    """The value itself, not rounded."""
    return F(value)


def as_deployed(value):
    """The nearest number of the network's dtype."""
    try:
        double = float(value)
        return F(double if model["dtype"] == "float64" else struct.unpack("f", struct.pack("f", double))[0])
    except OverflowError:
        return stop(f"numbers that overflow {model['dtype']}")


def logit(inputs, rounded):
    """The network's output; ``rounded`` is applied to every product and sum, from left to right."""
    z = [rounded(v) for v in inputs]
    for number, layer in enumerate(model["layers"]):
        into, z = z if number == 0 else [relu(v) for v in z], []
        for row, bias in zip(layer["weight"], layer["bias"], strict=True):
            total = F(0)
            for w, v in zip(row, into, strict=True):
                total = rounded(total + rounded(F(w) * v))
            z.append(rounded(total + F(bias)))
    return z[0]


weights, scale = problem["preferences"].get("weights", {}), problem["cost"]["scale"]
ranges, accept = problem["preferences"].get("ranges", {}), problem.get("accept", {})
cost = sum(F(weights.get(f, 1)) * ((a[f] - x[f]) / F(scale[f])) ** 2 for f in a)
threshold, margin = F(accept.get("at_least", 0)), F(accept.get("margin", 0))
exact, deployed = logit(y.values(), exactly), logit(y.values(), as_deployed)
before, after = energy(**x), energy(**y)
limits = [(a[f], features[f]["bounds"]) for f in a] + [(a[f], ranges[f]) for f in a if f in ranges]
limits += [(y[f], features[f]["domain"]) for f in y if features[f].get("domain")]
may = {"increase": lambda f: a[f] >= x[f], "decrease": lambda f: a[f] <= x[f], None: lambda f: True}
checks = {
    "only what the applicant can act on": set(a) <= set(problem["preferences"]["actionable"]),
    "inside bounds, ranges and domains": all(F(low) <= v <= F(high) for v, (low, high) in limits),
    "whole where it must be": all(a[f].denominator == 1 for f in a if features[f]["kind"] != "continuous"),
    "rises or falls only where it may": all(may[features[f].get("monotone")](f) for f in a),
    "leads to the stated counterfactual": all(float(y[f]) == result["counterfactual"][f] for f in y),
    "logit at least threshold plus margin": exact >= threshold + margin,
    f"accepted in {model['dtype']}": deployed >= threshold,
    "at least as plausible as before": problem.get("plausibility") is None or after <= before,
    "costs no more than stated": cost <= F(result["cost"]),
}
if result["status"] == "optimal":
    gap = F(result["cost"]) - F(result["lower_bound"])
    checks["stated gap within tolerance"] = gap <= F(1e-6) * F(result["cost"])  # and e, some 1e-23
for claim, holds in checks.items():
    print(f"{'yes' if holds else 'NO ':3}  {claim}")
print(f"cost {float(cost):.6f}, logit {float(exact):.4f}, energy {float(before):.4f} -> {float(after):.4f}")
sys.exit(not all(checks.values()))

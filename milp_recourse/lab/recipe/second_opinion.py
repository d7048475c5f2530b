r"""Loan references confirmed by a model that shares no code with the back ends.

``highs`` and ``pyomo:scip_direct`` both start from the same lowering, bounds and box search: an error
there would be made twice. Here the Loan equations, the network, the ball and the cost are written
once more, from the file's own numbers, as one model with every "acted on or not" left open, bounds by
plain interval arithmetic, quadratics as they are, for SCIP to solve as it comes.

    v_f = set value where acted on (z_f = 1), else natural value;  delta_f = z_f (v_f - x_f)
    amount: x;  duration: x + (amount' - amount);  income: x;  savings: x + 1.5 (relu(income') - relu(income))

gender, age and education stay as they are, since no action reaches them.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from milp_recourse.errors import BackendUnavailable, Unsupported

LEVERS = ("amount", "duration", "income", "savings")
SD = {"amount": 2.0, "duration": 3.0, "income": 2.0, "savings": 5.0}
AGREEMENT = 1e-5
"""Relative difference of cost that SCIP's tolerances (1e-7 on every row) are allowed to make."""

Data = dict[str, Any]
Bounded = tuple[Any, float, float]
"""A SCIP expression with proven lower and upper bounds."""


@dataclass(frozen=True)
class Opinion:
    """What SCIP said about one file, and what the file says.

    Attributes
    ----------
    status
        ``optimal``, ``infeasible`` or SCIP's own word where it stopped.
    cost, lower_bound
        SCIP's, or None.
    """

    file: str
    known_status: str
    known_cost: float | None
    status: str
    cost: float | None
    lower_bound: float | None
    seconds: float

    @property
    def verdict(self) -> str:
        """``agrees``, ``contradicts`` or ``open``."""
        known = math.inf if self.known_cost is None else self.known_cost
        if self.status == "infeasible":
            return "agrees" if self.known_status == "infeasible" else "contradicts"
        slack = AGREEMENT * known + 1e-9 if math.isfinite(known) else 0.0
        if self.lower_bound is not None and self.lower_bound > known + slack:
            return "contradicts"
        if self.cost is not None and self.cost < known - slack:
            return "contradicts"
        return "agrees" if self.status == "optimal" else "open"


def sampled(folder: Path, count: int, infeasible: int, seed: int) -> list[Path]:
    """``count`` instances of a folder, ``infeasible`` of them known to be infeasible; sorted."""
    groups: dict[bool, list[Path]] = {True: [], False: []}
    for file in sorted(folder.glob("loan_*.json")):
        reference = json.loads(file.read_text(encoding="utf-8")).get("reference") or {}
        if reference.get("status") in ("optimal", "infeasible"):
            groups[reference["status"] == "infeasible"].append(file)
    draw = random.Random(seed)
    few = min(infeasible, len(groups[True]))
    return sorted(
        draw.sample(groups[True], few) + draw.sample(groups[False], min(count - few, len(groups[False])))
    )


def second_opinions(
    files: Iterable[Path], time_limit: float, on_file: Callable[[], None] = lambda: None
) -> list[Opinion]:
    """One opinion per file."""
    opinions = []
    for file in files:
        opinions.append(second_opinion(file, time_limit))
        on_file()
    return opinions


def second_opinion(file: Path, time_limit: float) -> Opinion:
    """Solve one Loan instance file from scratch.

    Raises
    ------
    Unsupported
        Not a Loan network instance with l2-squared cost.
    BackendUnavailable
        PySCIPOpt is not installed.
    """
    data = json.loads(file.read_text(encoding="utf-8"))
    if data["scm"] != {"name": "loan"} or data["cost"]["kind"] != "l2-squared":
        raise Unsupported(f"{file.name}: only Loan instances with l2-squared cost")
    network = data["classifier"]
    if "path" in network:
        network = json.loads((file.parent / network["path"]).read_text(encoding="utf-8"))
    reference = data["reference"]
    model, unit = _model(data, network, reference["cost"])
    model.setParam("limits/time", time_limit)
    model.optimize()
    status = model.getStatus()
    known = model.getNSols() > 0 and status != "infeasible"
    bound = model.getDualbound() * unit
    return Opinion(
        file.name,
        reference["status"],
        reference["cost"],
        status,
        model.getObjVal() * unit if known else None,
        bound if status != "infeasible" and abs(bound) < 1e19 else None,
        round(model.getSolvingTime(), 2),
    )


def summary(opinions: list[Opinion]) -> Data:
    """Verdicts counted, the largest relative difference of cost, and every opinion."""
    pairs = [(o.cost, o.known_cost) for o in opinions if o.status == "optimal"]
    gaps = [abs(cost - known) / known for cost, known in pairs if cost is not None and known]
    verdicts = [o.verdict for o in opinions]
    return {
        "instances": len(opinions),
        "verdicts": {v: verdicts.count(v) for v in ("agrees", "contradicts", "open")},
        "infeasible": sum(o.status == "infeasible" for o in opinions),
        "largest_relative_difference": max(gaps, default=None),
        "seconds": round(sum(o.seconds for o in opinions), 1),
        "opinions": [vars(o) | {"verdict": o.verdict} for o in opinions],
    }


def _model(data: Data, network: Data, known_cost: float | None) -> tuple[Any, float]:
    """The SCIP model and the unit of its objective (so that absolute tolerances do not matter)."""
    try:
        from pyscipopt import Model, quicksum
    except ImportError:
        raise BackendUnavailable("second-opinion needs SCIP: pip install pyscipopt") from None
    model = Model()
    model.hideOutput()
    for name, value in (
        ("numerics/feastol", 1e-7),
        ("limits/gap", 1e-7),
        ("randomization/randomseedshift", 0),
    ):
        model.setParam(name, value)
    x: dict[str, float] = data["factual"]
    values, positive, deltas = _values(model, data)
    if data["plausibility"] is not None:
        _ball(model, x, values, positive)
    z: list[Bounded] = [
        values[f["name"]] if f["name"] in values else (x[f["name"]], x[f["name"]], x[f["name"]])
        for f in data["features"]
    ]
    layers = network["layers"]
    for k, layer in enumerate(layers):
        pre = [_affine(row, bias, z) for row, bias in zip(layer["weight"], layer["bias"], strict=True)]
        z = [_relu(model, p) for p in pre] if k + 1 < len(layers) else pre
    accept = data["accept"]
    logit = z[0][0]
    model.addCons(logit >= accept.get("at_least", 0.0) + accept.get("margin", 0.0))
    unit = known_cost or 0.01
    weights = data["preferences"].get("weights", {})
    scale = data["cost"]["scale"]
    top = model.addVar(lb=0.0, ub=None)
    shares = (weights.get(f, 1.0) / scale[f] ** 2 / unit * delta * delta for f, delta in deltas.items())
    model.addCons(top >= quicksum(shares))
    model.setObjective(top, "minimize")
    return model, unit


def _values(model: Any, data: Data) -> tuple[dict[str, Bounded], Bounded, dict[str, Any]]:
    """Counterfactual value of the four levers, relu of the income, delta of those that can be acted on."""
    x = data["factual"]
    stated = {f["name"]: f for f in data["features"]}
    preferences = data["preferences"]
    values: dict[str, Bounded] = {}
    positive: Bounded = (0.0, 0.0, 0.0)
    deltas: dict[str, Any] = {}
    for f in LEVERS:
        natural: Bounded = (x[f], x[f], x[f])
        if f == "duration":
            expr, low, high = values["amount"]
            natural = (x[f] + expr - x["amount"], x[f] + low - x["amount"], x[f] + high - x["amount"])
        elif f == "savings":
            base = x[f] - 1.5 * max(0.0, x["income"])
            positive = expr, low, high = _relu(model, values["income"])
            natural = (base + 1.5 * expr, base + 1.5 * low, base + 1.5 * high)
        low, high = stated[f]["bounds"]
        for interval in (preferences.get("ranges", {}).get(f), stated[f].get("domain")):
            low, high = (max(low, interval[0]), min(high, interval[1])) if interval else (low, high)
        if stated[f].get("domain") or stated[f].get("monotone"):
            raise Unsupported("second-opinion knows no domains and no monotone features")
        if f not in preferences["actionable"] or low > high:
            values[f] = natural
            continue
        acted = model.addVar(f"act_{f}", vtype="B")
        least, most = min(low, natural[1]), max(high, natural[2])
        value = model.addVar(f"value_{f}", lb=least, ub=most)
        delta = model.addVar(f"delta_{f}", lb=min(low - x[f], 0.0), ub=max(high - x[f], 0.0))
        model.addCons(value >= low * acted + least * (1 - acted))
        model.addCons(value <= high * acted + most * (1 - acted))
        span = most - least
        model.addCons(value - natural[0] <= span * acted)
        model.addCons(value - natural[0] >= -span * acted)
        reach = span + abs(least - x[f]) + abs(most - x[f])
        model.addCons(delta - (value - x[f]) <= reach * (1 - acted))
        model.addCons(delta - (value - x[f]) >= -reach * (1 - acted))
        model.addCons(delta <= max(high - x[f], 0.0) * acted)
        model.addCons(delta >= min(low - x[f], 0.0) * acted)
        values[f], deltas[f] = (value, least, most), delta
    return values, positive, deltas


def _ball(model: Any, x: dict[str, float], values: dict[str, Bounded], positive: Bounded) -> None:
    r"""sum (u'/sd)^2 <= sum (u/sd)^2 over the residuals u of amount, duration, income and savings."""
    gender, age, education = x["gender"], x["age"], x["education"]

    def residuals(value: dict[str, Any], positive: Any) -> dict[str, Any]:
        return {
            "amount": value["amount"] - (1 + 0.01 * (age - 5) * (5 - age) + (1 - gender)),
            "duration": value["duration"] - (-1 + 0.1 * age + 2 * (1 - gender) + value["amount"]),
            "income": value["income"] - (-4 + 0.1 * (age + 35) + 2 * gender + gender * education),
            "savings": value["savings"] - (-4 + 1.5 * positive),
        }

    before = residuals(x, max(0.0, x["income"]))
    after = residuals({f: values[f][0] for f in LEVERS}, positive[0])
    budget = sum((u / SD[f]) ** 2 for f, u in before.items())
    total: Any = 0.0
    for f, u in after.items():
        residual = model.addVar(f"residual_{f}", lb=None, ub=None)
        model.addCons(residual == u / SD[f])
        total = total + residual * residual
    model.addCons(total <= budget * (1 + 1e-12))  # floats: standing still has to pass


def _affine(row: list[float], bias: float, z: list[Bounded]) -> Bounded:
    expr: Any = bias
    low = high = bias
    for w, (term, l, h) in zip(row, z, strict=True):
        expr = expr + w * term
        low, high = low + min(w * l, w * h), high + max(w * l, w * h)
    return expr, low, high


def _relu(model: Any, pre: Bounded) -> Bounded:
    """max(0, pre) with big-M constants from its interval."""
    expr, low, high = pre
    if high <= 0:
        return 0.0, 0.0, 0.0
    if low >= 0:
        return pre
    slack = 1e-9 * (1 + abs(low) + abs(high))
    low, high = low - slack, high + slack
    y, on = model.addVar(lb=0.0, ub=high), model.addVar(vtype="B")
    model.addCons(y >= expr)
    model.addCons(y <= expr - low * (1 - on))
    model.addCons(y <= high * on)
    return y, 0.0, high

"""Joint plans against enumeration: ``python -m tests.properties.joint_plans --people 200``.

Each seed is a small population in the file format: a network or trees, whole-valued levers, at times an
effect, and offers of every kind. Everybody's cost under every offer must be the least of all actions, listed
from the definition in rational arithmetic; the choice within the budget must be the best of all choices, and
as good as that of a plain MILP of HiGHS (gap 0), which is also asked about 60 made-up people. Run from the
repository root.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from milp_recourse.formats import population_from_dict
from milp_recourse.questions.share import Way, selection, share
from tests.properties.repeated import Checked, repeated

LEVERS = "abc"
PEOPLE = 4
Numbers = dict[str, Fraction]


def drawn(rng: random.Random) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A population document, and offers; all numbers are multiples of 1/8."""

    def eighths(low: int, high: int) -> float:
        return rng.randint(8 * low, 8 * high) / 8

    features: list[dict[str, Any]] = [
        {"name": n, "kind": "integer", "bounds": [-2, 3], "actionable": True} for n in LEVERS
    ]
    features.append({"name": "d", "kind": "continuous", "actionable": False})
    noise = {"kind": "normal", "sd": 1.0}
    equations = {n: 0 for n in LEVERS} | {"d": {"product": [rng.choice([0, 0.5]), "a"]}}
    if rng.random() < 0.5:
        layers = [
            {"weight": [[eighths(-2, 2) for _ in range(w)] for _ in range(n)], "bias": [eighths(-1, 1)] * n}
            for w, n in ((4, 3), (3, 1))
        ]
        model: dict[str, Any] = {"kind": "relu-network", "dtype": "float64", "layers": layers}
        accept: dict[str, Any] = {"at_least": eighths(2, 5), "margin": 0.125}
    else:
        tree = {"left": [1, 3, -1, -1, -1], "right": [2, 4, -1, -1, -1]}
        trees = [
            {
                "feature": [rng.randrange(4), rng.randrange(4), 0, 0, 0],
                "threshold": [eighths(-2, 2), eighths(-2, 2), 0.0, 0.0, 0.0],
                **tree,
                "value": [0.5, 0.5, *(rng.randint(0, 8) / 8 for _ in range(3))],
            }
            for _ in range(4)
        ]
        model = {"kind": "tree-ensemble", "dtype": "float32", "trees": trees}
        accept = {"above": rng.choice([0.5, 0.625, 0.75])}
    document = {
        "format": "milp-recourse/population-1",
        "features": features,
        "scm": {
            "name": "explicit",
            "mechanisms": {n: {"equation": e, "noise": noise} for n, e in equations.items()},
        },
        "classifier": model,
        "accept": accept,
        "factuals": [{n: rng.randint(-3, 3) for n in LEVERS} | {"d": eighths(-2, 2)} for _ in range(PEOPLE)],
        "preferences": [
            {
                "actionable": sorted(rng.sample(LEVERS, 2)),
                "weights": {n: rng.choice([0.5, 1, 3]) for n in LEVERS},
            }
            for _ in range(PEOPLE)
        ],
        "cost": {"kind": rng.choice(["l1", "l2-squared"]), "scale": {n: rng.choice([1, 2]) for n in LEVERS}},
        "plausibility": None,
    }
    lower = 0.125 if "trees" in model else 0.75
    offers = [
        {"name": "threshold", "price": rng.choice([0.1, 0.3]), "lower": lower, "times": 2},
        {"name": "grant", "price": 0.2, "give": {"a": 1}},
        {
            "name": "both",
            "price": 0.5,
            "give": {"d": eighths(0, 2)},
            "lower": 0.125,
            "cheaper": {rng.choice(LEVERS): 0.5},
        },
    ]
    return document, offers


def listed(offers: Sequence[Mapping[str, Any]]) -> dict[str | None, dict[str, Any]]:
    """Name -> one offer, steps told apart."""
    found: dict[str | None, dict[str, Any]] = {None: {"price": Fraction(0)}}
    for one in offers:
        for k in range(1, one.get("times", 1) + 1):
            name = one["name"] + (f" x{k}" if "times" in one else "")
            given = {"price": k * Fraction(str(one["price"])), "lower": k * Fraction(one.get("lower", 0))}
            found[name] = {**one, **given}
    return found


def least(document: Mapping[str, Any], person: int, offer: Mapping[str, Any]) -> Fraction | None:
    """The least cost of all actions of a person under an offer."""
    own = document["preferences"][person]
    x = {n: Fraction(v) for n, v in document["factuals"][person].items()}
    given = {n: x[n] + Fraction(offer.get("give", {}).get(n, 0)) for n in LEVERS}
    effect = Fraction(document["scm"]["mechanisms"]["d"]["equation"]["product"][0])
    best: Fraction | None = None
    values = [
        {given[n], *map(Fraction, range(-2, 4))} if n in own["actionable"] else {given[n]} for n in LEVERS
    ]
    for chosen in product(*values):
        after = dict(zip(LEVERS, chosen, strict=True))
        after["d"] = x["d"] + Fraction(offer.get("give", {}).get("d", 0)) + effect * (after["a"] - x["a"])
        cost = Fraction(0)
        for n in LEVERS:
            weight = Fraction(own["weights"][n]) * Fraction(offer.get("cheaper", {}).get(n, 1))
            size = abs(after[n] - given[n]) / document["cost"]["scale"][n]
            cost += weight * (size**2 if document["cost"]["kind"] == "l2-squared" else size)
        if (best is None or cost < best) and accepted(document, after, Fraction(offer.get("lower", 0))):
            best = cost
    return best


def accepted(document: Mapping[str, Any], after: Numbers, lower: Fraction) -> bool:
    """Whether the model accepts, with its threshold lowered."""
    model, accept = document["classifier"], document["accept"]
    values = [after[n] for n in (*LEVERS, "d")]
    if "trees" in model:
        score = Fraction(0)
        for tree in model["trees"]:
            node = 0
            while tree["left"][node] != -1:
                side = "left" if values[tree["feature"][node]] <= tree["threshold"][node] else "right"
                node = tree[side][node]
            score += Fraction(tree["value"][node])
        return score / len(model["trees"]) > Fraction(accept["above"]) - lower
    for k, layer in enumerate(model["layers"]):
        values = [
            sum((Fraction(w) * v for w, v in zip(row, values, strict=True)), Fraction(bias))
            for row, bias in zip(layer["weight"], layer["bias"], strict=True)
        ]
        values = [max(v, Fraction(0)) for v in values] if k == 0 else values
    return values[0] >= Fraction(accept["at_least"]) - lower + Fraction(accept["margin"])


def plain_milp(ways: Sequence[Mapping[int, Way]], budget: Fraction) -> tuple[int, float]:
    """Most people served, and then the least total, by two plain MILPs of HiGHS."""
    pairs = [(i, *map(float, way)) for i, own in enumerate(ways) for way in own.values()]
    if not pairs:
        return 0, 0.0
    people, prices, values = map(np.array, zip(*pairs, strict=True))
    one_each = LinearConstraint((people[None, :] == np.arange(len(ways))[:, None]).astype(float), ub=1)
    rules = [one_each, LinearConstraint(prices[None, :], ub=float(budget))]
    kind = {"integrality": np.ones(len(pairs)), "bounds": Bounds(0, 1), "options": {"mip_rel_gap": 0.0}}
    served = round(-milp(-np.ones(len(pairs)), constraints=rules, **kind).fun)
    rules.append(LinearConstraint(np.ones((1, len(pairs))), lb=served))
    return served, float(milp(values, constraints=rules, **kind).fun)


def every_choice(ways: Sequence[Mapping[int, Way]], budget: Fraction) -> tuple[int, Fraction]:
    """The same by trying everything."""
    best: tuple[int, Fraction] | None = None
    for chosen in product(*([None, *own.values()] for own in ways)):
        taken = [way for way in chosen if way is not None]
        if sum((price for price, _ in taken), Fraction(0)) <= budget:
            key = -len(taken), sum((value for _, value in taken), Fraction(0))
            best = key if best is None else min(best, key)
    assert best is not None
    return -best[0], best[1]


def same(one: float | None, other: Fraction | float | None) -> bool:
    """Equal within what an optimal answer may be off."""
    if one is None or other is None:
        return one is other
    return abs(one - float(other)) <= 2e-6 * abs(one) + 1e-9


def check(seed: int) -> Checked:
    """One population, alone and within budgets, and a selection among made-up people."""
    rng = random.Random(seed)
    document, offers = drawn(rng)
    counts, wrong = Counter({"people": PEOPLE}), list[str]()
    prices, weight = listed(offers), rng.choice([0.0, 0.5, 1.0])
    costs = [{name: least(document, i, one) for name, one in prices.items()} for i in range(PEOPLE)]
    found = share(population_from_dict(document), offers, weight=weight)
    for i, own in enumerate(costs):
        for point in found.fronts[i]:
            counts["points"] += 1
            if not same(point.result.cost, own[point.offer.name]) or point.open:
                wrong.append(f"seed {seed}, person {i}: {point}, enumerated {own[point.offer.name]}")
        sums = [c + Fraction(weight) * prices[n]["price"] for n, c in own.items() if c is not None]
        k = found.chosen[i]
        here = None if k is None else found.fronts[i][k]
        total = here and (here.result.cost or 0.0) + weight * float(here.offer.price)
        if not same(total, min(sums, default=None)):
            wrong.append(f"seed {seed}, person {i}: together {total}, enumerated {min(sums, default=None)}")
        counts["joint plans"] += 1
        counts["helped"] += bool(here and here.offer.name)
    ways: list[dict[int, Way]] = [
        {
            k: (prices[n]["price"], c + Fraction(weight) * prices[n]["price"])
            for k, (n, c) in enumerate(own.items())
            if c is not None
        }
        for own in costs
    ]
    for budget in (0.3, 0.8):
        choice = share(population_from_dict(document), offers, budget=budget, weight=weight)
        expected, plain = every_choice(ways, Fraction(str(budget))), plain_milp(ways, Fraction(str(budget)))
        served = len(choice.taken)
        right = served == choice.served_at_most == expected[0] == plain[0] and choice.proven
        right &= choice.spent <= Fraction(str(budget)) and choice.lower_bound is not None
        right &= same(choice.objective, expected[1]) and same(plain[1], expected[1])
        counts["budgets"] += 1
        if not right:
            wrong.append(f"seed {seed}, budget {budget}: {choice.to_dict()}, {expected}, {plain}")
    return counts + _made_up(rng, seed, wrong), wrong


def _made_up(rng: random.Random, seed: int, wrong: list[str]) -> Counter[str]:
    """60 people with convex and other fronts; the total, computed exactly, is the MILP's."""
    ways: list[dict[int, Way]] = []
    for _ in range(60):
        costs = sorted((rng.random() for _ in range(8)), reverse=True)
        first = rng.choice([0, 0, 2])  # some are served with help alone
        ways.append({k: (Fraction(k, 10), Fraction(costs[k])) for k in range(first, 8)})
    budget = Fraction(rng.randint(5, 250), 10)
    total, chosen = selection(ways, budget)
    served, plain = plain_milp(ways, budget)
    if sum(k is not None for k in chosen) != served or abs(float(total) - plain) > 1e-9 * plain:
        wrong.append(f"seed {seed}: {float(total)}, the MILP {served} at {plain}")
    return Counter({"made-up budgets": 1})


if __name__ == "__main__":
    sys.exit(repeated(__doc__, check, 200, ("people",)))

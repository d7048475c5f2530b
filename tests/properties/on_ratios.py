"""Ratios and clocks against enumeration: ``python -m tests.properties.on_ratios --cases 300``.

Problems of :mod:`tests.properties.on_lattices` with what people say about their lives: limits on products of
two features, of which both, one or none can be moved; sums of products and values, negated ones, changes of
a product; columns that move with another one, which is a clock where it only rises, and of which a condition
may speak too; levers that only move together. No answer may be wrong; what stops at the time limit is
counted, and its bound has to hold. Run from the repository root.
"""

from __future__ import annotations

import random
import sys
from typing import Any

from tests.helpers.lattices import random_problem
from tests.properties.on_lattices import BACKENDS, check
from tests.properties.repeated import repeated

SECONDS = 10.0
"""Time for one answer: levers that have to move together exactly can take longer."""


def drawn(rng: random.Random, trees: bool, causes: bool) -> dict[str, Any]:
    """A problem with one to three such statements; with causes, column e moves with the lever a."""
    problem = random_problem(rng, trees, causes, False)
    names = [f["name"] for f in problem["features"] if f["kind"] != "categorical"]
    if causes:
        times = rng.choice([1 / 12, 0.5, -0.3, 2.0])
        problem["scm"]["mechanisms"] = {"e": {"equation": {"product": [times, "a"]}}}
        if rng.random() < 0.5:
            next(f for f in problem["features"] if f["name"] == "a")["monotone"] = "increase"
    problem["conditions"] = [_said(rng, names) for _ in range(rng.choice([1, 1, 2, 3]))]
    return problem


def _said(rng: random.Random, names: list[str]) -> dict[str, Any]:
    """A limit on products, or two levers that move together."""
    if rng.random() < 0.15:
        both = {"a": 1.0, "b": rng.choice([-1.0, -0.5, 1.0])}
        return {"sum": both, "of": "change", "at_least": 0.0, "at_most": 0.0}
    pairs = [[rng.choice([1.0, -1.0, 0.5]), rng.choice(names), rng.choice(names)]]
    while rng.random() < 0.2:
        pairs.append([rng.choice([1.0, -0.5]), rng.choice(names), rng.choice(names)])
    values = {rng.choice(names): round(rng.uniform(-1, 1), 2)} if rng.random() < 0.4 else {}
    one: dict[str, Any] = {"sum": values, "products": pairs, "of": rng.choice(["counterfactual", "change"])}
    one[rng.choice(["at_most", "at_least"])] = round(rng.uniform(-1.5, 1.5), 2)
    if rng.random() < 0.15:
        return {"any": [{"not": one}, {"acted": "b"}]}
    return {"not": one} if rng.random() < 0.2 else one


if __name__ == "__main__":
    sys.exit(repeated(__doc__, lambda seed: check(seed, drawn, SECONDS, BACKENDS), 300))

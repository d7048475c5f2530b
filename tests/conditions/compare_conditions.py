"""Random problems under random conditions: back ends against each other and against brute force.

For every kind of condition (:data:`random_conditions.KINDS`) and so many draws: each back end solves the
problem; what it
returns is judged by :mod:`plain_conditions`, which shares nothing with the package; statuses and costs must
agree; and a
search over a dense grid, zoomed in (networks) or over both sides of every threshold (trees) must find
nothing cheaper than the
stated bound, and nothing at all where the answer is "infeasible". Run from the repository root.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from milp_recourse.judge import judge
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result
from milp_recourse.program.presolve import without_conditions
from tests.helpers.brute_force import axis as values_of
from tests.helpers.brute_force import costs, looks_feasible, number, rows_of, subsets
from tests.helpers.generators import Style, supported_instance
from tests.helpers.plain_conditions import Numbers, holds
from tests.helpers.random_conditions import KINDS, random_conditions, with_conditions
from tests.helpers.tree_samples import candidates, random_causal_instance, random_tree_instance
from tests.properties.agreement import BRUTE, agreed, compare, count_verdict, verdict_of

POINTS = {1: 201, 2: 41, 3: 13}
JUDGED = 400
"""Grid points that are judged exactly, at most, cheapest first."""


def problem(seed: int, trees: bool) -> Instance | None:
    """The problem of a seed, without conditions."""
    if trees:
        made = random_tree_instance(seed) if seed % 3 else random_causal_instance(seed, one_hot=seed % 2 == 0)
        return made if made is not None and made.levers else None
    linear = Style(levers=4, curves=False, gamma=False, plausible=0)
    return supported_instance(seed, linear if seed % 3 == 0 else Style(plausible=0.2))


def numbers_of(instance: Instance, result: Result) -> Numbers:
    """What the second opinion looks at: the numbers as returned."""
    assert result.action is not None and result.counterfactual is not None
    after = {name: number(instance, name, value) for name, value in result.counterfactual.items()}
    return Numbers({f.name: f for f in instance.features}, instance.factual, after, set(result.action))


def cheaper_than(
    instance: Instance, said: Sequence[Any], bound: float
) -> tuple[float, dict[str, float]] | None:
    """The cheapest feasible point of a grid below ``bound``, judged without the package's conditions."""
    plain = without_conditions(instance)
    features = {f.name: f for f in instance.features}
    found: list[tuple[float, dict[str, float]]] = []
    for acted in subsets(plain):
        for cost, action in cheap_points(plain, acted, bound):
            if found and cost >= found[0][0]:
                break
            verdict = judge(plain, action)
            numbers = Numbers(features, instance.factual, verdict.counterfactual, set(action))
            if verdict.feasible and all(holds(one, numbers) for one in said):
                found = [(cost, action)]
                break
    return found[0] if found else None


def cheap_points(
    plain: Instance, acted: tuple[str, ...], bound: float
) -> Iterator[tuple[float, dict[str, float]]]:
    """Points of one set of features that look feasible and cost less than the bound, cheapest first."""
    if isinstance_trees(plain):
        axes = [_tree_axis(plain, name) for name in acted]
        if np.prod([len(a) for a in axes]) > 20000:
            return
        points = np.array(list(product(*axes)))
    else:
        axes = [values_of(plain, name, POINTS.get(len(acted), 7)) for name in acted]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(acted))
    price = costs(plain, acted, points)
    some = np.flatnonzero(price < bound)
    some = some[np.argsort(price[some], kind="stable")]
    if not isinstance_trees(plain):
        some = some[looks_feasible(plain, acted, points[some])] if len(some) else some
    else:
        rows = plain.scm.counterfactual(plain.factual_row, rows_of(plain, acted, points[some]))
        some = (
            some[plain.classifier.scores(plain.model_rows(rows)) > plain.accept.above] if len(some) else some
        )
    for k in some[:JUDGED]:
        yield float(price[k]), dict(zip(acted, points[k].tolist(), strict=True))


def isinstance_trees(instance: Instance) -> bool:
    """Whether the classifier is an ensemble."""
    return hasattr(instance.classifier, "trees")


def _tree_axis(instance: Instance, name: str) -> list[float]:
    if instance.by_name[name].integral:
        return candidates(instance, name)
    low, high = instance.levers[name]
    return (
        sorted({*candidates(instance, name), *np.linspace(low, high, 9).tolist()})
        if name in instance.columns
        else []
    )


def check(
    seed: int, kind: str, trees: bool, backends: Sequence[str], limit: float, certify: bool = False
) -> tuple[Counter[str], list[str]]:
    """One draw: what happened, and what is wrong."""
    counts: Counter[str] = Counter()
    plain = problem(seed, trees)
    if plain is None:
        return Counter({"nothing to act on": 1}), []
    said = random_conditions(seed, plain, kind)
    instance, wrong = with_conditions(plain, said), []

    def complaints(result: Result) -> list[str]:
        kept = result.action is None or all(holds(one, numbers_of(instance, result)) for one in said)
        return [] if kept else ["returned numbers break a condition"]

    sure = agreed(instance, backends, limit, complaints, counts, wrong)
    if certify:
        count_verdict(verdict_of(instance, limit), counts, wrong)
    for name, result in list(sure.items())[:1]:
        bound = np.inf if result.lower_bound is None else result.lower_bound * (1 - 1e-9) - 1e-9
        better = cheaper_than(instance, said, bound)
        counts[BRUTE] += 1
        if better is not None:
            wrong.append(f"{name}: {result.status.value} at {result.lower_bound}, but {better}")
    return counts, [f"{line}; conditions {json.dumps(said)}" for line in wrong]


if __name__ == "__main__":
    raise SystemExit(compare(__doc__, KINDS, check))

"""A judge for trees inside causal models: every region of leaves as a problem without trees.

On a joint leaf region the ensemble is a constant, and the region is a domain per feature. What is left, a
network that accepts everything, is solved by the network engine, which knows nothing of cells.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np

from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.solve import solve_together


def regions(instance: Instance) -> list[Instance]:
    """One problem per accepted joint cell of the columns that can move."""
    forest = instance.classifier
    assert isinstance(forest, TreeEnsemble)
    moving = instance.scm.descendants(set(instance.levers))
    spans, names = [], []
    for k, f in enumerate(instance.features):
        assert len(f.columns) == 1
        if f.name in moving:
            ends = [-np.inf, *forest.cuts[k].tolist(), np.inf]
            spans.append([(float(np.nextafter(a, np.inf)), b) for a, b in pairwise(ends)])
            names.append(k)
    everything = ReluNetwork.from_layers([(np.zeros((1, forest.inputs)), np.ones(1))], "float64")
    found = []
    for choice in product(*spans):
        row = instance.factual_row
        for k, (low, high) in zip(names, choice, strict=True):
            row[k] = high if np.isfinite(high) else max(low, row[k]) if np.isfinite(low) else row[k]
        if not forest.score(row) > instance.accept.above:
            continue
        features = list(instance.features)
        for k, (low, high) in zip(names, choice, strict=True):
            old = features[k].domain or (-1e6, 1e6)
            ends = max(low, old[0]), min(high, old[1])
            if ends[0] > ends[1]:
                break
            features[k] = replace(features[k], domain=ends)
        else:
            found.append(
                replace(
                    instance,
                    features=tuple(features),
                    classifier=everything,
                    accept=Acceptance(0.0),
                    name=f"{choice}",
                )
            )
    return found


def judged(instance: Instance, time_limit: float = 30) -> float | None:
    """The least cost over all regions; None where no region holds an action; nan if one stayed open."""
    problems = regions(instance)
    best: float | None = None
    for result in solve_together(problems, "bab", time_limit):
        if result.status is Status.OPTIMAL:
            best = result.cost if best is None else min(best, result.cost)
        elif result.status is not Status.INFEASIBLE and not _dearer(result, best):
            return float("nan")
    return best


def _dearer(result: Result, best: float | None) -> bool:
    return best is not None and result.lower_bound is not None and result.lower_bound > best

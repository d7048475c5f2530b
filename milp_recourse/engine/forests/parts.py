"""Splits an ensemble whose score is the largest of several sums into one instance per sum."""

from __future__ import annotations

from dataclasses import replace

from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance


def each_part(instance: Instance) -> list[Instance]:
    """One instance per sum if the score is the largest of several sums; otherwise the instance itself."""
    forest = instance.classifier
    if not isinstance(forest, TreeEnsemble) or not forest.parts or forest.combine == "smallest":
        return [instance]
    return [replace(instance, classifier=forest.alone(k)) for k in range(len(forest.parts))]

"""The parts of an ensemble of several sums, as problems of their own."""

from __future__ import annotations

from dataclasses import replace

from milp_recourse.domain.forest import TreeEnsemble
from milp_recourse.instance import Instance


def each_part(instance: Instance) -> list[Instance]:
    """The instance; or one per sum, where it is enough that one of them is above the threshold."""
    forest = instance.classifier
    if not isinstance(forest, TreeEnsemble) or not forest.parts or forest.combine == "smallest":
        return [instance]
    return [replace(instance, classifier=forest.alone(k)) for k in range(len(forest.parts))]

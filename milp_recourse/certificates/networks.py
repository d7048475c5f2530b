"""Proof trees without trees of a classifier: what the engine's second search finds, as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from milp_recourse.backends.bab import People
from milp_recourse.certificates.document import Configuration, order_of, tree_to_list
from milp_recourse.domain.expression import Sigmoid
from milp_recourse.domain.noise import Normal
from milp_recourse.engine.proof import Proofs
from milp_recourse.engine.stack import Stack
from milp_recourse.instance import Instance
from milp_recourse.program.model import Program

_CERTIFIABLE = frozenset({"relu", "square", "indicator", "sigmoid", "logit"})
"""Functions that version 1 of the document has lines for."""


def configurations_of(
    instances: Sequence[Instance], targets: np.ndarray, time_limit: float | None
) -> list[list[dict[str, Any]] | None]:
    """The configurations of every instance with their trees; None where the proof failed."""
    with np.errstate(all="ignore"):  # infinities and what comes of them never close a leaf
        people = People(instances)
        proofs = Proofs(people.stacks, targets, people.missed, time_limit)
        for k, (stack, owners) in enumerate(people.stacks):
            if not all(_covered(instances[person], stack) for person in owners):
                proofs.give_up(k, owners)
        proofs.run()
    trees: list[list[dict[str, Any]] | None] = [None if lost else [] for lost in proofs.failed]
    for k, members in enumerate(people.members):
        for column, (person, tape) in enumerate(members):
            own = trees[person]
            if own is not None:
                configuration = configuration_of(instances[person], tape.program)
                nodes = tree_to_list(proofs.tree(k, column), configuration)
                own.append({"acted": list(configuration.acted), "tree": nodes})
    return trees


def configuration_of(instance: Instance, program: Program) -> Configuration:
    """How a fixed program's order of things translates to the document's."""
    names = [f.name for f in instance.features]
    order = [a.feature for a in program.actions]
    acted = tuple(sorted(order, key=names.index))
    return Configuration(
        acted,
        order_of(order, acted),
        tuple(row.name.removeprefix("domain_") for row in program.rows),
        order_of(acted, _squares(instance)) if instance.plausible else (),
    )


def _squares(instance: Instance) -> list[str]:
    """The levers that have a square in the program's ball, in its order."""

    def square(feature: str) -> bool:
        mechanism = instance.scm.mechanisms[feature]
        rational = not any(isinstance(part, Sigmoid) for part in mechanism.equation.walk())
        return isinstance(mechanism.noise, Normal) and mechanism.link.kind == "identity" and rational

    return [f for f in instance.scm.order if f in instance.levers and square(f)]


def _covered(instance: Instance, stack: Stack) -> bool:
    """Whether version 1 of the document has lines for the units and squares for the noise."""
    if any(function not in _CERTIFIABLE for function, _ in stack.units):
        return False
    return not instance.plausible or set(instance.levers) <= set(_squares(instance))

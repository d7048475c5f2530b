"""Proof trees without trees of a classifier: what the engine's second search finds, as JSON values."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from milp_recourse.backends.bab import People
from milp_recourse.certificates.conditions import Case, case_programs, cases_of
from milp_recourse.certificates.document import Configuration, order_of, tree_to_list
from milp_recourse.domain.conditions import TRUE
from milp_recourse.domain.noise import Bernoulli, Gamma, Normal
from milp_recourse.engine.proof import Proofs
from milp_recourse.engine.stack import Stack
from milp_recourse.instance import Instance
from milp_recourse.program.cohort import programs
from milp_recourse.program.lower import EDGE
from milp_recourse.program.model import Program

_CERTIFIABLE = frozenset({"relu", "square", "indicator", "sigmoid", "logit", "log"})
"""Functions that the document has lines for."""


Nodes = list[list[Any]]


def configurations_of(
    instances: Sequence[Instance], targets: np.ndarray, time_limit: float | None
) -> list[list[dict[str, Any]] | None]:
    """The configurations of every instance with their trees; None where the proof failed.

    Parameters
    ----------
    time_limit
        Seconds per applicant, the making of their programs included: thousands of them under a cost per
        feature acted on.
    """
    start = time.perf_counter()
    deadline = math.inf if time_limit is None else start + time_limit * len(instances)
    cases = {k: list(case_programs(one)) for k, one in enumerate(instances) if one.demand != TRUE}
    with np.errstate(all="ignore"):  # infinities and what comes of them never close a leaf
        try:
            people = People(instances, _until(deadline, _programs(instances, cases)))
        except TimeoutError:
            if len(instances) == 1:
                return [None]
            each = zip(instances, targets, strict=True)
            return [configurations_of([one], np.array([target]), time_limit)[0] for one, target in each]
        spent = (time.perf_counter() - start) / max(1, len(instances))
        proofs = Proofs(
            people.stacks, targets, people.missed, None if time_limit is None else time_limit - spent
        )
        for k, (stack, owners) in enumerate(people.stacks):
            if not _covered(stack):
                proofs.give_up(k, owners)
        proofs.run()
    trees: list[list[dict[str, Any]] | None] = [None if lost else [] for lost in proofs.failed]
    of_cases: dict[int, Nodes] = {}
    for k, members in enumerate(people.members):
        for column, (person, tape) in enumerate(members):
            own = trees[person]
            if own is not None:
                configuration = configuration_of(instances[person], tape.program)
                nodes = tree_to_list(proofs.tree(k, column), configuration)
                if person in cases:
                    of_cases[id(tape.program)] = nodes
                else:
                    own.append({"acted": list(configuration.acted), "tree": nodes})
    for k, found in cases.items():
        if trees[k] is not None:
            trees[k] = _by_cases(instances[k], found, of_cases)
    return trees


T = TypeVar("T")


def _until(deadline: float, made: Iterator[T]) -> Iterator[T]:
    """What is made, as long as there is time; then :class:`TimeoutError`."""
    for one in made:
        if time.perf_counter() > deadline:
            raise TimeoutError
        yield one


Cases = list[tuple[frozenset[str], Case, Program]]


def _programs(
    instances: Sequence[Instance], cases: Mapping[int, Cases]
) -> Iterator[tuple[list[int], Program]]:
    """Fixed programs with the positions of their instances: of those with conditions, case by case."""
    plain = [k for k in range(len(instances)) if k not in cases]
    for people, program in programs([instances[k] for k in plain]):
        yield [plain[k] for k in people], program
    for k, found in cases.items():
        yield from (([k], program) for _, _, program in found)


def _by_cases(instance: Instance, found: Cases, trees: Mapping[int, Nodes]) -> list[dict[str, Any]]:
    """Every configuration's tree: alternatives of conditions first, then the tree of each case."""
    left = iter(found)
    names = [f.name for f in instance.features]

    def nodes(case: Case) -> Nodes:
        if not case.open:
            return trees[id(next(left)[2])]
        return [["o"], *(node for one in case.alternatives() for node in nodes(one))]

    return [
        {"acted": sorted(acted, key=names.index), "tree": nodes(case)} for acted, case in cases_of(instance)
    ]


def configuration_of(instance: Instance, program: Program) -> Configuration:
    """How a fixed program's order of things translates to the document's."""
    names = [f.name for f in instance.features]
    order = [a.feature for a in program.actions]
    acted, squares = tuple(sorted(order, key=names.index)), _squares(instance) if instance.plausible else []
    return Configuration(
        acted,
        order_of(order, acted),
        tuple(row.name.removeprefix("domain_") for row in program.rows if row.name.startswith("domain_")),
        order_of([f for f in acted if f in squares], squares),
        tuple(
            math.inf if row.form.is_constant else row.unit  # multiplied with 0: it says nothing of actions
            for row in program.rows
            if not row.name.startswith("domain_")
        ),
    )


def _squares(instance: Instance) -> list[str]:
    """The levers that have a square in the program's ball, in its order: those of normal noise."""
    noises = {f: m.noise for f, m in instance.scm.mechanisms.items()}
    return [f for f in instance.scm.order if f in instance.levers and isinstance(noises[f], Normal)]


def beyond_a_support(instance: Instance) -> str | None:
    """A lever that can reach the end of a density where nothing bounds its energy from below; or None.

    Near the end of a sigmoid link the Jacobian's logarithm falls without bound, and only the noise's square,
    a term of its own, outweighs it; a gamma density of shape below 1 is infinite at 0.
    """
    for name, (low, high) in instance.levers.items() if instance.plausible else ():
        m = instance.scm.mechanisms[name]
        if m.link.kind == "sigmoid":
            shares = [(end - m.link.offset) / m.link.scale for end in (low, high)]
            if not 2 * EDGE < min(shares) <= max(shares) < 1 - 2 * EDGE:
                return f"plausibility: an action on {name!r} can reach the end of its sigmoid link"
        if isinstance(m.noise, Gamma) and m.noise.shape < 1:
            return f"plausibility: {name!r} has gamma noise of a shape below 1, whose density has no bound"
        if isinstance(m.noise, Bernoulli) and not 0 < m.noise.p < 1:
            return f"plausibility: {name!r} has Bernoulli noise that never varies"
    return None


def _covered(stack: Stack) -> bool:
    """Whether the document has lines for the units."""
    return all(function in _CERTIFIABLE for function, _ in stack.units)

"""The back end protocol: proposes an action and a bound for :func:`milp_recourse.judge.conclude`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from milp_recourse.judge.conclude import Proposal
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import Options

__all__ = ["Backend", "BatchBackend", "Options", "Proposal"]


class Backend(Protocol):
    """One way to solve. Native imports sit inside the methods that need them."""

    name: str
    proves: bool
    """Whether it proves lower bounds; if not, its results are only ever ``found`` or ``not-found``."""

    def unavailable(self) -> str | None:
        """Why the back end cannot run here (and how to get it), or None."""
        ...

    def why_not(self, instance: Instance) -> str | None:
        """Why the back end cannot solve this instance, or None."""
        ...

    # A back end may have ``keeps_lattices(instance) -> bool``: whether it keeps to steps and listed values.
    # For one that does not, :mod:`milp_recourse.solvers.simpler_problems` branches on them.

    def solve(self, instance: Instance, options: Options) -> Proposal:
        """Search. Never raises for a hard instance: a limit is a proposal too."""
        ...


@runtime_checkable
class BatchBackend(Backend, Protocol):
    """A back end that solves many applicants together faster than one by one."""

    batch: int
    """How many applicants it likes to get at once."""

    def solve_many(self, instances: Sequence[Instance], options: Options) -> Iterator[tuple[int, Proposal]]:
        """(position, proposal) of every instance, in any order, each as soon as it is known.

        A proposal must not depend on which other instances are given.
        """
        ...

"""Back ends from outside the package: what they raise or return is checked before anything else sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, NoReturn, get_args

from milp_recourse.errors import RecourseError, Unsupported
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Proof
from milp_recourse.solvers.protocol import Backend, BatchBackend, Options, Proposal


class Plugged:
    """A back end by somebody else. Whatever it raises, or returns that is no proposal, is one error that
    names it.

    Parameters
    ----------
    own
        The back end.
    name
        What it is known by.
    """

    def __init__(self, own: Backend, name: str) -> None:
        self.own, self.name = own, name
        self.proves = bool(getattr(own, "proves", False))

    def unavailable(self) -> str | None:
        """Why it cannot run here, or None."""
        return self._asked(self.own.unavailable)

    def why_not(self, instance: Instance) -> str | None:
        """Why it cannot solve this instance, or None."""
        return self._asked(lambda: self.own.why_not(instance))

    def solve(self, instance: Instance, options: Options) -> Proposal:
        """Its proposal."""
        try:
            return self._checked(self.own.solve(instance, options))
        except Exception as error:
            self._fail(error)

    def _asked(self, question: Any) -> str | None:
        try:
            answer = question()
        except Exception as error:
            self._fail(error)
        return answer if answer is None else str(answer)

    def _checked(self, given: object) -> Proposal:
        """The proposal with plain Python numbers; raise :class:`Unsupported` where it is none."""
        if not isinstance(given, Proposal):
            self._refuse(f"a {type(given).__name__}", "a Proposal")
        action, bound = given.action, given.lower_bound
        if action is not None:
            if not (isinstance(action, Mapping) and all(isinstance(v, Real) for v in action.values())):
                self._refuse(f"the action {action!r}", "None, or a number by each feature's name")
            action = {name: float(value) for name, value in action.items()}
        if bound is not None and not isinstance(bound, Real):
            self._refuse(f"the lower bound {bound!r}", "None or a number")
        if given.proof not in (None, *get_args(Proof)):
            self._refuse(f"the proof {given.proof!r}", f"None or one of {', '.join(get_args(Proof))}")
        for key, kind in (("nodes", Integral), ("message", str), ("seconds", Real)):
            value = getattr(given, key)
            if value is not None and not isinstance(value, kind):
                self._refuse(f"{key}: {value!r}", f"None or a {kind.__name__}")
        return replace(given, action=action, lower_bound=None if bound is None else float(bound))

    def _refuse(self, got: str, allowed: str) -> NoReturn:
        raise Unsupported(f"backend {self.name}: it returned {got:.100}; allowed: {allowed}")

    def _fail(self, error: Exception) -> NoReturn:
        if isinstance(error, RecourseError | MemoryError):
            raise error
        raise Unsupported(f"backend {self.name}: it raised {type(error).__name__}: {error}") from error


class PluggedBatch(Plugged):
    """The same of one that solves many together."""

    own: BatchBackend

    def __init__(self, own: BatchBackend, name: str) -> None:
        super().__init__(own, name)
        self.batch = max(1, int(own.batch))

    def solve_many(self, instances: Sequence[Instance], options: Options) -> Iterator[tuple[int, Proposal]]:
        """Its proposals, one for each instance."""
        left = set(range(len(instances)))
        try:
            for position, given in self.own.solve_many(instances, options):
                if position not in left:
                    self._refuse(f"the position {position!r}", f"each of 0 to {len(instances) - 1} once")
                left.remove(position)
                yield position, self._checked(given)
        except Exception as error:
            self._fail(error)
        if left:
            self._refuse(f"{len(instances) - len(left)} proposals", f"{len(instances)}, one per instance")


def plugged(own: Backend, name: str) -> Plugged:
    """A back end from outside as one whose answers are checked."""
    return PluggedBatch(own, name) if isinstance(own, BatchBackend) else Plugged(own, name)

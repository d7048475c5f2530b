"""Certified optima with which recommendations are compared, kept on disk so that none is solved twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.lab.icarma.checkpoint import write_arrays
from milp_recourse.lab.icarma.sampling import Wishes
from milp_recourse.lab.measured import measured
from milp_recourse.problem.instance import Preferences
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result, gap_tolerance
from milp_recourse.questions.solve import solve_population

KEPT_EVERY = 1024
"""The number of problems solved between two writes."""


@dataclass(frozen=True)
class Exact:
    """The engine's results, with an entry per applicant.

    Attributes
    ----------
    status
        ``optimal``, ``infeasible`` or ``limit``, shape (n,).
    cost, lower_bound
        Costs and bounds, shape (n,), nan where there is none.
    seconds
        Each applicant's share of the time, shape (n,): processor seconds if the engine ran in one process,
        else wall seconds.
    action
        Values of the levers, shape (n, k), nan where not acted on.
    """

    status: NDArray[np.str_]
    cost: NDArray[np.float64]
    lower_bound: NDArray[np.float64]
    seconds: NDArray[np.float64]
    action: NDArray[np.float64]

    @property
    def served(self) -> NDArray[np.bool_]:
        """Who has a proven optimum, shape (n,)."""
        return self.status == "optimal"

    @property
    def impossible(self) -> NDArray[np.bool_]:
        """Who is proven to have no recourse, shape (n,)."""
        return self.status == "infeasible"

    def contradicted_by(self, served: NDArray[np.bool_], cost: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Where a feasible action contradicts the proof: it is cheaper than the optimum, or cannot exist.

        Parameters
        ----------
        served
            Who has a feasible action, shape (n,).
        cost
            The cost of these actions, shape (n,).
        """
        tolerance = np.array([gap_tolerance(c) if np.isfinite(c) else 0.0 for c in self.cost])
        cheaper = cost < self.cost - tolerance
        return served & ((self.served & cheaper) | self.impossible)


_KEPT = ("index", "weights", "sides", "status", "numbers")
"""The arrays of a file of results."""


class _Problem(NamedTuple):
    """An applicant with weights (0 if not actionable) and allowed directions (1 up, -1 down, 0 both)."""

    applicant: int
    weights: NDArray[np.float64]
    sides: NDArray[np.int8]

    @property
    def key(self) -> bytes:
        return self.applicant.to_bytes(8, "big") + self.weights.tobytes() + self.sides.tobytes()


class Certified:
    """Certified optima of a population's applicants under any masks, weights and sides.

    An applicant with the same mask, weights and sides in two settings is one problem. Problems are solved
    mask by mask, because the engine is fastest on a batch that acts on the same features.

    Parameters
    ----------
    people
        The applicants; their own preferences are not used.
    levers
        The features of the columns in masks, weights and sides.
    folder
        Where results are kept; problems with a result there are not solved again.
    time_limit, jobs
        The engine's time limit in seconds per problem, and number of processes.
    """

    def __init__(
        self, people: Population, levers: tuple[str, ...], folder: Path, time_limit: float, jobs: int = 1
    ) -> None:
        self.people, self.levers, self.time_limit, self.jobs = people, levers, time_limit, jobs
        demand = "plausible" if people.template.plausible else "any"
        self.path = folder / f"{demand}_{_digest(people, time_limit)}.npz"
        self._known: dict[bytes, tuple[_Problem, str, NDArray[np.float64]]] = {}
        if self.path.exists():
            with np.load(self.path, allow_pickle=False) as file:
                columns = (file[name] for name in _KEPT)
                for index, weights, sides, status, numbers in zip(*columns, strict=True):
                    problem = _Problem(int(index), weights, sides)
                    self._known[problem.key] = (problem, str(status), numbers)

    def missing(self, wishes: Sequence[Wishes]) -> list[_Problem]:
        """The problems that have no result yet, each once, by mask."""
        found = {problem.key: problem for one in wishes for problem in _problems(one)}
        todo = [problem for key, problem in found.items() if key not in self._known]
        return sorted(todo, key=lambda problem: (tuple(problem.weights > 0), problem.applicant))

    def solve(self, wishes: Sequence[Wishes], advance: Callable[[], None] = lambda: None) -> None:
        """Solve the problems that have no result yet; ``advance`` is called after each."""
        todo = self.missing(wishes)
        if not todo:
            return
        for start in range(0, len(todo), KEPT_EVERY):
            part = todo[start : start + KEPT_EVERY]
            factuals = [self.people.factuals[problem.applicant] for problem in part]
            preferences = tuple(self._preferences(one) for one in part)
            problems = Population(self.people.template, factuals, preferences)
            results = self._told(problems, advance)
            # processor seconds where they are those of this process: others lengthen wall time
            timed = measured(results) if self.jobs == 1 else [(one, one.seconds) for one in results]
            for problem, (result, seconds) in zip(part, timed, strict=True):
                self._known[problem.key] = (problem, result.status.value, self._numbers(result, seconds))
            self._save()

    def _told(self, people: Population, advance: Callable[[], None]) -> Iterator[Result]:
        for result in solve_population(people, "bab", self.time_limit, jobs=self.jobs):
            yield result
            advance()

    def of(self, wishes: Wishes) -> Exact:
        """The results for every applicant with these preferences; :meth:`solve` must have been called."""
        each = [self._known[problem.key] for problem in _problems(wishes)]
        numbers = np.array([numbers for _, _, numbers in each])
        status = np.array([status for _, status, _ in each])
        return Exact(status, numbers[:, 0], numbers[:, 1], numbers[:, 2], numbers[:, 3:])

    def _preferences(self, problem: _Problem) -> Preferences:
        """The problem's preferences; an allowed direction becomes a range that ends at the factual value."""
        factual, template = self.people.factuals[problem.applicant], self.people.template
        weights, ranges = {}, {}
        for name, weight, side in zip(self.levers, problem.weights.tolist(), problem.sides, strict=True):
            if not weight:
                continue
            weights[name] = weight
            if side:
                (low, high), x = template.by_name[name].action_bounds, float(factual[name])
                ranges[name] = (x, max(x, high)) if side > 0 else (min(x, low), x)
        return Preferences(tuple(weights), weights, ranges)

    def _numbers(self, result: Result, seconds: float) -> NDArray[np.float64]:
        action = result.action or {}
        values: list[float | int | str | None] = [result.cost, result.lower_bound, seconds]
        values += [action.get(f) for f in self.levers]
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)

    def _save(self) -> None:
        problems, status, numbers = zip(*self._known.values(), strict=True)
        columns = (*zip(*problems, strict=True), status, numbers)
        write_arrays(self.path, {n: np.array(c) for n, c in zip(_KEPT, columns, strict=True)}, {})


def _problems(wishes: Wishes) -> list[_Problem]:
    weights = np.asarray(wishes.weights, dtype=np.float64)
    sides = np.zeros(weights.shape) if wishes.sides is None else wishes.sides
    sides = np.where(weights > 0, sides, 0).astype(np.int8)
    return [_Problem(k, *pair) for k, pair in enumerate(zip(weights, sides, strict=True))]


def _digest(people: Population, time_limit: float) -> str:
    """A digest of everything on which the optima depend, except for preferences and the engine."""
    template = people.template
    parts = [
        getattr(template.classifier, "content", b""),
        repr((template.features, template.accept, template.cost, time_limit)).encode(),
        repr((template.plausible, template.density_offset)).encode(),
        repr([sorted(one.items()) for one in people.factuals]).encode(),
    ]
    digest = sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16]

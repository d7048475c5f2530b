"""The certified side of the comparison, kept on disk so that nothing is solved twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from milp_recourse.icarma.sampling import Wishes
from milp_recourse.instance import Population
from milp_recourse.result import Result
from milp_recourse.solve import solve_population

KEPT_EVERY = 1024
"""Problems solved between two writes."""


@dataclass(frozen=True)
class Exact:
    """What the engine proved, one entry per applicant.

    Attributes
    ----------
    status
        ``optimal``, ``infeasible`` or ``limit``.
    cost, lower_bound
        nan where there is none.
    seconds
        Each applicant's share.
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
        """Recourse exists, and the cheapest is known."""
        return self.status == "optimal"

    @property
    def impossible(self) -> NDArray[np.bool_]:
        """Proven: no action at all."""
        return self.status == "infeasible"


class Certified:
    """Certified optima of the applicants of a population under any masks and weights.

    An applicant with the same mask and weights in two settings is one problem. Problems are solved
    mask by mask, because the engine is fastest on a batch that acts on the same features.

    Parameters
    ----------
    people
        Its template says whether plausibility is demanded; its preferences are not used.
    folder
        Where answers are kept; those that are there are not solved again.
    time_limit, jobs
        Of the engine: seconds per problem, processes.
    """

    def __init__(
        self, people: Population, levers: tuple[str, ...], folder: Path, time_limit: float, jobs: int = 1
    ) -> None:
        self.people, self.levers, self.time_limit, self.jobs = people, levers, time_limit, jobs
        demand = "plausible" if people.template.plausible else "any"
        self.path = folder / f"{demand}_{_digest(people, time_limit)}.npz"
        self._known: dict[bytes, tuple[int, NDArray[np.float64], str, NDArray[np.float64]]] = {}
        if self.path.exists():
            with np.load(self.path, allow_pickle=False) as file:
                each = zip(file["index"], file["weights"], file["status"], file["numbers"], strict=True)
                for index, weights, status, numbers in each:
                    self._known[_key(int(index), weights)] = (int(index), weights, str(status), numbers)

    def missing(self, wishes: Sequence[Wishes]) -> list[tuple[int, NDArray[np.float64]]]:
        """Problems not solved yet, each once: applicant and weights."""
        found = {
            _key(index, weights): (index, weights)
            for one in wishes
            for index, weights in enumerate(one.weights)
        }
        todo = [problem for key, problem in found.items() if key not in self._known]
        return sorted(todo, key=lambda problem: (tuple(problem[1] > 0), problem[0]))

    def solve(self, wishes: Sequence[Wishes], advance: Callable[[], None] = lambda: None) -> None:
        """Solve what is missing; ``advance`` after every problem."""
        todo = self.missing(wishes)
        if not todo:
            return
        weights = np.array([w for _, w in todo])
        asked = Wishes(weights > 0, weights, weights > 0).preferences(self.levers)
        factuals = [self.people.factuals[index] for index, _ in todo]
        problems = Population(self.people.template, factuals, asked)
        try:
            results = solve_population(problems, "bab", self.time_limit, jobs=self.jobs)
            for k, ((index, row), result) in enumerate(zip(todo, results, strict=True), start=1):
                self._known[_key(index, row)] = (index, row, result.status.value, self._numbers(result))
                if k % KEPT_EVERY == 0:
                    self._save()
                advance()
        finally:
            self._save()

    def of(self, wishes: Wishes) -> Exact:
        """The answers for every applicant with these preferences, once :meth:`solve` has them."""
        each = [self._known[_key(i, weights)] for i, weights in enumerate(wishes.weights)]
        numbers = np.array([one[3] for one in each])
        status = np.array([one[2] for one in each])
        return Exact(status, numbers[:, 0], numbers[:, 1], numbers[:, 2], numbers[:, 3:])

    def _numbers(self, result: Result) -> NDArray[np.float64]:
        action = result.action or {}
        values = [result.cost, result.lower_bound, result.seconds, *(action.get(f) for f in self.levers)]
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)

    def _save(self) -> None:
        index, weights, status, numbers = zip(*self._known.values(), strict=True)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_suffix(".part")
        with unfinished.open("wb") as file:
            np.savez_compressed(
                file,
                index=np.array(index),
                weights=np.array(weights),
                status=np.array(status),
                numbers=np.array(numbers),
            )
        unfinished.replace(self.path)


def _key(index: int, weights: NDArray[np.float64]) -> bytes:
    return index.to_bytes(8, "big") + np.asarray(weights, dtype=np.float64).tobytes()


def _digest(people: Population, time_limit: float) -> str:
    """Of everything that the optima depend on, but preferences and the engine."""
    template = people.template
    parts = [
        getattr(template.classifier, "content", b""),
        repr((template.features, template.accept, template.cost, template.plausible, time_limit)).encode(),
        repr([sorted(one.items()) for one in people.factuals]).encode(),
    ]
    digest = sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16]

"""People of ``loan-printed``, asked in many ways: ``python -m tests.properties.on_printed_loan --json FILE``.

Of people drawn at random the cheapest action is found by three back ends, and by a grid that is refined
around its best points. The grid evaluates the equations that the iCARMA paper prints (appendix C.2.1) and the
network of ``classifier.json`` with NumPy alone; in the same way every returned action is judged. The command
``certify`` writes everybody's certificate, and ``python -m verify`` checks it. 1 if anything differs.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milp_recourse.cli import main as command
from milp_recourse.formats import read_population
from milp_recourse.problem.result import Result
from milp_recourse.reports.progress import progress_bar
from tests.properties.agreement import agreed, same
from tests.properties.repeated import options, told

Array = NDArray[np.float64]

FOLDER = Path(__file__).resolve().parents[2] / "instances" / "loan_printed"
BACKENDS = ("bab", "highs", "pyomo:scip_direct")
LEVERS = ("amount", "duration", "income", "savings")
SDS = (2.0, 3.0, 2.0, 0.5)
"""Of the levers' noise, as printed."""

POINTS, DRAWN, ROUNDS, SHRINK, KEPT = 5, 1000, 40, 0.75, 12
"""Values per lever, and points drawn, around each kept point; how often a grid is refined, by which factor,
and around how many points."""

NEAR = 1e-9
"""What sums of doubles may be off by."""


class Grid:
    """The grid's own reading of the population's files, for one person at a time."""

    def __init__(self) -> None:
        self.problem = json.loads((FOLDER / "population.json").read_text())
        network = json.loads((FOLDER / "classifier.json").read_text())
        self.layers = [(np.array(one["weight"]), np.array(one["bias"])) for one in network["layers"]]
        bounds = {one["name"]: one["bounds"] for one in self.problem["features"] if one["actionable"]}
        self.low, self.high = np.array([bounds[f] for f in LEVERS]).T
        self.scale = np.array([self.problem["cost"]["scale"][f] for f in LEVERS])

    def means(self, gender: float, age: float, education: float, levers: Array) -> Array:
        """The printed equations of the levers without their noise, shape (4, n)."""
        amount, _, income, _ = levers
        return np.array(
            [
                np.full_like(amount, 0.01 * (age - 5) ** 2 + (1 - gender)),
                -1 + 0.1 * age + 2 * (1 - gender) + amount,
                np.full_like(amount, -4 + 0.1 * (age + 35) + 2 * gender + gender * education),
                -4 + 1.5 * np.maximum(income, 0),
            ]
        )

    def after(self, person: Array, acted: tuple[bool, ...], values: Array) -> Array:
        """The levers after acting on some, shape (4, n); ``values`` has a column per action."""
        levers = np.repeat(person[3:, None], values.shape[1], axis=1)
        noise = person[3:] - self.means(*person[:3], person[3:, None])[:, 0]
        for k, on in enumerate(acted):  # causes stand before effects
            levers[k] = values[k] if on else self.means(*person[:3], levers)[k] + noise[k]
        return levers

    def short(self, person: Array, levers: Array) -> Array:
        """By how much rows fail to be accepted or plausible, the larger; at most 0 if they are both."""
        hidden = np.vstack([np.repeat(person[:3, None], levers.shape[1], axis=1), levers])
        for k, (weight, bias) in enumerate(self.layers):
            hidden = weight @ (np.maximum(hidden, 0) if k else hidden) + bias[:, None]
        accept = self.problem["accept"]
        squares = [
            (((rows - self.means(*person[:3], rows)) / np.array(SDS)[:, None]) ** 2).sum(axis=0)
            for rows in (levers, person[3:, None])
        ]
        return np.maximum(accept["at_least"] + accept["margin"] - hidden[0], (squares[0] - squares[1]) / 2)

    def cost(self, person: Array, acted: tuple[bool, ...], values: Array) -> Array:
        """What actions cost, shape (n,)."""
        return (np.array(acted)[:, None] * ((values - person[3:, None]) / self.scale[:, None]) ** 2).sum(
            axis=0
        )

    def best(self, person: Array) -> tuple[float, float]:
        """The cheapest cost found, inf if none, and how near to feasible the nearest point is."""
        best, nearest = np.inf, np.inf
        for acted in sorted(product((False, True), repeat=4), key=sum):
            if any(acted):
                for cost, short in self.refined(person, acted, best):
                    best, nearest = min(best, cost), min(nearest, short)
        return best, nearest

    def refined(self, person: Array, acted: tuple[bool, ...], known: float) -> Iterator[tuple[float, float]]:
        """Per round, the least cost among feasible points and the least shortfall among all."""
        own = np.flatnonzero(acted)
        held = np.clip(person[3:], self.low, self.high)
        # no lever is worth moving by more than the best known action costs
        reach = self.scale[own] * np.sqrt(known) if np.isfinite(known) else np.inf
        low, high = (
            np.maximum(self.low[own], held[own] - reach),
            np.minimum(self.high[own], held[own] + reach),
        )
        points = self.cross([np.append(np.linspace(a, b, 4 * POINTS - 3), held[k])
                             for a, b, k in zip(low, high, own, strict=True)])  # fmt: skip
        step, rng = (high - low) / (4 * POINTS - 4), np.random.default_rng(0)
        for _ in range(ROUNDS):
            values = np.repeat(person[3:, None], points.shape[1], axis=1)
            values[own] = points
            cost = self.cost(person, acted, values)
            short = self.short(person, self.after(person, acted, values))
            good = np.flatnonzero(short <= 0)
            yield cost[good].min(initial=np.inf), short.min()
            cheap = good[np.argsort(cost[good])[: KEPT // 2]]
            close = np.argsort(np.where(short <= 0, np.inf, short))[: KEPT - len(cheap)]
            centres = points[:, np.append(cheap, close)]
            around = self.cross([np.linspace(-1, 1, POINTS)] * len(own))
            around = step[:, None] * np.hstack([around, rng.normal(size=(len(own), DRAWN)) / 2])
            points = np.hstack([one[:, None] + around for one in centres.T])
            points = np.clip(points, low[:, None], high[:, None])
            step = step * SHRINK

    def complaints(self, person: Array, result: Result) -> list[str]:
        """What is wrong with a returned action."""
        if result.action is None:
            return []
        acted = tuple(f in result.action for f in LEVERS)
        values = person[3:, None] + 0.0
        for k, f in enumerate(LEVERS):
            values[k] = result.action.get(f, values[k])
        short = float(self.short(person, self.after(person, acted, values))[0])
        cost = float(self.cost(person, acted, values)[0])
        return [] if short <= NEAR and same(result.cost, cost) else [f"short by {short}, costs {cost}"]

    @staticmethod
    def cross(axes: list[Array]) -> Array:
        """All combinations of values, a column each."""
        return np.array(np.meshgrid(*axes, indexing="ij")).reshape(len(axes), -1)


def verdict(chosen: list[int], rows: pd.DataFrame) -> str:
    """What the checker says of the certificates that ``certify`` writes for some people."""
    problem = json.loads((FOLDER / "population.json").read_text())
    problem["factuals"] = rows.iloc[chosen].to_dict("records")
    with TemporaryDirectory() as folder:
        people, out = Path(folder) / "people.json", Path(folder) / "out"
        people.write_text(json.dumps(problem))
        shutil.copy(FOLDER / "classifier.json", folder)
        command(["certify", str(people), "--out", str(out)])
        check = [sys.executable, "-m", "verify", str(out), str(people)]
        return subprocess.run(check, capture_output=True, text=True, check=False).stdout.splitlines()[0]


def main() -> int:
    """The command."""
    given = options(__doc__, people=100, seed=1, seconds=60.0, share=1e-4)
    start, population, grid = time.perf_counter(), read_population(FOLDER / "population.json"), Grid()
    table = pd.read_csv(FOLDER / "refused.csv")
    chosen = np.random.default_rng(given.seed).choice(len(population), given.people, replace=False).tolist()
    counts, wrong, excess = Counter[str](), list[str](), list[float]()
    with progress_bar("people", len(chosen)) as steps:
        for k in chosen:
            person, faults = table.iloc[k].to_numpy(float), list[str]()

            def judged(result: Result, person: Array = person) -> list[str]:
                return grid.complaints(person, result)

            sure = agreed(population[k], BACKENDS, given.seconds, judged, counts, faults)
            counts["decided by all three"] += len(sure) == len(BACKENDS)
            best, nearest = grid.best(person)
            known = next(iter(sure.values()), None)
            if known is None or (known.cost is None) != np.isinf(best):
                faults.append(f"the grid: {best}, short by {nearest}")
            elif known.cost is not None:
                excess.append(best / known.cost - 1)
                if not -NEAR <= excess[-1] <= given.share:
                    faults.append(f"the grid: {best}, {known.cost} is proven")
            wrong += [f"person {k}: {line}" for line in faults]
            steps.advance()
    said = verdict(chosen, table)
    if not said.startswith(f"VERIFIED {len(chosen)} of {len(chosen)} "):
        wrong.append(said)
    found = {
        "seed": given.seed,
        "people": len(chosen),
        "seconds": round(time.perf_counter() - start),
        "counts": dict(sorted(counts.items())),
        "verify": said,
        "grid above the optimum, in shares of the cost: median, largest": [
            float(np.median(excess)),
            max(excess),
        ],
        "wrong": wrong,
    }
    told(found, given.json)
    return int(bool(wrong) or counts["decided by all three"] < len(chosen))


if __name__ == "__main__":
    sys.exit(main())

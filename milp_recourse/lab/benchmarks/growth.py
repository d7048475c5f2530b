"""``bench growth``: processor seconds per applicant against actions, width, depth and population size."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from milp_recourse.lab.measured import load_engine, measured
from milp_recourse.lab.run_table import grown, read_rows
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.expression import Variable, as_expression
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result, Status
from milp_recourse.problem.scm import Mechanism, Normal, StructuralCausalModel
from milp_recourse.questions.solve import solve, solve_population
from milp_recourse.questions.workers import Workers
from milp_recourse.reports.drawing import panels, save

FEATURES = tuple(f"x{k}" for k in range(8))
NETWORKS = 3
"""Random networks per point; each gets about the same number of applicants."""

IDENTITY = ("applicants", "seed", "time_limit", "backend")
_MARGIN = 1e-6
_DRAWS, _ACTIONS = 200, 256
_WALL = 2.0
"""The solver's limit in wall seconds is this multiple of ``time_limit``, which is in processor seconds, so
that other work on the machine does not end a search early. Processor seconds decide whether it was in time.
"""


@dataclass(frozen=True)
class Shape:
    """The size of a random problem.

    Parameters
    ----------
    actions
        How many of the eight features are actionable.
    width, depth
        How many units a hidden layer has, and how many hidden layers there are.
    chain
        Whether each feature causes the next; if not, they are independent.
    """

    actions: int = 4
    width: int = 16
    depth: int = 2
    chain: bool = False


PANELS: dict[str, tuple[int, ...]] = {
    "actions": (1, 2, 3, 4, 5, 6, 7, 8),
    "actions-chain": (1, 2, 3, 4, 5, 6, 7, 8),
    "width": (8, 16, 32, 64, 128),
    "depth": (1, 2, 3, 4, 5),
    "population": (1, 10, 100, 1000, 2000),
}
"""The quantity that varies, and its values; everything else has :class:`Shape`'s default. In
``actions-chain`` the number of actions varies, and each feature causes the next."""

TITLES = {
    "actions": "actions (2 x 16 units)",
    "width": "units per layer (2 layers, 4 actions)",
    "depth": "hidden layers (16 units, 4 actions)",
    "population": "applicants in a batch (Loan)",
}


def causal_model(chain: bool) -> StructuralCausalModel:
    """Eight features with N(0, 1) noise; in a chain, each adds half of the one before it."""
    mechanisms = {name: Mechanism(noise=Normal(1.0)) for name in FEATURES}
    if chain:
        for before, name in pairwise(FEATURES):
            mechanisms[name] = Mechanism(as_expression(0.5) * Variable(before), noise=Normal(1.0))
    return StructuralCausalModel(FEATURES, mechanisms)


def random_network(rng: np.random.Generator, width: int, depth: int) -> ReluNetwork:
    """A network with one input per feature: weights by He's initialisation, biases N(0, 0.1)."""
    sizes = [len(FEATURES), *[width] * depth, 1]
    layers = [
        (rng.normal(0.0, np.sqrt(2.0 / before), (after, before)), rng.normal(0.0, 0.1, after))
        for before, after in pairwise(sizes)
    ]
    return ReluNetwork.from_layers(layers)


def problems(shape: Shape, count: int, seed: int) -> list[Instance]:
    """Random problems of refused people.

    The threshold is chosen such that, of 200 sampled people, half are accepted either as they are or after
    the best of 256 sampled plausible actions. The cost is ``l2-squared`` with scale 1; actions set values
    from -3 to 3.
    """
    scm = causal_model(shape.chain)
    features = tuple(Feature(name, actionable=True, bounds=(-3.0, 3.0)) for name in FEATURES)
    found: list[Instance] = []
    for k in range(NETWORKS):
        rng = np.random.default_rng([seed, shape.actions, shape.width, shape.depth, k])
        network = random_network(rng, shape.width, shape.depth)
        acted = sorted(rng.choice(len(FEATURES), shape.actions, replace=False).tolist())
        names = tuple(FEATURES[i] for i in acted)
        x = scm.generate(rng.normal(size=(_DRAWS, len(FEATURES))))
        wanted = np.full((_DRAWS, _ACTIONS, len(FEATURES)), np.nan)
        wanted[:, :, acted] = rng.uniform(-3.0, 3.0, (_DRAWS, _ACTIONS, len(acted)))
        wanted[rng.random(wanted.shape) < 0.3] = np.nan
        after = np.stack([scm.counterfactual(row, actions) for row, actions in zip(x, wanted, strict=True)])
        plausible = scm.log_density(after) >= scm.log_density(x)[:, None]
        logits = network.evaluate(x)[:, 0]
        reached = np.where(plausible, network.evaluate(after)[:, :, 0], -np.inf).max(axis=1)
        reached = np.maximum(reached, logits)
        threshold = float(np.median(reached))
        template = Instance(
            features=features,
            scm=scm,
            classifier=network,
            factual={},
            preferences=Preferences(names),
            cost=Cost.pure("l2-squared", dict.fromkeys(FEATURES, 1.0)),
            accept=Acceptance(threshold, _MARGIN),
            plausible=True,
        )
        refused = x[logits < threshold][: -(-(count - len(found)) // (NETWORKS - k))]
        found += [
            replace(template, factual=dict(zip(FEATURES, row.tolist(), strict=True))) for row in refused
        ]
    return found


def run(
    loan: Population,
    folder: Path,
    options: dict[str, Any],
    panels: dict[str, tuple[int, ...]],
    jobs: int,
    advance: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Solve the points that ``folder/growth.csv`` does not hold yet, and write their rows; all rows.

    In the panel ``population`` all applicants are solved together, in the others each alone. A panel ends
    after the first value for which nobody is solved.

    Parameters
    ----------
    options
        ``applicants`` (per point), ``seed``, ``time_limit`` (processor seconds per applicant), ``backend``.
    panels
        As :data:`PANELS`.

    Raises
    ------
    BadInput
        The table holds a run with other options.
    """
    table = folder / "growth.csv"
    with grown(table, None, {name: options[name] for name in IDENTITY}) as (rows, write):
        done = {(row["panel"], int(row["value"])) for row in rows}
        for panel, values in panels.items():
            hopeless = False
            for value in values:
                if (panel, value) not in done and not hopeless:
                    start = time.perf_counter()
                    results, cpu = _point(loan, panel, value, options, jobs)
                    wall = time.perf_counter() - start
                    row = {
                        "panel": panel,
                        "value": value,
                        **options,
                        **summary(results, cpu, options["time_limit"]),
                    }
                    rows.append(row | {"wall_seconds": f"{wall:.4g}"})
                    write(rows[-1])
                    advance(f"{panel} {value}")
                hopeless = any(
                    r["panel"] == panel and int(r["value"]) <= value and float(r["solved_share"]) == 0
                    for r in rows
                )
    return read_rows(table)


def _point(
    loan: Population, panel: str, value: int, options: dict[str, Any], jobs: int
) -> tuple[list[Result], list[float]]:
    """Solve one point; return the results, and the processor seconds of each."""
    if panel == "population":
        limit = _WALL * options["time_limit"]
        pairs = measured(solve_population(loan, options["backend"], limit, last=value))
    else:
        varied: dict[str, Any] = {panel.removesuffix("-chain"): value}
        shape = replace(Shape(chain=panel == "actions-chain"), **varied)
        instances = problems(shape, options["applicants"], options["seed"])
        work = partial(_timed, backend=options["backend"], time_limit=options["time_limit"])
        pairs = list(map(work, instances) if jobs == 1 else Workers(jobs).map(work, instances))
    return [result for result, _ in pairs], [cpu for _, cpu in pairs]


def _timed(instance: Instance, backend: str, time_limit: float) -> tuple[Result, float]:
    load_engine()
    start = time.process_time()
    result = solve(instance, backend, _WALL * time_limit)
    return result, time.process_time() - start


def summary(results: Sequence[Result], cpu: Sequence[float], time_limit: float) -> dict[str, Any]:
    """Counts of statuses, the share solved within the limit, and wall and processor seconds."""
    solved = [r.status is not Status.LIMIT and t <= time_limit for r, t in zip(results, cpu, strict=True)]
    statuses = [result.status for result in results]
    seconds = np.array([result.seconds for result in results])
    return {
        "optimal": statuses.count(Status.OPTIMAL),
        "infeasible": statuses.count(Status.INFEASIBLE),
        "limit": statuses.count(Status.LIMIT),
        "solved_share": f"{np.mean(solved):.4g}",
        "seconds_median": f"{np.median(seconds):.4g}",
        "seconds_max": f"{seconds.max():.4g}",
        "cpu_median": f"{np.median(cpu):.4g}",
        "cpu_max": f"{max(cpu):.4g}",
    }


def plot(rows: Sequence[dict[str, Any]], folder: Path) -> Path:
    """Draw ``folder/growth.png``: median and largest processor seconds, and the share solved, per panel."""
    from matplotlib.ticker import NullLocator

    figure, grid = panels((10, 7), 2, 2, grid="both")
    limit = float(rows[0]["time_limit"])
    for axes, panel in zip(grid.flat, TITLES, strict=True):
        lines = {panel: "C0", f"{panel}-chain": "C1"}
        found = {name: [r for r in rows if r["panel"] == name] for name in lines}
        for height, (name, color) in enumerate(lines.items()):
            mine = sorted(found[name], key=lambda r: int(r["value"]))
            x = [int(r["value"]) for r in mine]
            if not mine:
                continue
            kind = "" if len(found[f"{panel}-chain"]) == 0 else (", independent", ", chain")[height]
            axes.plot(x, [float(r["cpu_median"]) for r in mine], "o-", color=color, label=f"median{kind}")
            slowest = [float(r["cpu_max"]) for r in mine]
            axes.plot(x, slowest, "^--", color=color, alpha=0.5, label=f"slowest{kind}")
            for value, row in zip(x, mine, strict=True):
                axes.annotate(
                    f"{float(row['solved_share']):.0%}",
                    (value, 0.97 - 0.06 * height),
                    xycoords=("data", "axes fraction"),
                    ha="center",
                    va="top",
                    fontsize=7,
                    color=color,
                )
        axes.axhline(limit, color="0.5", lw=1, ls=":")
        axes.set(yscale="log", xlabel=TITLES[panel], ylabel="processor seconds per applicant")
        if panel in ("width", "population"):
            axes.set_xscale("log", base=2 if panel == "width" else 10)
        ticks = sorted({int(r["value"]) for name in lines for r in found[name]})
        axes.set_xticks(ticks, [str(v) for v in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.tick_params(axis="x", labelsize=8)
        low, high = axes.get_ylim()
        axes.set_ylim(low, high * (high / low) ** 0.25)
        if ticks:
            axes.legend(loc="upper left", bbox_to_anchor=(0.01, 0.75), fontsize=8)  # where no line goes
    figure.suptitle(
        f"Percentages: share solved within {limit:g} processor seconds (dotted line)", fontsize=11
    )
    return save(figure, folder / "growth.png")

"""``bench growth``: processor seconds per applicant against actions, units, layers, trees and applicants."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from milp_recourse.lab.arrays import FloatArray
from milp_recourse.lab.measured import load_engine, measured, with_seconds
from milp_recourse.lab.run_table import grown, read_rows
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.expression import Variable, as_expression
from milp_recourse.problem.features import Feature
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.noise import Normal
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result, Status
from milp_recourse.problem.scm import Mechanism, StructuralCausalModel
from milp_recourse.questions.solve import solve, solve_population
from milp_recourse.questions.workers import Workers
from milp_recourse.readers import read_sklearn_trees
from milp_recourse.reports.drawing import panels, save

FEATURES = tuple(f"x{k}" for k in range(8))
NETWORKS = 3
"""Random networks or forests per point; each gets about the same number of applicants."""

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
    trees
        How many trees a random forest has that takes the network's place; 0 for the network.
    """

    actions: int = 4
    width: int = 16
    depth: int = 2
    chain: bool = False
    trees: int = 0


PANELS: dict[str, tuple[int, ...]] = {
    "actions": (1, 2, 3, 4, 5, 6, 7, 8),
    "actions-chain": (1, 2, 3, 4, 5, 6, 7, 8),
    "width": (8, 16, 32, 64, 128),
    "depth": (1, 2, 3, 4, 5),
    "trees": (25, 50, 100, 200, 400),
    "population": (1, 10, 100, 1000, 2000),
}
"""The quantity that varies, and its values; everything else has :class:`Shape`'s default. In
``actions-chain`` the number of actions varies, and each feature causes the next."""

TITLES = {
    "actions": "actions (2 x 16 units)",
    "width": "units per layer (2 layers, 4 actions)",
    "depth": "hidden layers (16 units, 4 actions)",
    "trees": "trees of depth 6 (4 actions)",
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
    """Random problems of people whom a network or a forest refuses.

    The cost is ``l2-squared`` with scale 1; actions set values from -3 to 3.
    """
    found: list[Instance] = []
    for k in range(NETWORKS):
        sizes = [shape.trees] if shape.trees else [shape.width, shape.depth]
        rng = np.random.default_rng([seed, shape.actions, *sizes, k])
        template, refused = (_of_a_forest if shape.trees else _of_a_network)(rng, shape)
        found += [
            replace(template, factual=dict(zip(FEATURES, row.tolist(), strict=True)))
            for row in refused[: -(-(count - len(found)) // (NETWORKS - k))]
        ]
    return found


def _of_a_network(rng: np.random.Generator, shape: Shape) -> tuple[Instance, FloatArray]:
    """A problem without an applicant, and the rows that it refuses.

    The threshold is chosen such that, of 200 sampled people, half are accepted either as they are or after
    the best of 256 sampled plausible actions.
    """
    scm, network = causal_model(shape.chain), random_network(rng, shape.width, shape.depth)
    acted = _drawn_actions(rng, shape)
    x = scm.generate(rng.normal(size=(_DRAWS, len(FEATURES))))
    wanted = np.full((_DRAWS, _ACTIONS, len(FEATURES)), np.nan)
    wanted[:, :, acted] = rng.uniform(-3.0, 3.0, (_DRAWS, _ACTIONS, len(acted)))
    wanted[rng.random(wanted.shape) < 0.3] = np.nan
    after = np.stack([scm.counterfactual(row, actions) for row, actions in zip(x, wanted, strict=True)])
    plausible = scm.log_density(after) >= scm.log_density(x)[:, None]
    logits = network.evaluate(x)[:, 0]
    reached = np.where(plausible, network.evaluate(after)[:, :, 0], -np.inf).max(axis=1)
    threshold = float(np.median(np.maximum(reached, logits)))
    made = _template(scm, network, acted, Acceptance(threshold, _MARGIN))
    return replace(made, plausible=True), x[logits < threshold]


def _of_a_forest(rng: np.random.Generator, shape: Shape) -> tuple[Instance, FloatArray]:
    """As :func:`_of_a_network`, without plausibility: a forest of depth 6, fitted to which of 2000 rows a
    random network ranks in the upper half, accepts by majority."""
    from sklearn.ensemble import RandomForestClassifier

    x, network = rng.normal(size=(2000, len(FEATURES))), random_network(rng, shape.width, shape.depth)
    logits = network.evaluate(x)[:, 0]
    model = RandomForestClassifier(shape.trees, max_depth=6, random_state=int(rng.integers(2**31)))
    forest = read_sklearn_trees(model.fit(x, logits > np.median(logits)))
    made = _template(causal_model(False), forest, _drawn_actions(rng, shape), Acceptance(0.5, strict=True))
    return made, x[forest.scores(x) <= 0.5]


def _drawn_actions(rng: np.random.Generator, shape: Shape) -> list[int]:
    """Which features are actionable."""
    return sorted(rng.choice(len(FEATURES), shape.actions, replace=False).tolist())


def _template(
    scm: StructuralCausalModel, classifier: ReluNetwork | TreeEnsemble, acted: list[int], accept: Acceptance
) -> Instance:
    """The problem without an applicant."""
    return Instance(
        features=tuple(Feature(name, actionable=True, bounds=(-3.0, 3.0)) for name in FEATURES),
        scm=scm,
        classifier=classifier,
        factual={},
        preferences=Preferences(tuple(FEATURES[i] for i in acted)),
        cost=Cost.pure("l2-squared", dict.fromkeys(FEATURES, 1.0)),
        accept=accept,
    )


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """b of the least-squares fit of seconds = a size^b, both in logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


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
    return with_seconds(lambda: solve(instance, backend, _WALL * time_limit))


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

    figure, grid = panels((10, 10), 3, 2, grid="both")
    limit = float(rows[0]["time_limit"])
    grid[-1, -1].set_visible(False)
    for axes, panel in zip(grid.flat, TITLES, strict=False):
        lines = {panel: "C0", f"{panel}-chain": "C1"}
        found = {name: [r for r in rows if r["panel"] == name] for name in lines}
        for height, (name, color) in enumerate(lines.items()):
            mine = sorted(found[name], key=lambda r: int(r["value"]))
            x = [int(r["value"]) for r in mine]
            if not mine:
                continue
            medians = [float(r["cpu_median"]) for r in mine]
            kind = "" if len(found[f"{panel}-chain"]) == 0 else (", independent", ", chain")[height]
            grows = f", exponent {exponent(x, medians):.1f}" if len(x) > 1 else ""
            axes.plot(x, medians, "o-", color=color, label=f"median{kind}{grows}")
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
        if panel in ("width", "trees", "population"):
            axes.set_xscale("log", base=10 if panel == "population" else 2)
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

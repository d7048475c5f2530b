"""HARE and Multi-HARE beside their base recourses and exact candidates: the six tables of their paper.

The person is HARE's: there is a boundary point that they want (:mod:`.hare_people`), and of two recourses
they prefer the one nearer to it, so that a tournament ends at the candidate nearest to the wish. GTP is the
distance of the final recourse to it, GTD is 1 minus the cosine of the angle between the two changes. The
absolute question is answered no, so that all of the budget is used. In a round with k candidates there are
k - 1 comparisons and the absolute question.

As written, a round's winner is the next round's base and is itself dropped. With "winner kept" it takes the
place of one of the next round's candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from milp_recourse.lab.interviews.hare_bases import BASES, base_points
from milp_recourse.lab.interviews.hare_people import FIXED, RADIUS, Crowd, Setting, Study, study, wishes
from milp_recourse.lab.interviews.random_problems import network_problem
from milp_recourse.lab.means import mean, sd
from milp_recourse.lab.run_table import Key, Row, filled, read_rows
from milp_recourse.preferences.hare import FloatArray, boundary_points, directions, far_apart
from milp_recourse.problem.instance import Instance
from milp_recourse.questions.solve import solve
from milp_recourse.reports.drawing import panels, save

KEYS = ("data", "model", "base", "scale", "method", "budget", "rounds")
MEASURES = ("success", "gtp", "gtd", "violations", "redundancy", "proximity", "sparsity")
COLUMNS = (*KEYS, "seed", "people", *MEASURES)

DATA, MODELS = ("adult", "compas", "gmsc"), ("network", "logistic")
BASE, HARE, MULTI, KEPT, MOVED, EXACT = METHODS = (
    *("base", "hare", "multi-hare", "multi-hare, winner kept"),
    *("multi-hare, winner moved", "exact-hare"),
)
BUDGET, ROUNDS = 30, 5


@dataclass(frozen=True)
class Plan:
    """A method in one of its settings."""

    method: str
    budget: int = BUDGET
    rounds: int = 1
    scale: str = "far"


MAIN = (Plan(BASE, 0, 0), Plan(HARE), Plan(MULTI, BUDGET, ROUNDS), Plan(KEPT, BUDGET, ROUNDS))
"""Table 1, of every model and base, and table 4."""

ABLATIONS = (
    *(Plan(HARE, budget) for budget in (10, 70, 100)),
    *(Plan(method, BUDGET, rounds) for rounds in (3, 10) for method in (MULTI, KEPT)),
    Plan(MOVED, BUDGET, ROUNDS),
    *(Plan(p.method, p.budget, p.rounds, scale) for scale in ("near", "intermediate") for p in MAIN),
)
"""Tables 2, 3, 5 and 6, of networks and the first three bases."""


Cell = tuple[str, str, Sequence[Plan]]
"""A model, a base, and what is tried with them."""


def tournament(
    crowd: Crowd, goals: FloatArray, best: FloatArray, plan: Plan, rng: np.random.Generator
) -> FloatArray:
    """Where the tournaments of people end who prefer what is nearer to their goal, (n, 1, d)."""
    for turn in range(plan.rounds):
        ends = crowd.inside(best + directions(crowd, best, plan.budget // plan.rounds, rng))
        moved = boundary_points(crowd, ends, 1e-6)
        shown = ends if plan.method == MOVED else moved
        far = np.where(crowd.score(shown) > 0, np.linalg.norm(shown - goals, axis=-1), np.inf)
        if plan.method == KEPT and turn:
            far[:, 0], moved[:, 0] = np.linalg.norm(best - goals, axis=-1)[:, 0], best[:, 0]
        winner = np.take_along_axis(moved, far.argmin(axis=1)[:, None, None], 1)
        best = np.where(np.isfinite(far.min(axis=1))[:, None, None], winner, best)
    return best


def problem(crowd: Crowd, person: int) -> Instance:
    """A person's problem for the exact search. Coordinates are bounded three units beyond the data's range
    where the setting has no box: the rounds together go no further."""
    names = [f"x{k}" for k in range(len(crowd.free))]
    levers = [name for name, free in zip(names, crowd.free, strict=True) if free > 0]
    layers = [(weights.T, bias) for weights, bias in crowd.layers]
    return network_problem(names, crowd.start[person, 0], layers, (0, 1) if crowd.boxed else (-3, 4), levers)


def exact_tournament(crowd: Crowd, goals: FloatArray, rounds: int, seed: int) -> FloatArray:
    """The same among exact candidates, with the same number of questions; nan for whom there is no recourse.

    Around the winner so far (at first, the certified nearest recourse) are aims in directions that repel each
    other, at the distance that HARE's candidates begin at, half as far in each round. Where the classifier
    refuses an aim, the candidate is the accepted point nearest to it, a certified optimum (l2); else it is
    the boundary point on the way from the person to it.
    """
    found = np.full_like(goals, np.nan)
    for person in range(crowd.size):
        instance, rng = problem(crowd, person), np.random.default_rng([seed, person, 8])
        one, goal = crowd.only([person]), goals[person, 0]
        best, least = nearest(instance, crowd.start[person, 0]), np.inf
        if best is None:
            continue
        for turn in range(rounds):
            count = BUDGET // rounds - bool(turn)  # the winner so far is one of them
            for aim in best + 0.5**turn * far_apart(rng, count, crowd.free):
                good = crowd.score(aim) > 0
                point = boundary_points(one, aim[None, None], 1e-6)[0, 0] if good else nearest(instance, aim)
                if point is not None and (far := float(np.linalg.norm(point - goal))) < least:
                    best, least, found[person, 0] = point, far, point
    return found


def nearest(instance: Instance, point: FloatArray) -> FloatArray | None:
    """The accepted point nearest to a refused one, as certified; None if there is none within the bounds."""
    low, high = np.array([f.bounds for f in instance.features], dtype=np.float64).T
    begin = dict(zip(instance.factual, np.clip(point, low, high).tolist(), strict=True))
    action = solve(replace(instance, factual=begin)).action
    return None if action is None else np.array(list((begin | instance.numbers(action)).values()))


def measures(crowd: Crowd, points: FloatArray, goals: FloatArray, fixed: Sequence[str]) -> Row:
    """The paper's measures, means over people."""
    change, wish = points - crowd.start, goals - crowd.start
    lengths = np.linalg.norm(change, axis=-1) * np.linalg.norm(wish, axis=-1)
    cosine = (change * wish).sum(axis=-1) / np.maximum(lengths, 1e-12)
    found = {"violations": 0, "redundancy": 0, "sparsity": 0}
    for feature in np.unique(crowd.features):
        own = crowd.features == feature
        changed = (np.abs(change[..., own]) > 1e-4).any(axis=-1)
        alone = changed & (crowd.score(np.where(own, crowd.start, points)) > 0)
        found["sparsity"] += changed.mean()
        found["redundancy"] += alone.mean()
        found["violations"] += changed.mean() if feature in fixed else 0
    return {
        "gtp": mean(np.linalg.norm(points - goals, axis=-1)),
        "gtd": mean(1 - cosine),
        "proximity": mean(np.linalg.norm(change, axis=-1)),
        **found,
    }


def rows_of(how: Setting, found: Study, base: str, plans: Sequence[Plan]) -> Iterator[Row]:
    """A row per plan, of the people with a base recourse and a wish."""
    begin = found.crowd.start if base == "any" else base_points(base, found, how.seed)
    served = np.isfinite(begin[:, 0, 0])
    for plan in plans:
        rng = np.random.default_rng([how.seed, 150])
        goals = wishes(found.crowd, RADIUS[plan.scale], how.wish, rng)
        own = np.flatnonzero(served & np.isfinite(goals[:, 0, 0]))
        crowd, goals = found.crowd.only(own), goals[own]
        row: Row = {"data": how.data, "model": how.model, "base": base, "scale": plan.scale}
        row |= {"method": plan.method, "budget": plan.budget, "rounds": plan.rounds, "seed": how.seed}
        row |= {"people": len(own), "success": served.mean()}
        if len(own):
            if plan.method == EXACT:
                points = exact_tournament(crowd, goals, plan.rounds, how.seed)
                sure = np.isfinite(points[:, 0, 0])
                crowd, points, goals = crowd.only(sure), points[sure], goals[sure]
                row |= {"people": int(sure.sum()), "success": sure.mean()}
            else:
                own_rng = np.random.default_rng([how.seed, crc32(repr(plan).encode())])
                points = tournament(crowd, goals, begin[own], plan, own_rng)
            row |= measures(crowd, points, goals, FIXED[how.data])
        yield {k: f"{v:.5f}" if isinstance(v, float) else v for k, v in row.items()}


def run(
    folder: Path, out: Path, people: int, seeds: int, advance: Callable[[], None] = lambda: None
) -> list[Row]:
    """OUT/hare.csv, row by row, of ``people`` refused people: tables 1 and 4, exact candidates, the rest."""
    first: Sequence[Cell] = [(model, base, MAIN) for model in MODELS for base in BASES]
    exact: Sequence[Cell] = [(model, "any", (Plan(EXACT, BUDGET, ROUNDS),)) for model in MODELS]
    more: Sequence[Cell] = [("network", base, ABLATIONS) for base in BASES[:3]]

    def solved(part: tuple[Sequence[Cell], int, str], done: set[Key]) -> Iterator[Row]:
        cells, seed, data = part
        fitted = dict[str, Study]()
        for model, base, plans in cells:
            how, cell = Setting(data, model, seed), (data, model, base)
            keys = [(*cell, p.scale, p.method, str(p.budget), str(p.rounds), str(seed)) for p in plans]
            left = [p for p, key in zip(plans, keys, strict=True) if key not in done]
            if left and model not in fitted:
                fitted[model] = study(how, folder, people)
            yield from rows_of(how, fitted[model], base, left) if left else ()
            advance()

    parts = product((first, exact, more), range(seeds), DATA)
    return filled(out / "hare.csv", COLUMNS, {}, len(KEYS) + 1, dict(enumerate(parts)), solved)


def published() -> dict[tuple[str, ...], Row]:
    """The printed means and deviations, by :data:`KEYS`."""
    rows = read_rows(Path(__file__).with_name("hare_published.csv"))
    return {tuple(row[name] for name in KEYS): row for row in rows}


def summary(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Means and deviations over the seeds that have people, by :data:`KEYS`, beside the printed ones."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for one in rows:
        own = groups.setdefault(tuple(str(one[name]) for name in KEYS), [])
        own += [one] if int(one["people"]) else []
    said, found = published(), []
    for key, own in groups.items():
        printed = said.get((*key[:4], MULTI if key[4] == KEPT else key[4], *key[5:]), {})
        row: Row = {**dict(zip(KEYS, key, strict=True)), "seeds": len(own)}
        row["people"] = sum(int(one["people"]) for one in own)
        for name in MEASURES:
            values = [float(one[name]) for one in own if one[name] not in ("", "nan", None)]
            row |= {name: mean(values), f"{name}_sd": sd(values)}
            row[f"{name}_published"] = float(printed[name]) if printed.get(name) else None
        found.append(row)
    return found


def orders(table: Sequence[Row], multi: str) -> tuple[list[str], list[str]]:
    """Cells of table 1 where base > HARE > Multi-HARE is printed and holds here, and where it does not."""
    by = {
        tuple(row[name] for name in ("data", "model", "base", "scale", "method", "budget")): row
        for row in table
    }
    holds, fails = list[str](), list[str]()
    for data, model, base in dict.fromkeys((r["data"], r["model"], r["base"]) for r in table):
        places = ((BASE, "0"), (HARE, str(BUDGET)), (multi, str(BUDGET)))
        for name in ("gtp", "gtd"):
            trio = [by.get((data, model, base, "far", *place)) for place in places]
            said = [one and one[f"{name}_published"] for one in trio]
            if None in trio or None in said or not said[0] > said[1] > said[2]:  # type: ignore[operator]
                continue
            ours = [one[name] for one in trio]  # type: ignore[index]
            (holds if ours[0] > ours[1] > ours[2] else fails).append(f"{data}, {model}, {base}: {name}")
    return holds, fails


def draw(table: Sequence[Row], *paths: Path) -> Path:
    """GTP and GTD of networks by base and method, with deviations over seeds; stars are printed."""
    figure, axes = panels((13, 7), 2, 3)
    chosen = (Plan(BASE, 0, 0), Plan(HARE), Plan(MULTI, BUDGET, ROUNDS), Plan(KEPT, BUDGET, ROUNDS))
    for line, name in zip(axes, ("gtp", "gtd"), strict=True):
        for axis, data in zip(line, DATA, strict=True):
            own = [r for r in table if (r["data"], r["model"], r["scale"]) == (data, "network", "far")]
            for k, plan in enumerate(chosen):
                cells = {
                    r["base"]: r
                    for r in own
                    if (r["method"], r["budget"], r["rounds"])
                    == (plan.method, str(plan.budget), str(plan.rounds))
                    and np.isfinite(r[name])
                }
                at = np.array([BASES.index(base) for base in cells]) + 0.15 * (k - 1.5)
                values = [r[name] for r in cells.values()]
                spread = [r[f"{name}_sd"] for r in cells.values()]
                axis.errorbar(at, values, spread, fmt="o", ms=4, color=f"C{k}", label=plan.method)
                printed = [r[f"{name}_published"] for r in cells.values()]
                axis.plot(
                    at + 0.06, [np.nan if v is None else v for v in printed], "*", color=f"C{k}", mfc="none"
                )
            for one in (r for r in own if r["method"] == EXACT):
                axis.axhline(one[name], color="k", lw=0.8, ls="--", label="exact candidates")
            axis.set_xticks(range(len(BASES)), BASES, rotation=25, fontsize=7)
            axis.set_ylim(bottom=0)
            axis.set_title(f"{data}: {name.upper()}", fontsize=9)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
    return save(figure, *paths)

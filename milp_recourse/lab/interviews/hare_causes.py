"""Why HARE's gains here are smaller than printed: one choice after the other is made as in the paper.

The tournaments are those of :mod:`.hare_tables`, with the same simulated person, network and base (growing
spheres). What is changed, each on top of those before: labels stay fractions, as the sampling leaves them,
instead of being rounded and judged again; the person can act on whatever the paper lets them act on, in both
directions; and columns of labels are binary, which leaves few coordinates to search in.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from milp_recourse.lab.interviews.hare_tables import BUDGET, DATA, PUBLISHED, fitted, wish
from milp_recourse.lab.run_table import grown
from milp_recourse.preferences.base_recourse import growing_spheres
from milp_recourse.preferences.hare import FloatArray, candidates
from milp_recourse.preferences.hare_dialogue import base_recourse, sampled
from milp_recourse.preferences.lever_space import LeverSpace

Row = dict[str, Any]

CHOICES: dict[str, dict[str, bool]] = {
    "ours": {},
    "labels stay fractions": {},
    "and the paper's levers": {"their_levers": True},
    "and binary labels": {"their_levers": True, "binary": True},
}

COLUMNS = (
    *("data", "choices", "people", "coordinates", "gtp", "gtp_hare", "gtp_multi", "gtd", "gtd_hare"),
    *("gtd_multi", "gain", "gain_published"),
)


def measured(space: LeverSpace, rounded: bool, person: int) -> list[float] | None:
    """GTP of base, HARE and Multi-HARE, then GTD of the three; None without a wish or a base recourse."""
    goal = wish(space, np.random.default_rng([person, 150]))
    rng, begin = np.random.default_rng([person, 7]), None
    if goal is not None and rounded:
        action = base_recourse(space.instance, "growing-spheres", rng)
        begin = space.at(action) if action else None
    elif goal is not None:
        begin = growing_spheres(space, rng)
    if goal is None or begin is None:
        return None
    ends = [begin, *(_winner(space, goal, begin, rounds, rng, rounded) for rounds in (1, 5))]
    x = space.start
    lengths = [np.linalg.norm(end - x) * np.linalg.norm(goal - x) for end in ends]
    cosines = [float((end - x) @ (goal - x) / size) for end, size in zip(ends, lengths, strict=True)]
    return [*(float(np.linalg.norm(end - goal)) for end in ends), *(1 - cosine for cosine in cosines)]


def _winner(
    space: LeverSpace,
    goal: FloatArray,
    best: FloatArray,
    rounds: int,
    rng: np.random.Generator,
    rounded: bool,
) -> FloatArray:
    """Where the tournaments of someone end who prefers what is nearer to their goal."""
    for _ in range(rounds):
        count = BUDGET // rounds
        if rounded:
            found = sampled(space.instance, space.action(best), count, rng)
            points = [space.at(action) for action in found]
        else:
            points = list(candidates(space, best, count, rng))
        best = min(points, key=lambda point: float(np.linalg.norm(point - goal)), default=best)
    return best


def run(folder: Path, out: Path, people: int, advance: Callable[[], None] = lambda: None) -> list[Row]:
    """OUT/hare_causes.csv: a row of means per data set and choices, of ``people`` refused people."""
    with grown(out / "hare_causes.csv", COLUMNS, {}) as (rows, write):
        done = {(row["data"], row["choices"]) for row in rows}
        for data in DATA:
            printed = PUBLISHED[data, "network", "growing-spheres"]
            for choices, how in CHOICES.items():
                if (data, choices) in done:
                    continue
                recourse, refused = fitted(data, "network", 0, folder, **how)
                found = []
                for person in range(min(people, len(refused))):
                    space = LeverSpace(recourse.one_person(refused.iloc[[person]]).instance)
                    values = measured(space, choices == "ours", person)
                    found += [values] if values else []
                    advance()
                if not found:
                    continue
                means = np.mean(found, axis=0)
                row: Row = {"data": data, "choices": choices, "people": len(found), "coordinates": space.size}
                row |= {name: f"{mean:.3f}" for name, mean in zip(COLUMNS[4:10], means, strict=True)}
                row |= {"gain": f"{1 - means[4] / means[3]:.2f}"}
                row |= {"gain_published": f"{1 - printed[4] / printed[3]:.2f}"}
                write(row)
                rows.append(row)
    return rows

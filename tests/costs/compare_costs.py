"""Costs and density offsets: back ends against each other and against brute force, certificates checked.

For every kind (:data:`tests.costs.cost_kinds.KINDS`) and so many draws each back end solves the problem. The
cost it states is computed a second time from the formula; statuses and costs must agree; a grid, zoomed in
(networks), or every combination of cells (trees) must find nothing cheaper than the stated bound, and
nothing at all where the answer is "infeasible". Run from the repository root:
``python -m tests.costs.compare_costs``.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from milp_recourse.certificates.canonical import instance_digest
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.formats import read_instance
from milp_recourse.instance import Instance
from milp_recourse.program import lower
from milp_recourse.result import Result
from tests.costs.cost_kinds import with_kind
from tests.forests import tree_samples
from tests.properties.agreement import agreed, count_verdict, parser, verdict_of
from tests.properties.brute_force import attack, complaints, costs, number
from tests.properties.brute_force import brute_force as grid
from tests.properties.generators import Style, supported_instance

STYLES = (
    Style(levers=3, curves=False, gamma=False, plausible=0.0),
    Style(levers=2, plausible=0.3),
    Style(levers=3, causes=False, plausible=0.0),
    Style(levers=2, curves=False, gamma=False, plausible=0.5),
)
LEVERS = 3
"""Grids over more levers find nothing."""
LARGEST = 20_000
"""Combinations of cells that brute force tries at most."""


def problem(seed: int, kind: str, trees: bool) -> Instance | None:
    """The problem of a seed and a kind; None where it has nothing to act on, or is beyond brute force."""
    if not trees:
        style = STYLES[seed % len(STYLES)]
        if kind == "density offset":
            style = replace(style, plausible=1.0)
        made = with_kind(seed, kind, supported_instance(seed, style))
        try:
            lower(made)
        except Unsupported:
            return None
        return made
    causal = kind == "density offset" or seed % 3 == 0
    drawn = (
        tree_samples.random_causal_instance(seed, one_hot=seed % 2 == 0)
        if causal
        else tree_samples.random_tree_instance(seed)
    )
    if drawn is None or not drawn.levers or (not causal and tree_samples.size_of(drawn) > LARGEST):
        return None
    return with_kind(seed, kind, drawn)


def second_opinion(instance: Instance, result: Result) -> str | None:
    """What is wrong with the stated cost, by the formula of the docs in float64."""
    if not result.action or result.cost is None:
        return None
    acted = tuple(result.action)
    row = np.array([[number(instance, n, result.action[n]) for n in acted]])
    own = float(costs(instance, acted, row)[0])
    close = abs(own - result.cost) <= 1e-8 * (1 + abs(own))
    return None if close else f"states {result.cost!r}, the formula says {own!r}"


def cheaper(instance: Instance, result: Result, seed: int) -> float | None:
    """What brute force finds below the stated bound; None: nothing."""
    if not hasattr(instance.classifier, "trees"):
        near = attack(instance, result, np.random.default_rng(seed), 500)
        found = [one.cost for one in (grid(instance), near) if one is not None]
        best = min(found, default=None)
    elif tree_samples.size_of(instance) <= LARGEST:
        exact = tree_samples.brute_force(instance)
        best = None if exact is None else float(exact)
    else:
        return None
    least = np.inf if result.lower_bound is None else result.lower_bound * (1 - 1e-12) - 1e-12
    return best if best is not None and best < least else None


def unreadable(instance: Instance, file: Path) -> str | None:
    """That no file may have the instance; None where the file is the instance."""
    try:
        same = read_instance(file)
    except BadInput:  # a label as a cause, which no file may have
        return "no file"
    assert instance_digest(same) == instance_digest(instance)
    return None


def check(
    seed: int, kind: str, trees: bool, backends: Sequence[str], limit: float, certify: bool = False
) -> tuple[Counter[str], list[str]]:
    """One draw: what happened, and what is wrong."""
    instance = problem(seed, kind, trees)
    if instance is None:
        return Counter({"left out": 1}), []
    counts, wrong = Counter[str](), list[str]()

    def about(result: Result) -> list[str]:
        said = second_opinion(instance, result)
        return ([] if said is None else [said]) + ([] if trees else complaints(instance, result))

    sure = agreed(instance, backends, limit, about, counts, wrong)
    counts["decided by two"] += len(sure) > 1
    if certify:
        count_verdict(verdict_of(instance, limit, partial(unreadable, instance)), counts, wrong)
    for name, result in list(sure.items())[:1]:
        counts["brute force asked"] += 1
        better = cheaper(instance, result, seed)
        if better is not None:
            wrong.append(f"{name}: {result.status.value} at {result.lower_bound}, but {better}")
    return counts, [f"case {seed} {kind}: {line}" for line in wrong]


def main() -> int:
    """Every kind, so many draws each; 1 where anything is wrong."""
    from tests.costs.cost_kinds import KINDS

    arguments = parser(__doc__)
    arguments.add_argument("--kinds", default="; ".join(KINDS), help="separated by semicolons")
    arguments.add_argument("--out", type=Path, help="a kind's row replaces the one that is there")
    asked = arguments.parse_args()
    faults, table = 0, {}
    for kind in asked.kinds.split("; "):
        begun, counts, wrong = time.process_time(), Counter[str](), list[str]()
        for seed in range(asked.first, asked.first + asked.draws):
            names = asked.backends.split(",")
            try:
                some, lines = check(seed, kind, asked.trees, names, asked.time_limit, asked.certify)
            except Exception as error:  # a long run goes on, and says so
                some, lines = Counter(), [f"case {seed} {kind}: {type(error).__name__}: {error}"]
            counts += some
            wrong += lines
        faults += len(wrong)
        spent = round(time.process_time() - begun, 1)
        table[kind] = {"draws": asked.draws, "wrong": wrong, "processor seconds": spent, **counts}
        print(kind, json.dumps(table[kind]), flush=True)
    if asked.out is not None:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        before = json.loads(asked.out.read_text())["kinds"] if asked.out.exists() else {}
        said = {k: str(v) for k, v in vars(asked).items() if k not in ("out", "kinds")}
        asked.out.write_text(json.dumps({"asked": said, "kinds": before | table}, indent=1) + "\n")
    return int(faults > 0)


if __name__ == "__main__":
    raise SystemExit(main())

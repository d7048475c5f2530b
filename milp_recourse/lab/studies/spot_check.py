"""Checks certified answers, drawn at random: solves them again with certificates, and runs ``verify``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from milp_recourse.formats import write_population
from milp_recourse.lab.studies.kept_answers import Answer
from milp_recourse.lab.studies.paper_cells import Problem
from milp_recourse.problem.instance import Reference
from milp_recourse.problem.population import Population
from milp_recourse.questions.solve import solve_population
from milp_recourse.questions.workers import Workers
from milp_recourse.reports.instances import compare


def spot_check(
    population: Population,
    known: Mapping[Problem, Answer],
    folder: Path,
    count: int,
    seed: int,
    time_limit: float,
    jobs: int,
    advance: Callable[[], None],
) -> dict[str, Any]:
    """Draw at most ``count`` proven answers, solve them again with certificates, and ``verify`` these.

    The folder gets ``plausible/`` and ``any/`` (each if an answer of its kind is drawn) with a population and
    certificates, so that ``python -m verify`` can check them again.

    Returns
    -------
    dict
        How many answers were drawn, of how many in the tables (proven or not), how many are verified, and how
        many agree with the tables' (both are infeasible, or their intervals from lower bound to cost meet up
        to the gap); a sentence for each fault.
    """
    proven = [p for p, answer in known.items() if answer.status in ("optimal", "infeasible")]
    chosen = np.random.default_rng([seed, 200]).permutation(len(proven))[:count]
    summary: dict[str, Any] = {"drawn": len(chosen), "of": len(known), "verified": 0, "agree": 0}
    summary["complaints"] = []
    for plausible, name in ((True, "plausible"), (False, "any")):
        problems = [proven[k] for k in sorted(chosen) if proven[k].plausible is plausible]
        if problems:
            _check(population, problems, known, folder / name, time_limit, jobs, advance, summary)
    return summary


def _check(
    population: Population,
    problems: Sequence[Problem],
    known: Mapping[Problem, Answer],
    folder: Path,
    time_limit: float,
    jobs: int,
    advance: Callable[[], None],
    summary: dict[str, Any],
) -> None:
    from verify.__main__ import examine

    people = Population(
        replace(
            population.template,
            plausible=problems[0].plausible,
            preferences=problems[0].preferences(),
            reference=None,
            name=f"spot check, {folder.name}",
        ),
        [population.factuals[p.applicant] for p in problems],
        tuple(p.preferences() for p in problems),
    )
    certificates = folder / "certificates"
    certificates.mkdir(parents=True, exist_ok=True)
    for old in certificates.glob("*.json.gz"):
        old.unlink()
    write_population(people, folder / "population.json")
    results = solve_population(people, time_limit=time_limit, certificates=True)
    for k, (problem, result) in enumerate(zip(problems, results, strict=True)):
        answer = known[problem]
        if compare(Reference(answer.status, answer.cost, answer.lower_bound), result) == "agrees":
            summary["agree"] += 1
        else:
            summary["complaints"].append(f"{problem}: {answer} in the table, {result.status.value} now")
        if result.evidence is None:
            summary["complaints"].append(f"{problem}: no certificate")
        else:
            (certificates / f"{k:04d}.json.gz").write_bytes(result.evidence)
        advance()
    paths = sorted(certificates.glob("*.json.gz"))
    work = partial(examine, instances=folder / "population.json")
    for outcome in Workers(jobs).map(work, paths, in_order=True):
        if outcome.claim is None:
            summary["complaints"].append(f"{outcome.name}: {outcome.line}")
        else:
            summary["verified"] += 1

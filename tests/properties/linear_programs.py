"""Linear programs in other solvers: ``python -m tests.properties.linear_programs --json FILE``.

Thirty shipped and thirty random problems, twenty random ensembles and twenty problems with steps are written
by ``export --linear``, in one file and in one per configuration, and solved by HiGHS as it comes (one thread,
120 s); its optimum has to be within the stated error of the certified cost. SCIP, and CBC and GLPK where they
are installed, read the files and solve what they can in ``--seconds``. Run from the repository root.
"""

from __future__ import annotations

import math
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

from milp_recourse import read_instance, read_population
from milp_recourse.errors import Unsupported
from milp_recourse.formats import instance_from_dict
from milp_recourse.problem.instance import Instance
from milp_recourse.questions.linear_program import LinearProgram, export_linear, files
from milp_recourse.reports.progress import progress_bar
from tests.helpers.generators import supported_instance
from tests.helpers.lattices import random_problem
from tests.helpers.tree_samples import random_tree_instance, several_sums
from tests.properties.repeated import options, told

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
POPULATIONS = ("loan_smooth", "gmsc")
ANSWER = tuple[str, float | None]
EACH = "HiGHS, a file per configuration"
SOLVERS = ("HiGHS", "SCIP", "CBC", "GLPK", EACH)


TOLERANCE = 1e-8
"""What an optimum of 0 may be missed by: solvers' tolerances are absolute."""


def problems(
    shipped: int = 30, drawn: int = 30, trees: int = 20, stepped: int = 20
) -> Iterator[tuple[str, Instance]]:
    """Names and problems: single files, people of two populations, and random ones of networks; then random
    ensembles, and levers with steps or listed values."""
    smoke = sorted((INSTANCES / "smoke").glob("*.json"))[::4]
    loan = sorted((INSTANCES / "loan").glob("loan_*.json"))[::15]
    singles = [(path.stem, read_instance(path)) for path in smoke + loan]
    people = []
    for name in POPULATIONS:
        population = read_population(INSTANCES / name / "population.json")
        people += [(f"{name} {k}", population[k]) for k in range(0, len(population), len(population) // 4)]
    yield from (people + singles)[:shipped]
    yield from ((f"random {seed}", supported_instance(seed)) for seed in range(drawn))
    yield from islice(ensembles(), trees)
    yield from ((f"stepped {seed}", on_steps(seed)) for seed in range(stepped))


def ensembles() -> Iterator[tuple[str, Instance]]:
    """Random ensembles of one sum and of several, in turn."""
    for seed in count():
        yield f"trees {seed}", random_tree_instance(seed)
        yield f"sums {seed}", several_sums(seed, "largest" if seed % 2 else "smallest")


def on_steps(seed: int) -> Instance:
    """Levers with steps or listed values; every other problem has trees."""
    return instance_from_dict(
        random_problem(random.Random(seed), seed % 2 == 0, seed % 3 == 0, seed % 4 == 0)
    )


def by_highs(path: Path, seconds: float) -> ANSWER:
    """The answer of HiGHS with its defaults and one thread."""
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("time_limit", seconds)
    highs.readModel(str(path))
    highs.run()
    status = highs.modelStatusToString(highs.getModelStatus())
    known = highs.getInfo().objective_function_value if status == "Optimal" else None
    return {"Optimal": "optimal", "Infeasible": "infeasible"}.get(status, "limit"), known


def by_scip(path: Path, seconds: float) -> ANSWER:
    """The answer of SCIP with its defaults."""
    from pyscipopt import Model

    model = Model()
    model.hideOutput()
    model.setParam("limits/time", seconds)
    model.readProblem(str(path))
    model.optimize()
    status = model.getStatus()
    return status, model.getObjVal() if status == "optimal" else None


def by_cbc(path: Path, seconds: float) -> ANSWER:
    """The answer of CBC's command."""
    said = _said("cbc", str(path), "sec", str(seconds), "solve")
    found = re.search(r"Objective value: +(\S+)", said)
    if "Optimal solution found" in said and found is not None:  # its heuristics may say "infeasible" before
        return "optimal", float(found.group(1))
    if re.search(r"infeasible", said, re.IGNORECASE):
        return "infeasible", None
    return ("limit" if "Continuous objective value" in said else "not read"), None


def by_glpk(path: Path, seconds: float) -> ANSWER:
    """The answer of GLPK's command."""
    with tempfile.NamedTemporaryFile() as out:
        said = _said("glpsol", "--lp", str(path), "--tmlim", str(math.ceil(seconds)), "-o", out.name)
        written = Path(out.name).read_text()
    if re.search("NO (PRIMAL|INTEGER) FEASIBLE SOLUTION", said):
        return "infeasible", None
    found = re.search(r"Objective: +\S+ = (\S+)", written)
    if "OPTIMAL" in written.split("Objective")[0] and found is not None:
        return "optimal", float(found.group(1))
    return ("limit" if "rows," in said else "not read"), None


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def by_each(made: LinearProgram, path: Path, seconds: float) -> ANSWER:
    """The answer of HiGHS to all files of a program together."""
    found = [by_highs(one, seconds) for one in files(made, path)]
    known = [value for _, value in found if value is not None]
    if any(status == "limit" for status, _ in found):
        return "limit", None
    return ("optimal", min(known)) if known else ("infeasible", None)


def unit_of(path: Path) -> float:
    """What the file says its objective is divided by."""
    said = re.search(r"minimise (?:the square of )?the cost(?: / (\S+))?", path.read_text())
    assert said is not None
    return float(said.group(1) or 1.0)


def agrees(made: LinearProgram, answer: ANSWER, unit: float) -> bool | None:
    """Whether an answer is within the error that is stated; None where there is no answer to compare."""
    status, value = answer
    if status not in ("optimal", "infeasible") or made.error is None:
        return None
    if made.best is None or value is None:
        return made.best is None and status == "infeasible"
    return abs(value * unit - made.best) <= made.error + (made.best - made.least) + TOLERANCE


def examine(name: str, instance: Instance, seconds: float) -> dict[str, Any]:
    """One problem: what was stated, and every solver's answer."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.lp"
        try:
            made = export_linear(instance, path, time_limit=60.0)
        except Unsupported as refused:
            return {"problem": name, "refused": str(refused)}
        found: dict[str, Any] = {"problem": name, "cost": made.best, "error": made.error}
        solvers = {"HiGHS": by_highs, "SCIP": by_scip, "CBC": by_cbc, "GLPK": by_glpk}
        for solver, command in {"CBC": "cbc", "GLPK": "glpsol"}.items():
            if shutil.which(command) is None:
                del solvers[solver]
        for solver, solve in solvers.items():
            answer = solve(path, 120.0 if solver == "HiGHS" else seconds)
            found[solver] = {"status": answer[0], "optimum": answer[1]}
            found[solver]["agrees"] = agrees(made, answer, unit_of(path))
        each = export_linear(instance, path, time_limit=60.0, each=True)
        answer = by_each(each, path, seconds)
        found[EACH] = {"status": answer[0], "optimum": answer[1], "files": len(each.mips)}
        found[EACH]["agrees"] = agrees(each, answer, unit_of(files(each, path)[0]))
    return found


def main() -> int:
    """The command; 1 if an answer of HiGHS contradicts what was stated."""
    given = options(__doc__, shipped=30, random=30, trees=20, stepped=20, seconds=10.0)
    start, rows = time.perf_counter(), []
    chosen = list(problems(given.shipped, given.random, given.trees, given.stepped))
    with progress_bar("programs", len(chosen)) as steps:
        for name, instance in chosen:
            rows.append(examine(name, instance, given.seconds))
            steps.advance()
    counts = Counter[str]()
    for row in rows:
        counts["refused"] += "refused" in row
        counts["error proven"] += row.get("error") is not None
        for solver in SOLVERS:
            if solver in row:
                counts[f"{solver}: {row[solver]['status']}"] += 1
                counts[f"{solver}: within the error"] += row[solver]["agrees"] is True
    differing = [
        {"problem": row["problem"], "cost": row["cost"], "solver": solver} | row[solver]
        for row in rows
        for solver in SOLVERS
        if solver in row and row[solver]["agrees"] is False
    ]
    wrong = [one for one in differing if one["solver"].startswith("HiGHS")]
    costly = [row for row in rows if row.get("error") and row["cost"] and row["cost"] > TOLERANCE]
    shares = sorted(row["error"] / row["cost"] for row in costly)
    found = {
        "seconds": round(time.perf_counter() - start),
        "counts": dict(sorted(counts.items())),
        "error in shares of the cost, median and largest": [shares[len(shares) // 2], shares[-1]],
        "refused": [row for row in rows if "refused" in row],
        "others differ": [one for one in differing if one not in wrong],
        "wrong": wrong,
    }
    told(found, given.json)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

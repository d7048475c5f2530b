"""Random robust problems against enumeration: ``python -m tests.questions.robust.run --cases N --fitted M``.

Every problem is answered, all of its actions and their outcomes are listed
(tests/questions/robust/enumeration.py), and the certificate of every answer that is called rigorous is
checked by ``verify/``. Fitted pipelines are asked through the door and compared with their own ``predict``
(tests/questions/robust/fitted.py). Exits with 1 if anything is wrong. Run from the repository root.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from gzip import decompress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from milp_recourse.errors import Unsupported
from milp_recourse.formats import instance_from_dict
from milp_recourse.problem.result import Status
from milp_recourse.questions.robust import Robust, robust
from tests.questions.robust import fitted
from tests.questions.robust.enumeration import Plain, settled
from tests.questions.robust.problems import draw
from verify.files.check import examine


@dataclass
class Tally:
    """What happened; ``wrong`` has the lines to read, ``open`` why answers were left open."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    open: Counter[str] = field(default_factory=Counter)


def wrong_in(found: Robust, plain: Plain, best: Fraction | None) -> str | None:
    """What enumeration contradicts of an answer; None if nothing."""
    result = found.result
    if result.status is Status.INFEASIBLE:
        return None if best is None else f"infeasible, but {float(best)} is certain"
    power = 2 if plain.instance["cost"]["kind"] == "l2" else 1
    tolerance = 1e-9 + 1e-5 * float(best or 0)
    if result.action is not None:
        action = {name: int(plain.number(name, value)) for name, value in result.action.items()}
        if any(v not in plain.levers.get(name, ()) for name, v in action.items()):
            return f"an action that is not allowed: {action}"
        if not plain.certain(action):
            return f"an action that is not certain: {action}"
        if abs(float(plain.cost(action)) - float(result.cost or 0) ** power) > tolerance:
            return f"cost {result.cost}, not {float(plain.cost(action))}"
        if best is None or (result.status is Status.OPTIMAL and plain.cost(action) > best + tolerance):
            return f"optimal at {result.cost}, but {best} is certain"
    if best is not None and (result.lower_bound or 0.0) ** power > float(best) + tolerance:
        return f"a bound of {result.lower_bound}, but {float(best)} is certain"
    return None


def verified(found: Robust, instance: dict[str, Any], folder: Path) -> str:
    """The checker's line about an answer's certificate."""
    assert found.result.evidence is not None
    (folder / "certificate.json").write_bytes(decompress(found.result.evidence))
    (folder / "instance.json").write_text(json.dumps(instance))
    return examine(folder / "certificate.json", folder / "instance.json", 600).line


def case(seed: int, tally: Tally, time_limit: float | None, backend: str | None = None) -> None:
    """Answer, enumerate and check the problem of a seed."""
    drawn = draw(seed)
    plain = settled(drawn, seed)
    if plain is None:
        tally.counts["no problem"] += 1
        return
    instance = instance_from_dict(drawn.instance)
    kind = "threshold" if drawn.threshold is not None else ""
    kind += " missed" * any(drawn.missed.values()) + " noise" * any(map(any, drawn.noise.values()))
    kind = f"{drawn.kind}, {kind.strip() or 'nothing'}{', causes' if plain.mechanisms else ''}"
    try:
        found = robust(instance, drawn.missed, drawn.threshold, drawn.noise, backend, time_limit)
    except Unsupported as refusal:
        tally.counts["unsupported"] += 1
        tally.open[str(refusal)] += 1
        return
    status, proof = found.result.status.value, found.result.proof
    for key in ("problems", f"{kind}: {status}, {proof}", f"all: {status}, {proof}"):
        tally.counts[key] += 1
    contradiction = wrong_in(found, plain, plain.cheapest())
    if contradiction is not None:
        tally.wrong.append(f"case {seed} ({kind}): {contradiction}")
    if proof == "rigorous":
        with TemporaryDirectory() as folder:
            line = verified(found, drawn.instance, Path(folder))
        tally.counts["certificates verified"] += line.startswith("VERIFIED")
        if not line.startswith("VERIFIED"):
            tally.wrong.append(f"case {seed} ({kind}): {line}")
    else:
        tally.open[f"{status}: {found.result.message}"] += 1


def fitted_case(seed: int, tally: Tally) -> None:
    """Ask a fitted pipeline through the door."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a network that was stopped early is a model like any other
        found, contradiction = fitted.check(seed)
    tally.counts["pipelines"] += 1
    tally.counts[f"pipelines: {found['status']}, {found['proof']}"] += 1
    if contradiction is not None:
        tally.wrong.append(f"pipeline {seed}: {contradiction}")


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--fitted", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--backend")
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    tally, begun, seed = Tally(), time.perf_counter(), given.seed
    while tally.counts["problems"] < given.cases:
        case(seed, tally, given.time_limit, given.backend)
        seed += 1
    for k in range(given.fitted):
        fitted_case(k, tally)
    written = {
        "seeds": [given.seed, seed - 1],
        "seconds": round(time.perf_counter() - begun),
        "counts": dict(sorted(tally.counts.items())),
        "open": dict(sorted(tally.open.items())),
        "wrong": tally.wrong,
    }
    text = json.dumps(written, indent=1)
    print(text)
    if given.json is not None:
        given.json.write_text(text + "\n")
    return bool(tally.wrong)


if __name__ == "__main__":
    sys.exit(main())

"""Mutants of robust certificates: none may be accepted with a false claim.

``python -m tests.questions.robust.forge --problems 300`` forges 20 certificates of each of so many problems,
and exits with 1 if the checker believes one whose claim enumeration contradicts.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from gzip import decompress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from milp_recourse.errors import Unsupported
from milp_recourse.formats import instance_from_dict
from milp_recourse.questions.robust import robust
from tests.certificates.fuzz import mutate
from tests.questions.robust.enumeration import Plain, settled
from tests.questions.robust.problems import Drawn, draw
from verify.files.check import examine

LARGEST = 6
"""Mutants that withstand more than this, or noise that is no multiple of a quarter, are not judged."""


def forged(certificate: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A certificate with one to three small changes."""
    mutant = copy.deepcopy(certificate)
    for _ in range(rng.choice((1, 1, 2, 3))):
        own = rng.random() < 0.4 and isinstance(mutant.get("withstands"), dict)
        holder = {**mutant["withstands"], "configurations": []} if own else mutant
        try:
            mutate(holder, rng)
        except (AttributeError, TypeError, KeyError, IndexError, OverflowError, ValueError):
            break  # an earlier change left nothing there to change
        if own:
            holder.pop("configurations", None)
            mutant["withstands"] = holder
    return mutant


def restated(drawn: Drawn, says: dict[str, Any] | None) -> Drawn | None:
    """The problem with what a certificate says that is withstood; None where enumeration would not do."""
    says = says or {"missed": {}, "threshold": None, "noise": {}}
    if any(by > LARGEST for by in says["missed"].values()):
        return None
    if any(4 * end != int(4 * end) or abs(end) > LARGEST for ends in says["noise"].values() for end in ends):
        return None
    noise = {name: (low, high) for name, (low, high) in says["noise"].items()}
    return replace(drawn, missed=says["missed"], threshold=says["threshold"], noise=noise)


def lie(mutant: dict[str, Any], plain: Plain) -> str | None:
    """What enumeration contradicts of an accepted certificate; None if nothing."""
    best, power = plain.cheapest(), 2 if plain.instance["cost"]["kind"] == "l2" else 1
    if mutant["claim"] == "infeasible":
        return None if best is None else f"infeasible, but {float(best)} is certain"
    action = {name: int(plain.number(name, value)) for name, value in mutant["action"].items()}
    if any(v not in plain.levers.get(name, ()) for name, v in action.items()) or not plain.certain(action):
        return f"{action} is not certain"
    if best is None or Fraction(mutant["lower_bound"]) ** power > best:
        return f"a bound of {mutant['lower_bound']}, but {best} is certain"
    if Fraction(mutant["cost"]) ** power < plain.cost(action):
        return f"a cost of {mutant['cost']}, not {float(plain.cost(action))}"
    return None


def forge(seed: int, count: int, counts: Counter[str], lies: list[str]) -> None:
    """Forge certificates of the problem of a seed."""
    drawn, rng = draw(seed), random.Random(seed)
    if settled(drawn, seed) is None:
        return
    try:
        instance = instance_from_dict(drawn.instance)
        evidence = robust(instance, drawn.missed, drawn.threshold, drawn.noise, None, 10).result.evidence
    except Unsupported:
        return
    if evidence is None:
        return
    counts["problems"] += 1
    with TemporaryDirectory() as folder:
        problem, file = Path(folder) / "instance.json", Path(folder) / "certificate.json"
        problem.write_text(json.dumps(drawn.instance))
        for _ in range(count):
            mutant = forged(json.loads(decompress(evidence)), rng)
            file.write_text(json.dumps(mutant))
            if examine(file, problem, 60).claim is None:
                counts["rejected"] += 1
                continue
            stated = restated(drawn, mutant.get("withstands"))
            if stated is None:
                counts["accepted, not judged"] += 1
                continue
            found = lie(mutant, Plain(stated))
            counts["accepted, true" if found is None else "accepted, false"] += 1
            if found is not None:
                lies.append(f"seed {seed}: {found}: {json.dumps(mutant)}")


def run(seeds: range, count: int) -> tuple[Counter[str], list[str]]:
    """Forge certificates of the problems of some seeds."""
    counts, lies = Counter[str](), list[str]()
    for seed in seeds:
        forge(seed, count, counts, lies)
    return counts, lies


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=300)
    parser.add_argument("--mutants", type=int, default=20)
    given = parser.parse_args()
    counts, lies, seed = Counter[str](), list[str](), 0
    while counts["problems"] < given.problems:
        forge(seed, given.mutants, counts, lies)
        seed += 1
    print(json.dumps({"counts": dict(sorted(counts.items())), "lies": lies}, indent=1))
    return bool(lies)


if __name__ == "__main__":
    sys.exit(main())

"""Proofs of other problems: ``python -m tests.certificates.other_problems KEPT --seed 1 --minutes 5``.

KEPT holds instances and certificates that ``tests.certificates.random_cases --keep KEPT`` wrote. Numbers and
words of an instance are changed, its digest put into the certificate, the cost of the action adapted, and the
old proof presented. Where the product finds something cheaper than the bound (or anything, where there was
nothing) the claim is false, and the checker must reject it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from fractions import Fraction
from math import inf, nextafter
from pathlib import Path
from typing import Any

from milp_recourse.certificates import instance_digest
from milp_recourse.certificates.produce import encode
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.formats.schema import read_any
from milp_recourse.judge import judge
from milp_recourse.problem.instance import Instance
from milp_recourse.questions.solve import solve
from tests.certificates.fuzz import places
from verify.__main__ import examine

WORDS = ["increase", "decrease", "l1", "l2-squared", "linf", "l2", "l0", "one-hot", "code", None, "change",
         "counterfactual", "relative-change"]  # fmt: skip


def changed(content: Any, rng: random.Random) -> None:
    """Change one number or word, every part of the instance equally often."""
    part = rng.choice([key for key in sorted(content) if key not in ("reference", "name", "format")])
    *path, key = (part, *rng.choice([(), *places(content[part])]))
    holder = content
    for step in path:
        holder = holder[step]
    old = holder[key]
    if isinstance(old, bool):
        holder[key] = not old
    elif isinstance(old, int | float):
        near = old * (1 + rng.choice((-1, 1)) * 10 ** rng.uniform(-4, -0.5))
        new = rng.choice([near, near, -old, old + rng.choice((-1, 1)), old * rng.choice((0.1, 0.5, 2, 10))])
        holder[key] = round(new) if isinstance(old, int) else new
    elif isinstance(old, str) and part in ("cost", "features", "conditions"):
        holder[key] = rng.choice(WORDS)
    elif isinstance(holder, dict) and path and rng.random() < 0.3:
        del holder[key]


def lied(certificate: Any, instance: Instance) -> bool:
    """Make a certificate speak of an instance; whether its claim is false then, of a feasible action."""
    result = solve(instance, None, 4.0)
    certificate["instance_sha256"] = instance_digest(instance)
    if not result.cost:  # nothing is feasible, or doing nothing, which needs no tree
        return False
    if certificate["claim"] == "infeasible":
        return True
    if result.cost >= certificate["lower_bound"] * (1 - 1e-9):
        return False
    try:
        action = {f: instance.by_name[f].read(v, f) for f, v in certificate["action"].items()}
    except (BadInput, KeyError):
        return False
    verdict = judge(instance, action)
    if verdict.faults or verdict.cost < Fraction(certificate["lower_bound"]):
        return False
    cost = float(verdict.cost)
    certificate["cost"] = cost if Fraction(cost) >= verdict.cost else nextafter(cost, inf)
    certificate["claim"] = "bounds"
    return True


def presented(file: Path, rng: random.Random, folder: Path) -> str:
    """What becomes of a certificate beside a changed instance."""
    content = json.loads((file.parent / "instance.json").read_text(encoding="utf-8"))
    for _ in range(rng.choice((1, 1, 2, 4))):
        changed(content, rng)
    path, other = folder / "instance.json", folder / "certificate.json.gz"
    path.write_text(json.dumps(content), encoding="utf-8")
    certificate = json.loads(gzip.decompress(file.read_bytes()))
    try:
        instance = read_any(path)
        if not isinstance(instance, Instance) or not lied(certificate, instance):
            return "no lie"
    except (BadInput, Unsupported):
        return "no problem"
    other.write_bytes(encode(certificate))
    line = examine(other, path, 60.0).line
    return f"VERIFIED {file.parent.name}" if line.startswith("VERIFIED") else "false, rejected"


def main() -> int:
    """Run, print; 1 if anything false was verified."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kept", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=5.0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rng, counts, end = random.Random(given.seed), Counter[str](), time.monotonic() + 60 * given.minutes
    kinds: dict[str, list[Path]] = {}
    for file in sorted(given.kept.glob("*/certificate.json.gz")):
        kinds.setdefault(file.parent.name.rpartition("_")[0], []).append(file)
    with tempfile.TemporaryDirectory() as scratch:
        while time.monotonic() < end:
            for files in kinds.values():
                counts[presented(rng.choice(files), rng, Path(scratch))] += 1
            print(dict(counts), file=sys.stderr, end="\r", flush=True)
    print(json.dumps(dict(sorted(counts.items())), indent=1))
    return 1 if any(what.startswith("VERIFIED") for what in counts) else 0


if __name__ == "__main__":
    sys.exit(main())

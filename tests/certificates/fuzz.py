"""Mutants of accepted certificates: none may be accepted with a false claim.

``python -m tests.certificates.fuzz --mutants 10000`` runs as many, with progress, from a fixed seed.
What is accepted is judged by the package, which shares nothing with the checker: the action must be
feasible and cost what is said, no known action may be cheaper than the bound, and ``infeasible`` must be
the known answer.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
from collections import Counter
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from milp_recourse.errors import BadInput
from milp_recourse.formats.schema import read_any
from milp_recourse.judge import judge
from milp_recourse.problem.instance import Instance
from milp_recourse.questions.solve import solve
from tests.certificates.attacks import ACCEPTED, load
from verify.fast.box import arithmetics
from verify.files.certificate import Certificate
from verify.files.check import within
from verify.files.instance import Source
from verify.files.reading import parse_json
from verify.kernel.certificate import check
from verify.kernel.checks import Rejected

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
NUMBERS = (0.0, 1.0, -1.0, 0.5, 1e-300, 1e300, 5e-324, 2.0**53)


@cache
def source(name: str) -> Source:
    """The instance's file as the checker reads it."""
    return Source(ROOT / ACCEPTED[name])


@cache
def known(name: str, index: int | None) -> tuple[Instance, str, float | None]:
    """The instance as the package reads it, its status and the cost of the best known action."""
    problem = read_any(ROOT / ACCEPTED[name])
    instance = problem if isinstance(problem, Instance) else problem[index or 0]
    answer = instance.reference or solve(instance)
    return instance, str(getattr(answer.status, "value", answer.status)), answer.cost


def verify(certificate: Certificate, file: Source) -> None:
    """Raise :class:`Rejected` where the checker would."""
    applicant = file.applicant(certificate.index)
    if applicant.digest != certificate.digest:
        raise Rejected("instance_sha256")
    with within(60):
        check(certificate, applicant.numbers(certificate.action), applicant.problem, arithmetics)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of everything inside a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [p for key, item in items for p in ((*path, key), *places(item, (*path, key)))]


def number(value: float, rng: random.Random) -> Any:
    """Another number."""
    return rng.choice(
        [
            lambda: value * (1 + rng.choice((-1, 1)) * 10 ** rng.uniform(-16, 0)),
            lambda: value * rng.choice((-1, 0, 0.5, 2, 10, 1e-3, 1e3, 1e9)),
            lambda: value + rng.choice((-1, 1)) * 10 ** rng.uniform(-12, 1),
            lambda: rng.choice(NUMBERS),
            lambda: round(value) + rng.choice((-1, 0, 1)),
        ]
    )()


def mutate(certificate: Any, rng: random.Random) -> None:
    """One small change somewhere, often where it could do harm."""
    kind = rng.random()
    nodes = rng.choice(certificate["configurations"] or [{"tree": []}]).get("tree", [])
    if kind < 0.15 and isinstance(certificate.get("lower_bound"), float | int):
        certificate["lower_bound"] = number(certificate["lower_bound"], rng)
        if rng.random() < 0.5:
            certificate["claim"] = "bounds"
    elif kind < 0.35 and isinstance(nodes, list) and len(nodes) > 1:
        i, j = rng.randrange(len(nodes)), rng.randrange(len(nodes))
        rng.choice(
            [
                lambda: nodes.pop(i),
                lambda: nodes.insert(i, copy.deepcopy(nodes[j])),
                lambda: nodes.__setitem__(slice(None), [*nodes[:i], nodes[j], *nodes[i + 1 :]]),
                lambda: nodes.insert(i, nodes.pop(j)),
                lambda: nodes.__setitem__(i, ["e"]),
                lambda: nodes.__setitem__(slice(i, i), [["a", 0, 0.5], copy.deepcopy(nodes[i])]),
                lambda: nodes.__setitem__(slice(i, i), [["n", 0, 0], copy.deepcopy(nodes[i])]),
                lambda: nodes.__setitem__(slice(i, i), [["c", "duration", 2.0], copy.deepcopy(nodes[i])]),
            ]
        )()
    else:
        path = rng.choice(places(certificate))
        holder = certificate
        for key in path[:-1]:
            holder = holder[key]
        old, key = holder[path[-1]], path[-1]
        if isinstance(old, float | int) and rng.random() < 0.9:
            holder[key] = number(old, rng)
        elif isinstance(old, str) and set(old) <= {"0", "1"} and old and rng.random() < 0.9:
            k = rng.randrange(len(old))
            holder[key] = old[:k] + rng.choice("012") + old[k + 1 :]
        elif isinstance(old, str) and rng.random() < 0.5:
            words = ["infeasible", "optimal", "bounds", "d", "e", "income", "amount", old[:-1]]
            holder[key] = rng.choice(words)
        elif rng.random() < 0.5 and isinstance(holder, dict | list):
            del holder[key]
        elif isinstance(holder, list):
            holder.insert(key, copy.deepcopy(rng.choice(holder)))
        else:
            holder[key] = copy.deepcopy(rng.choice([None, True, [], {}, "x", 0, *holder.values()]))


def mangle(certificate: Any, rng: random.Random) -> bytes:
    """The mutant's bytes; sometimes broken as text."""
    content = bytearray(json.dumps(certificate), "utf-8")
    if rng.random() < 0.1:
        for _ in range(rng.randint(1, 3)):
            k = rng.randrange(len(content))
            rng.choice(
                [
                    lambda k=k: content.__setitem__(k, rng.randrange(32, 127)),
                    lambda k=k: content.pop(k),
                    lambda k=k: content.insert(k, rng.choice(b'0123456789.-e[]{},"')),
                ]
            )()
    return bytes(content)


def lie(name: str, data: Any) -> str | None:
    """What is false about an accepted certificate's claim; None where it is true."""
    index = data.get("index")
    instance, status, best = known(name, None if index is None else int(index))
    if data["claim"] == "infeasible":
        return None if status == "infeasible" else "infeasible, though an action is known"
    try:
        action = {f: instance.by_name[f].read(value, f"action.{f}") for f, value in data["action"].items()}
    except (BadInput, KeyError) as error:
        return f"the action is none: {error}"
    verdict = judge(instance, action)
    cost, bound = Fraction(data["cost"]), Fraction(data["lower_bound"])
    if verdict.faults:
        return f"the action is not feasible: {verdict.faults[0]}"
    if not verdict.cost <= cost <= verdict.cost * (1 + Fraction(1, 2**50)):
        return f"the action costs {float(verdict.cost)!r}, not {data['cost']!r}"
    if best is None or bound > min(cost, Fraction(best)):
        return f"a bound of {data['lower_bound']!r}, though an action of cost {best!r} is known"
    if data["claim"] == "optimal" and cost - bound > max(1e-6 * data["cost"], 1e-9) * (1 + 1e-9):
        return "optimal, though the gap is open"
    return None


def run(mutants: int, seed: int, names: list[str], progress: bool = False) -> tuple[Counter[str], list[str]]:
    """How many mutants were rejected, accepted and accepted with a false claim; the lies."""
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    lies: list[str] = []
    originals = {name: load(name) for name in names}
    for k in range(1, mutants + 1):
        name = rng.choice(names)
        mutant = copy.deepcopy(originals[name])
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            if isinstance(mutant, dict) and isinstance(mutant.get("configurations"), list):
                try:
                    mutate(mutant, rng)
                except (AttributeError, TypeError, KeyError, IndexError, OverflowError, ValueError):
                    break  # an earlier mutation left nothing there to change
        content = mangle(mutant, rng)
        try:
            data = parse_json(content, name)
            verify(Certificate(data), source(name))
        except Rejected:
            counts["rejected"] += 1
        else:
            false = lie(name, data)
            counts["accepted, true" if false is None else "accepted, FALSE"] += 1
            if false is not None:
                lies.append(f"{name}, mutant {k}: {false}\n{content[:2000].decode(errors='replace')}")
        if progress and (k % 500 == 0 or k == mutants):
            shown = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
            print(f"{k} of {mutants}: {shown}", file=sys.stderr, flush=True)
    return counts, lies


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Mutate accepted certificates; none may pass with a lie.")
    parser.add_argument("--mutants", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    counts, lies = run(given.mutants, given.seed, list(ACCEPTED), progress=True)
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    for one in lies:
        print(one)
    return 1 if lies else 0


if __name__ == "__main__":
    sys.exit(main())

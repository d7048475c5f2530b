"""Files of up to a megabyte made to exhaust the checker: ``python -m tests.certificates.hostile``.

Each is checked by a process of its own with ``--seconds 20``; the run says how long each took and how much
memory its process had at most. None may be verified, take longer than :data:`MOST_SECONDS` or more than
:data:`MOST_MEGABYTES`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from verify.files.instance import Source

ROOT = Path(__file__).resolve().parents[2]
TOY = json.loads((ROOT / "docs/examples/toy_instance.json").read_text())
CERTIFICATE = json.loads((ROOT / "docs/examples/toy_certificate.json").read_text())
SECONDS, MOST_SECONDS, MOST_MEGABYTES, LARGEST = 20, 40, 300, 2**20

SAYS = dict.fromkeys(("wide", "tall"), ("REJECTED", "VERIFIED infeasible"))  # which they are
"""What the checker may say of what is no lie."""

Made = tuple[dict[str, Any], Any]
"""An instance's content, and a certificate's."""


def claim(acted: list[str], tree: list[Any], **more: Any) -> dict[str, Any]:
    """That nothing is feasible, as one configuration's tree is to show."""
    nothing = dict.fromkeys(("action", "cost", "lower_bound"))
    shown = {"acted": acted, "tree": tree, **more}
    return CERTIFICATE | nothing | {"claim": "infeasible", "configurations": [shown]}


def problem(names: list[str], layers: list[Any], **more: Any) -> dict[str, Any]:
    """An instance over continuous features, all levers."""
    return TOY | {
        "features": [{"name": n, "kind": "continuous", "actionable": True, "bounds": [-1, 1]} for n in names],
        "classifier": {"kind": "relu-network", "dtype": "float64", "layers": layers},
        "factual": dict.fromkeys(names, 0),
        "accept": {"at_least": 1e9},
        "preferences": {"actionable": names},
        "cost": {"kind": "l2-squared", "scale": dict.fromkeys(names, 1)},
        "reference": None,
        **more,
    }


def layers(sizes: list[int], odd: float = 2**-20) -> list[Any]:
    """A network of these widths."""
    return [
        {"weight": [[(i * j + k) % 5 - 2 + odd for i in range(m)] for j in range(n)], "bias": [0.25] * n}
        for k, (m, n) in enumerate(pairwise(sizes))
    ]


def chain(count: int) -> list[str]:
    """So many names."""
    return [f"x{k}" for k in range(count)]


def signs() -> Made:
    """Splits on signs, each below the other."""
    tree = [["n", 0, k] for k in range(7000)]
    return problem(["x"], layers([1, 7000, 1])), claim(["x"], tree)


def splits() -> Made:
    """Splits of one action, each below the other, into intervals that are hardly there."""
    tree = [node for k in range(1, 30_000) for node in (["a", 0, k * 2.0**-40], ["e"])]
    return problem(["x"], layers([1, 4, 1])), claim(["x"], tree)


def wide() -> Made:
    """A leaf over a network as wide as fits."""
    return problem(chain(30), layers([30, 150, 150, 1], 0.1)), claim(
        chain(30), [["d", "0" * 300, [{"g": 1}] * 64]]
    )


def deep() -> Made:
    """A leaf over a hundred layers."""
    sizes = [3, *[18] * 99, 1]
    return problem(chain(3), layers(sizes, 0.1)), claim(chain(3), [["d", "0" * 18 * 99, [{"g": 1}] * 64]])


def subsets() -> Made:
    """Sets of sixty levers that overlap in every way and leave little out."""
    rng, names = random.Random(1), chain(60)
    listed = [sorted(rng.sample(range(60), rng.randint(40, 57))) for _ in range(1500)]
    nodes = [{"acted": [names[k] for k in some], "tree": [["e"]]} for some in set(map(tuple, listed))]
    certificate = claim([], []) | {"configurations": nodes}
    return problem(names, layers([60, 1]), cost={"kind": "l0"}), certificate


def everyone() -> Made:
    """Thousands of levers."""
    names = chain(4000)
    return problem(names, layers([4000, 1], 0.0)), claim(names, [["e"]])


def products() -> Made:
    """An equation that multiplies one feature with itself again and again."""
    equation = {"product": ["x"] * 20_000}
    scm = {"name": "explicit", "mechanisms": {"y": {"equation": equation}}}
    made = problem(["x", "y"], layers([2, 1]), scm=scm)
    made["preferences"] = {"actionable": ["x"]}
    return made, claim(["x"], [["e"]])


def kinks() -> Made:
    """An equation of thousands of kinks, which a domain looks at."""
    terms = [{"relu": {"sum": ["x", k * 2.0**-20]}} for k in range(12_000)]
    scm = {"name": "explicit", "mechanisms": {"y": {"equation": {"sum": terms}}}}
    made = problem(["x", "y"], layers([2, 1]), scm=scm)
    made["features"][1] |= {"domain": [-1e6, 1e6]}
    made["preferences"] = {"actionable": ["x"]}
    return made, claim(["x"], [["e"]])


def powers() -> Made:
    """Squares of squares, whose values take more and more digits."""
    equation: Any = "x"
    for _ in range(40):
        equation = {"square": {"sum": [equation, 0.1]}}
    scm = {"name": "explicit", "mechanisms": {"y": {"equation": equation}}}
    made = problem(["x", "y"], layers([2, 1]), scm=scm)
    made["preferences"] = {"actionable": ["x"]}
    return made, claim(["x"], [["d", "", [{"g": 1}]]])


def causes() -> Made:
    """Thousands of features, each a cause of the one before."""
    names = chain(5000)
    scm = {"name": "explicit", "mechanisms": {a: {"equation": {"relu": b}} for a, b in pairwise(names)}}
    made = problem(names, layers([5000, 1], 0.0), scm=scm)
    made["preferences"] = {"actionable": names[-1:]}
    return made, claim(names[-1:], [["e"]])


def forest(columns: int, tree: dict[str, list[Any]], **more: Any) -> dict[str, Any]:
    """An instance of one tree."""
    return problem(chain(columns), []) | {
        "classifier": {"kind": "tree-ensemble", "dtype": "float32", "trees": [tree]},
        "accept": {},
        **more,
    }


def comb(depth: int, columns: int) -> dict[str, list[Any]]:
    """A tree that looks at another column at every level."""
    inner = [(k % columns, k * 2.0**-30, 2 * k + 1, 2 * k + 2, 0.5) for k in range(depth)]
    nodes: list[tuple[Any, ...]] = [(-2, -2, -1, -1, 0.0)] * (2 * depth + 1)
    place = 0
    for k, (column, threshold, _, _, value) in enumerate(inner):
        nodes[place] = column, threshold, 2 * k + 1, 2 * k + 2, value
        place = 2 * k + 2
    keys = ("feature", "threshold", "left", "right", "value")
    return {key: [node[i] for node in nodes] for i, key in enumerate(keys)}


def tall() -> Made:
    """A tree as deep as fits, with another column at every level."""
    made = forest(1500, comb(7000, 1500))
    return made, claim(chain(1500), [["e"]])


def priced() -> Made:
    """Prices of that tree."""
    made = forest(1500, comb(7000, 1500))
    return made, claim(chain(1500), [["p", 0]], prices=[{"unit": 1.0, "mu": 1.0, "trees": []}])


def filler(text: str) -> Callable[[], Made]:
    """Nodes that are none."""

    def make() -> Made:
        head = json.dumps(claim(["income"], ["?"])).replace('"?"', "%s")
        return TOY, head % (text * ((LARGEST - 1000) // len(text)) + "0")

    return make


HOSTILE: dict[str, Callable[[], Made]] = {
    "numbers": filler("0,"),
    "lists": filler("[],"),
    "objects": filler('{"a":{}},'),
    "nested lists": lambda: (TOY, "[" * 500_000 + "]" * 500_000),
    **{one.__name__: one for one in (signs, splits, wide, deep, subsets, everyone, products, kinks, powers)},
    **{one.__name__: one for one in (causes, tall, priced)},
}


def written(name: str, folder: Path) -> tuple[Path, Path]:
    """The files: certificate and instance."""
    instance, certificate = HOSTILE[name]()
    files = folder / "certificate.json", folder / "instance.json"
    files[1].write_text(json.dumps(instance, separators=(",", ":")))
    if not isinstance(certificate, str):
        with contextlib.suppress(Exception):  # of one that the checker refuses to read: quickly, as it must
            certificate["instance_sha256"] = Source(files[1]).applicant(None).digest
        certificate = json.dumps(certificate, separators=(",", ":"))
    files[0].write_text(certificate)
    return files


CHECKED = """
import sys
from verify.__main__ import main
try:
    main(sys.argv[1:])
finally:
    sys.stdout.flush()
    with open("/proc/self/status") as status:
        print(next(line.split()[1] for line in status if line.startswith("VmHWM")), file=sys.stderr)
"""
"""The checker, and the most memory of its own: what is counted for a child begins with its parent's."""


def measured(files: tuple[Path, Path], slow: bool = False) -> tuple[str, float, float]:
    """The checker's line, seconds, and the megabytes its process had at most."""
    command = [sys.executable, "-c", CHECKED, *map(str, files), f"--seconds={SECONDS}"]
    start = time.monotonic()
    done = subprocess.run(
        [*command, "--slow"] if slow else command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip(), time.monotonic() - start, int(done.stderr.split()[-1]) / 1024


def main() -> int:
    """Run, print, write; 1 if anything is beyond the limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("names", nargs="*", default=list(HOSTILE))
    given = parser.parse_args()
    rows, wrong = [], 0
    for name in given.names:
        with tempfile.TemporaryDirectory() as scratch:
            files = written(name, Path(scratch))
            sizes = [file.stat().st_size for file in files]
            for slow in (False, True):
                line, seconds, megabytes = measured(files, slow)
                over = (
                    seconds > MOST_SECONDS
                    or megabytes > MOST_MEGABYTES
                    or not line.startswith(SAYS.get(name, "REJECTED"))
                )
                wrong += over
                row = {"file": name, "kilobytes": [size // 1000 for size in sizes], "slow": slow}
                row |= {"seconds": round(seconds, 1), "megabytes": round(megabytes), "line": line[:90]}
                rows.append(row)
                print("WRONG" if over else "right", *row.values(), flush=True)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

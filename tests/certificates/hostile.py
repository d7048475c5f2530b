"""Files of up to a megabyte made to exhaust the checker: ``python -m tests.certificates.hostile``.

What is longer than that is packed (``.json.gz``), which makes a megabyte of it at most. Each is checked by a
process of its own with ``--seconds 20``; the run says how many processor seconds each took and how much
memory its process had at most. None may be verified (but those of :data:`SAYS`), take longer than
:data:`MOST_SECONDS` or more than :data:`MOST_MEGABYTES`.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from verify.files.instance import Source
from verify.files.reading import LARGEST_FILE

ROOT = Path(__file__).resolve().parents[2]
TOY = json.loads((ROOT / "docs/examples/toy_instance.json").read_text())
CERTIFICATE = json.loads((ROOT / "docs/examples/toy_certificate.json").read_text())
SECONDS, MOST_SECONDS, MOST_MEGABYTES, LARGEST = 20, 40, 300, 2**20

SAYS = dict.fromkeys(("wide", "tall", "many_nodes"), ("REJECTED", "VERIFIED infeasible"))  # which they are
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


ROOMY = LARGEST_FILE - 2000
"""What a packed file may hold."""


def packed(text: str) -> Callable[[], Made]:
    """As many nodes that are none as a packed certificate may hold."""

    def make() -> Made:
        head = json.dumps(claim(["income"], ["?"])).replace('"?"', "%s")
        return TOY, head % (text * ((ROOMY - 1000) // len(text.encode())) + "0")

    return make


def many_splits() -> Made:
    """As many nodes as the checker reads, each of them allowed, and nothing proven."""
    nodes = ",".join(f'["a",0,{k}e-7],["e"]' for k in range(1, 250_000))
    head = json.dumps(claim(["x"], ["?"])).replace('"?"', "%s")
    return problem(["x"], layers([1, 4, 1])), head % nodes


def many_prices() -> Made:
    """As many prices as the checker reads."""
    tables = [{"unit": 1.0, "mu": 1.0, "trees": [[[1] * 1400_000]]}]
    return forest(1500, comb(7000, 1500)), claim(chain(1500), [["p", 0]], prices=tables)


def many_weights() -> Made:
    """A network as large as the checker reads, each weight with digits of its own."""
    return problem(chain(700), layers([700, 700, 1], 0.1)), claim(chain(700), [["d", "0" * 700, [{"g": 1}]]])


def too_many_weights() -> Made:
    """A network that unpacks to more than that."""
    return problem(chain(3), layers([3, 1600, 1600, 1])), claim(chain(3), [["e"]])


def many_nodes() -> Made:
    """Trees as many as the checker reads."""
    made = forest(30, comb(60, 30))
    made["classifier"]["trees"] *= 3500
    return made, claim(chain(30), [["e"]])


def many_features() -> Made:
    """As many features as the checker reads, all of them levers."""
    names = chain(10_000)
    return problem(names, layers([10_000, 1], 0.0)), claim(names, [["e"]])


def too_many_features() -> Made:
    """More than that."""
    names = chain(100_000)
    return problem(names, layers([10, 1], 0.0)), claim(names, [["e"]])


def many_labels(count: int = 2000) -> Made:
    """One-hot labels, each a column."""
    made = problem(["a"], layers([count, 1], 0.0), factual={"a": "x0"})
    made["features"] = [{"name": "a", "kind": "categorical", "actionable": True, "categories": chain(count)}]
    return made, claim(["a"], [["e"]])


def too_many_labels() -> Made:
    """A hundred thousand of them, whose table would have ten thousand million numbers."""
    return many_labels(100_000)


def many_people() -> Made:
    """A population as long as the checker reads, of which one is asked about."""
    made = problem(["x"], layers([1, 1])) | {"format": "milp-recourse/population-1"}
    made = {key: value for key, value in made.items() if key not in ("factual", "reference")}
    return made | {"factuals": [{"x": 0}] * 430_000}, claim(["x"], [["e"]]) | {"index": 0}


def many_conditions() -> Made:
    """Alternatives inside alternatives."""
    inner = {"any": [{"feature": "x", "of": "change", "at_least": k * 2.0**-20} for k in range(70_000)]}
    return problem(["x"], layers([1, 1]), conditions=[{"not": inner}, inner]), claim(["x"], [["o"]])


HOSTILE: dict[str, Callable[[], Made]] = {
    "numbers": filler("0,"),
    "lists": filler("[],"),
    "objects": filler('{"a":{}},'),
    "nested lists": lambda: (TOY, "[" * 500_000 + "]" * 500_000),
    **{one.__name__: one for one in (signs, splits, wide, deep, subsets, everyone, products, kinks, powers)},
    **{one.__name__: one for one in (causes, tall, priced)},
    **{
        f"packed {name}": packed(text)
        for name, text in (
            ("numbers", "0,"),
            ("lists", "[0],"),
            ("objects", '{"a":0},'),
            ("empty objects", "{},"),
            ("texts", '"ab",'),
            ("wide texts", '"\U0001f600",'),
            ("halves", '"\\ud800",'),
            ("digits", "9"),
            ("braces in a text", '0, "' + "{" * 1000 + '",'),
            ("long text", '0, "\U0001f600' + "a" * 20_000_000 + '",'),
        )
    },
    **{one.__name__: one for one in (many_splits, many_prices, many_weights, too_many_weights, many_nodes)},
    **{one.__name__: one for one in (many_features, too_many_features, many_labels, too_many_labels)},
    **{one.__name__: one for one in (many_people, many_conditions)},
}


def written(name: str, folder: Path) -> tuple[Path, Path]:
    """The files: certificate and instance."""
    instance, certificate = HOSTILE[name]()
    file = stored(folder / "instance.json", json.dumps(instance, separators=(",", ":")))
    if not isinstance(certificate, str):
        certificate = json.dumps(certificate, separators=(",", ":"))
    with contextlib.suppress(Exception):  # of one that the checker refuses to read: quickly, as it must
        digest = Source(file).applicant(0.0 if "factuals" in instance else None).digest
        certificate = certificate.replace(CERTIFICATE["instance_sha256"], digest, 1)
    return stored(folder / "certificate.json", certificate), file


def stored(path: Path, text: str) -> Path:
    """A file, packed where it is longer than a megabyte."""
    content = text.encode()
    if len(content) > LARGEST:
        path, content = path.with_name(f"{path.name}.gz"), gzip.compress(content, mtime=0)
    path.write_bytes(content)
    return path


CHECKED = """
import sys, time
from verify.__main__ import main
try:
    main(sys.argv[1:])
finally:
    sys.stdout.flush()
    with open("/proc/self/status") as status:
        most = next(line.split()[1] for line in status if line.startswith("VmHWM"))
    print(time.process_time(), most, file=sys.stderr)
"""
"""The checker, and the most memory of its own: what is counted for a child begins with its parent's."""


def measured(files: tuple[Path, Path], slow: bool = False) -> tuple[str, float, float]:
    """The checker's line, processor seconds (others may keep the machine busy), and megabytes at most."""
    command = [sys.executable, "-c", CHECKED, *map(str, files), f"--seconds={SECONDS}"]
    done = subprocess.run(
        [*command, "--slow"] if slow else command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    *_, seconds, kilobytes = done.stderr.split()
    return done.stdout.strip(), float(seconds), int(kilobytes) / 1024


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

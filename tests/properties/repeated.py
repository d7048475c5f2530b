"""The command line of the long checks, above all of one that is repeated with one seed after another."""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from milp_recourse.reports.progress import progress_bar

Checked = tuple[Counter[str], list[str]]
"""What one seed gives: counts, and a line for each fault."""


def options(description: str | None, **defaults: Any) -> argparse.Namespace:
    """The options of a command, each with its default (a type stands for None), and ``--json``."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    for name, default in defaults.items():
        kind, value = (default, None) if isinstance(default, type) else (type(default), default)
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=value)
    parser.add_argument("--json", type=Path)
    warnings.simplefilter("ignore")
    return parser.parse_args()


def told(found: Any, file: Path | None) -> None:
    """Print what was found, and write it to a file if there is one."""
    text = json.dumps(found, indent=1)
    print(text)
    if file is not None:
        file.write_text(text + "\n", encoding="utf-8")


def repeated(
    description: str | None, check: Callable[[int], Checked], default: int, counted: tuple[str, ...] = ()
) -> int:
    """Check seeds 0, 1, ... until there are enough; print and write the counts; 1 if there was a fault.

    Enough are ``--cases`` seeds or, where names are ``counted``, ``--people`` of these counts together.
    """
    given = options(description, **{"people" if counted else "cases": default})
    wanted = given.people if counted else given.cases
    counts, wrong, start, seed, done = Counter[str](), list[str](), time.perf_counter(), 0, 0
    with progress_bar("checked", wanted) as steps:
        while done < wanted:
            found, lines = check(seed)
            counts, wrong, seed = counts + found, wrong + lines, seed + 1
            for line in lines:
                print(line, flush=True)
            before, done = done, sum(counts[name] for name in counted) if counted else seed
            for _ in range(done - before):
                steps.advance()
    seconds = round(time.perf_counter() - start)
    numbers = dict(sorted(counts.items()))
    told({"cases": seed, "seconds": seconds, "counts": numbers, "wrong": wrong}, given.json)
    return int(bool(wrong))

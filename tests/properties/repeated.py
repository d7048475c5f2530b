"""The command line of a check that is repeated with one seed after another."""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from milp_recourse.reports.progress import progress_bar

Checked = tuple[Counter[str], list[str]]
"""What one seed gives: counts, and a line for each fault."""


def repeated(
    description: str | None, check: Callable[[int], Checked], default: int, counted: tuple[str, ...] = ()
) -> int:
    """Check seeds 0, 1, ... until there are enough; print and write the counts; 1 if there was a fault.

    Enough are ``--cases`` seeds or, where names are ``counted``, ``--people`` of these counts together.
    """
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--people" if counted else "--cases", dest="wanted", type=int, default=default)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    counts, wrong, start, seed, done = Counter[str](), list[str](), time.perf_counter(), 0, 0
    with progress_bar("checked", given.wanted) as steps:
        while done < given.wanted:
            found, lines = check(seed)
            counts, wrong, seed = counts + found, wrong + lines, seed + 1
            for line in lines:
                print(line, flush=True)
            before, done = done, sum(counts[name] for name in counted) if counted else seed
            for _ in range(done - before):
                steps.advance()
    seconds = round(time.perf_counter() - start)
    text = json.dumps(
        {"cases": seed, "seconds": seconds, "counts": dict(sorted(counts.items())), "wrong": wrong}, indent=1
    )
    print(text)
    if given.json is not None:
        given.json.write_text(text + "\n", encoding="utf-8")
    return int(bool(wrong))

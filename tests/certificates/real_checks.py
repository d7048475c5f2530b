"""How long checks take on published tables: ``python -m tests.certificates.real_checks --data DATA``.

For Adult and German credit a forest is trained (``lab recipe real``), its refused applicants are
certified, and every certificate is checked in this process, by the fast path and by the kernel alone.
Processor seconds, reading both files included.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from milp_recourse.cli import main as milp_recourse
from verify.files.check import examine
from verify.files.folder import places


def seconds_of(files: list[Path], population: Path, slow: bool) -> tuple[list[float], list[str]]:
    """Processor seconds of every check, and what was not verified."""
    taken, wrong = [], []
    for place in places(files):
        start = time.process_time()
        outcome = examine(place, population, 600.0, slow=slow)
        taken.append(time.process_time() - start)
        wrong += [] if outcome.claim else [f"{place.name}: {outcome.line}"]
    return taken, wrong


def measured(name: str, data: Path, applicants: int, folder: Path) -> dict[str, Any]:
    """One table's figures."""
    set_, out = folder / name, folder / name / "out"
    given = ["--data", str(data), "--out", str(set_), "--applicants", str(applicants)]
    milp_recourse(["lab", "recipe", "real", name, *given])
    milp_recourse(["certify", str(set_ / "population.json"), "--out", str(out), "--time-limit", "60"])
    files, found = sorted((out / "certificates").iterdir()), {}
    for kind, slow in (("fast", False), ("kernel alone", True)):
        taken, wrong = seconds_of(files, set_ / "population.json", slow)
        found[kind] = {
            "certificates": len(taken),
            "verified": len(taken) - len(wrong),
            "median": round(median(taken), 4),
            "slowest": round(max(taken), 3),
            "wrong": wrong,
        }
    return found


def main() -> int:
    """Run, print, write; 1 if anything is rejected."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the owners' files")
    parser.add_argument("--applicants", type=int, default=40)
    parser.add_argument("--json", type=Path, default=Path("real_checks.json"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = {
            name: measured(name, options.data, options.applicants, Path(folder))
            for name in ("adult", "german")
        }
    options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=1))
    return 1 if any(kind["wrong"] for one in report.values() for kind in one.values()) else 0


if __name__ == "__main__":
    sys.exit(main())

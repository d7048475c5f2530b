"""An audit of many people of Give Me Some Credit: made, checked, made again, and changed.

``python -m tests.reports.audits.measure FOLDER --json docs/results/properties/audit.json``; FOLDER keeps the
answers, so that the command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from xgboost import XGBClassifier

from milp_recourse import Recourse
from milp_recourse.cli import main
from tests.helpers.audit_changes import CHANGES


def lender(count: int) -> tuple[Recourse, pd.DataFrame]:
    """Boosted trees, and refused people who cannot do much."""
    table = pd.read_csv(os.environ["MILP_RECOURSE_DATA"] + "/gmsc-cs-training.csv.zip", index_col=0)
    X, y = table.drop(columns="SeriousDlqin2yrs"), 1 - table["SeriousDlqin2yrs"]
    model = XGBClassifier(n_estimators=60, max_depth=3, scale_pos_weight=0.07).fit(X, y)
    late = [c for c in X.columns if c.startswith("NumberOfTime")]
    fixed = ["age", "NumberOfDependents", "NumberRealEstateLoansOrLines", *late[:2]]
    recourse = Recourse(model, X, immutable=fixed, decrease=late[2:], increase=["MonthlyIncome"], scale="mad")
    return recourse, X[model.predict(X) == 0].head(count)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.monotonic()
    return work(), round(time.monotonic() - start, 1)


def said(path: Path, sample: int | None = None) -> tuple[int, list[str]]:
    """The exit code and the lines of ``verify``."""
    lines = io.StringIO()
    with contextlib.redirect_stdout(lines), contextlib.redirect_stderr(io.StringIO()):
        lines.reconfigure = lambda **_: None  # type: ignore[attr-defined]
        code = main(["verify", str(path), "--jobs=1", *([] if sample is None else [f"--sample={sample}"])])
    return code, lines.getvalue().splitlines()


def measure(folder: Path, count: int) -> dict[str, Any]:
    recourse, people = lender(count)
    answers, solving = timed(lambda: recourse.certify(people, certificates=True, out=folder / "run"))
    for name in ("audit", "again", "changed"):
        shutil.rmtree(folder / name, ignore_errors=True)
    audit, again = folder / "audit", folder / "again"
    _, making = timed(lambda: answers.audit(audit))
    (code, lines), checking = timed(lambda: said(audit))
    print(*lines, sep="\n", flush=True)
    assert main(["audit", str(audit), "--out", str(again)]) == 0
    files = sorted(p.relative_to(audit) for p in audit.rglob("*") if p.is_file())
    unlike = [str(f) for f in files if (audit / f).read_bytes() != (again / f).read_bytes()]
    found = {}
    for change in CHANGES:
        changed = folder / "changed"
        shutil.copytree(audit, changed)
        change(changed)
        everybody = change.__name__ in ("swapped", "reason")  # the others need no proof read again
        rejected = said(changed, None if everybody else 20)
        found[change.__name__] = next((line for line in rejected[1] if "REJECTED" in line), "not found")
        print(change.__name__, found[change.__name__], flush=True)
        shutil.rmtree(changed)
    size = sum((audit / f).stat().st_size for f in files)
    return {
        "people": len(answers),
        "statuses": answers.table["status"].value_counts().to_dict(),
        "seconds": {"solving": solving, "making": making, "checking": checking},
        "megabytes": round(size / 2**20, 1),
        "verified": code == 0,
        "said": lines[-1],
        "files unlike when made again": unlike,
        "changes": len(found),
        "changes found": sum(line != "not found" for line in found.values()),
        "first reason": found,
        "manifest": hashlib.sha256((audit / "manifest.json").read_bytes()).hexdigest()[:16],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--people", type=int, default=2000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    summary = measure(given.folder, given.people)
    text = json.dumps(summary, indent=1)
    print(text)
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(text + "\n")

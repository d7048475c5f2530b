"""Lines per room, and the files and rooms one person goes through: ``python -m tests.docs.sizes [--lines]``.

Writes ``docs/results/architecture/sizes.json`` and the tables that ``docs/architecture.md`` makes of it.
``before.json`` beside it has the same counts from before the rooms were put together.

*Code lines* hold a token that is neither a comment nor part of a text that stands alone (a docstring).
*Files entered* are the package's files of which a function runs while a person is answered in a process that
has answered before, imports apart. A *change of room* is a call from one function of the package to one in
another room. Code that numba compiled counts with the file of the function that Python called.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.test_imports import FILES, ROOMS, circle, module_of, room_of, rooms_imported

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results" / "architecture" / "sizes.json"
PAGE = ROOT / "docs" / "architecture.md"
CHECKER = "verify/"
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}

COMMAND = "from milp_recourse.cli import main\nanswer = lambda: main({0})"
FRAME = """
import numpy as np, pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from milp_recourse import Recourse
rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd"))
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, X.a + X.b > 1)
recourse = Recourse(model, X)
answer = lambda: recourse.certify(X[~model.predict(X)].head(1), certificates=True)
"""
WAYS = {
    "one Loan applicant, with certificate": COMMAND.format(
        ["solve", "instances/loan/loan_007.json", "--certificate", "{out}/c.json"]
    ),
    "a DataFrame row, with certificate": FRAME,
    "a tree, with certificate": COMMAND.format(
        ["solve", "instances/credit_trees/credit_003.json", "--certificate", "{out}/t.json"]
    ),
}
"""What is asked, and a script that makes ``answer``, the function that asks it."""

AIMS = {"product": 26000, "lab": 8500, "checker": 3900, "files": (40, 50, 50), "changes": (563, 1754, 1768)}

WATCHED = """
import sys
{script}
files, changes = set(), 0


def placed(frame):
    '''File and room of a function of the package; None for others, and while a module is being imported.'''
    file = frame.f_code.co_filename
    if file.startswith("{root}/milp_recourse/"):
        return file, file.removeprefix("{root}/milp_recourse/").split("/")[0]


def note(frame, event, argument):
    global changes
    here = placed(frame) if event == "call" else None
    if here is None:
        return
    above = frame.f_back
    while above is not None and placed(above) is None:
        above = above.f_back
    outer = frame
    while outer is not None:  # what runs while a module is being imported is not the person's way
        if outer.f_code.co_name == "<module>" and outer.f_globals["__name__"] != "__main__":
            return
        outer = outer.f_back
    files.add(here[0])
    changes += above is not None and placed(above)[1] != here[1]


answer()  # compiles what has to be compiled
sys.setprofile(note)
answer()
sys.setprofile(None)
print(len(files), changes)
"""


def code_lines(source: str) -> int:
    """Lines with code on them."""
    alone = {
        (node.lineno, node.col_offset)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE and not (token.type == tokenize.STRING and token.start in alone):
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines)


def count_of(file: Path) -> dict[str, int]:
    """One file's code lines, and its lines of docstrings and comments."""
    source = file.read_text(encoding="utf-8")
    code, filled = code_lines(source), sum(bool(line.strip()) for line in source.splitlines())
    return {"files": 1, "code": code, "words": filled - code}


def lines() -> dict[str, dict[str, int]]:
    """The counts of every room and of the checker."""
    found = {room: Counter[str]() for room in ROOMS} | {CHECKER: Counter[str]()}
    for file in FILES:
        found[room_of(module_of(file))].update(count_of(file))
    for file in sorted((ROOT / "verify").rglob("*.py")):
        found[CHECKER].update(count_of(file))
    return {room or "__init__": dict(count) for room, count in found.items()}


def entered() -> dict[str, list[int]]:
    """How many files each of WAYS enters, and how often it changes rooms."""
    found = {}
    with tempfile.TemporaryDirectory() as out:
        for name, script in WAYS.items():
            watched = WATCHED.replace("{script}", script.replace("{out}", out)).replace("{root}", str(ROOT))
            run = [sys.executable, "-W", "ignore", "-c", watched]
            done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True)
            found[name] = [int(n) for n in done.stdout.splitlines()[-1].split()]
    return found


def rooms() -> dict[str, int]:
    """How many rooms there are, floors that they stand on, and imports of one room by another; circles of
    files that import each other."""
    sources = {module_of(file): file.read_text(encoding="utf-8") for file in FILES}
    arrows: dict[str, set[str]] = {room: set() for room in ROOMS}
    for module, source in sources.items():
        arrows[room_of(module)] |= rooms_imported(source) - {room_of(module)}
    floors: dict[str, int] = {}
    for room in ROOMS:  # in an order in which each imports earlier ones only
        floors[room] = 1 + max((floors[below] for below in arrows[room]), default=0)
    return {
        "rooms": len(ROOMS),
        "floors": max(floors.values()),
        "arrows between rooms": sum(map(len, arrows.values())),
        "circles of files": int(bool(circle(sources.items()))),
    }


def totals(counts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Code lines of the product (the package without the experiments), of these, and of the checker."""
    checker, lab = counts[CHECKER]["code"], counts["lab"]["code"]
    return {
        "product": sum(count["code"] for count in counts.values()) - lab - checker,
        "lab": lab,
        "checker": checker,
    }


def tables(found: Mapping[str, Any], before: Mapping[str, Any]) -> str:
    """The tables of the page."""
    text = ["| room | files | code lines | docstrings and comments |", "|---|---|---|---|"]
    text += [f"| {n} | {c['files']} | {c['code']} | {c['words']} |" for n, c in found["lines"].items()]
    text += ["", "| code lines | before | now | aim |", "|---|---|---|---|"]
    now, said = totals(found["lines"]), {"product": "the package without `lab`", "lab": "`lab`"}
    said["checker"] = "`verify/`"
    text += [f"| {said[k]} | {before['totals'][k]} | {now[k]} | at most {AIMS[k]} |" for k in said]
    text += ["", "| | before | now |", "|---|---|---|"]
    text += [f"| {what} | {before['rooms'][what]} | {found['rooms'][what]} |" for what in found["rooms"]]
    text += ["", "| | files before | now | aim | changes of room before | now | aim |"]
    text += ["|---|---|---|---|---|---|---|"]
    for name, aim, most in zip(WAYS, AIMS["files"], AIMS["changes"], strict=True):
        (old_files, old_changes), (files, changes) = before["entered"][name], found["entered"][name]
        text.append(f"| {name} | {old_files} | {files} | {aim} | {old_changes} | {changes} | {most} |")
    return "\n".join(text) + "\n"


def placed(page: str, found: Mapping[str, Any]) -> str:
    """The page with the tables between its two marks."""
    before = json.loads(RESULTS.with_name("before.json").read_text(encoding="utf-8"))
    return re.sub(
        r"(<!-- sizes -->\n).*?(<!-- end of sizes -->)",
        lambda marks: marks[1] + tables(found, before) + marks[2],
        page,
        flags=re.DOTALL,
    )


def main() -> None:
    """Count, write the results file, and put the tables on the page."""
    parser = argparse.ArgumentParser(
        description="Lines per room, and the files and rooms that one person goes through."
    )
    parser.add_argument("--lines", action="store_true", help="count lines only: solve nothing")
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    files = known["entered"] if parser.parse_args().lines else entered()
    counts = lines()
    words = {"lines of docstrings and comments": sum(count["words"] for count in counts.values())}
    found = {"lines": counts, "rooms": rooms() | words, "entered": files}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(placed(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    print(placed("<!-- sizes -->\n<!-- end of sizes -->", found))


if __name__ == "__main__":
    main()

"""Lines per layer, and the files that one problem goes through: ``python -m tests.docs.sizes [--lines]``.

Writes ``docs/results/architecture/sizes.json`` and the tables that ``docs/architecture.md`` makes of it.

*Code lines* hold a token that is neither a comment nor part of a text that stands alone (a docstring).
*Files entered* are the package's files of which a function runs while a command answers in a fresh
process, imports apart. Code that numba compiled counts with the file of the function that Python called.
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

from tests.test_imports import FILES, LAYERS, layer_of, module_of, part_of

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

WAYS = {
    "one Loan applicant, with certificate": "solve instances/loan/loan_007.json --certificate {out}/c.json",
    "a causal tree, with certificate": "solve {out}/tree.json --certificate {out}/t.json",
    "export of a Loan instance": "export instances/loan/loan_007.json --out {out}/p.lp",
}
"""What is asked, and the command that asks it."""

BEFORE = {"package": 16500, "experiments": 4900, "checker": 1550, "files": (53, 63, 30)}
"""As issue 17 counted them before the work on layers; the files in the order of WAYS."""

AIMS = {"package": 15500, "experiments": 3800, "checker": 1600}

WATCHED = """
import sys
from milp_recourse.cli import main

files = set()


def note(frame, event, argument):
    file = frame.f_code.co_filename
    if event != "call" or "milp_recourse" not in file or file in files:
        return
    above = frame
    while above is not None:  # what runs while a module is being imported is not the problem's way
        if above.f_code.co_name == "<module>" and above.f_globals["__name__"] != "__main__":
            return
        above = above.f_back
    files.add(file)


arguments = sys.argv[1:]
main(arguments)  # compiles what has to be compiled
sys.setprofile(note)
code = main(arguments)
sys.setprofile(None)
print(len(files))
sys.exit(code)
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
    """The counts of every layer and of the checker."""
    found = {name: Counter[str]() for name, _ in LAYERS} | {CHECKER: Counter[str]()}
    for file in FILES:
        found[LAYERS[layer_of(part_of(module_of(file))) - 1][0]].update(count_of(file))
    for file in sorted((ROOT / "verify").rglob("*.py")):
        found[CHECKER].update(count_of(file))
    return {name: dict(count) for name, count in found.items()}


def entered() -> dict[str, int]:
    """How many files each of WAYS enters."""
    from milp_recourse.formats import write_instance
    from tests.helpers.loan_forests import applicants, models

    found = {}
    with tempfile.TemporaryDirectory() as out:
        write_instance(next(applicants(next(models())[1], 1)), Path(out) / "tree.json")
        for name, command in WAYS.items():
            arguments = command.format(out=out).split()
            done = subprocess.run(
                [sys.executable, "-c", WATCHED, *arguments],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=True,
            )
            found[name] = int(done.stdout.splitlines()[-1])
    return found


def totals(counts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Code lines of the package without the experiments, of these, and of the checker."""
    experiments = counts[LAYERS[-1][0]]["code"]
    package = sum(counts[name]["code"] for name, _ in LAYERS) - experiments
    return {"package": package, "experiments": experiments, "checker": counts[CHECKER]["code"]}


def tables(found: Mapping[str, Any]) -> str:
    """The tables of the page."""
    counts, total = found["lines"], totals(found["lines"])
    text = ["| layer | files | code lines | docstrings and comments |", "|---|---|---|---|"]
    text += [f"| {n} | {c['files']} | {c['code']} | {c['words']} |" for n, c in counts.items()]
    text += ["", "| code lines | before | now | aim |", "|---|---|---|---|"]
    said = {
        "package": "the package without the experiments",
        "experiments": "the experiments",
        "checker": "`verify/`",
    }
    text += [f"| {said[k]} | {BEFORE[k]} | {total[k]} | at most {AIMS[k]} |" for k in said]
    text += ["", "| files entered | before | now |", "|---|---|---|"]
    text += [
        f"| {name} | {before} | {found['entered'][name]} |"
        for name, before in zip(WAYS, BEFORE["files"], strict=True)
    ]
    return "\n".join(text) + "\n"


def placed(page: str, found: Mapping[str, Any]) -> str:
    """The page with the tables between its two marks."""
    return re.sub(
        r"(<!-- sizes -->\n).*?(<!-- end of sizes -->)",
        lambda marks: marks[1] + tables(found) + marks[2],
        page,
        flags=re.DOTALL,
    )


def main() -> None:
    """Count, write the results file, and put the tables on the page."""
    parser = argparse.ArgumentParser(
        description="Lines per layer, and the files that one problem goes through."
    )
    parser.add_argument("--lines", action="store_true", help="count lines only: solve nothing")
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    files = known["entered"] if parser.parse_args().lines else entered()
    found = {"lines": lines(), "entered": files}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(placed(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    print(tables(found))


if __name__ == "__main__":
    main()

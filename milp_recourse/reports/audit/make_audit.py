"""Writes the file for an auditor, as a folder or a zip: the same bytes for the same run, but for the date."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

from jinja2 import Template

from milp_recourse.errors import BadInput
from milp_recourse.formats.schema_answers import RESULTS_FORMAT
from milp_recourse.formats.strict_json import write_whole
from milp_recourse.problem.instance import Instance
from milp_recourse.questions.reasons import Sufficient, reasons
from milp_recourse.questions.why import Why, why
from milp_recourse.questions.workers import Workers
from milp_recourse.reports.audit import audit_tables as tables
from milp_recourse.reports.audit.audited_run import AuditedRun, as_bytes, finished_run, run_files
from milp_recourse.reports.audit.made_with import code_digests, versions
from milp_recourse.reports.audit.spreadsheet import spreadsheet
from milp_recourse.reports.certificate_files import certificate_files, zipped
from milp_recourse.reports.folder_lock import LOCK, only_writer
from milp_recourse.reports.letters.letter import stated_day
from milp_recourse.reports.progress import progress_bar
from milp_recourse.reports.result_rows import csv_line, result_in

AUDIT_FORMAT = "milp-recourse/audit-1"
MANIFEST, ABOUT, SHEETS, REASONS_FILE, NO_RECOURSE_FILE = (
    *("manifest.json", "about.json", "audit.xlsx", "reasons.csv", "no_recourse.csv"),
)
NUMBERS = frozenset(
    {"index", "cost", "lower_bound", "cost then", "no cheaper than", "people", "median cost of a change"}
    | {kind.value for kind in tables.OUTCOMES}
)
_FORMULA = ("'", "=", "+", "-", "@", "\t", "\r")
"""With these a cell begins that a spreadsheet would compute."""

Texts = list[list[str]]
Task = tuple[int, Instance, Mapping[str, str]]


@dataclass(frozen=True)
class Asked:
    """What an audit computes besides the answers.

    Attributes
    ----------
    reasons
        The most levers of a set in the table of reasons; 0: no such table.
    why
        Whether it says what stands in the way of those without recourse.
    """

    reasons: int = 1
    why: bool = True

    def __post_init__(self) -> None:
        if not (type(self.reasons) is int and self.reasons >= 0):
            raise BadInput("reasons", repr(self.reasons), "a whole number of levers, 0 or more")
        if type(self.why) is not bool:
            raise BadInput("why", repr(self.why), "True or False")


def write_audit(
    folder: Path,
    out: Path,
    file: Path | None = None,
    asked: Asked | None = None,
    day: date | None = None,
    jobs: int = 1,
) -> str:
    """Write the audit of a folder's run into a new folder, or a zip; return the digest of its manifest.

    Parameters
    ----------
    folder
        What ``certify --out`` or ``answers.save`` wrote, or an audit.
    out
        A new folder, or a file whose name ends in ``.zip``.
    file
        The problem that was solved; None: the folder's ``population.json``.
    day
        The date to state; None: today.
    jobs
        Processes that look for reasons.

    Raises
    ------
    BadInput
        The folder does not hold a population's results, or not everybody's; or ``out`` is not new.
    BackendUnavailable
        openpyxl is not installed.
    MachineFailed
        The disk is full or broken, or another process writes ``out``.
    """
    asked, run = asked or Asked(), finished_run(folder, file)
    packed = out.suffix == ".zip"
    if os.path.exists(out) and (packed or not out.is_dir() or {file.name for file in out.iterdir()} - {LOCK}):
        raise BadInput("--out", f"{out}, which exists", "a new folder, or a new file whose name ends in .zip")
    files = contents(run, asked, partial(searched, run, asked, jobs))
    stated = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    manifest = {"format": AUDIT_FORMAT, "date": stated_day(day).isoformat(), "files": stated}
    files[MANIFEST] = as_bytes(manifest)
    if packed:
        write_whole(zipped(dict(sorted(files.items())), zipfile.ZIP_DEFLATED), out)
    else:
        with only_writer(out):
            for name, content in files.items():  # the manifest last: without it a folder is no audit
                write_whole(content, out / name)
    return hashlib.sha256(files[MANIFEST]).hexdigest()


def contents(run: AuditedRun, asked: Asked, found: Callable[[], tuple[Texts, Texts]]) -> dict[str, bytes]:
    """Every file of an audit but the manifest.

    Parameters
    ----------
    found
        Gives the tables of reasons and of what stands in the way, without their headings.
    """
    given, stuck = found()
    csvs = {
        "assumptions.csv": _texts(tables.assumptions(run)),
        "people.csv": _texts(tables.people(run, given)),
        REASONS_FILE: [tables.REASONS, *given],
        NO_RECOURSE_FILE: [tables.NO_RECOURSE, *stuck],
        "groups.csv": _texts(tables.groups(run.people)),
    }
    about = _about(run, asked)
    files = run_files(run) | certificate_files(run.certificates, len(run.people))
    files |= {"results.csv": _results(run), "results.json": as_bytes(_summary(run))}
    files |= {name: _csv(table) for name, table in csvs.items()}
    files |= {ABOUT: as_bytes(about), "README.md": _readme(run, asked)}
    sheets = {"about": [["about", "", ""], *_lines(about)]}
    sheets |= {name.removesuffix(".csv").replace("_", " "): table for name, table in csvs.items()}
    files[SHEETS] = spreadsheet(sheets, NUMBERS)
    return files


def searched(
    run: AuditedRun, asked: Asked, jobs: int = 1, some: Iterable[int] | None = None
) -> tuple[Texts, Texts]:
    """The reasons of everybody who must act, and what stands in the way of those without recourse.

    Parameters
    ----------
    some
        The people to look at, by position; None: everybody.
    """
    status = [row["status"] for row in run.rows]
    wanted = [k for k in (range(len(status)) if some is None else some) if status[k] != "bad-input"]
    parts = [k for k in wanted if (asked.why if status[k] == "infeasible" else asked.reasons)]
    size = max(1, min(64, len(parts) // (8 * jobs)))
    tasks = (
        [(k, run.population[k], run.rows[k]) for k in parts[i : i + size]] for i in range(0, len(parts), size)
    )
    look = partial(_looked_at, asked)
    given, stuck = dict[int, Texts](), dict[int, Texts]()
    with progress_bar("people", len(parts)) as bar:
        for found in map(look, tasks) if jobs == 1 else Workers(jobs).map(look, tasks):
            for k, one in found:
                if isinstance(one, Why):
                    stuck[k] = _texts(tables.no_recourse_rows(run, k, one))
                else:
                    given[k] = _texts(tables.reason_rows(run, k, one))
                bar.advance()
    reasons_, stuck_ = ([row for k in sorted(found) for row in found[k]] for found in (given, stuck))
    return reasons_, stuck_


def _looked_at(asked: Asked, tasks: Iterable[Task]) -> list[tuple[int, list[Sufficient] | Why]]:
    """Each person's reasons, or what stands in the way of them."""
    return [(k, _of_one(asked, problem, row, k)) for k, problem, row in tasks]


def _of_one(asked: Asked, problem: Instance, row: Mapping[str, str], k: int) -> list[Sufficient] | Why:
    if row["status"] == "infeasible":
        return why(problem)
    whole = result_in(row, problem, f"results.csv: index {k}")
    return [] if whole.action == {} else reasons(problem, asked.reasons, known=whole)


def _texts(table: tables.Table) -> Texts:
    return [["" if c is None else repr(c) if isinstance(c, float) else str(c) for c in row] for row in table]


def _csv(table: Texts) -> bytes:
    """A table as CSV, in which no text begins as a formula does."""
    return "".join(csv_line(map(_no_formula, row)) for row in table).encode()


def _no_formula(text: str) -> str:
    if not text.startswith(_FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def rows_in(content: bytes) -> Texts:
    """The rows of a table that :func:`_csv` wrote, without the headings."""
    _, *rows = csv.reader(io.StringIO(content.decode("utf-8"), newline=""))
    return [
        [cell[1:] if cell[:1] == "'" and cell[1:].startswith(_FORMULA) else cell for cell in row]
        for row in rows
    ]


def _results(run: AuditedRun) -> bytes:
    """``results.csv`` in order and without seconds, which no second run would have again."""
    head = list(run.rows[0])
    rows = ({**row, "seconds": ""} for row in run.rows)
    return "".join(map(csv_line, [head, *([row[name] for name in head] for row in rows)])).encode()


def _counts(run: AuditedRun) -> dict[str, int]:
    return dict(Counter(row["status"] for row in run.rows))


def _summary(run: AuditedRun) -> dict[str, Any]:
    """``results.json`` without seconds."""
    costs = [float(row["cost"]) for row in run.rows if row["cost"]]
    return {
        "format": RESULTS_FORMAT,
        "applicants": len(run.rows),
        "counts": _counts(run),
        "cost_mean": fmean(costs) if costs else None,
        "cost_median": median(costs) if costs else None,
        **run.options,
    }


def _about(run: AuditedRun, asked: Asked) -> dict[str, Any]:
    """Digests of model and data, versions, and what was asked for."""
    document = run.document
    people = {key: document[key] for key in ("factuals", "preferences", "ids", "margins") if key in document}
    digests = {"model": document["classifier"], "data": people, "problem": document}
    return {
        "format": AUDIT_FORMAT,
        "title": run.title,
        "people": len(run.people),
        "counts": _counts(run),
        "sha256": {name: hashlib.sha256(as_bytes(part)).hexdigest() for name, part in digests.items()},
        "code": code_digests(),
        "versions": versions(),
        "options": dict(run.options),
        "reasons": asked.reasons,
        "why": asked.why,
    }


def _lines(about: Mapping[str, Any]) -> Texts:
    """An object as rows of a table: name, name inside it, value."""
    rows = []
    for key, value in sorted(about.items()):
        inner = value.items() if isinstance(value, dict) else [("", value)]
        rows += [[key, name, str(one)] for name, one in sorted(inner)]
    return rows


def _readme(run: AuditedRun, asked: Asked) -> bytes:
    text = (Path(__file__).parent / "README.md.j2").read_text(encoding="utf-8")
    bare = sum(not row["certificate"] and row["status"] != "bad-input" for row in run.rows)
    uncertified = f"{bare} answers have no certificate: their bounds are as their row's proof says."
    given = {
        "title": " ".join(run.title.split()),
        "people": len(run.people),
        "counts": ", ".join(f"{count} {status}" for status, count in sorted(_counts(run).items())),
        "most": asked.reasons,
        "why": asked.why,
        "uncertified": uncertified if bare else "Every answer has a certificate.",
    }
    page: bytes = Template(text, keep_trailing_newline=True).render(given).encode()
    return page

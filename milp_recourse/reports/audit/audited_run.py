"""A finished run of a population, as an auditor's file is made of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from milp_recourse.errors import BadInput
from milp_recourse.formats.schema import read_any
from milp_recourse.formats.strict_json import read_json
from milp_recourse.formats.write import population_to_dict
from milp_recourse.problem.population import Population
from milp_recourse.reports.certificate_files import extract
from milp_recourse.reports.own_words import WORDS_FILE, OwnWords, words_in
from milp_recourse.reports.pages.folder import people_in
from milp_recourse.reports.population_folder import RUN_FORMAT
from milp_recourse.reports.result_rows import rows_of
from milp_recourse.reports.view import Person

SOURCES_FILE = "sources.json"
"""The file of a folder of results that says where assumptions come from: ``{"features": {feature: {what:
source}}, "problem": {what: source}}``."""
PROBLEM_FILE = "population.json"


@dataclass(frozen=True)
class AuditedRun:
    """A population, everybody's answer, and where the problem comes from.

    Attributes
    ----------
    document
        The population as JSON.
    rows
        The cells of ``results.csv`` by column, in the order of the people.
    people
        The same as pages show it, in the user's words.
    certificates
        By position, gzipped.
    sources
        As in :data:`SOURCES_FILE`.
    """

    population: Population
    document: Mapping[str, Any]
    options: Mapping[str, Any]
    rows: Sequence[Mapping[str, str]]
    people: Sequence[Person]
    certificates: Mapping[int, bytes]
    words: OwnWords
    sources: Mapping[str, Mapping[str, Any]]

    @property
    def title(self) -> str:
        """The problem's name."""
        return self.population.template.name or "Recourse"


def finished_run(folder: Path, file: Path | None = None) -> AuditedRun:
    """The run in a folder that ``certify --out`` wrote.

    Parameters
    ----------
    file
        The problem that was solved; None: the folder's :data:`PROBLEM_FILE`.

    Raises
    ------
    BadInput
        The folder does not hold a population's results, or not everybody's.
    """
    if not folder.is_dir():
        raise BadInput("DIR", f"{folder}, which is no folder", "a folder that certify --out wrote")
    source = file or folder / PROBLEM_FILE
    if file is None and not source.is_file():
        missing = f"no file, and {folder} holds no {PROBLEM_FILE}"
        raise BadInput("PROBLEM", missing, "the population that certify was given")
    problem, listed = read_any(source), read_json(source).get("factuals")
    if not isinstance(problem, Population):
        allowed = "a population: a file with one person in its factuals is one"
        raise BadInput("PROBLEM", "an instance", allowed, str(source))
    if problem.unreadable and not isinstance(listed, list):
        got = f"a table with {len(problem.unreadable)} rows that cannot be read"
        raise BadInput("factuals", got, "such people in the file itself, as a list", str(source))
    unread = {k: listed[k] for k in problem.unreadable}
    people, words = people_in(folder, problem), words_in(folder)
    if len(people) < len(problem):
        got = f"answers for {len(people)} of {len(problem)} people"
        raise BadInput("results", got, "everybody's: the same certify goes on where it stopped", str(folder))
    run = read_json(folder / "run.json")
    rows = sorted(rows_of(folder / "results.csv"), key=lambda row: int(row["index"]))
    return AuditedRun(
        problem,
        population_to_dict(problem, unread),
        {key: run[key] for key in sorted(run) if key not in ("format", "population_sha256")},
        rows,
        [words.of(person) for person in people],
        {int(row["index"]): extract(folder, int(row["index"])) for row in rows if row.get("certificate")},
        words,
        _sources_in(folder),
    )


def as_bytes(value: Any, indent: int | None = 1) -> bytes:
    """JSON text in which equal values are equal bytes."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, sort_keys=True)
    return f"{text}\n".encode()


def run_files(run: AuditedRun) -> dict[str, bytes]:
    """The run's own small files: problem, options, words and sources."""
    from milp_recourse.formats.write import population_digest

    claim = {"format": RUN_FORMAT, "population_sha256": population_digest(run.population), **run.options}
    files = {PROBLEM_FILE: as_bytes(run.document, None), "run.json": as_bytes(claim)}
    if run.words != OwnWords():
        files[WORDS_FILE] = as_bytes(run.words.to_dict())
    if run.sources:
        files[SOURCES_FILE] = as_bytes(run.sources)
    return files


def _sources_in(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    file = folder / SOURCES_FILE
    found = read_json(file) if file.is_file() else {}
    if not isinstance(found, dict) or not all(isinstance(part, dict) for part in found.values()):
        raise BadInput("sources", "something else", 'an object with "features" and "problem"', str(file))
    return found

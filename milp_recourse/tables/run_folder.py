"""The folder of a run over a table's people: what ``certify(people, out=DIR)`` and ``answers.save`` write."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from milp_recourse.errors import BadInput
from milp_recourse.formats.schema import population_from_dict
from milp_recourse.formats.strict_json import write_json
from milp_recourse.formats.write import population_to_dict
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result
from milp_recourse.reports.audit.audited_run import SOURCES_FILE
from milp_recourse.reports.certificate_files import extract
from milp_recourse.reports.folder_lock import only_writer
from milp_recourse.reports.own_words import WORDS_FILE, OwnWords
from milp_recourse.reports.population_folder import PopulationFolder
from milp_recourse.reports.result_rows import result_in, rows_of
from milp_recourse.tables.against_model import Compare
from milp_recourse.tables.arguments import check_path, written_to
from milp_recourse.tables.columns import TableColumn
from milp_recourse.tables.people_rows import Rows, chosen, values_in_file

WAIT = 10
"""Answers wait for being written at most this many times as long as the last writing took: the model is
asked about them together, which for some models takes hardly longer than for one."""


def document_of(population: Population, rows: Rows, columns: Sequence[TableColumn]) -> dict[str, Any]:
    """The people as a ``population-1`` document; those who could not be read with their values in the
    table."""
    return population_to_dict(population, {i: values_in_file(rows, columns, i) for i in rows.faults})


@contextmanager
def opened(
    argument: str,
    folder: str | Path,
    document: Mapping[str, Any],
    options: Mapping[str, Any],
    confirmed: bool,
    words: OwnWords,
    sources: Mapping[str, Any],
) -> Iterator[PopulationFolder]:
    """A folder that is locked, holds the problem, and is summed up at the end, also on Ctrl-C.

    Parameters
    ----------
    argument
        The argument that errors about the folder name.
    document
        The problem, as :func:`document_of` makes it.
    options, confirmed
        As for :class:`~milp_recourse.reports.population_folder.PopulationFolder`.
    sources
        Where the problem's assumptions come from, as :func:`~milp_recourse.tables.inferred.sources_of` says.

    Raises
    ------
    BadInput
        It cannot be written, or holds another run.
    MachineFailed
        The disk is full or broken, or another process writes the folder.
    """
    check_path(argument, folder, "the path of a folder")
    where = Path(folder)
    with written_to(argument), only_writer(where):
        run = PopulationFolder(where, population_from_dict(document), dict(options), confirmed)
        write_json(document, where / "population.json")
        if words != OwnWords():
            write_json(words.to_dict(), where / WORDS_FILE)
        if sources:
            write_json(sources, where / SOURCES_FILE)
        try:
            yield run
        except KeyboardInterrupt:
            run.summarise()
            raise
        run.summarise()


class Kept:
    """The answers that a folder keeps: those of an earlier run, and those that are added.

    Parameters
    ----------
    run
        The folder; None: nothing is kept.
    rows, population
        The people and their problems.
    compare
        As in :class:`~milp_recourse.tables.answers.Answers`.
    """

    def __init__(self, run: PopulationFolder | None, rows: Rows, population: Population, compare: Compare):
        self.run, self.rows, self.population, self.compare = run, rows, population, compare
        self.waiting: dict[int, Result] = {}
        self.next = 0.0

    def known(self, wanted: Iterable[int]) -> dict[int, Result]:
        """The answers of an earlier run, by position. People who cannot be read get their rows here."""
        run, found = self.run, dict[int, Result]()
        if run is None:
            return found
        run.left(range(len(self.population)))
        done = run.done.intersection(wanted)
        for row in rows_of(run.table) if done else ():
            i = int(row["index"])
            if i in done:
                result = result_in(row, self.population[i], f"results.csv: index {i}")
                if row["certificate"]:
                    result = result.noted(None, evidence=extract(run.folder, i))
                    _compared(result, f"results.csv: index {i}")
                found[i] = result
        return found

    def add(self, i: int, result: Result) -> None:
        """Keep an answer: it is written now, or with the next ones in a moment."""
        if self.run is None:
            return
        self.waiting[i] = result
        if time.monotonic() >= self.next:
            self.write()

    def write(self) -> None:
        """Compare the answers that wait with the model, and write their rows."""
        if self.run is None or not self.waiting:
            return
        start, some = time.monotonic(), sorted(self.waiting)
        problems = Population.of(
            self.population.template,
            [self.population.factuals[i] for i in some],
            [self.population.preferences[i] for i in some],
            {},
            margins=[self.population.margin_of(i) for i in some],
        )
        rows = chosen(self.rows, some)
        compared, confirmed = self.compare(
            rows=rows, results=[self.waiting[i] for i in some], population=problems
        )
        for i, result, word in zip(some, compared, confirmed, strict=True):
            self.run.add(i, result, word)
        self.waiting.clear()
        now = time.monotonic()
        self.next = now + WAIT * (now - start)


def _compared(result: Result, where: str) -> None:
    """Raise :class:`BadInput` where a row says something else than its certificate."""
    try:
        said = json.loads(gzip.decompress(result.evidence or b""))
        claim = said["claim"], said["lower_bound"]
    except (OSError, EOFError, ValueError, KeyError, TypeError):
        claim = None
    status = result.status.value if result.status.value != "limit" else "bounds"
    if claim != (status, result.lower_bound):
        raise BadInput(where, f"{status} with another certificate", "what certify wrote")


@contextmanager
def kept(
    out: str | Path | None,
    population: Population,
    rows: Rows,
    columns: Sequence[TableColumn],
    options: Mapping[str, Any],
    confirmed: bool,
    words: OwnWords,
    sources: Mapping[str, Any],
    compare: Compare,
) -> Iterator[Kept]:
    """The answers of ``certify`` that the folder ``out`` keeps (None: none are), see :class:`Kept`."""
    if out is None:
        yield Kept(None, rows, population, compare)
        return
    document = document_of(population, rows, columns)
    with opened("out", out, document, options, confirmed, words, sources) as run:
        keeps = Kept(run, rows, population, compare)
        try:
            yield keeps
        except KeyboardInterrupt:
            keeps.write()
            raise
        keeps.write()

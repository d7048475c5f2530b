"""A population's results on disk: one row per applicant as it is solved, and a way to go on.

``results.csv`` grows row by row, as applicants are finished, and an applicant's
``certificates/<index>.json.gz`` is there before its row; of more than a thousand applicants every thousand
are packed into an archive when they are done. When the run ends, the rows are put in the
order of the applicants. ``run.json`` says what input and options they belong to; ``results.json`` is the
summary. Running the same command again keeps every whole row and solves the rest; another input or other
options are refused.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from milp_recourse.errors import MACHINE, BadInput, MachineFailed
from milp_recourse.formats.strict_json import read_json, write_json, write_whole
from milp_recourse.formats.write import population_digest
from milp_recourse.instance import Population
from milp_recourse.reports.certificate_files import CHUNK, pack, store_certificate
from milp_recourse.reports.result_rows import (
    BAD_INPUT,
    cells,
    cells_of_unread,
    csv_line,
    header,
    one_line,
)
from milp_recourse.reports.summary import Tally
from milp_recourse.result import Result, Status

RUN_FORMAT = "milp-recourse/run-1"
_STATUSES = frozenset(status.value for status in Status) | {BAD_INPUT}


class PopulationFolder:
    """The folder of one population's run.

    Parameters
    ----------
    folder
        Made if it does not exist.
    population
        The applicants.
    options
        Back end and time limit: what a resumed run must share.
    confirmed
        Whether there is a model whose own answer every row states (last column). Where rows that are there
        have that column, those to come have it too, empty without a model.

    Attributes
    ----------
    done
        Indices of the applicants whose row is there.
    damaged
        Numbers of the lines of results.csv that were no rows of this run when the folder was opened, the
        unfinished last line of a killed run aside; their applicants count as not done.

    Raises
    ------
    BadInput
        The folder cannot be written, or holds the results of something else.
    """

    def __init__(
        self, folder: Path, population: Population, options: dict[str, Any], confirmed: bool = False
    ) -> None:
        self.folder, self.options, self.population, self.confirmed = folder, options, population, confirmed
        self.features = [f.name for f in population.template.features]
        self.columns = header(self.features, population.ids is not None, confirmed)
        self.table = folder / "results.csv"
        make_folder(folder)
        self._claim(population_digest(population))
        self.tally = Tally()
        self.done: set[int] = set()
        self.chunks: Counter[int] = Counter()
        self.damaged: list[int] = []
        self._last, self._ordered = -1, True
        self._read()

    def left(self, wanted: Iterable[int]) -> list[int]:
        """Who of the wanted has no row yet; those who cannot be read get theirs now."""
        missing = [k for k in wanted if k not in self.done]
        for k in missing:
            if k in self.population.unreadable:
                reason = str(self.population.unreadable[k])
                self._append(cells_of_unread(k, reason, self.features), None)
        return [k for k in missing if k not in self.done]

    def add(self, index: int, result: Result, confirmed: bool | None = None) -> None:
        """Append an applicant's row; the system has it when this returns, so that a kill loses none.

        Parameters
        ----------
        confirmed
            What the model itself says; None where it was not asked.

        Raises
        ------
        MachineFailed
            The disk is full; nothing of the row is left.
        """
        self._append(cells(index, store_certificate(result, index, self.folder), self.features), confirmed)
        if len(self.population) > CHUNK and self.chunks[index // CHUNK] == CHUNK:
            pack(self.folder, index // CHUNK)

    def summarise(self) -> dict[str, Any]:
        """Put the rows in order, pack certificates, write results.json over all rows and return it."""
        if len(self.population) > CHUNK:
            for chunk in self.chunks:
                pack(self.folder, chunk)
        if not self._ordered:
            head, *rows = self.table.read_bytes().splitlines(keepends=True)
            rows.sort(key=lambda row: int(row.partition(b",")[0]))
            write_whole(b"".join([head, *rows]), self.table)
            self._ordered, self._last = True, max(self.done)
        summary = self.tally.summary() | self.options
        write_json(summary, self.folder / "results.json")
        return summary

    def _append(self, row: list[str], confirmed: bool | None) -> None:
        index = int(row[0])
        if self.population.ids is not None:
            row = [row[0], one_line(self.population.ids[index]), *row[1:]]
        if self.confirmed:
            row = [*row, "" if confirmed is None else str(confirmed)]
        line = csv_line(row).encode()
        try:
            with self.table.open("ab", buffering=0) as stream:  # a buffer would be written after all
                end, written = stream.tell(), 0
                try:
                    while written < len(line):
                        written += stream.write(line[written:])
                except OSError:
                    stream.truncate(end)
                    raise
        except OSError as error:
            if error.errno not in MACHINE:
                raise BadInput("--out", f"{self.table}: {error}", "a folder that can be written") from None
            raise MachineFailed(f"{self.table}: row {index} not written: {error.strerror}") from None
        self._count(row)

    def _count(self, row: list[str]) -> None:
        values = dict(zip(self.columns, row, strict=True))
        index, cost = int(values["index"]), values["cost"]
        self.done.add(index)
        self.chunks[index // CHUNK] += 1
        self._ordered &= index > self._last
        self._last = max(self._last, index)
        self.tally.add(values["status"], float(cost) if cost else None, float(values["seconds"] or 0.0))

    def _claim(self, digest: str) -> None:
        """Make the folder this run's, or find that it is."""
        claim = {"format": RUN_FORMAT, "population_sha256": digest, **self.options}
        file = self.folder / "run.json"
        if file.exists():
            if read_json(file) != claim:
                raise BadInput(
                    "--out",
                    f"another run in {self.folder}",
                    "a new folder, or the same input and options",
                )
        elif self.table.exists():
            raise BadInput("--out", f"other results in {self.folder}", "a new folder")
        else:
            write_json(claim, file)

    def _read(self) -> None:
        """Take the rows that are there whole; write the table anew where it holds anything else."""
        content = self.table.read_bytes() if self.table.exists() else b""
        lines = content.splitlines(keepends=True)
        asked = header(self.features, self.population.ids is not None, True)
        if lines and lines[0] == csv_line(asked).encode():
            self.confirmed, self.columns = True, asked
        first = csv_line(self.columns).encode()
        if lines and lines[0].endswith(b"\n") and lines[0] != first:
            raise BadInput("--out", f"{self.table} with other columns", "a new folder")
        good = [first]
        for number, line in enumerate(lines[1:], start=2):
            row = self._row(line)
            if row is not None:
                self._count(row)
                good.append(line)
            elif line.endswith(b"\n"):
                self.damaged.append(number)
        if len(good) != len(lines):
            write_whole(b"".join(good), self.table)

    def _row(self, line: bytes) -> list[str] | None:
        """The cells of a line, if it can be an applicant's row."""
        try:
            [row] = csv.reader([line.decode("utf-8")], strict=True)
            values = dict(zip(self.columns, row, strict=True))
            index = int(values["index"])
            numbers = [float(values[name] or 0) for name in ("cost", "lower_bound", "gap", "seconds")]
        except (ValueError, csv.Error):
            return None
        ids = self.population.ids
        fits = (
            line.endswith(b"\n")
            and values["index"] == str(index)
            and 0 <= index < len(self.population)
            and index not in self.done
            and values["status"] in _STATUSES
            and all(number >= 0 for number in numbers)
            and (ids is None or values["id"] == one_line(ids[index]))
        )
        return row if fits else None


def refuse_foreign(folder: Path) -> None:
    """Raise BadInput where a population's results lie, which nothing else may overwrite."""
    if (folder / "run.json").exists():
        raise BadInput("--out", f"a population's run in {folder}", "another folder")


def make_folder(folder: Path) -> None:
    """The folder, made if need be.

    Raises
    ------
    BadInput
        It cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in MACHINE:
            raise MachineFailed(f"{folder}: {error.strerror}") from None
        raise BadInput("--out", f"{folder}: {error}", "a folder that can be written") from None

"""A population's results in a folder, written as applicants are solved, so that a run can be resumed.

``results.csv`` gets a row whenever an applicant is finished; the applicant's ``certificates/<index>.json.gz``
is written before it. If there are more than a thousand applicants, every thousand certificates are packed
into an archive as soon as all of them are finished, the others when the run ends. Then the rows are put in
the order of the applicants. ``run.json`` identifies the input and the options, and ``results.json`` is the
summary. Running the same command again keeps every complete row and solves the rest; another input or other
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
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result
from milp_recourse.reports.certificate_files import CHUNK, pack, store_certificate, stored
from milp_recourse.reports.folder_lock import append_whole, make_folder
from milp_recourse.reports.result_rows import cells, csv_line, header, one_line
from milp_recourse.reports.summary import Tally
from milp_recourse.reports.view import STATUSES, person_of, unread

RUN_FORMAT = "milp-recourse/run-1"


class PopulationFolder:
    """The folder of one population's run.

    Parameters
    ----------
    folder
        The folder, which is made if it does not exist.
    population
        The applicants.
    options
        Back end, time limit and the like; a resumed run must have the same ones.
    confirmed
        Whether there is a last column ``confirmed``, for the answer of the model's own ``predict``. If the
        folder already has rows with this column, it stays, and is empty without a model.

    Attributes
    ----------
    done
        Indices of the applicants who have a row.
    damaged
        Numbers of the lines in results.csv that were no rows of this run when the folder was opened, except
        for the unfinished last line of a killed run. Their applicants count as not done.
    lost
        Applicants whose row named a certificate that was not there when the folder was opened. Their rows
        are removed, and they count as not done.

    Raises
    ------
    BadInput
        The folder cannot be written, or holds the results of another run.
    MachineFailed
        The disk is full or broken.
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
        self.lost: list[int] = []
        self._last, self._ordered = -1, True
        self._read()

    def left(self, wanted: Iterable[int]) -> list[int]:
        """The wanted applicants who have no row yet; rows of those who cannot be read are written here."""
        missing = [k for k in wanted if k not in self.done]
        for k in missing:
            if k in self.population.unreadable:
                person = unread(str(self.population.unreadable[k]))
                self._append(cells(k, person, self.features), None)
        return [k for k in missing if k not in self.done]

    def add(self, index: int, result: Result, confirmed: bool | None = None) -> None:
        """Append an applicant's row, so that killing the process afterwards does not lose it.

        Parameters
        ----------
        confirmed
            Whether the model's own ``predict`` confirms the action; None if it was not called.

        Raises
        ------
        BadInput
            The file cannot be written.
        MachineFailed
            The disk is full or broken; nothing of the row is left in the file.
        """
        person = person_of(store_certificate(result, index, self.folder), self.population[index])
        self._append(cells(index, person, self.features), confirmed)
        if len(self.population) > CHUNK and self.chunks[index // CHUNK] == CHUNK:
            pack(self.folder, index // CHUNK)

    def summarise(self) -> dict[str, Any]:
        """Sort the rows, pack certificates, write results.json about all rows, and return its content."""
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
            with self.table.open("ab", buffering=0) as stream:  # a buffer would be flushed after the truncate
                append_whole(line, stream)
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
        """Write run.json, or check that the folder's run.json is the same.

        Raises
        ------
        BadInput
            The folder belongs to another run, or has results without run.json.
        """
        claim = {"format": RUN_FORMAT, "population_sha256": digest, **self.options}
        file = self.folder / "run.json"
        if file.exists():
            if read_json(file) != claim:
                raise BadInput(
                    "--out", f"another run in {self.folder}", "a new folder, or the same input and options"
                )
        elif self.table.exists():
            raise BadInput("--out", f"other results in {self.folder}", "a new folder")
        else:
            write_json(claim, file)

    def _read(self) -> None:
        """Read the complete rows of an earlier run; rewrite the table if it has any other lines."""
        content = self.table.read_bytes() if self.table.exists() else b""
        lines = content.splitlines(keepends=True)
        with_confirmed = header(self.features, self.population.ids is not None, True)
        if lines and lines[0] == csv_line(with_confirmed).encode():
            self.confirmed, self.columns = True, with_confirmed
        first = csv_line(self.columns).encode()
        if lines and lines[0].endswith(b"\n") and lines[0] != first:
            raise BadInput("--out", f"{self.table} with other columns", "a new folder")
        good, there = [first], stored(self.folder)
        for number, line in enumerate(lines[1:], start=2):
            row = self._row(line)
            if row is not None and row[self.columns.index("certificate")] and int(row[0]) not in there:
                self.lost.append(int(row[0]))
            elif row is not None:
                self._count(row)
                good.append(line)
            elif line.endswith(b"\n"):
                self.damaged.append(number)
        if good != lines:
            write_whole(b"".join(good), self.table)

    def _row(self, line: bytes) -> list[str] | None:
        """The cells of a line if it is a complete row of an applicant, else None."""
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
            and values["status"] in STATUSES
            and all(number >= 0 for number in numbers)
            and (ids is None or values["id"] == one_line(ids[index]))
        )
        return row if fits else None

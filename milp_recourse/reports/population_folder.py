"""A population's results on disk: one row per applicant as it is solved, and a way to go on.

``results.csv`` grows row by row, and an applicant's ``certificates/<index>.json.gz`` is there before
its row; ``run.json`` says what input and options they belong to; ``results.json`` is the summary.
Running the same command again goes on after the last complete row; another input or other options
are refused.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from milp_recourse.errors import BadInput
from milp_recourse.formats.strict_json import read_json, write_json, write_whole
from milp_recourse.formats.write import population_digest
from milp_recourse.instance import Population
from milp_recourse.reports.summary import Tally
from milp_recourse.reports.table import cells, csv_line, header
from milp_recourse.result import Result

RUN_FORMAT = "milp-recourse/run-1"


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

    Raises
    ------
    BadInput
        The folder cannot be written, or holds the results of something else.
    """

    def __init__(self, folder: Path, population: Population, options: dict[str, Any]) -> None:
        self.folder, self.options = folder, options
        self.features = [f.name for f in population.template.features]
        self.table = folder / "results.csv"
        make_folder(folder)
        self._claim(population_digest(population))
        self.tally = Tally()
        end = self._count_complete()
        with self.table.open("r+b" if end else "wb") as stream:
            if end:
                stream.truncate(end)
            else:
                stream.write(csv_line(header(self.features)).encode())

    @property
    def done(self) -> int:
        """Applicants whose row is complete."""
        return self.tally.applicants

    def add(self, result: Result) -> None:
        """Append the next applicant's row; the system has it when this returns, so that a kill loses none."""
        row = cells(self.done, store_certificate(result, self.done, self.folder), self.features)
        with self.table.open("a", encoding="utf-8", newline="") as stream:
            stream.write(csv_line(row))
        self._count(row)

    def summarise(self) -> dict[str, Any]:
        """Write results.json over all rows so far and return it."""
        summary = self.tally.summary() | self.options
        write_json(summary, self.folder / "results.json")
        return summary

    def _count(self, row: list[str]) -> None:
        self.tally.add(row[1], float(row[2]) if row[2] else None, float(row[7]))

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

    def _count_complete(self) -> int:
        """Count the rows that are there whole and in order; where they end in the file, in bytes."""
        if not self.table.exists():
            return 0
        end = read = 0
        columns = header(self.features)
        with self.table.open("rb") as stream:

            def lines() -> Iterator[str]:
                nonlocal read
                for line in stream:
                    if not line.endswith(b"\n"):
                        return
                    read += len(line)
                    yield line.decode("utf-8", "replace")

            for k, row in enumerate(csv.reader(lines())):
                if k == 0 and row != columns:
                    raise BadInput("--out", f"{self.table} with other columns", "a new folder")
                if k > 0:
                    if len(row) != len(columns) or row[0] != str(k - 1):
                        break
                    self._count(row)
                end = read
        return end


def store_certificate(result: Result, index: int, folder: Path) -> Result:
    """Write the certificate, if there is one, as certificates/<index>.json.gz; the result with its path."""
    if result.evidence is None:
        return result
    path = Path("certificates") / f"{index}.json.gz"
    (folder / "certificates").mkdir(exist_ok=True)
    write_whole(result.evidence, folder / path)
    return replace(result, certificate=path.as_posix(), evidence=None)


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
        raise BadInput("--out", f"{folder}: {error}", "a folder that can be written") from None

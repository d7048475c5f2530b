"""A CSV table that keeps only where each row begins in the file, and reads a row when it is asked for."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator
from pathlib import Path

from verify.files.reading import LARGEST_FILE
from verify.kernel.checks import Rejected


class Lines:
    """A CSV file with a header; empty lines do not count.

    Attributes
    ----------
    header
        The first line's cells; [] in an empty file.
    starts
        Where each row starts in the file, 8 bytes each.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.starts = path, array("Q")
        rows = self._read(0)
        self.header = next(rows, (0, []))[1]
        for start, _ in rows:
            self.starts.append(start)

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[list[str]]:
        """Every row after the header, in order."""
        rows = self._read(0)
        next(rows, None)
        return (cells for _, cells in rows)

    def __getitem__(self, k: int) -> list[str]:
        return next(self._read(self.starts[k]))[1]

    def _read(self, start: int) -> Iterator[tuple[int, list[str]]]:
        """The rows from a place in the file on, each with its own place."""
        if not self.path.is_file():  # opening a pipe would wait
            raise Rejected(f"{self.path.name}: no such file")
        place = [start]  # where the next line begins: csv.reader takes a line only when it needs one
        try:
            with self.path.open("rb") as stream:
                stream.seek(start)

                def lines() -> Iterator[str]:
                    while line := stream.readline(LARGEST_FILE + 1):
                        if len(line) > LARGEST_FILE:
                            raise Rejected(f"{self.path.name}: a line of more than {LARGEST_FILE} bytes")
                        text = line.decode("utf-8-sig" if not place[0] else "utf-8")
                        place[0] += len(line)
                        yield text

                reader, here = csv.reader(lines()), start
                for cells in reader:
                    if cells:
                        yield here, cells
                    here = place[0]
        except (OSError, ValueError, csv.Error) as error:
            raise Rejected(f"{self.path.name}: unreadable: {error}") from None

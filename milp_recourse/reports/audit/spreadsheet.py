"""Tables as one spreadsheet, whose bytes depend on the tables alone."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence

from milp_recourse.errors import BackendUnavailable
from milp_recourse.reports.certificate_files import zipped

WIDEST = 60
"""The most characters that a column is wide."""

_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_TIMES = re.compile(rb"(<dcterms:(created|modified)[^>]*>)[^<]*")
_LONGEST = 32_767
"""The most characters of a cell."""


def spreadsheet(sheets: Mapping[str, Sequence[Sequence[str]]], numbers: frozenset[str]) -> bytes:
    """An ``.xlsx`` file with a sheet per table, whose first row stays in sight.

    Parameters
    ----------
    sheets
        Tables by name, the first row of each its headings. Text that begins like a formula stays text.
    numbers
        Headings of columns of numbers.

    Raises
    ------
    BackendUnavailable
        openpyxl is not installed.
    """
    try:
        from openpyxl import Workbook
        from openpyxl.cell import WriteOnlyCell
        from openpyxl.styles import Alignment, Font
        from openpyxl.utils import get_column_letter
    except ImportError:
        needs = "the spreadsheet of an audit: not installed; pip install 'milp-recourse[audit]'"
        raise BackendUnavailable(needs) from None
    book, bold, wrapped = (
        Workbook(write_only=True),
        Font(bold=True),
        Alignment(wrap_text=True, vertical="top"),
    )
    for name, (head, *rows) in sheets.items():
        sheet = book.create_sheet(name)
        sheet.freeze_panes = "A2"
        for k in range(len(head)):
            longest = max((len(row[k]) for row in (head, *rows[:500])), default=0)
            sheet.column_dimensions[get_column_letter(k + 1)].width = min(WIDEST, longest + 2)
        for at, row in enumerate((head, *rows)):
            cells = []
            for title, text in zip(head, row, strict=True):
                number = at and title in numbers and text
                cell = WriteOnlyCell(
                    sheet, float(text) if number else _NO_TEXT.sub("\ufffd", text)[:_LONGEST]
                )
                if not number:
                    cell.data_type = "s"
                if not at:
                    cell.font = bold
                elif len(text) > WIDEST:
                    cell.alignment = wrapped
                cells.append(cell)
            sheet.append(cells)
    buffer = io.BytesIO()
    book.save(buffer)
    return zipped(dict(_members(buffer)), zipfile.ZIP_DEFLATED)


def _members(buffer: io.BytesIO) -> Iterator[tuple[str, bytes]]:
    """The parts of a workbook, without the time at which it was written."""
    with zipfile.ZipFile(buffer) as book:
        for name in sorted(book.namelist()):
            content = book.read(name)
            if name == "docProps/core.xml":
                content = _TIMES.sub(rb"\g<1>1980-01-01T00:00:00Z", content)
            yield name, content

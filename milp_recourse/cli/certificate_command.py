"""``milp-recourse certificate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from milp_recourse.cli.shared import Folder, a_file


def certificate(
    folder: Folder,
    index: Annotated[int, typer.Argument(help="the person, from 0")],
    out: Annotated[
        Path, typer.Option(metavar="CERT", help="the file to write, .json or .json.gz", callback=a_file)
    ],
) -> None:
    """Write one person's certificate from a folder of results, where it is a file or in an archive."""
    from milp_recourse.formats.strict_json import write_gzipped
    from milp_recourse.reports.certificate_files import extract

    write_gzipped(extract(folder, index), out)

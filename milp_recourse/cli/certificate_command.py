"""``milp-recourse certificate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def certificate(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="what certify wrote")],
    index: Annotated[int, typer.Argument(help="the person, from 0")],
    out: Annotated[Path, typer.Option(metavar="CERT", help="where it goes: .json, or .json.gz")],
) -> None:
    """Take one person's certificate out of a folder of results, whether it has a file of its own or not."""
    from gzip import decompress

    from milp_recourse.formats.strict_json import write_whole
    from milp_recourse.reports.certificate_files import extract

    found = extract(folder, index)
    write_whole(found if out.suffix == ".gz" else decompress(found), out)

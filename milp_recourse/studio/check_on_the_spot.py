"""Runs the checker ``verify/`` on a certificate, as a process of its own, and keeps what it said."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE, STDOUT
from dataclasses import dataclass
from gzip import decompress
from pathlib import Path
from tempfile import TemporaryDirectory

from milp_recourse.certificates import reason_for_none
from milp_recourse.formats.write import write_instance
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result
from milp_recourse.solvers.processes import python

SECONDS = 60

COMMAND = "python -m verify certificate.json problem.json"
"""What was run, with the names of the files as they are downloaded."""


@dataclass(frozen=True)
class Checked:
    """What the checker printed, and whether it verified the certificate."""

    command: str
    line: str
    verified: bool


async def checked_by_verify(problem: Instance, result: Result) -> Checked:
    """Let the checker read the certificate of a result; it sees two files and nothing else."""
    if result.evidence is None:
        return Checked(COMMAND, f"no certificate: {reason_for_none(problem, result)}", False)
    with TemporaryDirectory() as folder:
        certificate, file = Path(folder) / "certificate.json", Path(folder) / "problem.json"
        certificate.write_bytes(decompress(result.evidence))
        write_instance(problem, file)
        run = python("from verify.__main__ import main; sys.exit(main(sys.argv[1:]))", "verify")
        given = (*run, str(certificate), str(file), f"--seconds={SECONDS}")
        process = await asyncio.create_subprocess_exec(*given, stdout=PIPE, stderr=STDOUT)
        try:
            said, _ = await asyncio.wait_for(process.communicate(), 2 * SECONDS)
        except TimeoutError:
            process.kill()
            return Checked(COMMAND, f"not finished after {2 * SECONDS} seconds", False)
        line = said.decode("utf-8", "replace").replace(folder, ".").strip()
        return Checked(COMMAND, line, process.returncode == 0)

"""``python -m verify CERT INSTANCE`` and ``python -m verify DIR POPULATION_OR_INSTANCES``.

Exit codes: 0 if everything was verified; 4 if a certificate was rejected; 2 if there was nothing to check, or
for wrong usage, such as a path that does not exist; 1 if another run writes the journal, or if the
journal or what is printed cannot be written: a full disk, say; 130 on Ctrl-C.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from pathlib import Path

from verify.files.check import Outcome, examine, plain
from verify.files.manifest import MANIFEST, compared
from verify.files.many import Check, Mapped, Processes, Unusable, by_digest
from verify.kernel.checks import Rejected

__all__ = ["Outcome", "examine", "main"]


def duration(text: str) -> float:
    """A number of seconds above 0."""
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"got {text}; allowed: a number of seconds above 0")
    return value


def count(text: str) -> int:
    """A whole number above 0."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"got {text}; allowed: a whole number above 0")
    return int(text)


def main(arguments: list[str] | None = None, mapped: Mapped | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    mapped
        Runs the parts of a folder's check, on a cluster, say; what it raises is not caught. None: processes
        on this machine.
    """
    parser = argparse.ArgumentParser(prog="python -m verify", description=__doc__.splitlines()[0])
    parser.epilog = "Sections that a REJECTED line names are those of docs/certificate_spec_v2.md."
    parser.add_argument("certificate", type=Path, help="a certificate, or a folder of them")
    help_ = "the instance, population, or folder of instances; default: population.json in the folder"
    parser.add_argument("instance", type=Path, nargs="?", help=help_)
    parser.add_argument("--seconds", type=duration, default=3600.0, help="most time for one certificate")
    parser.add_argument("--jobs", type=count, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--sample", type=count, help="check so many of a folder, drawn at random")
    help_ = "a journal of what was verified: certificates in it are skipped, others are added"
    parser.add_argument("--resume", type=Path, metavar="FILE", help=help_)
    help_ = "use verify/kernel alone, without the faster bounds of verify/fast"
    parser.add_argument("--slow", action="store_true", help=help_)
    given = parser.parse_args(arguments)
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    if given.instance is None:
        given.instance = given.certificate / "population.json"
        if given.certificate.exists() and not given.instance.exists():
            problem = f"no instance is named, and there is no {plain(str(given.instance))}"
            hint = "name the file that was certified: verify CERT_OR_DIR INSTANCE_OR_POPULATION"
            sys.stderr.write(f"verify: {problem}: {hint}\n")
            return 2
    for path in (given.certificate, given.instance):
        if not path.exists():
            sys.stderr.write(f"verify: {plain(str(path))}: no such file or folder\n")
            return 2
    if os.path.lexists(given.certificate / MANIFEST):
        try:
            print(plain(compared(given.certificate)))
        except Rejected as reason:
            print(plain(f"REJECTED: {reason}"))
            return 4
    instances = by_digest(given.instance) if given.instance.is_dir() else given.instance
    if given.certificate.is_dir():
        try:
            run = mapped or Processes(given.jobs).map
            check = Check(given.certificate, instances, given.seconds, given.slow)
            return check.run(run, given.sample, given.resume)
        except Unusable as reason:
            sys.stderr.write(f"verify: {reason}\n")
            return reason.code
        except Rejected as reason:
            print(plain(f"REJECTED: {reason}"))
            return 4
        except Exception as error:  # a check that fails to run proves nothing
            if mapped is not None:
                raise
            print(plain(f"REJECTED: the check failed: {type(error).__name__}: {error}"))
            return 4
    outcome = examine(given.certificate, instances, given.seconds, slow=given.slow, jobs=given.jobs)
    print(outcome.line)
    return 0 if outcome.claim else 4


def run() -> int:
    """Run the command line of this process; what stdout cannot take is exit code 1, and one line unless its
    reader has ended."""
    try:
        code = main()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        sys.stderr.write("verify: interrupted\n")
        return 130
    except BrokenPipeError:
        pass
    except OSError as error:
        sys.stderr.write(f"verify: the machine failed: {plain(str(error))}\n")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python writes again what is buffered
    return 1


if __name__ == "__main__":
    sys.exit(run())

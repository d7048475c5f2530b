"""The command-line application with all commands, and the function that runs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

import typer

from milp_recourse.cli.alternatives_command import alternatives
from milp_recourse.cli.backends_command import backends
from milp_recourse.cli.certificate_command import certificate
from milp_recourse.cli.certify_command import certify
from milp_recourse.cli.choices_command import choices
from milp_recourse.cli.common_options import kept_apart
from milp_recourse.cli.evaluate_command import evaluate
from milp_recourse.cli.exit_codes import BAD_INPUT, DONE, INTERRUPTED, MACHINE_FAILED, Interrupted
from milp_recourse.cli.export_command import export
from milp_recourse.cli.front_command import front
from milp_recourse.cli.prepare_command import prepare
from milp_recourse.cli.prove_command import prove
from milp_recourse.cli.report_command import report
from milp_recourse.cli.robust_command import robust
from milp_recourse.cli.solve_command import solve
from milp_recourse.cli.verify_command import verify
from milp_recourse.cli.why_command import why
from milp_recourse.errors import MachineFailed, RecourseError
from milp_recourse.lab.benchmarks import bench_commands as benchmarks
from milp_recourse.lab.gap import icarma_commands as icarma
from milp_recourse.lab.recipe import recipe_commands as recipe
from milp_recourse.lab.studies.gmsc.gmsc_command import gmsc
from milp_recourse.lab.studies.reproduce_command import reproduce
from milp_recourse.processes import safe_path

app = typer.Typer(
    help="Exact, proven algorithmic recourse: the least an applicant must change to be accepted.",
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
)

COMMANDS: tuple[Callable[..., None], ...] = (
    certify,
    solve,
    prove,
    verify,
    certificate,
    alternatives,
    choices,
    robust,
    why,
    front,
    prepare,
    backends,
    export,
    report,
    evaluate,
    reproduce,
    gmsc,
    icarma.gap,
)
"""The commands, in the order of ``milp-recourse --help``."""

GROUPS = {
    "recipe": (recipe.app, "Make the shipped instances again."),
    "bench": (benchmarks.app, "Time back ends against each other."),
    "icarma": (icarma.app, "Recourse from trained networks: train, predict, evaluate."),
}
"""Groups of commands, with their help."""

for _command in COMMANDS:
    app.command()(kept_apart(_command))
for _name, (_group, _help) in GROUPS.items():
    for _info in _group.registered_commands:
        _info.callback = _info.callback and kept_apart(_info.callback)
    app.add_typer(_group, name=_name, help=_help)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors become one line on stderr."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    command = typer.main.get_command(app)
    try:
        with safe_path():
            code = command.main(args=given or ["--help"], prog_name="milp-recourse", standalone_mode=False)
        sys.stdout.flush()
    except MachineFailed as error:
        return _fail(str(error), MACHINE_FAILED)
    except RecourseError as error:
        return _fail(str(error))
    except BrokenPipeError:  # the process that read our output has ended
        _drop_unwritten()
        return MACHINE_FAILED
    except (OSError, MemoryError) as error:
        _drop_unwritten()
        return _fail(f"the machine failed: {error or type(error).__name__}", MACHINE_FAILED)
    except Interrupted as error:
        return _fail(str(error), INTERRUPTED)
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:
        usage = getattr(error, "format_message", None)
        if usage is None:
            raise
        return _fail(f"{usage()} (see milp-recourse --help)")
    if code == INTERRUPTED:  # Typer turned Ctrl-C into an exit code without a message
        return _fail("interrupted", INTERRUPTED)
    return code if isinstance(code, int) else DONE


def _drop_unwritten() -> None:
    """Let what stdout and stderr cannot write go nowhere: Python would try again at its end, and exit with
    120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _fail(line: str, code: int = BAD_INPUT) -> int:
    """Write one line to stderr, with characters that it cannot encode escaped; return the code."""
    text = f"milp-recourse: {' '.join(line.split())}\n"
    sys.stderr.write(text.encode("utf-8", "backslashreplace").decode())
    return code

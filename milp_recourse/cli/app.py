"""The command-line application with all commands, and the function that runs it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from milp_recourse.cli.exit_codes import BAD_INPUT, DONE, INTERRUPTED, MACHINE_FAILED, Interrupted
from milp_recourse.cli.shared import kept_apart
from milp_recourse.errors import MachineFailed, RecourseError

COMMANDS = {
    "certify": "Solve an instance, a population or the shipped instances, and write results to DIR.",
    "solve": "Solve one instance and print the answer.",
    "prove": "Check anybody's action and prove how far it is from the optimum.",
    "verify": "Check certificates, as python -m verify does, which uses no code of this package.",
    "certificate": "Write one person's certificate from a folder of results.",
    "alternatives": "The cheapest distinct recourses of one applicant, cheapest first.",
    "choices": "The cheapest recourses that differ, each proven to be the cheapest given those before it.",
    "interview": "Ask a person which recourses they prefer, and recommend the certified best one for them.",
    "robust": "The cheapest action that is accepted even if not everything turns out as planned.",
    "regions": "Around the cheapest action, the box in which everything is accepted, proven.",
    "why": "Which restrictions prevent recourse, what each one costs, and how little widening suffices.",
    "front": "Cost against the number of features acted on, or against density: every point proven.",
    "share": "Share the cost with an institution: the cheapest joint plans, within a budget for all.",
    "prepare": "Write a population with another cost or plausibility, computed from data.",
    "backends": "Which back ends are usable here, and why not.",
    "export": "Write the problem as a mathematical program that other solvers read.",
    "report": "Write results as one HTML file to look at: a population, or one person.",
    "letter": "Write one person's letter: what to change, what follows, what it does not promise.",
    "audit": "Write the file for an auditor: answers, proofs, reasons, assumptions, and how to check them.",
    "studio": "Open a local page on which a person and an adviser find a way, with proof.",
    "evaluate": "Compare any method's recourse with the certified optima.",
}
"""The commands, in the order of ``milp-recourse --help``, and what it says of them.

Each is the function of its name in ``cli/NAME_command.py``, which is imported when the command is asked for.
"""

PLUGINS = "milp_recourse.commands"
"""Entry points of this group are further commands: each names a :class:`typer.Typer`. This package's own are
``icarma`` and ``lab``, the experiments, of which the command line knows nothing else."""


class _Commands(TyperGroup):
    """The commands of :data:`COMMANDS` and those of :data:`PLUGINS`, each imported when it is asked for."""

    listing = False
    """Whether all commands are being listed, which imports none of :data:`COMMANDS`."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """List the commands."""
        self.listing = True
        super().format_help(ctx, formatter)

    def list_commands(self, ctx: Any) -> list[str]:
        """Names, the package's first."""
        return [*COMMANDS, *_plugins()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name; None if there is none."""
        if cmd_name in COMMANDS:
            if self.listing:
                return TyperCommand(cmd_name, help=COMMANDS[cmd_name])
            module = import_module(f"milp_recourse.cli.{cmd_name}_command")
            alone = typer.Typer(add_completion=False)
            alone.command(cmd_name)(kept_apart(getattr(module, cmd_name)))
            return typer.main.get_command(alone)
        if cmd_name not in _plugins():
            return None
        if self.listing:
            return TyperCommand(cmd_name, help=_loaded(cmd_name).info.help)
        found = typer.main.get_command(_loaded(cmd_name))
        found.name = cmd_name
        return found


@cache
def _plugins() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in sorted(entry_points(group=PLUGINS))}


@cache
def _loaded(name: str) -> typer.Typer:
    """A plug-in's commands, each of which keeps what it writes apart from what it reads."""
    groups: list[typer.Typer] = [_plugins()[name].load()]
    for group in groups:
        groups += [inner.typer_instance for inner in group.registered_groups if inner.typer_instance]
        for info in group.registered_commands:
            info.callback = info.callback and kept_apart(info.callback)
    return groups[0]


app = typer.Typer(
    cls=_Commands,
    help="Exact, proven algorithmic recourse: the least an applicant must change to be accepted.",
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=False,
)


def _print_version(asked: bool) -> None:
    """Print the version and end, if ``--version`` is given."""
    if asked:
        try:
            known = version("milp-recourse")
        except PackageNotFoundError:
            known = "(sources, not installed)"
        typer.echo(f"milp-recourse {known}")
        raise typer.Exit


@app.callback()
def _group(
    print_version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Exact, proven algorithmic recourse: the least an applicant must change to be accepted."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors become one line on stderr."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    command = typer.main.get_command(app)
    try:
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

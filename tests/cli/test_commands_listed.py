"""What ``milp-recourse --help`` lists."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from milp_recourse.cli.app import COMMANDS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_what_the_command_says(name: str) -> None:
    """The line in the list begins as the command's own docstring does."""
    command = getattr(import_module(f"milp_recourse.cli.{name}_command"), name)
    own = " ".join(command.__doc__.split("\n\n")[0].split())
    assert own.startswith(COMMANDS[name].rstrip(".").split(",")[0][:40])


def test_every_command_is_listed() -> None:
    """A file cli/NAME_command.py is a command of that name."""
    files = {
        file.name.removesuffix("_command.py") for file in (ROOT / "milp_recourse/cli").glob("*_command.py")
    }
    assert files == set(COMMANDS)


def test_listing_imports_no_command() -> None:
    """The list is printed without what commands need: neither numpy nor pydantic is loaded."""
    code = (
        "import sys; from milp_recourse.cli import main; main(['--help']);"
        "print([m for m in ('milp_recourse.cli.solve_command', 'milp_recourse.formats') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"

"""The version, and how releases are named."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import milp_recourse
from milp_recourse.cli import main

ROOT = Path(__file__).parents[2]


def test_the_version_is_that_of_the_installed_package(capsys):
    """In Python and on the command line."""
    assert milp_recourse.__version__ == version("milp-recourse")
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"milp-recourse {milp_recourse.__version__}\n"


def test_importing_the_package_does_not_look_for_the_version():
    """Reading metadata takes longer than it is worth."""
    script = "import sys, milp_recourse; print('importlib.metadata' in vars(milp_recourse).values())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert "__version__" not in vars(milp_recourse)


def test_the_last_release_is_named_alike_everywhere():
    """In the changelog, in CITATION.cff, and as what clones without tags call themselves."""
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    fallback = known["tool"]["setuptools_scm"]["fallback_version"]
    changelog = (ROOT / "docs" / "changelog.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\d+\.\d+\.\d+)", changelog, re.MULTILINE)[0] == fallback
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, re.MULTILINE)[1] == fallback

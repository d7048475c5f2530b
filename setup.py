"""Wheels with instances/, so that `milp-recourse certify` works, and with the engine's machine code."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from shutil import copytree, ignore_patterns, rmtree

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py


class BuildWithInstances(build_py):
    """build_py, and a copy of instances/ as milp_recourse/_instances (not in editable installs)."""

    def run(self) -> None:
        """Build, then copy."""
        super().run()
        source = Path(__file__).parent / "instances"
        if source.is_dir() and not self.editable_mode:
            target = Path(self.build_lib) / "milp_recourse" / "_instances"
            copytree(source, target, dirs_exist_ok=True, ignore=ignore_patterns("__pycache__", "*.py", ".*"))


NETWORKS = "engine.networks.propose", "certificates.engine_proofs", "engine.box_bounds"
TREES = ("engine.forests.priced",)
"""Modules of the package whose function `ready` has a search compiled."""


class WheelWithCode(bdist_wheel):
    """bdist_wheel, and the engine's machine code for this Python on this kind of machine.

    With MILP_RECOURSE_PURE=1, or where compiling fails, the wheel has none and is for every machine; the
    engine is then compiled when it is first used.
    """

    def run(self) -> None:
        """Build, compile, then pack."""
        self.run_command("build")
        library = Path(self.get_finalized_command("build_py").build_lib).absolute()
        folder = library / "milp_recourse" / "engine" / "_compiled"
        rmtree(folder, ignore_errors=True)  # of an earlier build
        if not os.environ.get("MILP_RECOURSE_PURE"):
            with ThreadPoolExecutor() as threads:
                done = list(threads.map(partial(compiling, library, folder), (NETWORKS, TREES)))
            if failed := [one for one in done if one.returncode]:
                rmtree(folder, ignore_errors=True)
                why = failed[0].stderr.strip().rpartition("\n")[2]
                print(f"milp_recourse: the wheel has no compiled code: {why}", file=sys.stderr)
            else:
                self.root_is_pure = False
                self.distribution.has_ext_modules = lambda: True  # to install it where extensions go
        super().run()


def compiling(library: Path, folder: Path, modules: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """A process of its own that writes the machine code of a part of the package that was built."""
    known = {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH" and not k.startswith("NUMBA_")}
    command = [sys.executable, "-B", "-m", "milp_recourse.engine.ship", str(folder)]
    command += [f"milp_recourse.{name}" for name in modules]
    return subprocess.run(command, cwd=library, env=known, stderr=subprocess.PIPE, text=True, check=False)


setup(cmdclass={"build_py": BuildWithInstances, "bdist_wheel": WheelWithCode})

"""Packs instances/ into the package, so that `milp-recourse certify` works from a wheel."""

from pathlib import Path
from shutil import copytree, ignore_patterns

from setuptools import setup
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


setup(cmdclass={"build_py": BuildWithInstances})

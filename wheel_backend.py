"""setuptools' back end, which for a wheel also asks for what compiling the engine needs (see setup.py).

An editable install compiles nothing and needs nothing more.
"""

import os
import re
import tomllib
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403

IMPORTED = "numba", "numpy", "pydantic"
"""Those of the package's dependencies that the engine imports."""


def get_requires_for_build_wheel(config_settings=None):
    """What setuptools asks for, and the engine's dependencies as pyproject.toml states them."""
    asked = build_meta.get_requires_for_build_wheel(config_settings)
    if os.environ.get("MILP_RECOURSE_PURE"):
        return asked
    project = tomllib.loads((Path(__file__).parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return asked + [one for one in project["dependencies"] if re.split(r"[^\w-]", one)[0] in IMPORTED]

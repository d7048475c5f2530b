"""Starting Python processes that import nothing from the current folder.

``python -c`` and ``python -m`` put the current folder first on the path of modules, so a ``json.py`` that
somebody left there would run in every process that a command starts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

_START = """\
import sys
from importlib.util import module_from_spec, spec_from_file_location
sys.path += [path for path in {paths!r} if path not in sys.path]
for name, file in {packages!r}:
    spec = spec_from_file_location(name, file)
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
"""


def python(code: str, *packages: str) -> list[str]:
    """The command of an isolated process (``python -I``) that runs some code.

    Its path of modules is Python's own, then this process's without the current folder and other relative
    paths. Arguments after the command are ``sys.argv[1:]``.

    Parameters
    ----------
    packages
        Names of packages that are taken from where this process has them, wherever that is, before the code
        runs.
    """
    here = os.path.realpath(os.curdir)
    paths = [path for path in sys.path if os.path.isabs(path) and os.path.realpath(path) != here]
    specs = [(name, find_spec(name)) for name in packages]
    places = [(name, os.path.abspath(spec.origin)) for name, spec in specs if spec and spec.origin]
    return [sys.executable, "-I", "-c", _START.format(paths=paths, packages=places) + code]


@contextmanager
def safe_path() -> Iterator[None]:
    """Inside, Python processes that are started, by joblib, say, do not have the current folder on their path
    of modules, unless this process has."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("PYTHONSAFEPATH", None)
        else:
            os.environ["PYTHONSAFEPATH"] = before

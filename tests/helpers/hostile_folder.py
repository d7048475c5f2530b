"""A folder that somebody prepared: modules and programs that leave a trace when they run."""

from __future__ import annotations

from pathlib import Path

MODULES = (
    *("json", "pickle", "random", "typing", "logging", "tempfile", "struct", "runpy", "trace", "csv"),
    *("multiprocessing", "concurrent", "sitecustomize", "usercustomize"),
    *("numpy", "pandas", "numba", "joblib", "yaml", "pyarrow", "scipy", "highspy", "ortools", "pyomo"),
    *(
        "matplotlib",
        "torch",
        "onnx",
        "onnxruntime",
        "dask",
        "gurobipy",
        "filelock",
        "milp_recourse",
        "verify",
    ),
)
"""Modules that are imported by Python, by this package, or by what it imports if they are there at all."""

PROGRAMS = ("glpsol", "cbc", "scip", "gurobi_cl", "cplex", "ipopt", "python", "python3", "git")

SETTINGS = {".numba_config.yaml": "cache_dir: planted\n", "matplotlibrc": "backend: module://json\n"}


def plant(folder: Path, trace: Path) -> None:
    """Put all of them into a folder; each that runs adds its name to the file ``trace``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in MODULES:
        code = f"open({str(trace)!r}, 'a').write({name!r} + ' ')\nraise SystemExit(9)\n"
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
    for name in PROGRAMS:
        program = folder / name
        program.write_text(f"#!/bin/sh\necho {name} >>'{trace}'\n", encoding="utf-8")
        program.chmod(0o755)
    for name, text in SETTINGS.items():
        (folder / name).write_text(text, encoding="utf-8")


def ran(trace: Path) -> set[str]:
    """The names of those that ran."""
    return set(trace.read_text(encoding="utf-8").split()) if trace.exists() else set()

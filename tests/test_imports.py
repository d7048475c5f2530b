"""Imports point one way, the trust base stands alone, and importing the package loads no solver."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "milp_recourse"

ARROW = (
    "errors",
    "domain",
    ("factuals", "instance", "result"),
    "program",
    "bounds",
    "engine",
    "encodings",
    "search",
    "backends.protocol",
    "smaller",
    "judge",
    "magnitude",
    "compiling",
    "compiled",
    "forests",
    "backends",
    "readers",
    "formats",
    ("certificates", "export", "workers"),
    "solve",
    "alternatives",
    "choices",
    "robust",
    "why",
    "front",
    "prove",
    "instances_path",
    "reports",
    "frames",
    "recourse",
    "",  # milp_recourse itself: its public names
    "cli",
    "recipe",
    "benchmarks",
    "evaluation",
    "studies",
    "icarma",
    "__main__",
)
"""Each may import itself and what stands before it. A new module takes its place here first."""

ONLY = {
    "readers": {"errors", "domain", "instance", "readers"},
    "formats": {"errors", "domain", "factuals", "instance", "result", "readers", "formats"},
    "judge": {"errors", "domain", "instance", "result", "backends.protocol", "smaller"},
    "smaller": {"instance"},
    "backends.protocol": {"instance", "result"},
}
"""Stricter than the arrow: all that these may import of ours."""

HEAVY = ("torch", "zuko", "pyomo", "ortools", "highspy", "gurobipy", "sklearn", "pandas", "numba")
SOLVERS = ("highspy", "pyomo", "ortools", "gurobipy", "pyscipopt", "scipy")


def rank(part: str) -> int:
    """Place of a part in the arrow."""
    for k, entry in enumerate(ARROW):
        if part == entry or (isinstance(entry, tuple) and part in entry):
            return k
    raise AssertionError(f"milp_recourse.{part} has no place in ARROW")


def part_of(module: str) -> str:
    """The part a module of ours belongs to: its first name, or the protocol of back ends."""
    names = module.split(".")[1:]
    if names[:2] == ["backends", "protocol"]:
        return "backends.protocol"
    return names[0] if names else ""


def module_of(file: Path) -> str:
    """Dotted name of a file of the package."""
    names = list(file.relative_to(ROOT).with_suffix("").parts)
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def imported(source: str) -> Iterator[str]:
    """Every module a source imports, wherever the statement stands; a name of ours counts as its module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield "." * node.level
            elif node.module == "milp_recourse":
                yield from (
                    f"milp_recourse.{alias.name}" if exists(alias.name) else node.module
                    for alias in node.names
                )
            elif node.module == "milp_recourse.backends":
                yield from (
                    "milp_recourse.backends.protocol" if alias.name == "protocol" else node.module
                    for alias in node.names
                )
            else:
                yield str(node.module)


def exists(name: str) -> bool:
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()


def wrong_imports(module: str, source: str) -> list[str]:
    """Imports of a module that break the arrow or the stricter lists."""
    mine = part_of(module)
    said = []
    for name in imported(source):
        if name.startswith("."):
            said.append("a relative import")
        if name.split(".")[0] != "milp_recourse":
            continue
        theirs = part_of(name)
        if rank(theirs) > rank(mine) or (mine in ONLY and theirs not in ONLY[mine]):
            said.append(name)
    return said


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=module_of)
def test_imports_point_one_way(file: Path) -> None:
    """Every import of ours, also inside functions, stands before the importer in the arrow."""
    assert wrong_imports(module_of(file), file.read_text(encoding="utf-8")) == []


def test_the_check_sees_what_it_should() -> None:
    """A wrong arrow, an import inside a function, a relative import, a name imported from the package."""
    assert wrong_imports("milp_recourse.domain.scm", "from milp_recourse.instance import Instance")
    assert wrong_imports("milp_recourse.program.lower", "def f():\n    import milp_recourse.bounds.tape")
    assert wrong_imports("milp_recourse.judge", "from milp_recourse.backends import Proposal")
    assert wrong_imports("milp_recourse.judge", "from milp_recourse.bounds.tape import Tape")
    assert wrong_imports("milp_recourse.result", "from milp_recourse import solve")
    assert wrong_imports("milp_recourse.result", "from . import errors") == ["a relative import"]
    assert not wrong_imports(
        "milp_recourse.judge", "from milp_recourse.backends.protocol import Proposal\nimport numpy"
    )
    assert not wrong_imports("milp_recourse.cli", "from milp_recourse import solve")
    with pytest.raises(AssertionError, match="no place"):
        wrong_imports("milp_recourse.novelty", "import milp_recourse.errors")


def strangers(source: str) -> set[str]:
    """What the trust base must not import: ours, solvers, and anything else that is not Python's own."""
    roots = {name.split(".")[0] for name in imported(source)}
    return {r for r in roots if r and r not in sys.stdlib_module_names and r != "verify"}


def test_the_trust_base_imports_nothing_of_ours_and_no_solver() -> None:
    """verify/ stands on Python alone."""
    found = {
        file.name: strangers(file.read_text(encoding="utf-8"))
        for file in sorted((ROOT / "verify").rglob("*.py"))
    }
    assert {name: names for name, names in found.items() if names} == {}


def test_the_check_of_the_trust_base_sees_what_it_should() -> None:
    """Ours, solvers and numpy are strangers; its own modules and Python's are not."""
    assert strangers("import highspy") == {"highspy"}
    assert strangers("from milp_recourse.judge import judge") == {"milp_recourse"}
    assert strangers("def f():\n    import numpy.linalg") == {"numpy"}
    assert strangers("from verify.exact import x\nfrom . import y\nimport fractions, json") == set()


def test_only_the_command_line_and_certificates_know_the_trust_base() -> None:
    """Nothing that is judged by verify/ may lean on it."""
    users = {
        module_of(f)
        for f in FILES
        if any(n.split(".")[0] == "verify" for n in imported(f.read_text(encoding="utf-8")))
    }
    assert {part_of(user) for user in users} <= {"cli", "reports", "recipe", "benchmarks", "studies"}


def test_solvers_are_imported_by_back_ends_and_benchmarks_only() -> None:
    """Each back end imports its own; benchmarks and the recipe's second opinion run solvers as they come."""
    users = {
        (part_of(module_of(f)), name)
        for f in FILES
        for name in imported(f.read_text(encoding="utf-8"))
        if name.split(".")[0] in SOLVERS
    }
    assert {part for part, _ in users} <= {"backends", "benchmarks", "recipe"}
    assert ("backends", "highspy") in users


def test_no_solver_is_imported_at_the_top_of_a_module() -> None:
    """Listing the back ends must not need them; torch is at home in icarma, its commands apart."""
    for file in FILES:
        part = part_of(module_of(file))
        home = {"torch", "zuko"} if part == "icarma" and file.stem not in ("__init__", "commands") else set()
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else [str(node.module)]
                assert not {n.split(".")[0] for n in names} & (
                    {*SOLVERS, "torch", "zuko", "sklearn", "onnx"} - home
                ), file


def test_importing_the_package_loads_nothing_heavy() -> None:
    """In a fresh interpreter: no torch, no solver, no scikit-learn, no pandas."""
    code = f"import sys, milp_recourse; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_listing_the_commands_loads_neither_torch_nor_zuko() -> None:
    """The amortised side is mounted, and certifying does not pay for it."""
    code = "import sys, milp_recourse.cli; print([m for m in ('torch', 'zuko') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"

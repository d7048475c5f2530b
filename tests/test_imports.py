"""Imports point down the layers, the trust base stands alone, and importing the package loads no solver."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import tests

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "milp_recourse"

LAYERS = (
    ("1 the problem and its answer", ("errors", "domain", "factuals", "instance", "options", "result")),
    (
        "2 reading, lowering, judging",
        ("program", "readers", "formats", "smaller", "judge", "incumbent", "magnitude"),
    ),
    (
        "3 bounds and search",
        ("compiling", "smallest_instance", "compiled", "box_bounds", "encodings", "forests"),
    ),
    ("4 back ends and certificates", ("backends.protocol", "backends", "certificates")),
    (
        "5 questions",
        (
            *("workers", "instances_path", "solve", "prove", "alternatives", "choices", "robust", "front"),
            *("density_front", "why"),
        ),
    ),
    (
        "6 interfaces",
        ("export", "reports", "frames", "recourse", "", "evaluation", "icarma", "cli", "__main__"),
    ),
    ("7 experiments", ("lab",)),
)
"""A part imports the layers below its own and, without cycles, its own; "" is milp_recourse itself, its
public names. A new module takes its place here first."""

MOUNT = "milp_recourse.cli.app"
"""The one module that may import the experiments: it puts their commands beside the others."""

UPWARD: set[tuple[str, str]] = set()
"""Imports of a higher layer that stand: none, and none comes."""

ONLY = {
    "readers": {"errors", "domain", "instance", "readers"},
    "formats": {"errors", "domain", "factuals", "instance", "result", "readers", "formats"},
    "judge": {"errors", "domain", "instance", "result", "smaller"},
    "smaller": {"instance"},
    "backends.protocol": {"instance", "options", "result"},
}
"""All that these may import of ours."""

HEAVY = ("torch", "zuko", "pyomo", "ortools", "highspy", "gurobipy", "sklearn", "pandas", "numba")
SOLVERS = ("highspy", "pyomo", "ortools", "gurobipy", "pyscipopt", "scipy")


def layer_of(part: str) -> int:
    """The layer that a part belongs to, from 1."""
    for k, (_, parts) in enumerate(LAYERS, 1):
        if part in parts:
            return k
    raise AssertionError(f"milp_recourse.{part} has no place in LAYERS")


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


@cache
def imported(source: str) -> tuple[str, ...]:
    """Every module a source imports, wherever the statement stands; a name of ours counts as its module."""
    return tuple(_imported(source))


def _imported(source: str) -> Iterator[str]:
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
            elif node.module == "milp_recourse.solvers":
                yield from (
                    "milp_recourse.solvers.protocol" if alias.name == "protocol" else node.module
                    for alias in node.names
                )
            else:
                yield str(node.module)


def exists(name: str) -> bool:
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()


def parts_imported(source: str) -> set[str]:
    """The parts of ours that a source imports."""
    return {part_of(name) for name in imported(source) if name.split(".")[0] == "milp_recourse"}


def wrong_imports(module: str, source: str) -> list[str]:
    """Imports of a module that point upward, that its own list does not have, or that are relative."""
    mine, found = part_of(module), parts_imported(source)
    said = ["a relative import" for name in imported(source) if name.startswith(".")]
    for theirs in sorted(found):
        upward = layer_of(theirs) > layer_of(mine)
        allowed = (module, theirs) in UPWARD or (module == MOUNT and layer_of(theirs) == len(LAYERS))
        if (upward and not allowed) or (mine in ONLY and theirs not in ONLY[mine]):
            said.append(theirs)
    return said


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=module_of)
def test_imports_point_down(file: Path) -> None:
    """Every import of ours, also inside functions, is of a layer below or of the importer's own."""
    assert wrong_imports(module_of(file), file.read_text(encoding="utf-8")) == []


class WithoutTypes(ast.NodeTransformer):
    """Leaves out what stands under ``if TYPE_CHECKING:``, which is never run."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        return None if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING" else node


def cycle(sources: Iterable[tuple[str, str]]) -> list[str]:
    """Parts that import each other in a circle; none where there is no such circle."""
    graph: dict[str, set[str]] = {}
    for module, source in sources:
        mine = part_of(module)
        run = ast.unparse(WithoutTypes().visit(ast.parse(source)))
        graph.setdefault(mine, set()).update(
            theirs
            for theirs in parts_imported(run) - {mine}
            if layer_of(theirs) == layer_of(mine)  # another layer is the other test's
        )
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_layer_has_a_cycle() -> None:
    """Within a layer, parts do not import each other in a circle."""
    assert cycle((module_of(f), f.read_text(encoding="utf-8")) for f in FILES) == []
    circle = (
        ("milp_recourse.questions.solve", "import milp_recourse.questions.why"),
        ("milp_recourse.questions.why", "import milp_recourse.questions.solve"),
    )
    assert set(cycle(circle)) == {"solve", "why"}


def test_exceptions_go_when_they_are_not_needed() -> None:
    """Who stops importing upward loses the line in UPWARD, so that the list only shrinks."""
    needed = {
        (module_of(f), theirs)
        for f in FILES
        for theirs in parts_imported(f.read_text(encoding="utf-8"))
        if layer_of(theirs) > layer_of(part_of(module_of(f)))
    }
    assert sorted(UPWARD - needed) == [], "remove these from UPWARD"


NAMED_TWICE = {
    "causal",
    "cells",
    "demands",
    "model",
    "network",
    "pieces",
    "prices",
    "regions",
    "tangents",
    "trees",
}
"""File names that still stand in more than one folder of the package. Lines go from here; none comes."""


def test_no_new_file_name_stands_twice() -> None:
    """A file is found by its name alone, ``__init__`` apart."""
    names = Counter(f.name for f in FILES if f.name != "__init__.py")
    twice = {name.removesuffix(".py") for name, count in names.items() if count > 1}
    assert sorted(twice - NAMED_TWICE) == [], "two files of one name"
    assert sorted(NAMED_TWICE - twice) == [], "remove these from NAMED_TWICE"


def test_the_check_sees_what_it_should() -> None:
    """An upward import, one inside a function, a relative one, a name from the package, an experiment."""
    assert wrong_imports("milp_recourse.problem.scm", "from milp_recourse.program import lower")
    assert wrong_imports(
        "milp_recourse.program.lower", "def f():\n    import milp_recourse.engine.networks.search"
    )
    assert wrong_imports("milp_recourse.judge", "from milp_recourse.solvers import Proposal")
    assert wrong_imports("milp_recourse.judge", "from milp_recourse.engine.networks.search import run")
    assert wrong_imports("milp_recourse.problem.result", "from milp_recourse import solve")
    assert wrong_imports("milp_recourse.problem.result", "from . import errors") == ["a relative import"]
    assert wrong_imports("milp_recourse.cli.solve_command", "import milp_recourse.lab.benchmarks") == ["lab"]
    assert not wrong_imports(MOUNT, "import milp_recourse.lab.benchmarks")
    assert wrong_imports("milp_recourse.judge", "from milp_recourse.solvers.protocol import Options")
    assert not wrong_imports(
        "milp_recourse.judge", "from milp_recourse.problem.result import Proposal\nimport numpy"
    )
    assert not wrong_imports("milp_recourse.cli.common_options", "from milp_recourse import solve")
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
    """Nothing that is judged by verify/ may lean on it; ``frames`` hands it finished answers."""
    users = {
        module_of(f)
        for f in FILES
        if any(n.split(".")[0] == "verify" for n in imported(f.read_text(encoding="utf-8")))
    }
    assert {part_of(user) for user in users} <= {
        "cli",
        "frames",
        "reports",
        "lab",
    }


def test_solvers_are_imported_by_back_ends_and_benchmarks_only() -> None:
    """Each back end imports its own; benchmarks and second opinions in the lab run solvers as they come."""
    users = {
        (part_of(module_of(f)), name)
        for f in FILES
        for name in imported(f.read_text(encoding="utf-8"))
        if name.split(".")[0] in SOLVERS
    }
    assert {part for part, _ in users} <= {"backends", "lab"}
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


def test_every_module_of_the_tests_can_be_imported() -> None:
    """Long runs are commands that no test imports: one had been broken by a move, and nobody noticed."""
    for found in pkgutil.walk_packages(tests.__path__, "tests."):
        importlib.import_module(found.name)

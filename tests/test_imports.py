"""Imports point one way, the trust base stands alone, and importing the package loads no solver."""

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

ROOMS = (
    *("errors", "problem", "readers", "judge", "program", "formats", "elicitation", "engine", "solvers"),
    *("certificates", "questions", "preferences", "reports", "studio", "tables", "evaluation"),
    *("", "cli", "__main__"),
    "lab",
)
"""A room imports those before it, and itself; "" is milp_recourse, its public names. Nothing comes after
``lab``, so nothing imports the experiments. A new room takes its place here first."""

ROOT_FILES = {"__init__.py", "__main__.py", "errors.py"}

ONLY = {
    "readers": {"errors", "problem", "readers"},
    "judge": {"errors", "problem", "judge"},
    "elicitation": {"errors", "problem", "formats", "elicitation"},
}
"""All that these may import of ours."""

HEAVY = (
    *("torch", "zuko", "pyomo", "ortools", "highspy", "gurobipy", "sklearn", "pandas", "numba"),
    *("xgboost", "lightgbm", "catboost", "interpret", "imblearn", "onnxruntime"),
)
SOLVERS = ("highspy", "pyomo", "ortools", "gurobipy", "pyscipopt", "scipy")


def floor_of(room: str) -> int:
    """The place of a room in :data:`ROOMS`."""
    assert room in ROOMS, f"milp_recourse.{room} has no place in ROOMS"
    return ROOMS.index(room)


def room_of(module: str) -> str:
    """The room a module of ours is in: the first name after the package's."""
    return (module.split(".")[1:] or [""])[0]


def module_of(file: Path) -> str:
    """Dotted name of a file of the package."""
    names = list(file.relative_to(ROOT).with_suffix("").parts)
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


@cache
def text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8")


@cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    """Every import and attribute of a source: it is parsed once for all tests."""
    return tuple(
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Attribute)
    )


@cache
def imported(source: str) -> tuple[str, ...]:
    """Every module a source imports, wherever the statement stands; a name of ours counts as its module."""
    return tuple(_imported(source))


def _imported(source: str) -> Iterator[str]:
    for node in nodes(source):
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
            else:
                yield str(node.module)


def exists(name: str) -> bool:
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").is_file()


def rooms_imported(source: str) -> set[str]:
    """The rooms of ours that a source imports."""
    return {room_of(name) for name in imported(source) if name.split(".")[0] == "milp_recourse"}


def wrong_imports(module: str, source: str) -> list[str]:
    """Imports of a module from a room above, from one that its own list does not have, or relative ones."""
    mine = room_of(module)
    said = ["a relative import" for name in imported(source) if name.startswith(".")]
    for theirs in sorted(rooms_imported(source)):
        if floor_of(theirs) > floor_of(mine) or (mine in ONLY and theirs not in ONLY[mine]):
            said.append(theirs)
    return said


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=module_of)
def test_imports_point_down(file: Path) -> None:
    """Every import of ours, also inside functions or for types only, is of the same room or one before it."""
    assert wrong_imports(module_of(file), text_of(file)) == []


def files_imported(source: str) -> set[str]:
    """The files of ours that a source imports, ``__init__`` as its package; names count as their module."""
    found = set()
    for node in nodes(source):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            below = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = {name for name in below if name in MODULES}
            found |= modules | ({str(node.module)} if len(modules) < len(below) else set())
    return found & MODULES


MODULES = {module_of(file) for file in FILES}


def circle(sources: Iterable[tuple[str, str]]) -> list[str]:
    """Files that import each other in a circle, also for types only; none where there is no such circle."""
    try:
        TopologicalSorter({module: files_imported(source) - {module} for module, source in sources}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_circle_between_files() -> None:
    """Files can be read in an order in which each one only uses those before it."""
    assert circle((module_of(f), text_of(f)) for f in FILES) == []
    one, other = "milp_recourse.questions.solve", "milp_recourse.questions.why"
    assert set(circle(((one, f"import {other}"), (other, f"import {one}")))) == {one, other}


def test_the_root_has_three_files() -> None:
    """Everything else has a room."""
    assert {file.name for file in PACKAGE.glob("*.py")} == ROOT_FILES


def test_no_file_name_stands_twice() -> None:
    """A file is found by its name alone, ``__init__`` apart."""
    names = Counter(f.name for f in FILES if f.name not in ("__init__.py", "__main__.py"))
    assert sorted(name for name, count in names.items() if count > 1) == []


def test_the_check_sees_what_it_should() -> None:
    """An upward import, one inside a function, a relative one, a name from the package, an experiment."""
    assert wrong_imports("milp_recourse.problem.scm", "from milp_recourse.program import lower")
    search = "def f():\n    import milp_recourse.engine.networks.search"
    assert wrong_imports("milp_recourse.program.lower", search)
    assert wrong_imports("milp_recourse.judge.conclude", "from milp_recourse.solvers import Proposal")
    assert wrong_imports("milp_recourse.problem.result", "from milp_recourse import solve")
    assert wrong_imports("milp_recourse.problem.result", "from . import errors") == ["a relative import"]
    assert wrong_imports("milp_recourse.cli.app", "import milp_recourse.lab.benchmarks") == ["lab"]
    assert wrong_imports("milp_recourse.judge.conclude", "from milp_recourse.formats import read_any")
    assert not wrong_imports("milp_recourse.cli.shared", "from milp_recourse import solve")
    with pytest.raises(AssertionError, match="no place"):
        wrong_imports("milp_recourse.novelty", "import milp_recourse.errors")


def strangers(source: str) -> set[str]:
    """What the trust base must not import: ours, solvers, and anything else that is not Python's own."""
    roots = {name.split(".")[0] for name in imported(source)}
    return {r for r in roots if r and r not in sys.stdlib_module_names and r != "verify"}


def test_the_trust_base_imports_nothing_of_ours_and_no_solver() -> None:
    """verify/ stands on Python alone, but for a file that it can do without."""
    found = {file.name: strangers(text_of(file)) for file in sorted((ROOT / "verify").rglob("*.py"))}
    assert {name: names for name, names in found.items() if names} == {"arrays.py": {"numpy"}}


def test_the_check_of_the_trust_base_sees_what_it_should() -> None:
    """Ours, solvers and numpy are strangers; its own modules and Python's are not."""
    assert strangers("import highspy") == {"highspy"}
    assert strangers("from milp_recourse.judge import judge") == {"milp_recourse"}
    assert strangers("def f():\n    import numpy.linalg") == {"numpy"}
    assert strangers("from verify.exact import x\nfrom . import y\nimport fractions, json") == set()


def test_only_the_command_line_and_certificates_know_the_trust_base() -> None:
    """Nothing that is judged by verify/ may lean on it; ``tables`` hands it finished answers."""
    users = {module_of(f) for f in FILES if any(n.split(".")[0] == "verify" for n in imported(text_of(f)))}
    assert {room_of(user) for user in users} <= {"cli", "tables", "reports", "lab"}


COST_READERS = {"problem.cost", "problem.lever_cost", "formats.schema"}
"""What states a cost in the file's terms, and the table of what a lever's value costs."""

# by hand: a field of Cost that is not named here is not guarded
COST_TERMS = {"l0", "l1", "l2_squared", "linf", "measures"}


def cost_terms_read(source: str) -> list[str]:
    """Coefficients and measures of a cost that a source reads."""
    found = []
    for node in nodes(source):
        if not isinstance(node, ast.Attribute):
            continue
        owner = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        if node.attr in COST_TERMS:
            found.append(f"{owner}.{node.attr}")
    return found


def test_only_the_table_reads_what_a_cost_is_made_of() -> None:
    """Everything else asks :mod:`milp_recourse.problem.lever_cost`, which hides how a file states a cost."""
    readers = {}
    for file in FILES:
        found = cost_terms_read(text_of(file))
        if found and module_of(file).removeprefix("milp_recourse.") not in COST_READERS:
            readers[module_of(file)] = found
    assert readers == {}
    assert cost_terms_read("w * instance.cost.l1") == ["cost.l1"]
    assert cost_terms_read("cost.measures[name]; link.scale") == ["cost.measures"]


def test_solvers_are_imported_by_back_ends_and_benchmarks_only() -> None:
    """Each back end imports its own; benchmarks and second opinions in the lab run solvers as they come."""
    users = {
        (room_of(module_of(f)), name)
        for f in FILES
        for name in imported(text_of(f))
        if name.split(".")[0] in SOLVERS
    }
    assert {part for part, _ in users} <= {"solvers", "lab"}
    assert ("solvers", "highspy") in users


def test_no_solver_is_imported_at_the_top_of_a_module() -> None:
    """Listing the back ends must not need them; torch is at home in lab/icarma and in one file."""
    for file in FILES:
        at_home = ("icarma" in file.parts and file.stem != "__init__") or file.stem == "hare_codes"
        home = {"torch", "zuko"} if at_home else set()
        for node in ast.parse(text_of(file)).body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else [str(node.module)]
                assert not {n.split(".")[0] for n in names} & (
                    {*SOLVERS, "torch", "zuko", "sklearn", "onnx"} - home
                ), file


def loaded(code: str, names: Iterable[str]) -> list[str]:
    """Which of these modules a fresh interpreter has loaded after running some code."""
    code = f"import sys\n{code}\nprint(*(m for m in {tuple(names)!r} if m in sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stderr.split()


SOLVE_ONE = "from milp_recourse.cli import main\nmain(['solve', 'instances/loan/loan_001.json'])"


def test_importing_the_package_loads_nothing_heavy() -> None:
    """In a fresh interpreter: no torch, no solver, no scikit-learn, no pandas."""
    assert loaded("import milp_recourse", (*HEAVY, "scipy", "numpy", "pydantic")) == []


def test_help_loads_nothing_heavy() -> None:
    """Also with the commands that are plugged in."""
    code = "from milp_recourse.cli import main\nmain(['--help'])"
    assert loaded(code, (*HEAVY, "scipy", "numpy", "pydantic", "filelock")) == []


def test_solving_one_problem_loads_what_it_needs() -> None:
    """No readers of fitted models, and, once the engine is on disk, nothing of what only compiles it."""
    others = [name for name in HEAVY if name != "numba"]
    unneeded = [*others, "scipy.linalg", "numba.np.arraymath", "milp_recourse.readers.read_model"]
    unneeded += ["milp_recourse.formats.schema_answers", "rich.console"]
    loaded(SOLVE_ONE, ())  # the first one compiles
    assert loaded(SOLVE_ONE, [*unneeded, "numba"]) == ["numba"]


def test_every_module_of_the_tests_can_be_imported() -> None:
    """Long runs are commands that no test imports: one had been broken by a move, and nobody noticed."""
    for found in pkgutil.walk_packages(tests.__path__, "tests."):
        importlib.import_module(found.name)

"""Machine code in the package is used where it fits, and only there; nothing is written beside it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from llvmlite.binding import get_host_cpu_features

from milp_recourse.engine.shipped_code import V3
from tests.engine.networks.test_cache import copied

SMALL = """
from milp_recourse.engine.compiling import entry

@entry
def increased(x):
    return x + 1.0

@entry
def twice(x):
    return 2.0 * increased(x)

def ready():
    increased(3.0)
"""
CODE = """
import sys
{before}
from numba.core import event
from milp_recourse.engine.networks import small
with event.install_recorder("numba:compile") as seen:
    said = getattr(small, sys.argv[1])(3.0)
print(said, len(seen.buffer) // 2)
"""


@pytest.fixture(scope="module")
def shipped(tmp_path_factory) -> Path:
    """A copy of the package, with the machine code of one of its two small functions, which another module
    imports."""
    folder, _ = copied(tmp_path_factory.mktemp("shipped"))
    engine = folder / "milp_recourse" / "engine"
    (engine / "networks" / "small.py").write_text(SMALL, encoding="utf-8")
    user = "from milp_recourse.engine.networks.small import increased, ready\n"
    (engine / "networks" / "small_user.py").write_text(user, encoding="utf-8")
    command = ["-m", "milp_recourse.engine.ship", str(engine / "_compiled")]
    modules = [f"milp_recourse.engine.networks.{name}" for name in ("small", "small_user")]
    python(folder, command + modules, folder.parent / "unused")
    assert not (folder.parent / "unused").exists()
    return folder


def python(folder: Path, arguments: list[str], cache: Path, **environment: str) -> str:
    """What a process prints that runs the package in a folder, with a cache of its own."""
    known = {k: v for k, v in os.environ.items() if k != "NUMBA_DISABLE_JIT"}
    known |= {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(cache)} | environment
    done = subprocess.run(
        [sys.executable, "-B", *arguments], env=known, capture_output=True, text=True, check=False, cwd=folder
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def used(shipped: Path, cache: Path, before: str = "", name: str = "increased", **environment: str) -> str:
    """What the function gives and how many functions were compiled for it, and that the package stays as it
    was."""
    files = {f: (f.stat().st_mtime_ns, f.stat().st_size) for f in shipped.rglob("*")}
    said = python(shipped, ["-c", CODE.format(before=before), name], cache, **environment)
    assert files == {f: (f.stat().st_mtime_ns, f.stat().st_size) for f in shipped.rglob("*")}
    return said


def test_nothing_is_compiled_or_kept(shipped: Path, tmp_path: Path) -> None:
    """Also under another build of the same Python and another numpy; no folder for a cache is made."""
    for before in ("", "sys.version += ' '", "import numba, numpy; numpy.__version__ = '2.9.9'"):
        assert used(shipped, tmp_path / "cache", before) == "4.0 0\n"
    assert not (tmp_path / "cache").exists()


def test_a_checkout_finds_what_is_installed(shipped: Path, tmp_path: Path) -> None:
    """Started in its folder, Python imports the package from there; an edit is seen, as ever. What is merely
    on the path of modules is not unpickled."""
    checkout, cache = tmp_path / "checkout", tmp_path / "cache"
    own = checkout / "milp_recourse" / "engine" / "networks" / "small.py"
    leave = shutil.ignore_patterns("_compiled", "__pycache__")
    shutil.copytree(shipped / "milp_recourse", checkout / "milp_recourse", ignore=leave)
    installed = f"import sysconfig; sysconfig.get_path = lambda name: {str(shipped)!r}"
    for before, said in ((installed, "4.0 0"), (f"sys.path.append({str(shipped)!r})", "4.0 1")):
        say = CODE.format(before=before) + "print(small.__file__)"
        assert python(checkout, ["-c", say, "increased"], cache) == f"{said}\n{own}\n"
    own.write_text(SMALL.replace("x + 1.0", "x + 2.0"), encoding="utf-8")
    assert used(checkout, cache, installed) == "5.0 1\n"


@pytest.mark.long
def test_no_folder_is_needed(shipped: Path, tmp_path: Path) -> None:
    """Where no cache can be kept, no line says so."""
    (tmp_path / "cache").write_text("in the way")
    assert used(shipped, tmp_path / "cache") == "4.0 0\n"


OTHERWISE = {
    "a processor without a feature": "from milp_recourse.engine import shipped_code\n"
    "shipped_code.BASELINES = dict.fromkeys(shipped_code.BASELINES, ('', 'of-tomorrow'))",
    "a kind of machine that nothing is known of": "from milp_recourse.engine import shipped_code\n"
    "shipped_code.BASELINES.clear()",
    "another machine": "import platform; platform.machine = lambda: 'amd64'",
    "another numba": "import numba; numba.__version__ += '.post1'",
    "another llvmlite": "import llvmlite; llvmlite.__version__ += '.post1'",
    "another Python": "import importlib.machinery as m; m.EXTENSION_SUFFIXES.insert(0, '.cpython-399.so')",
}


@pytest.mark.parametrize(
    "what", [next(iter(OTHERWISE)), *(pytest.param(one, marks=pytest.mark.long) for one in [*OTHERWISE][1:])]
)
def test_where_it_does_not_fit_it_is_compiled_and_kept(what: str, shipped: Path, tmp_path: Path) -> None:
    """In the user's folder, and found there."""
    assert used(shipped, tmp_path / "cache", OTHERWISE[what]) == "4.0 1\n"
    assert used(shipped, tmp_path / "cache", OTHERWISE[what]) == "4.0 0\n"


@pytest.mark.long
def test_what_numba_is_told_to_compile_for_is_compiled(shipped: Path, tmp_path: Path) -> None:
    """By its setting: whoever names a processor wants code for that one."""
    assert used(shipped, tmp_path / "cache", NUMBA_CPU_NAME="generic") == "4.0 1\n"


def test_an_edited_source_is_compiled(shipped: Path, tmp_path: Path) -> None:
    """Whichever of the folder: constants of other files are in the machine code."""
    numerics = shipped / "milp_recourse" / "engine" / "networks" / "numerics.py"
    text = numerics.read_text(encoding="utf-8")
    numerics.write_text(text + "# edited\n", encoding="utf-8")
    try:
        assert used(shipped, tmp_path / "cache") == "4.0 1\n"
    finally:
        numerics.write_text(text, encoding="utf-8")
    assert used(shipped, tmp_path / "cache") == "4.0 0\n"


@pytest.mark.long
@pytest.mark.parametrize("broken", [b"", b"\x80\x04cut off"])
def test_a_broken_file_is_as_none(broken: bytes, shipped: Path, tmp_path: Path) -> None:
    """It stays as it is; what is compiled instead is found the next time."""
    [file] = (shipped / "milp_recourse" / "engine" / "_compiled").rglob("small.increased")
    content = file.read_bytes()
    file.write_bytes(broken or content[: len(content) // 2])
    try:
        assert used(shipped, tmp_path / "cache") == "4.0 1\n"
        assert used(shipped, tmp_path / "cache") == "4.0 0\n"
    finally:
        file.write_bytes(content)


def test_an_entry_that_calls_a_shipped_one_runs(shipped: Path, tmp_path: Path) -> None:
    """It is compiled with the other's source: with machine code that was loaded nothing can be linked."""
    for _ in range(2):
        call = "from milp_recourse.engine.networks import small; small.increased(3.0)"
        said = used(shipped, tmp_path / "cache", call, "twice")
        assert said.split()[0] == "8.0"
    assert said.split()[1] == "0"


@pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="nothing to do")
def test_llvm_knows_every_feature() -> None:
    """Of a name that it does not know no processor would have the feature."""
    assert set(V3.split()) <= set(get_host_cpu_features())

"""Another local user's code does not run: index files of compiled code are pickles, and are planted here.

Needs root, to be two users. Run by hand: ``sudo env "PATH=$PATH" python -P -m pytest tests/safety``. Where
the system allows it, the users may read all files, so that they find this Python wherever it is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from milp_recourse.engine.compile_cache import UNKEPT
from tests.engine.networks.test_announced import TWICE
from tests.helpers.hostile_folder import plant, ran
from tests.helpers.planted_code import PLANTED

ROOT = Path(__file__).resolve().parents[2]
USER, OTHER = 1001, 1002

CODE = """
import sys
from pathlib import Path
sys.path.append(sys.argv[1])
from milp_recourse.engine.compile_cache import digest
from milp_recourse.engine.compiling import announced
from doubling import twice
with announced("the doubling"):
    print(twice(2.0), sum(twice.stats.cache_hits.values()), digest(Path(sys.argv[1])))
"""


READERS = "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"


@cache
def switch() -> tuple[str, ...] | None:
    """Options of setpriv with which another user can import the package; None if there are none."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return None
    for options in (READERS, ()):
        start = ["setpriv", "--reuid", str(USER), *options, sys.executable, "-P", "-c"]
        if not subprocess.run([*start, "import milp_recourse"], capture_output=True, check=False).returncode:
            return options
    return None


def as_user(user: int, command: list[str], **more) -> subprocess.CompletedProcess[str]:
    """Run a command as a user without groups and without root's rights to write."""
    other = ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", *switch(), *command]
    return subprocess.run(other, capture_output=True, text=True, check=False, **more)


@pytest.fixture
def place():
    """A folder that everybody can read, with a compiled function, a home that cannot be written, a temporary
    folder for everybody, and a hostile current folder."""
    if switch() is None:
        pytest.skip("needs root, setpriv, and an installation that other users can read")
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    for name, mode in (("source", 0o755), ("home", 0o555), ("tmp", 0o1777), ("here", 0o755)):
        (folder / name).mkdir()
        (folder / name).chmod(mode)
    (folder / "source" / "doubling.py").write_text(TWICE)
    (folder / "trace.txt").touch(mode=0o666)
    (folder / "trace.txt").chmod(0o666)
    plant(folder / "here", folder / "trace.txt")
    yield folder
    assert ran(folder / "trace.txt") == set()
    shutil.rmtree(folder)


def compiled(place: Path, user: int = USER, **environment: str) -> tuple[list[str], str]:
    """What a user's process prints that compiles the function in the hostile folder, and what it warns of."""
    known = {"HOME": str(place / "home"), "TMPDIR": str(place / "tmp"), "PATH": os.environ["PATH"]}
    command = [sys.executable, "-P", "-c", CODE, str(place / "source")]
    known |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(ROOT)}
    done = as_user(user, command, env=known | environment, cwd=place / "here")
    assert done.returncode == 0 and "PLANTED" not in done.stderr, done.stderr
    return done.stdout.split(), done.stderr


def planted(folder: Path, owner: int, name: str) -> None:
    """Put an index file of the function into a cache folder, as a user makes it for everybody."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(PLANTED)
    top = folder
    while top.parent.name not in ("tmp", "home"):
        top = top.parent
    for path in (top, *top.rglob("*")):
        os.chown(path, owner, owner)
        path.chmod(0o777)


def test_a_folder_of_ones_own_below_the_temporary_folder_serves(place):
    """Where the home folder cannot be written; it is made for the user alone and found again."""
    said = compiled(place)[0]
    assert said[:2] == ["4.0", "0"]
    assert compiled(place) == (["4.0", "1", said[2]], "")
    [own] = (place / "tmp").iterdir()
    assert own.name == f"milp_recourse-{USER}"
    assert {p.stat().st_mode & 0o777 for p in (own, *own.rglob("*")) if p.is_dir()} == {0o700}
    assert {p.stat().st_uid for p in own.rglob("*")} == {USER}


def test_planted_index_files_are_not_read(place):
    """In the folder that would be used, made by another user or by root for everybody: it says so in one
    line and compiles for itself."""
    own, temporary = compiled(place)[0], place / "tmp" / f"milp_recourse-{USER}"
    [index] = temporary.rglob("*.code")
    for owner, base in product((OTHER, 0), (temporary, place / "home" / ".cache")):
        shutil.rmtree(temporary)
        shutil.rmtree(place / "home" / ".cache", ignore_errors=True)
        planted(base / "milp_recourse" / own[2], owner, index.name)
        said, warned = compiled(place)
        assert said[:2] == ["4.0", "0"]
        if base == temporary:
            assert warned.startswith(UNKEPT.format("")) and warned.count("\n") == 1
            assert f"milp_recourse-{USER}" in warned
        else:  # the temporary folder serves instead
            assert warned == "" and [p.name for p in (place / "tmp").iterdir()] == [f"milp_recourse-{USER}"]
        assert compiled(place, NUMBA_CACHE_DIR=str(base))[1].startswith(UNKEPT.format(""))


def test_a_planted_link_is_not_followed(place):
    """To a folder of the user's own that others could choose; nor to another user's."""
    (place / "far").mkdir(mode=0o700)
    os.chown(place / "far", USER, USER)
    link = place / "tmp" / f"milp_recourse-{USER}"
    link.symlink_to(place / "far")
    os.chown(link, OTHER, OTHER, follow_symlinks=False)
    assert "is a link that another user made" in compiled(place)[1]
    assert list((place / "far").iterdir()) == []


def test_a_temporary_folder_that_another_user_owns(place):
    """Its owner could put another folder in place of any that is made there."""
    os.chown(place / "tmp", OTHER, OTHER)
    assert "tmp belongs to another user" in compiled(place)[1]
    assert list((place / "tmp").iterdir()) == []


def test_roots_cache_is_not_the_users(place):
    """``sudo`` with the user's home: root does not read what the user can write."""
    (place / "home").chmod(0o755)
    os.chown(place / "home", USER, USER)
    assert compiled(place)[0][:2] == ["4.0", "0"]
    [index] = (place / "home").rglob("*.code")
    index.write_bytes(PLANTED)
    said, warned = compiled(place, user=0)
    assert said[:2] == ["4.0", "0"] and warned == ""  # kept in root's own folder below the temporary one
    assert [p.name for p in (place / "tmp").iterdir()] == ["milp_recourse-0"]


def test_the_planted_files_would_run_where_the_folder_is_the_users(place):
    """So that the tests above could fail."""
    compiled(place)
    [index] = (place / "tmp").rglob("*.code")
    index.write_bytes(PLANTED)
    with pytest.raises(AssertionError, match="PLANTED"):
        compiled(place)

"""Compiled code is kept in a folder of the user's own, or not at all: its index files are pickles."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from milp_recourse.engine.cache_folder import NotOwn, cache_folder, places
from tests.engine.networks.test_announced import TWICE
from tests.helpers.planted_code import PLANTED

ROOT = Path(__file__).resolve().parents[2]
SUPERUSER = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: files of another user")
OTHER = 1002


@pytest.fixture
def own(tmp_path):
    """A folder that nobody else could replace, below others that are so, too."""
    tmp_path.chmod(0o700)
    for folder in tmp_path.parents:  # pytest's own are those of its user
        if folder.stat().st_mode & 0o022 and not folder.stat().st_mode & 0o1000:
            pytest.fail(f"others can write into {folder}")
    return tmp_path


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_what_is_made_is_the_users_alone(own, monkeypatch):
    """Every folder that was missing has mode 0700, whatever the umask, and is found again."""
    before = os.umask(0)
    try:
        folder = cache_folder(own / "new" / "cache", "key")
    finally:
        os.umask(before)
    assert folder == own / "new" / "cache" / "milp_recourse" / "key"
    assert {mode(f) for f in (own / "new", *(own / "new").rglob("*"))} == {0o700}
    assert cache_folder(own / "new" / "cache", "key") == folder


def test_a_folder_that_became_read_only_is_still_read(own, monkeypatch):
    """Where it holds code; an empty one is of no use."""

    def refuse(**_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    full, empty = (cache_folder(own / name, "key") for name in ("full", "empty"))
    (full / "code").write_bytes(b"")
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert cache_folder(own / "full", "key") == full
    with pytest.raises(NotOwn, match=f"{own / 'empty'} cannot be used: Read-only"):
        cache_folder(own / "empty", "key")
    assert not any(empty.iterdir())


def loose_place(own):
    (own / "place").mkdir()
    (own / "place").chmod(0o777)


def loose_parent(own):
    (own / "place").mkdir()
    own.chmod(0o770)


def loose_package(own):
    (own / "place" / "milp_recourse").mkdir(parents=True)
    (own / "place" / "milp_recourse").chmod(0o720)


def readable_key(own):
    (own / "place" / "milp_recourse" / "key").mkdir(parents=True)
    (own / "place" / "milp_recourse" / "key").chmod(0o750)


def linked_package(own):
    (own / "place").mkdir()
    (own / "elsewhere").mkdir(mode=0o700)
    (own / "place" / "milp_recourse").symlink_to(own / "elsewhere")


def linked_key(own):
    (own / "place" / "milp_recourse").mkdir(parents=True, mode=0o700)
    (own / "elsewhere").mkdir(mode=0o700)
    (own / "place" / "milp_recourse" / "key").symlink_to(own / "elsewhere")


def link_to_loose(own):
    (own / "far" / "loose").mkdir(parents=True)
    (own / "far").chmod(0o777)
    (own / "place").symlink_to("far/../far/loose")


def a_file(own):
    (own / "place").write_text("")


def endless_links(own):
    (own / "place").symlink_to("place")


@pytest.mark.parametrize(
    "made",
    [
        loose_place,
        loose_parent,
        loose_package,
        readable_key,
        linked_package,
        linked_key,
        link_to_loose,
        a_file,
        endless_links,
    ],
)
def test_a_folder_that_others_could_have_filled_is_refused(made, own):
    """Also where only its parent, or what a link leads through, is open to others."""
    made(own)
    with pytest.raises(NotOwn, match=str(own)):
        cache_folder(own / "place", "key")


@SUPERUSER
@pytest.mark.parametrize("whose", ["place", "place/milp_recourse", "place/milp_recourse/key", "link"])
def test_another_users_folder_or_link_is_refused(whose, own):
    """Whatever its mode: its owner can change that."""
    (own / "place" / "milp_recourse" / "key").mkdir(parents=True, mode=0o700)
    (own / "link").symlink_to("place")
    os.chown(own / whose, OTHER, OTHER, follow_symlinks=False)
    place = own / ("link" if whose == "link" else "place")
    with pytest.raises(NotOwn, match="another user"):
        cache_folder(place, "key")


def test_links_of_ones_own_and_sticky_folders_are_followed(own):
    """As /tmp is: everybody makes files there, and nobody replaces another's."""
    (own / "tmp").mkdir()
    (own / "tmp").chmod(0o1777)
    (own / "link").symlink_to(own / "tmp")
    assert cache_folder(own / "link" / "mine", "key") == own / "tmp" / "mine" / "milp_recourse" / "key"


def test_where_it_is_looked_for(own, monkeypatch):
    """NUMBA_CACHE_DIR alone; else the user's cache folder, and the temporary folder; nothing relative."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(own))
    assert places() == [own]
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(own / "xdg"))
    assert places()[0] == own / "xdg"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(own))
    first, second = places()
    assert first == own / ".cache" and second.name == f"milp_recourse-{os.geteuid()}"
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # a user without a home folder
    assert places() == [second]


def run(own: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Compile a function in a process of its own and call it."""
    (own / "doubling.py").write_text(TWICE)
    code = (
        "from milp_recourse.engine import compiling\nfrom doubling import twice\n"
        "with compiling.announced('the doubling'):\n    print(twice(2.0), *twice.stats.cache_hits.values())"
    )
    path = f"{ROOT}{os.pathsep}{own}"
    known = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, "-c", code], env=known | environment, capture_output=True, text=True, check=True
    )


@pytest.mark.long
def test_planted_index_files_are_not_read_and_one_line_says_so(own):
    """The same file runs code where the folder is the user's own, so the test would see it run."""
    first = run(own, NUMBA_CACHE_DIR=str(own / "cache"))
    assert (first.stdout, first.stderr) == ("4.0\n", "")
    [index] = (own / "cache").rglob("*.code")
    index.write_bytes(PLANTED)
    assert "PLANTED" in run(own, NUMBA_CACHE_DIR=str(own / "cache")).stderr
    index.write_bytes(PLANTED)
    index.parent.chmod(0o777)
    refused = run(own, NUMBA_CACHE_DIR=str(own / "cache"))
    assert refused.stdout == "4.0\n"
    line = "milp_recourse: compiled code is not kept, so every process compiles its own: others can get into"
    assert refused.stderr.startswith(line) and refused.stderr.count("\n") == 1
    index.parent.chmod(0o700)
    shutil.rmtree(index.parent)
    assert run(own, NUMBA_CACHE_DIR=str(own / "cache")).stderr == ""
    assert run(own, NUMBA_CACHE_DIR=str(own / "cache")).stdout == "4.0 1\n"


@pytest.mark.long
@pytest.mark.parametrize("damaged", [lambda made: made[:20], lambda made: made[:-90] + bytes(90)])
def test_a_broken_file_is_compiled_anew(own, damaged):
    """As it is left where the machine loses power; it is replaced, and found the next time."""
    run(own, NUMBA_CACHE_DIR=str(own / "cache"))
    files = list((own / "cache").rglob("*.code"))
    for file in files:
        file.write_bytes(damaged(file.read_bytes()))
    assert files
    assert run(own, NUMBA_CACHE_DIR=str(own / "cache")).stdout == "4.0\n"
    assert run(own, NUMBA_CACHE_DIR=str(own / "cache")).stdout == "4.0 1\n"

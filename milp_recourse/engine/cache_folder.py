"""The folder that compiled code is kept in: the user's own, or none.

Files of compiled code are pickles, so whoever can write them runs code as the user. A folder is used only if
nobody else could have made it, can write into it, or can put another in its place.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

MOST_LINKS = 40
"""How many symbolic links are followed on the way to a folder, as Linux does."""


class NotOwn(Exception):
    """A folder cannot be used; the message says which one, why, and what to do."""


def places() -> list[Path]:
    """Where a cache may be, the best place first: NUMBA_CACHE_DIR alone if it is set, else the user's cache
    folder (XDG_CACHE_HOME, else ``~/.cache``), then a folder of the user's below the temporary folder."""
    own = os.environ.get("NUMBA_CACHE_DIR")
    if own:
        return [Path(own).absolute()]
    given = os.environ.get("XDG_CACHE_HOME", "")
    home = given if os.path.isabs(given) else os.path.join(os.path.expanduser("~"), ".cache")
    found = [Path(home)] if os.path.isabs(home) else []  # a user without a home: "~" stays as it is
    if hasattr(os, "geteuid"):  # elsewhere the temporary folder is in the user's profile, as the cache is
        found.append(Path(tempfile.gettempdir()).absolute() / f"milp_recourse-{os.geteuid()}")
    return found


def cache_folder(place: Path, name: str) -> Path:
    """The folder ``place/milp_recourse/name``, made if it is not there.

    Folders that are made are readable by the user alone (mode 0700). Above ``milp_recourse``, every folder on
    the way, links followed, must belong to the user or the superuser, and either nobody else can write into
    it or only the owner of a file can replace it (the sticky bit). ``milp_recourse`` and ``name`` themselves
    must be no links and the user's own; into the first nobody else may write, into the second nobody else may
    look. Systems without user numbers (Windows) are not checked.

    Raises
    ------
    NotOwn
        One of these is otherwise, or the folder cannot be made, or is empty and cannot be written.
    """
    try:
        if not hasattr(os, "geteuid"):
            folder = place / "milp_recourse" / name
            folder.mkdir(parents=True, exist_ok=True)
        else:
            outer = _made(_followed(place), "milp_recourse", 0o022)
            folder = _made(outer, name, 0o077)
        if not any(folder.iterdir()):  # what was filled may have become read-only, as in an image
            tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise NotOwn(f"{place} cannot be used: {error.strerror or error}") from None
    return folder


def _followed(place: Path) -> Path:
    """The folder that a path leads to without links; missing folders are made.

    Raises
    ------
    NotOwn
        Somebody else could replace a folder or a link on the way.
    """
    here, left = Path(place.anchor), list(place.parts[1:])
    _check(here, os.lstat(here))
    links = 0
    while left:
        name = left.pop(0)
        if name == "..":
            here = here.parent
            continue
        there = here / name
        try:
            found = os.lstat(there)
        except FileNotFoundError:
            there.mkdir(mode=0o700, exist_ok=True)
            found = os.lstat(there)
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > MOST_LINKS or found.st_uid not in (0, os.geteuid()):
                raise NotOwn(f"{there} is a link that another user made")
            target = Path(os.readlink(there))
            here = Path(target.anchor) if target.anchor else here
            left[:0] = target.parts[1:] if target.anchor else target.parts
            continue
        _check(there, found)
        here = there
    return here


def _check(folder: Path, found: os.stat_result) -> None:
    """Raise :class:`NotOwn` where a folder on the way, or what is in it, could be replaced by others."""
    if not stat.S_ISDIR(found.st_mode):
        raise NotOwn(f"{folder} is no folder")
    if found.st_uid not in (0, os.geteuid()):
        raise NotOwn(f"{folder} belongs to another user")
    if found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX:
        raise NotOwn(f"others can write into {folder}: chmod go-w it")


def _made(above: Path, name: str, forbidden: int) -> Path:
    """The user's own folder with this name, made if it is not there.

    Raises
    ------
    NotOwn
        It is a link, another user's, or others have one of the ``forbidden`` permissions: what is in it may
        then be theirs.
    """
    folder = above / name
    folder.mkdir(mode=0o700, exist_ok=True)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode):
        raise NotOwn(f"{folder} is a link, or no folder: remove it")
    if found.st_uid != os.geteuid():
        raise NotOwn(f"{folder} belongs to another user")
    if found.st_mode & forbidden:
        raise NotOwn(f"others can get into {folder}: remove it with what is in it")
    return folder

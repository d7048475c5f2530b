"""One writer at a time: a lock on a folder, which the operating system drops when its process ends; and rows
that are appended whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, TypeVar

from milp_recourse.errors import MACHINE, BadInput, MachineFailed

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK = ".lock"
"""The locked file of a folder, removed at the end. After a kill it stays there, and is not locked."""

REMOVED = FileNotFoundError, FileExistsError
"""Raised where another run removes a folder: by ``mkdir``, that it exists, where it did a moment before."""

TRIES = 100
"""How often a folder is made before what is raised counts as the folder's own."""

T = TypeVar("T")


@contextmanager
def only_writer(folder: Path, name: str = LOCK) -> Iterator[None]:
    """Hold a lock of a folder, which is made if it does not exist, and removed again if nothing is written.

    Within a thread the same lock can be held several times. On file systems without locks, where filelock
    says so, the file itself is the lock, and stays one after a ``kill -9``. What a killed process left of
    files that were written whole is removed by the next one that locks the whole folder.

    Parameters
    ----------
    name
        The locked file: another one where only a part of what is in the folder is written.

    Raises
    ------
    MachineFailed
        Another process holds the lock; or the disk is full or broken.
    BadInput
        The folder cannot be made, written or locked.
    """
    made = [place for place in (folder, *folder.parents) if not os.path.exists(place)]
    lock = _in(folder, lambda: _locked(folder, name))
    try:
        if name == LOCK and lock.lock_counter == 1:
            _tidy(folder)
        yield
    finally:
        if lock.lock_counter == 1:
            with suppress(OSError):
                Path(lock.lock_file).unlink()
        lock.release()
        for place in made:
            with suppress(OSError):  # it is not empty
                place.rmdir()


def _in(folder: Path, act: Callable[[], T]) -> T:
    """Act in a folder, which is made if it does not exist; again if another run removes it in between."""
    left = TRIES
    while True:
        left -= 1
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # a fixed name would be removed by another run that tries it at once
            TemporaryFile(dir=folder).close()
            return act()
        except (OSError, ValueError, NotImplementedError) as error:
            if not (left and isinstance(error, REMOVED)):
                raise _unusable(folder, error) from None


def _locked(folder: Path, name: str) -> BaseFileLock:
    from filelock import FileLock, Timeout  # not needed to list commands

    lock = FileLock(folder.resolve() / name, mode=0o664, is_singleton=True)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        busy = "another run is writing there; wait for its end, or give another folder"
        raise MachineFailed(f"{folder}: {busy}") from None
    return lock


def _tidy(folder: Path) -> None:
    from milp_recourse.formats.strict_json import UNFINISHED  # pydantic, which listing commands does not need

    for pattern in (f".*{UNFINISHED}", f"*/.*{UNFINISHED}"):
        for file in folder.glob(pattern):
            with suppress(OSError):
                file.unlink()


def make_folder(folder: Path) -> None:
    """Make a folder if it does not exist, and check that it can be written.

    Raises
    ------
    BadInput
        It cannot be made or written.
    MachineFailed
        The disk is full or broken.
    """
    _in(folder, lambda: None)


def _unusable(folder: Path, error: Exception) -> BadInput | MachineFailed:
    if isinstance(error, OSError) and error.errno in MACHINE:
        return MachineFailed(f"{folder}: {error.strerror}")
    return BadInput("--out", f"{folder}: {error}", "a folder that can be written")


def append_whole(content: bytes, stream: FileIO) -> None:
    """Write at the end of a file that is opened without a buffer; after an error, nothing of it is there."""
    end = stream.seek(0, os.SEEK_END)
    try:
        while content:
            content = content[stream.write(content) :]
    except OSError:
        stream.truncate(end)
        raise

"""One writer at a time: a lock on a folder, which the operating system drops when its process ends; and rows
that are appended whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from tempfile import TemporaryFile

from milp_recourse.errors import MACHINE, BadInput, MachineFailed

LOCK = ".lock"
"""The locked file of a folder, removed at the end. After a kill it stays there, and is not locked."""

TRIES = 100
"""How often a folder is made and locked: another run that writes nothing removes it in between."""


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
    from filelock import FileLock, Timeout  # not needed to list commands

    made = [place for place in (folder, *folder.parents) if not os.path.exists(place)]
    for tried in range(TRIES):
        try:
            _make(folder)
            lock = FileLock(folder.resolve() / name, mode=0o664, is_singleton=True)
            lock.acquire(timeout=0)
            break
        except Timeout:
            busy = "another run is writing there; wait for its end, or give another folder"
            raise MachineFailed(f"{folder}: {busy}") from None
        except (OSError, ValueError, NotImplementedError) as error:
            if not isinstance(error, FileNotFoundError) or tried == TRIES - 1:
                raise _unusable(folder, error) from None
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
    try:
        _make(folder)
    except (OSError, ValueError) as error:
        raise _unusable(folder, error) from None


def _make(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=folder):  # a fixed name would be removed by another run that tries it at once
        pass


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

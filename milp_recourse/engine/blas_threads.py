"""Products of small matrices by one thread of BLAS each: several take as long, on all cores."""

from __future__ import annotations

from threading import Lock
from typing import Any


class OneBlasThread:
    """A context. Inside, BLAS has one thread in all of this process; after the last of those who are inside,
    as many as before the first."""

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._before: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                from threadpoolctl import threadpool_limits  # most searches have no such products

                self._before = threadpool_limits(1, "blas")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._before.restore_original_limits()


ONE_BLAS_THREAD = OneBlasThread()

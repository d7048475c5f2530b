"""A file of compiled code that runs something else when it is read: such files are pickles."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable


class _Planted:
    def __reduce__(self) -> tuple[Callable[[int, bytes], int], tuple[int, bytes]]:
        return os.write, (2, b"PLANTED CODE RAN\n")


CONTENT = pickle.dumps(_Planted())
PLANTED = hashlib.sha256(CONTENT).digest() + CONTENT
"""With its digest in front, as the file of a function has it; says on stderr that it was unpickled."""

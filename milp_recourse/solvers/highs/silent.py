"""A HiGHS object that prints nothing."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import Any


def silent_highs(**options: Any) -> Any:
    """A new ``highspy.Highs`` with its output switched off, and with other options of HiGHS as given."""
    _print_banner_nowhere()
    import highspy

    highs = highspy.Highs()
    for name, value in ({"output_flag": False} | options).items():
        highs.setOptionValue(name, value)
    return highs


@cache
def _print_banner_nowhere() -> None:
    """Make the first HiGHS object of this process, which since version 1.16 prints two lines on stdout before
    an option can forbid it, while stdout goes nowhere."""
    import highspy

    sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # there is no stdout
        highspy.Highs()
        return
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            highspy.Highs()
    finally:
        os.dup2(kept, 1)
        os.close(kept)

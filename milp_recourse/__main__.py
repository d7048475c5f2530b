"""``python -m milp_recourse``: the command line."""

from __future__ import annotations

import sys

from milp_recourse.cli import main

if __name__ == "__main__":
    sys.exit(main())

"""The random problems and conditions of other tests are importable by name."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [
    str(HERE),
    *(str(HERE.parent / name) for name in ("conditions", "properties", "forests", "formats")),
]

"""Makes the sample people importable, and those of tests/formats."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "formats")]

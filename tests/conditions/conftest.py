"""Helpers beside these tests, and the random problems of others, are importable by name."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "properties"), str(HERE.parent / "forests")]

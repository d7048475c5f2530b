"""Makes the random problems of tests/properties, and the modules beside this one, importable here."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "properties"))
sys.path.insert(0, str(Path(__file__).parent))

"""docs/architecture.md names every part of the package, and its arrow is the one the imports obey."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PARTS = {
    path.stem
    for path in (ROOT / "milp_recourse").iterdir()
    if path.suffix == ".py" or (path / "__init__.py").exists()
} - {"__init__", "__main__"}


def arrow() -> list[set[str]]:
    """ARROW of tests/test_imports.py, less what is not written yet and what has no name of its own."""
    tree = ast.parse((ROOT / "tests" / "test_imports.py").read_text(encoding="utf-8"))
    (value,) = (
        node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "ARROW"
    )
    stages = [{entry} if isinstance(entry, str) else set(entry) for entry in ast.literal_eval(value)]
    here = PARTS | {"backends.protocol"}
    return [stage & here for stage in stages if stage & here]


def test_the_arrow_is_the_imports_arrow():
    """Stage by stage."""
    block = re.search(r"Imports point one way:\n\n((?:    .*\n)+)", PAGE)[1]
    assert [set(re.split(r",\s*", stage.strip())) for stage in block.split("->")] == arrow()


def test_every_part_is_in_the_tree():
    """No folder and no module is left out."""
    tree = re.search(r"```\nmilp_recourse/\n(.*?)\ninstances/", PAGE, re.DOTALL)[1]
    assert set(re.findall(r"^  (\w+)(?:/|\.py)", tree, re.MULTILINE)) == PARTS

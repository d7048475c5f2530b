"""docs/architecture.md names every part in its layer, and its numbers are the results file's."""

import json
import re
from pathlib import Path

import pytest

from tests.docs.sizes import PAGE, RESULTS, code_lines, lines, placed
from tests.test_imports import ROOMS

ROOT = Path(__file__).parents[2]
TEXT = PAGE.read_text(encoding="utf-8")
UNNAMED = {"", "__main__", "errors"}  # files at the root


def test_every_room_has_its_line():
    """The page names the rooms in the order of ROOMS in tests/test_imports.py, and none is left out."""
    tree = re.search(r"```\nmilp_recourse/\n(.*?)\nverify/", TEXT, re.DOTALL)[1]
    assert re.findall(r"^  (\w+)/ ", tree, re.MULTILINE) == [r for r in ROOMS if r not in UNNAMED]
    assert {path.name for path in (ROOT / "milp_recourse").iterdir() if (path / "__init__.py").exists()} == {
        room for room in ROOMS if room not in UNNAMED
    }


def test_the_numbers_are_the_results_files():
    """The tables are what `python -m tests.docs.sizes` makes of sizes.json."""
    assert placed(TEXT, json.loads(RESULTS.read_text(encoding="utf-8"))) == TEXT


@pytest.mark.long
def test_the_results_file_is_of_this_code():
    """No room's code lines are a tenth (and fifty) off: if they are, run `python -m tests.docs.sizes`."""
    known = json.loads(RESULTS.read_text(encoding="utf-8"))["lines"]
    now = lines()
    assert known.keys() == now.keys()
    off = {
        name: (known[name]["code"], now[name]["code"])
        for name in now
        if abs(known[name]["code"] - now[name]["code"]) > 0.1 * now[name]["code"] + 50
    }
    assert off == {}, "run python -m tests.docs.sizes --lines"


def test_what_counts_as_a_code_line():
    """Blank lines, comments and texts that stand alone do not; a text in a call does, on all its lines."""
    assert code_lines('"""Title.\n\nMore."""\n\nx = 1  # why\n# only why\ny = f("""a\nb""")\n') == 3
    assert code_lines("def f(\n    x,\n):\n    'what'\n    return (x,\n        1)\n") == 5


def test_the_compiled_engine_stays_readable() -> None:
    """What it replaced had 6600 code lines; whoever adds to it takes something out: two scales, two files
    that searched, and proved, direction by direction. Steps between values took 45 lines more,
    stages of the budget 51, fields written out where there was an ``eval`` 17, arrays that have names
    and types instead of numbered rows 240, a search for actions in three efforts 60. Counting steps
    came in from beside the folder, with 24. Bent lines took 133: l1 people far from acceptance on wide
    networks with many levers need a tenth of the nodes. Semidefinite relaxations and their tree, which are
    numpy but for five functions, took 816: 9 of 16 such people with l2-squared costs are proven, of
    the first 8 none without them. That the tree begins within a part of the budget, after stages, took
    38: bounds of such people on real tables, 0 before, are a quarter of the cost. Lines of later layers, put
    together at once, took 74: a second has 1.4 to 1.7 times the nodes where networks have three to five.
    Several threads took 126: two of them examine 1.8 times the nodes of one."""
    files = (ROOT / "milp_recourse" / "engine" / "networks").glob("*.py")
    assert sum(code_lines(file.read_text(encoding="utf-8")) for file in files) <= 5734

"""A user's method that fails is one line that names it and what it raised, and nothing is written."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from milp_recourse.cli import main

METHODS = """
import pandas as pd
import beside_it

def raises(frame):
    raise KeyError("income")

def exits(frame):
    raise SystemExit(0)

def a_list_in_a_cell(frame):
    return pd.DataFrame({"income": [["a"]] * len(frame)})

def columns_twice(frame):
    return pd.concat([frame, frame], axis=1)

def no_frame(frame):
    return 3
"""

FAULTS = {
    "faulty_methods:raises": "METHOD raises: it raised KeyError: 'income'",
    "faulty_methods:exits": "METHOD exits: it raised SystemExit: 0",
    "faulty_methods:a_list_in_a_cell": "METHOD row 0: income: got a list; allowed: a number or a label",
    "faulty_methods:columns_twice": "METHOD: got two columns of the same name",
    "faulty_methods:no_frame": "METHOD: got int; allowed: a DataFrame",
    "broken_module:f": "METHOD broken_module:f: importing it raised ValueError: on two lines",
    "..:f": "METHOD: got ..:f; allowed: a .csv file or module:function",
}


@pytest.mark.parametrize("method", FAULTS)
def test_one_line_and_nothing_written(method, tmp_path, monkeypatch, capsys):
    """Also where the module itself cannot be imported; SystemExit does not pass for success."""
    (tmp_path / "faulty_methods.py").write_text(METHODS)
    (tmp_path / "beside_it.py").write_text("")
    (tmp_path / "broken_module.py").write_text("raise ValueError('on\\ntwo lines')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for module in ("faulty_methods", "beside_it", "broken_module"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    assert main(["evaluate", method, "--limit", "1", "--out", "out"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"milp-recourse: {FAULTS[method]}") and said.count("\n") == 1
    assert not Path("out").exists()


def test_the_method_is_found_here_and_other_files_here_replace_nothing(tmp_path, monkeypatch, capsys):
    """The module asked for may have an installed one's name; a ``csv.py`` beside it is not imported."""
    (tmp_path / "wave.py").write_text(  # Python has a module of this name
        "import fileinput\ndef actions(frame):\n    return frame[['income']] + len(fileinput.__doc__)"
    )
    (tmp_path / "fileinput.py").write_text("raise RuntimeError('imported from here')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for module in ("wave", "fileinput"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    assert main(["evaluate", "wave:actions", "--limit", "1", "--out", "out"]) == 0
    assert "given: 1" in capsys.readouterr().out

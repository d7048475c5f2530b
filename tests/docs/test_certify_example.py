"""docs/examples/certify_an_applicant.py with a reader's own applicant."""

import runpy
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "examples" / "certify_an_applicant.py"


@pytest.mark.parametrize(
    ("change", "printed"),
    [
        ({"[0, 150]": "[0, 23]", "[0, 100]": "[24, 100]"}, "infeasible (proof: rigorous)\nproven"),
        ({"== 0][0]": "== 1][0]"}, "cost 0.0000, lower bound 0.0000\nthe model says True before"),
    ],
    ids=["no action exists", "accepted as it is"],
)
def test_an_applicant_who_needs_another_answer(change, printed, tmp_path, monkeypatch, capsys):
    """No action, or none needed: the script ends well and says which."""
    pytest.importorskip("sklearn")
    text = SCRIPT.read_text()
    for old, new in change.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "mine.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["mine.py"])
    try:
        runpy.run_path("mine.py", run_name="__main__")
    except SystemExit as end:
        assert not end.code
    assert printed.lower() in capsys.readouterr().out.lower()

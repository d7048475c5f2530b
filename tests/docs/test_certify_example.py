"""docs/examples/certify_an_applicant.py with a reader's own applicant."""

import subprocess
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
def test_an_applicant_who_needs_another_answer(change, printed, tmp_path):
    """No action, or none needed: the script ends well and says which."""
    pytest.importorskip("sklearn")
    text = SCRIPT.read_text()
    for old, new in change.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "mine.py").write_text(text)
    run = subprocess.run(
        [sys.executable, "mine.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert printed.lower() in run.stdout.lower(), run.stdout

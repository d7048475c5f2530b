"""``--strict-skips`` fails a run that skipped for want of a package, and no other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("line", "strict", "code"),
    [
        ("pytest.importorskip('no_such_package')", True, 1),
        ("pytest.importorskip('no_such_package')", False, 0),
        ("pytest.skip('no /dev/full')", True, 0),
        ("pass", True, 0),
    ],
)
def test_a_missing_package_is_not_passed_over(line: str, strict: bool, code: int, tmp_path: Path) -> None:
    """In a test; where it stands at the top of a file, the whole file counts as skipped."""
    file = tmp_path / "test_one.py"
    options = ["-q", "-p", "tests.conftest", "-p", "no:cacheprovider"] + ["--strict-skips"] * strict
    for text in (
        f"import pytest\ndef test_one():\n    {line}\n",
        f"import pytest\n{line}\ndef test_one():\n    pass\n",
    ):
        if "pytest.skip" in line and text.startswith(f"import pytest\n{line}"):
            continue  # not allowed outside a test
        file.write_text(text)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, str(file)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        empty = 5  # pytest's own code for a run that has collected nothing
        assert done.returncode == code or (not code and done.returncode == empty), done.stdout

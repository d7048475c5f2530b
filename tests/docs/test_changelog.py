"""`.ci/changelog` asks for a line of the changelog where users may notice a change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "changelog"


@pytest.fixture
def repository(tmp_path):
    """A repository of one commit."""

    def git(*arguments: str) -> str:
        names = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", *names, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout

    def commit(message: str, *files: str) -> None:
        for name in files:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(path.read_text() + "more\n" if path.exists() else "first\n")
        git("add", "-A")
        git("commit", "-m", message)

    git("init", "-q", "-b", "main")
    commit("first", "milp_recourse/a.py", "verify/b.py", "docs/changelog.md", "docs/index.md")
    git("tag", "base")
    return tmp_path, commit


@pytest.mark.parametrize(
    ("message", "files", "code"),
    [
        ("a page", ["docs/index.md"], 0),
        ("silent", ["milp_recourse/a.py"], 1),
        ("silent", ["verify/b.py", "docs/index.md"], 1),
        ("said", ["milp_recourse/a.py", "docs/changelog.md"], 0),
        ("a name\n\nChangelog: none", ["milp_recourse/a.py"], 0),
    ],
)
def test_a_change_that_users_may_notice_is_in_the_changelog(message, files, code, repository):
    """Code without a line fails, unless a commit says that nobody notices."""
    folder, commit = repository
    commit(message, *files)
    done = subprocess.run([SCRIPT, "base"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert ("Add a line for users" in done.stderr) == (code == 1)

"""Every file here is a test: accepted ones pass, attacks fail for the reason that the index states."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.certificates import attacks
from verify.__main__ import examine

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
INDEX = json.loads((HERE / "index.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", INDEX["accepted"])
def test_accepted(name):
    """The certificate proves its claim."""
    outcome = examine(HERE / "accepted" / name, ROOT / INDEX["accepted"][name], 60)
    assert outcome.line.startswith("VERIFIED"), outcome.line


def test_a_neuron_assumed_negative_is_zero_by_the_kernel_alone():
    """Also where its interval is exactly 0: in fractions it is, in doubles, which leaves come from, it is
    wider."""
    name = "zero_interval.json"
    outcome = examine(HERE / "accepted" / name, ROOT / INDEX["accepted"][name], 60, slow=True)
    assert outcome.line.startswith("VERIFIED"), outcome.line


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in ("rejected", "malformed") for name in INDEX[kind]]
)
def test_attacks(kind, name):
    """The attack fails, and for the right reason."""
    entry = INDEX[kind][name]
    outcome = examine(HERE / kind / name, ROOT / entry["instance"], 60)
    assert outcome.line.startswith("REJECTED: "), f"{entry['tries']} {outcome.line}"
    assert entry["reason"] in outcome.line


def by_processes(*arguments):
    """What several processes say of each certificate, and how many were started."""
    command = [sys.executable, "-m", "tests.certificates.on_processes", *arguments]
    return json.loads(subprocess.run(command, capture_output=True, check=True, cwd=ROOT).stdout)


@pytest.mark.parametrize("kind", ["accepted", "rejected"])
def test_several_processes_say_the_same(kind):
    """Whoever checks a part of a tree, the first reason is given."""
    found = by_processes(kind)
    for name, (line, _) in found.items():
        assert (INDEX[kind][name]["reason"] if kind == "rejected" else "VERIFIED") in line, line
    assert sum(processes for _, processes in found.values()) > 20


def test_a_process_that_dies_proves_nothing():
    """Where the process that checks a part ends early, the certificate is rejected."""
    found = by_processes("accepted", "dying")
    for line, processes in found.values():
        assert line.startswith("REJECTED: the check failed: a process" if processes else "VERIFIED"), line
    assert sum(processes for _, processes in found.values()) > 20


def test_every_file_is_listed():
    """No file lies here that no test opens; there are attacks enough."""
    for kind in ("accepted", "rejected", "malformed"):
        assert {p.name for p in (HERE / kind).iterdir()} == set(INDEX[kind])
    assert len(INDEX["rejected"]) >= 25


def test_files_are_what_the_script_writes():
    """``python -m tests.certificates.attacks`` would change nothing."""
    for path, content in attacks.files().items():
        if not path.endswith(".gz"):  # zlib's versions differ
            assert (HERE / path).read_bytes() == content, path

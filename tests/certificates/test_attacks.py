"""Every file here is a test: accepted ones pass, attacks fail for the reason that the index states."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.certificates import attacks
from verify.__main__ import examine
from verify.files import forked

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
XDISTS_THREADS = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
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


@pytest.fixture
def forks(monkeypatch):
    """Hand every part of a tree over that can be; how often that was done."""
    monkeypatch.setattr(forked, "LEAST", 1)
    monkeypatch.setattr(forked, "PAUSE", 0.0)
    done, fork = [], os.fork
    monkeypatch.setattr(os, "fork", lambda: done.append(1) or fork())
    return done


@XDISTS_THREADS
@pytest.mark.parametrize("kind", ["accepted", "rejected"])
def test_several_processes_say_the_same(kind, forks):
    """Whoever checks a part of a tree, the first reason is given."""
    for name, entry in INDEX[kind].items():
        instance, reason = (entry["instance"], entry["reason"]) if kind == "rejected" else (entry, "VERIFIED")
        line = examine(HERE / kind / name, ROOT / instance, 60, jobs=4).line
        assert reason in line, line
    assert forks


@XDISTS_THREADS
def test_a_process_that_dies_proves_nothing(forks, monkeypatch):
    """Where the process that checks a part ends early, the certificate is rejected."""
    monkeypatch.setattr(forked.Tree, "_as_other", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    for name, instance in INDEX["accepted"].items():
        before = len(forks)
        line = examine(HERE / "accepted" / name, ROOT / instance, 60, jobs=4).line
        dead = len(forks) > before
        assert line.startswith("REJECTED: the check failed: a process" if dead else "VERIFIED"), line
    assert forks


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

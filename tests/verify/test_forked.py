"""One certificate's check on several processes: how many there are, and what ends them."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from verify.__main__ import examine
from verify.files import forked

ROOT = Path(__file__).parents[2]
TOY = ROOT / "docs/examples/toy_instance.json"
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


@pytest.fixture
def eager(monkeypatch):
    """Hand over every part that can be."""
    monkeypatch.setattr(forked, "LEAST", 1)
    monkeypatch.setattr(forked, "PAUSE", 0.0)


def comb(tmp_path, right, teeth=600, times=1):
    """The toy's certificate with its last leaf split many times, always at the same side of the rest."""
    data = json.loads((ROOT / "tests/certificates/accepted/toy.json").read_text())
    cuts = [["a", 0, 3 + k / teeth] for k in range(1, teeth)]
    rest = [node for cut in cuts for node in (cut, ["e"])] if right else cuts[::-1] + [["e"]] * (teeth - 1)
    data["configurations"][0]["tree"][-1:] = [*rest, ["e"]]
    data["configurations"] *= times
    file = tmp_path / "certificate.json"
    file.write_text(json.dumps(data))
    return file


@pytest.mark.parametrize("right", [True, False])
def test_a_comb_of_splits_needs_few_processes_and_files(tmp_path, right, eager):
    """Processes do not wait for each other in a long row, nor are all that have ended kept open."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    try:
        line = examine(comb(tmp_path, right), TOY, 60, jobs=2).line
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert line.startswith("VERIFIED"), line


@pytest.mark.parametrize("times", [1, 9])
def test_no_more_processes_work_than_are_allowed(tmp_path, eager, monkeypatch, times):
    """After every tree as many more may work as before it."""
    left, close = [], forked.Spare.close

    def counted(spare):
        left.append(len(os.read(spare.reading, 99)))
        close(spare)

    monkeypatch.setattr(forked.Spare, "close", counted)
    assert examine(comb(tmp_path, True, 9, times), TOY, 60, jobs=4).claim
    assert left == [3]


def test_any_number_of_jobs_may_be_asked_for(tmp_path):
    """The pipe that counts them is never full."""
    command = [sys.executable, "-m", "verify", comb(tmp_path, True, 9), TOY, "--jobs=100000"]
    subprocess.run(command, check=True, timeout=60, cwd=ROOT)


def test_where_no_process_can_start_one_does_it_all(tmp_path, eager, monkeypatch):
    """A machine without room for another process is no reason to reject a certificate."""

    def none():
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", none)
    files = len(os.listdir("/dev/fd"))
    assert examine(comb(tmp_path, True), TOY, 60, jobs=4).claim
    assert len(os.listdir("/dev/fd")) == files


def test_where_nobody_is_told_who_has_ended(tmp_path, eager):
    """A shell may start the checker with SIGCHLD ignored."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert examine(comb(tmp_path, True, 40), TOY, 60, jobs=4).claim
    finally:
        signal.signal(signal.SIGCHLD, before)


SLOW = """
import signal, sys, time
from verify.__main__ import main
from verify.files import forked
from verify.kernel import certificate
def leaf(*_):
    print(end=".", file=sys.stderr, flush=True)
    time.sleep(600)
forked.LEAST, forked.PAUSE, certificate.Tree.leaf = 1, 0.0, leaf
signal.signal(signal.SIGINT, signal.default_int_handler)  # who starts the tests may ignore it
main(sys.argv[1:])
"""


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_outlives_the_check(tmp_path, ending):
    """However the first process ends, the others end soon, too: they hold its output open."""
    command = [sys.executable, "-c", SLOW, comb(tmp_path, True, 9), TOY, "--jobs=3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as check:
        assert check.stderr.read(3) == b"..."  # all of them have a leaf
        check.send_signal(ending)
        out, _ = check.communicate(timeout=30)
    assert out == b""

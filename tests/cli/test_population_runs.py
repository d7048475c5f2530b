"""A population's run gives the same results when killed and resumed, and on processes or a cluster."""

import csv
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from milp_recourse.cli import main
from milp_recourse.reports.certificate_files import extract
from tests.helpers.loan_people import refused_file

PEOPLE = 300  # two chunks: they are of 256


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Refused Loan applicants who may change amount and savings, without plausibility."""
    return refused_file(tmp_path_factory.mktemp("people"), PEOPLE)


def command(file: Path, out: Path, *more: str) -> list[str]:
    """The command a user types."""
    return [sys.executable, "-m", "milp_recourse", "certify", str(file), "--out", str(out), *more]


def results(out: Path) -> list[dict[str, str]]:
    """Rows of results.csv, seconds aside, with the digest of every certificate."""
    with (out / "results.csv").open(encoding="utf-8", newline="") as stream:
        rows = [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(stream)]
    for row in rows:
        if row["certificate"]:
            row["sha256"] = hashlib.sha256(extract(out, int(row["index"]))).hexdigest()
    return rows


def rows_in(out: Path) -> int:
    """How many lines results.csv has below its header (the last may be cut short); no certificate is read."""
    return (out / "results.csv").read_bytes().count(b"\n") - 1


@pytest.fixture(scope="module")
def whole(file, tmp_path_factory):
    """Results of a run that was not interrupted."""
    out = tmp_path_factory.mktemp("whole") / "out"
    assert main(["certify", str(file), "--out", str(out)]) == 0
    rows = results(out)
    assert [row["index"] for row in rows] == [str(k) for k in range(PEOPLE)]
    assert {row["proof"] for row in rows} == {"rigorous"}
    assert len({row["sha256"] for row in rows}) == PEOPLE  # each has a certificate of its own
    return out


def test_killed_in_the_middle_it_resumes_to_the_same_results(file, whole, tmp_path):
    """kill -9 once some rows are there, then the same command again."""
    out = tmp_path / "out"
    process = subprocess.Popen(command(file, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if (out / "results.csv").exists() and rows_in(out) > 140:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = rows_in(out)
    assert 140 < kept < PEOPLE
    again = subprocess.run(command(file, out), capture_output=True, text=True, check=True)
    assert "going on after" in again.stdout
    assert results(out) == results(whole)


def test_a_row_cut_short_is_written_again(file, whole, tmp_path):
    """A kill may leave half a line."""
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    table = out / "results.csv"
    os.truncate(table, table.stat().st_size - 7)
    assert main(["certify", str(file), "--out", str(out)]) == 0
    assert results(out) == results(whole)


def test_two_processes_give_the_same_results(file, whole, tmp_path):
    """Chunks are the same whoever solves them."""
    assert main(["certify", str(file), "--out", str(tmp_path / "out"), "--jobs", "2"]) == 0
    assert results(tmp_path / "out") == results(whole)


def test_a_dask_cluster_gives_the_same_results(file, whole, tmp_path):
    """joblib's Dask back end on a local cluster."""
    distributed = pytest.importorskip("distributed", reason="the dask extra is not installed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        arguments = ["--parallel", "dask", "--scheduler", cluster.scheduler_address, "--no-certificates"]
        assert main(["certify", str(file), "--out", str(tmp_path / "out"), *arguments]) == 0
    answers = [{k: v for k, v in row.items() if k not in ("certificate", "sha256")} for row in results(whole)]
    found = results(tmp_path / "out")
    assert [{k: v for k, v in row.items() if k != "certificate"} for row in found] == answers


@pytest.mark.parametrize("arguments", [["--parallel", "dask"], ["--scheduler", "tcp://127.0.0.1:1"]])
def test_a_cluster_needs_both_its_options(file, tmp_path, capsys, arguments):
    """One clear line, nothing written."""
    assert main(["certify", str(file), "--out", str(tmp_path / "out"), *arguments]) == 2
    assert "--scheduler" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_scheduler_that_does_not_answer_is_one_line(file, tmp_path, capsys):
    """Nobody listens on port 1."""
    pytest.importorskip("distributed", reason="the dask extra is not installed")
    arguments = ["--parallel", "dask", "--scheduler", "tcp://127.0.0.1:1"]
    assert main(["certify", str(file), "--out", str(tmp_path / "out"), *arguments]) == 2
    assert "does not answer" in capsys.readouterr().err

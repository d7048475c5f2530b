"""Large populations: certificates packed into archives, taken out again, checked whole or by a sample."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from pathlib import Path

import pytest

from milp_recourse.cli import main
from milp_recourse.reports import certificate_files, population_folder
from tests.helpers.bombs import archive

ROOT = Path(__file__).parents[2]
PEOPLE = ROOT / "tests" / "certificates" / "instances" / "toy_population.json"


@pytest.fixture
def packed(tmp_path, monkeypatch) -> Path:
    """Three people, two to an archive."""
    for module in (certificate_files, population_folder):
        monkeypatch.setattr(module, "CHUNK", 2)
    assert main(["certify", str(PEOPLE), "--out", str(tmp_path / "out")]) == 0
    return tmp_path / "out"


def test_packed_verified_and_taken_out(packed, tmp_path, capsys):
    """The archives are standard ones, everything in them is checked, and a person's is had by one command."""
    inside = packed / "certificates"
    assert sorted(p.name for p in inside.iterdir()) == ["0-1.zip", "2-3.zip"]
    capsys.readouterr()
    assert main(["verify", str(packed), str(PEOPLE), "--jobs", "2"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("VERIFIED 3 of 3 certificates") and "3 of its 3 answers are certified; " in said
    assert said.endswith("not looked at: run.json\n")
    for index in range(3):
        single = tmp_path / f"one{index}.json"
        assert main(["certificate", str(packed), str(index), "--out", str(single)]) == 0
        assert json.loads(single.read_text())["index"] == index
        assert main(["verify", str(single), str(PEOPLE)]) == 0
        assert f" index={index}" in capsys.readouterr().out
    assert main(["certificate", str(packed), "3", "--out", str(tmp_path / "x.json")]) == 2
    assert "INDEX: got 3" in capsys.readouterr().err and not (tmp_path / "x.json").exists()


def test_a_sample(packed, capsys):
    """The verdict says how many were drawn from how many."""
    capsys.readouterr()
    assert main(["verify", str(packed), str(PEOPLE), "--sample", "1"]) == 0
    assert capsys.readouterr().out.startswith("VERIFIED 1 of 1 certificates, drawn at random from 3 (1 ")
    with pytest.raises(SystemExit, match="2"):
        main(["verify", str(packed), str(PEOPLE), "--sample", "0"])


def test_packing_goes_on(packed):
    """Packing twice, and after a file came back as it was, leaves one archive with the same members."""
    archive = packed / "certificates" / "0-1.zip"
    before = archive.read_bytes()
    loose = packed / "certificates" / "1.json.gz"
    loose.write_bytes(certificate_files.extract(packed, 1))
    certificate_files.pack(packed, 0)
    assert not loose.exists() and archive.read_bytes() == before
    assert main(["certify", str(PEOPLE), "--out", str(packed)]) == 0  # resumed: nothing left to do
    assert archive.read_bytes() == before


def rezipped(archive: Path, change) -> None:
    """The archive with other members."""
    with zipfile.ZipFile(archive) as old:
        members = change({name: old.read(name) for name in old.namelist()})
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in members.items():
            new.writestr(name, content)


def bomb() -> bytes:
    """A tenth of a megabyte that unpacks to 128."""
    buffer = io.BytesIO()
    with gzip.open(buffer, "wb") as stream:
        for _ in range(8):
            stream.write(bytes(2**24))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: {"0.json.gz": m["0.json.gz"]}, "1.json.gz: REJECTED: results.csv has a row for it"),
        (lambda m: {"0.json.gz": m["1.json.gz"], "1.json.gz": m["1.json.gz"]}, "index: got 1; allowed: 0"),
        (lambda m: m | {"2.json.gz": m["1.json.gz"]}, "2.json.gz: there twice"),
        (lambda m: m | {"1" * 5000 + ".json.gz": m["1.json.gz"]}, "1" * 5000 + ".json.gz: REJECTED"),
        (lambda m: m | {"../2.json.gz": m["1.json.gz"]}, "holds ../2.json.gz; allowed"),
        (lambda m: m | {"0.json.gz": bomb()}, "larger than"),
        (lambda m: m | {"0.json.gz": m["0.json.gz"][:-9]}, "0.json.gz: REJECTED: "),
    ],
)
def test_archives_that_cheat(packed, capsys, change, reason):
    """A member missing, exchanged, there twice, outside, or too large."""
    rezipped(packed / "certificates" / "0-1.zip", change)
    capsys.readouterr()
    assert main(["verify", str(packed), str(PEOPLE), "--jobs", "1"]) == 4
    said = capsys.readouterr().out
    assert reason in said and "agrees" not in said


def test_a_broken_archive(packed, capsys):
    """Rejected with its name, no traceback."""
    archive = packed / "certificates" / "0-1.zip"
    archive.write_bytes(archive.read_bytes()[:-30])
    capsys.readouterr()
    assert main(["verify", str(packed), str(PEOPLE)]) == 4
    assert "REJECTED: 0-1.zip: unreadable" in capsys.readouterr().out


def test_a_broken_archive_loses_nothing_else(packed, capsys):
    """What is no archive any more is made again; one with a broken member is named, and stays."""
    archive = packed / "certificates" / "0-1.zip"
    whole = archive.read_bytes()
    archive.write_bytes(b"no archive")
    capsys.readouterr()
    assert main(["certify", str(PEOPLE), "--out", str(packed)]) == 0
    assert "certificates are missing, and made again: of applicants 0, 1" in capsys.readouterr().err
    assert archive.read_bytes() == whole
    place = whole.index(b"\x1f\x8b") + 30
    broken = whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :]
    archive.write_bytes(broken)
    (packed / "certificates" / "1.json.gz").write_bytes(b"loose")
    assert main(["certify", str(PEOPLE), "--out", str(packed)]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "0-1.zip: broken" in said and "remove it" in said
    assert archive.read_bytes() == broken


@pytest.mark.long
def test_an_archive_made_to_fill_the_memory_is_not_unpacked(packed, tmp_path, capsys):
    """The command that takes a certificate out says that there is none."""
    for way, megabytes in ((zipfile.ZIP_BZIP2, 100), (zipfile.ZIP_DEFLATED, 500)):
        archive(packed / "certificates" / "0-1.zip", "0.json.gz", megabytes, way)
        assert main(["certificate", str(packed), "0", "--out", str(tmp_path / "one.json")]) == 2
        assert capsys.readouterr().err.count("\n") == 1
        assert not (tmp_path / "one.json").exists()

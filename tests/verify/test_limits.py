"""A hostile file can neither hang nor exhaust the checker (section 8)."""

from __future__ import annotations

import gzip
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from verify.__main__ import examine

ROOT = Path(__file__).parent.parent.parent
TOY = ROOT / "docs/examples/toy_instance.json"
CERTIFICATE = json.loads((ROOT / "docs/examples/toy_certificate.json").read_text())


def rejected(tmp_path: Path, content: bytes, seconds: float = 60.0, name: str = "c.json") -> str:
    (tmp_path / name).write_bytes(content)
    line = examine(tmp_path / name, TOY, seconds).line
    assert line.startswith("REJECTED: ")
    return line


def test_bomb(tmp_path):
    """Ten megabytes that unpack to ten gigabytes are never unpacked."""
    (tmp_path / "c.json.gz").write_bytes(gzip.compress(b" " * 2**24) * 640)
    start = time.monotonic()
    line = examine(tmp_path / "c.json.gz", TOY, 60.0).line
    assert "larger than" in line and time.monotonic() - start < 5


@pytest.mark.parametrize("filler", [b"0,", b"[],", b'{"a":{}},'])
def test_memory(tmp_path, filler):
    """The largest file allowed, of whatever, is refused soon and within two gigabytes."""
    size = 32 * 2**20 - 1000
    head = json.dumps({**CERTIFICATE, "configurations": "?"}).replace('"?"}', "[").encode()
    (tmp_path / "c.json").write_bytes(head + filler * (size // len(filler)) + b"0]}")
    limit = 2 * 2**30
    done = subprocess.run(
        [sys.executable, "-m", "verify", str(tmp_path / "c.json"), str(TOY)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert done.returncode == 4
    assert done.stdout.startswith("REJECTED: "), done.stderr


def test_deep_nesting(tmp_path):
    """A hundred thousand lists or objects inside each other, whole or cut short."""
    for opened, closed in (("[", "]"), ('{"a":', "}")):
        deep = opened * 100_000 + "0" + closed * 100_000
        assert "nested too deeply" in rejected(tmp_path, deep.encode())
        assert "nested too deeply" in rejected(tmp_path, (opened * 100_000).encode())


def test_long_numbers(tmp_path):
    """A million digits, and exponents of a million digits, are a number, too large or none."""
    for text in ("9" * 10**6, "1e" + "9" * 10**6, "1e-" + "9" * 10**6, "0." + "9" * 10**6):
        content = json.dumps({**CERTIFICATE, "cost": "?"}).replace('"?"', text).encode()
        start = time.monotonic()
        rejected(tmp_path, content)
        assert time.monotonic() - start < 5


def test_time_budget(tmp_path):
    """A long tree of honest splits ends when the time is up."""
    nodes: list[list] = []
    low = -0.75
    for _ in range(40_000):
        low += 1e-5
        nodes += [["a", 0, low], ["d", "00", [{"g": 8}]]]
    content = {**CERTIFICATE, "configurations": [{"acted": ["income"], "tree": nodes}]}
    start = time.monotonic()
    assert "time allowed is up" in rejected(tmp_path, json.dumps(content).encode(), 0.5)
    assert time.monotonic() - start < 5


def test_terms_of_a_leaf_are_limited(tmp_path):
    """A leaf has few terms, so that none takes long."""
    leaf = ["d", "00", [{"g": 8}] * 65]
    content = {**CERTIFICATE, "configurations": [{"acted": ["income"], "tree": [leaf]}]}
    assert "more than 64 terms" in rejected(tmp_path, json.dumps(content).encode(), 0.5)


def test_too_many_nodes(tmp_path):
    """More nodes than a million are not even looked at."""
    content = {**CERTIFICATE, "configurations": [{"acted": ["income"], "tree": [["e"]] * 1_000_001}]}
    assert "more than 1000000 nodes" in rejected(tmp_path, json.dumps(content).encode())


def test_extreme_numbers(tmp_path):
    """Splits and multipliers at the ends of what a double can say."""
    tree = [["a", 0, 5e-324], ["d", "00", [{"g": 1e308}]], ["d", "00", [{"g": 5e-324}] * 50]]
    content = {**CERTIFICATE, "configurations": [{"acted": ["income"], "tree": tree}]}
    assert "proves a cost of" in rejected(tmp_path, json.dumps(content).encode())

"""A hostile file can neither hang nor exhaust the checker (section 9)."""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
import time
import tracemalloc
import zipfile
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest

from tests.certificates.hostile import claim, problem
from tests.helpers.bombs import archive, long_header, long_list, many_parts
from verify.__main__ import examine
from verify.fast.box import Floats
from verify.files.certificate import Certificate
from verify.files.folder import places
from verify.files.instance import Source
from verify.files.many import Journal, Unusable
from verify.files.reading import LARGEST_FILE, parse_json
from verify.files.table import COLUMNS, Table
from verify.kernel.certificate import Tree
from verify.kernel.checks import Rejected
from verify.kernel.forms import Configuration

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


@pytest.mark.parametrize(("make", "word"), [(long_header, "too early"), (many_parts, "parts")])
def test_gzip_that_takes_long_to_read(tmp_path, make, word):
    """A header of thirty megabytes, and more than a million parts without content."""
    start = time.monotonic()
    line = examine(make(tmp_path / "c.json.gz"), TOY, 60.0).line
    assert line.startswith("REJECTED") and word in line and time.monotonic() - start < 5


ARCHIVES = {
    "deflated": (lambda p: archive(p, "0.json", 100, zipfile.ZIP_DEFLATED), "larger than"),
    "bzip2": (lambda p: archive(p, "0.json", 100, zipfile.ZIP_BZIP2), "packed in another way"),
    "lzma": (lambda p: archive(p, "0.json", 100, zipfile.ZIP_LZMA), "packed in another way"),
    "a long list": (long_list, "list of members"),
    "no file": (os.mkfifo, "no file"),
}


@pytest.mark.parametrize("kind", ARCHIVES)
def test_an_archive_that_unpacks_to_gigabytes(tmp_path, kind):
    """1600 bytes packed by bzip2 took 22 s and 4 GB: the module zipfile unpacks them without bound."""
    make, word = ARCHIVES[kind]
    make(tmp_path / "0-999.zip")
    limit = 2**30
    done = subprocess.run(
        [sys.executable, "-m", "verify", str(tmp_path), str(TOY), "--jobs=1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert done.returncode == 4 and word in done.stdout, done.stderr


def test_names_of_members_lead_nowhere(tmp_path):
    """They are names, not paths, and nothing is written where they say."""
    for name in ("../0.json", "/0.json", "a/0.json", "..\\0.txt"):
        with zipfile.ZipFile(tmp_path / "0-999.zip", "w") as stream:
            stream.writestr(name, "{}")
        with pytest.raises(Rejected, match="allowed: NAME"):
            list(places([tmp_path / "0-999.zip"]))


@pytest.mark.parametrize("filler", [b"0,", b"[],", b'{"a":{}},'])
def test_memory(tmp_path, filler):
    """The largest file allowed, of whatever, is refused soon and within two gigabytes."""
    size = LARGEST_FILE - 1000
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
    """A million nodes are not even parsed."""
    content = {**CERTIFICATE, "configurations": [{"acted": ["income"], "tree": [["e"]] * 1_000_001}]}
    assert "more values than fit" in rejected(tmp_path, json.dumps(content).encode())


def test_extreme_numbers(tmp_path):
    """Splits and multipliers at the ends of what a double can say."""
    tree = [["a", 0, 5e-324], ["d", "00", [{"g": 1e308}]], ["d", "00", [{"g": 5e-324}] * 50]]
    content = {**CERTIFICATE, "configurations": [{"acted": ["income"], "tree": tree}]}
    assert "proves less than is claimed" in rejected(tmp_path, json.dumps(content).encode())


def network(inputs: int, widths: list[int], tree: list, tmp_path: Path) -> tuple[Path, Path]:
    """An instance with a network of small integers, and a certificate of a tree for it."""
    sizes = [inputs, *widths, 1]
    layers = [
        {"weight": [[(i * j + k) % 5 - 2 + 2**-20 for i in range(m)] for j in range(n)], "bias": [0.25] * n}
        for k, (m, n) in enumerate(pairwise(sizes))
    ]
    names = [f"x{k}" for k in range(inputs)]
    instance, certificate = tmp_path / "instance.json", tmp_path / "c.json"
    instance.write_text(json.dumps(problem(names, layers)))
    digest = Source(instance).applicant(None).digest
    certificate.write_text(json.dumps(claim(names, tree) | {"instance_sha256": digest}))
    return certificate, instance


def test_time_inside_a_bound(tmp_path):
    """One leaf whose bound takes long ends when the time is up."""
    paths = network(4, [100] * 20, [["d", "0" * 2000, [{"g": 1}]]], tmp_path)
    start = time.monotonic()
    line = examine(*paths, 3.0).line
    assert "time allowed is up" in line and time.monotonic() - start < 10


def test_memory_of_deep_sign_splits(tmp_path):
    """Thousands of splits on signs below each other take memory for one path, not for the square of it."""
    tree = [["n", 0, k] for k in range(6000)]
    paths = network(1, [6000], tree, tmp_path)
    source = Source(paths[1])
    certificate = Certificate(parse_json(paths[0].read_bytes(), "c"))
    configuration = Configuration(source.applicant(None).problem, ["x0"])
    tree = Tree([Floats(configuration)], None, Fraction(1))
    tracemalloc.start()
    try:
        with pytest.raises(Rejected, match="ends before"):
            tree.check(certificate.proofs[0].trees[0][1])
        assert tracemalloc.get_traced_memory()[1] < 30 * 2**20
    finally:
        tracemalloc.stop()


def test_a_classifier_of_any_size(tmp_path):
    """A classifier's file is read up to the limit only, whatever its size."""
    toy = json.loads(TOY.read_text())
    toy["classifier"] = {"path": "big.json", "sha256": "0" * 64}
    (tmp_path / "i.json").write_text(json.dumps(toy))
    with (tmp_path / "big.json").open("wb") as stream:
        stream.truncate(2**33)  # sparse: it takes no room
    tracemalloc.start()
    try:
        with pytest.raises(Rejected, match="larger than"):
            Source(tmp_path / "i.json")
        assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("cell", ["1_0", "\uff11", "1e400", "0x1", "nan", "inf"])
def test_numbers_of_a_table(tmp_path, cell):
    """A CSV cell is a number only if it is written as JSON writes one, as the product reads it."""
    population = json.loads((ROOT / "tests/certificates/instances/toy_population.json").read_text())
    population |= {"factuals": {"csv": "people.csv"}, "preferences": {"actionable": ["income"]}}
    (tmp_path / "p.json").write_text(json.dumps(population))
    (tmp_path / "people.csv").write_text(f"income\n{cell}\n+1.5e0\n", encoding="utf-8")
    source = Source(tmp_path / "p.json")
    with pytest.raises(Rejected, match="allowed: a number"):
        source.applicant(0.0)
    assert source.applicant(1.0).problem.factual == {"income": Fraction(3, 2)}


def test_memory_of_many_labels(tmp_path):
    """Two thousand one-hot labels in 17 kB are two thousand columns, but not four million numbers."""
    labels = [f"l{k}" for k in range(2000)]
    tree = {"feature": [0, -2, -2], "threshold": [0.5, 0, 0], "left": [1, -1, -1], "right": [2, -1, -1]}
    instance = {
        "format": "milp-recourse/instance-1",
        "features": [{"name": "a", "kind": "categorical", "actionable": True, "categories": labels}],
        "scm": {"name": "independent"},
        "classifier": {
            "kind": "tree-ensemble",
            "dtype": "float64",
            "trees": [{**tree, "value": [0, 0, 1]}],
        },
        "factual": {"a": "l5"},
        "preferences": {"actionable": ["a"]},
        "cost": {"kind": "l1", "scale": {"a": 1}},
        "conditions": [{"feature": "a", "of": "counterfactual", "in": list(range(0, 2000, 2))}],
    }
    (tmp_path / "i.json").write_text(json.dumps(instance))
    tracemalloc.start()
    try:
        Source(tmp_path / "i.json").applicant(None)
        assert tracemalloc.get_traced_memory()[1] < 60 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "content", [b"\xff\n", b"HEAD\n[1]\n", b"HEAD\nno json\n", b"HEAD\n" + b"[" * 9999 + b"\n"]
)
def test_a_journal_that_is_none_is_one_line(tmp_path, content):
    """Bytes that are no text, lines that are no outcomes."""
    journal = tmp_path / "j.txt"
    journal.write_bytes(content.replace(b"HEAD", b"about"))
    with pytest.raises(Unusable, match=r"j\.txt"):
        Journal(journal, "about")


def test_a_folder_is_no_journal(tmp_path):
    """Nor is a file in a folder that is not there."""
    for path in (tmp_path, tmp_path / "none" / "j.txt"):
        with pytest.raises(Unusable, match="journal"):
            Journal(path, "about")


def test_an_index_of_five_thousand_digits(tmp_path):
    """Python refuses to read so long a number; the table says so in a line."""
    (tmp_path / "results.csv").write_text(",".join(COLUMNS) + "\n" + "9" * 5000 + ",limit,,0,,,,,\n")
    with pytest.raises(Rejected, match="row 1: index: got"):
        Table(tmp_path)

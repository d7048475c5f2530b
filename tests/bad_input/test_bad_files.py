"""Files that are no JSON, not quite JSON, or refer to other files wrongly."""

from __future__ import annotations

import gzip
import hashlib
import json
import pickle
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from milp_recourse.errors import BadInput
from milp_recourse.formats import read_any
from milp_recourse.formats.strict_json import LARGEST
from tests.helpers.bombs import gzipped, long_header, many_parts
from tests.helpers.format_samples import loan_instance, loan_population

GOOD = json.dumps(loan_instance())

# mistake: (content, field that the message names, a word of the message)
CONTENTS = {
    "Empty": (b"", "file", "no JSON"),
    "CutShort": (GOOD[:-10].encode(), "file", "no JSON"),
    "TwoValues": (b"{} {}", "file", "Extra data"),
    "TrailingComma": (b'{"format": 1,}', "file", "no JSON"),
    "Comment": (b'{"format": 1} // loan', "file", "no JSON"),
    "ByteOrderMark": (b"\xef\xbb\xbf" + GOOD.encode(), "file", "no JSON"),
    "Latin1": ('{"name": "école"}'.encode("latin-1"), "file", "UTF-8"),
    "HalfASurrogatePair": (b'{"name": "\\ud800"}', "file", "surrogate"),
    "AList": (b"[]", "top level", "an object"),
    "ANumber": (b"7", "top level", "an object"),
    "Null": (b"null", "top level", "an object"),
    "NestedTooDeeply": (b"[" * 200_000 + b"]" * 200_000, "file", "nesting"),
    "EquationNestedTooDeeply": (
        GOOD.replace(
            '{"name": "loan"}',
            '{"name": "explicit", "mechanisms": {"income": {"equation": '
            + '{"relu": ' * 400
            + '"age"'
            + "}" * 400
            + "}}}",
        ).encode(),
        "scm.",
        "nesting",
    ),
    "KeyTwice": (GOOD.replace('"age": 3.5', '"age": 3.5, "age": 4').encode(), "factual", "'age' twice"),
    "FormatTwice": (b'{"format": 1, "format": 2}', "top level", "'format' twice"),
    "NaN": (GOOD.replace("3.5", "NaN").encode(), "factual.age", "NaN"),
    "Infinity": (GOOD.replace("3.5", "Infinity").encode(), "factual.age", "Infinity"),
    "MinusInfinity": (GOOD.replace("3.5", "-Infinity").encode(), "factual.age", "-Infinity"),
    "Overflow": (GOOD.replace("3.5", "1e400").encode(), "factual.age", "1e400"),
    "WholeNumberOverflow": (GOOD.replace("3.5", "1" + "0" * 400).encode(), "factual.age", "double"),
    "WholeNumberOfTenThousandDigits": (GOOD.replace("3.5", "9" * 10_000).encode(), "factual.age", "double"),
    "OverflowInWeights": (GOOD.replace("[0.5]", "[1e999]").encode(), "classifier.layers.1.bias.0", "1e999"),
    "LeadingZero": (GOOD.replace("3.5", "03.5").encode(), "file", "no JSON"),
}


@pytest.mark.parametrize(("content", "field", "word"), CONTENTS.values(), ids=CONTENTS)
def test_no_json_no_problem(tmp_path: Path, content: bytes, field: str, word: str):
    """Each is refused by the field it breaks."""
    file = tmp_path / "bad.json"
    file.write_bytes(content)
    with pytest.raises(BadInput) as refused:
        read_any(file)
    assert str(refused.value).startswith(f"{file}: {field}")
    assert word in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "name"),
    [(GOOD.encode(), "plain"), (gzip.compress(GOOD.encode())[:-20], "cut"), (b"\x1f\x8b junk", "junk")],
    ids=["NotGzipped", "GzipCutShort", "GzipJunk"],
)
def test_broken_gzip(tmp_path: Path, content: bytes, name: str):
    """A name in .gz promises gzip."""
    file = tmp_path / f"{name}.json.gz"
    file.write_bytes(content)
    with pytest.raises(BadInput, match="broken gzip"):
        read_any(file)


@pytest.mark.parametrize("name", ["missing.json", ".", "nul\x00byte.json", "x" * 5000 + ".json"])
def test_no_file(tmp_path: Path, name: str):
    """Missing, a directory, and names no file can have."""
    with pytest.raises(BadInput, match="file: got "):
        read_any(tmp_path / name)


def test_a_classifier_file_is_bound_by_its_hash(tmp_path: Path):
    """The right hash is read, relative to the instance; a changed file and its own faults are named."""
    data = loan_instance()
    network = json.dumps(data["classifier"])
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "network.json").write_text(network)
    digest = hashlib.sha256(network.encode()).hexdigest()
    data["classifier"] = {"path": "models/network.json", "sha256": digest}
    instance = tmp_path / "instance.json"
    instance.write_text(json.dumps(data))
    assert read_any(instance).classifier.hidden == 2
    changed = network.replace("[0.5]", "[0.1]")
    (tmp_path / "models" / "network.json").write_text(changed)
    with pytest.raises(BadInput, match=r"instance\.json: classifier\.sha256: got "):
        read_any(instance)
    data["classifier"]["sha256"] = hashlib.sha256(changed.encode()).hexdigest().upper()
    instance.write_text(json.dumps(data))
    with pytest.raises(
        BadInput, match=r"network\.json: classifier\.layers\.1\.bias: got 0\.1; allowed: float32"
    ):
        read_any(instance)


def population(tmp_path: Path, **changes) -> Path:
    file = tmp_path / "population.json"
    file.write_text(json.dumps(loan_population() | changes))
    return file


POPULATIONS = {
    "NoApplicants": ({"factuals": []}, "factuals: "),
    "FactualMissing": ({"factuals": [{}]}, r"factuals\.0\.gender: got nothing"),
    "PreferencesTooFew": ({"preferences": [{"actionable": []}]}, "preferences: got a list of 1; allowed: 3"),
    "PreferencesUnknown": (
        {"preferences": [{"actionable": []}, {"actionable": ["wage"]}, {"actionable": []}]},
        r"preferences\.1\.actionable\.0: ",
    ),
    "ScaleMissingForTheThird": (
        {
            "preferences": [{"actionable": []}, {"actionable": []}, {"actionable": ["amount"]}],
            "cost": {"kind": "l1", "scale": {}},
        },
        r"cost\.scale\.amount: got nothing; allowed: a number above 0, since preferences\.2",
    ),
    "ReferenceInPopulation": ({"reference": {"status": "optimal"}}, "reference: got an unknown key"),
    "FactualInPopulation": ({"factual": {}}, "factual: got an unknown key"),
    "CsvMissing": ({"factuals": {"csv": "nobody.csv"}}, r"nobody\.csv: file: got nothing"),
    "FactualsText": ({"factuals": "people.csv"}, 'factuals: got "people.csv"'),
}


@pytest.mark.parametrize(("changes", "message"), POPULATIONS.values(), ids=POPULATIONS)
def test_bad_populations(tmp_path: Path, changes, message):
    """The applicant is named."""
    with pytest.raises(BadInput, match=message):
        read_any(population(tmp_path, **changes))


HEADER = "gender,age,education,amount,duration,income,savings\n"
TABLES = {
    "HeaderOnly": (HEADER, "file: got no rows"),
    "Empty": ("", "header: got nothing"),
    "ColumnMissing": (HEADER.replace(",age", ""), "header: "),
    "ColumnTwice": (HEADER.replace("age", "gender"), "header: "),
    "ColumnUnknown": (HEADER.replace("age", "years"), "header: "),
    "CellsTooFew": (HEADER + "1,2,0.1,3,4,5,6\n1,2,0.1\n", "row 2: got 3 cells"),
    "CellNotANumber": (HEADER + "1,2,0.1,3,4,abc,6\n", r"row 1\.income: got 'abc'; allowed: a number"),
    "CellEmpty": (HEADER + "1,2,0.1,3,4,,6\n", r"row 1\.income: got null; allowed: a value"),
    "CellNan": (HEADER + "1,2,0.1,3,4,nan,6\n", r"row 1\.income: got 'nan'"),
    "CellOverflows": (HEADER + "1,2,0.1,3,4,1e999,6\n", r"row 1\.income: got '1e999'"),
    "CellWithUnderscore": (HEADER + "1,2,0.1,3,4,1_000,6\n", r"row 1\.income: got '1_000'"),
    "CellInOtherDigits": (HEADER + "1,2,0.1,3,4,\u0661\u0662,6\n", r"row 1\.income: got "),
    "CellNotBinary": (HEADER + "2,2,0.1,3,4,1,6\n", r"row 1\.gender: got 2\.0; allowed: 0 or 1"),
    "NotUtf8": (b"\xff\xfe", "file: got an error"),
}


@pytest.mark.parametrize(("table", "message"), TABLES.values(), ids=TABLES)
def test_bad_tables(tmp_path: Path, table, message):
    """The table is named, and the row, counted from 1 below the header."""
    content = table if isinstance(table, bytes) else table.encode()
    (tmp_path / "people.csv").write_bytes(content)
    with pytest.raises(BadInput, match=r"people\.csv: " + message):
        read_any(population(tmp_path, factuals={"csv": "people.csv"}))


def quickly(file: Path) -> str:
    """Why a file is refused, which takes neither long nor much memory."""
    start = time.monotonic()
    tracemalloc.start()
    try:
        with pytest.raises(BadInput) as refused:
            read_any(file)
        assert tracemalloc.get_traced_memory()[1] < 4 * LARGEST
    finally:
        tracemalloc.stop()
    assert time.monotonic() - start < 30
    said = str(refused.value)
    assert said.startswith(f"{file}: file: got ") and "\n" not in said
    return said


@pytest.mark.parametrize(
    "filler", [b" ", pytest.param(b"[", marks=pytest.mark.long)], ids=["spaces", "nesting"]
)
def test_a_file_that_unpacks_to_more_than_is_read(tmp_path: Path, filler: bytes):
    """No more of it is unpacked than a file may have."""
    file = gzipped(tmp_path / "bomb.json.gz", b'{"name": "', filler, 300)
    assert file.stat().st_size < 12 * 2**20
    assert "got more than 256 MiB" in quickly(file)


def test_a_file_with_too_many_values(tmp_path: Path):
    """Small enough as text, but not as lists."""
    assert "too many values" in quickly(gzipped(tmp_path / "lists.json.gz", b"[", b"[],", 200))


def test_a_plain_file_of_gigabytes_is_not_read(tmp_path: Path):
    """Its size is known before."""
    file = tmp_path / "sparse.json"
    with file.open("wb") as stream:
        stream.truncate(6 * 2**30)
    assert "got more than 256 MiB" in quickly(file)


@pytest.mark.parametrize(("make", "word"), [(long_header, "too early"), (many_parts, "parts")])
def test_gzip_that_takes_long_to_read(tmp_path: Path, make: Callable[[Path], Path], word: str):
    """A header without end, and parts without content."""
    assert word in quickly(make(tmp_path / "slow.json.gz"))


@pytest.mark.long
@pytest.mark.parametrize("key", ["features", "labels", "keys", "columns"])
def test_many_names_are_compared_at_once(tmp_path: Path, key: str):
    """Each is looked up, not compared with all others: hundreds of thousands take seconds."""
    data, names = loan_population(), [f"n{k}" for k in range(200_000)]
    if key == "features":
        data["features"] += [{"name": n, "kind": "continuous", "actionable": False} for n in names[:50_000]]
    elif key == "labels":
        feature = {"name": "code", "kind": "categorical", "categories": names, "actionable": False}
        data["features"] += [feature]
    elif key == "columns":
        data["factuals"] = {"csv": "wide.csv"}
        (tmp_path / "wide.csv").write_text(",".join(names) + "\n")
    file, text = tmp_path / "names.json", json.dumps(data)
    if key == "keys":
        text = text[:-1] + "".join(f', "{n}": 0' for n in [*names, names[-1]]) + "}"
    file.write_text(text)
    start = time.monotonic()
    with pytest.raises(BadInput):
        read_any(file)
    assert time.monotonic() - start < 30


def test_an_error_survives_the_way_between_processes() -> None:
    """Pickled and read again, it says the same of the same field."""
    error = BadInput("cost.scale", 3, "a number above 3", "loan.json")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.field, again.file) == (str(error), "cost.scale", "loan.json")

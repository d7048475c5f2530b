"""Files that are no JSON, not quite JSON, or refer to other files wrongly."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import pytest

from milp_recourse.errors import BadInput
from milp_recourse.formats import read_any
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

"""Letters from a table: values that the model accepts when they are typed in, words, folders."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from milp_recourse import Recourse
from milp_recourse.cli import main
from milp_recourse.errors import BadInput
from milp_recourse.tables.answers import Answers
from tests.helpers.frame_tables import fitted
from tests.helpers.page_samples import HOSTILE, Reader

NAMES = {"income": "what you earn a month", "owns": "number of homes"}
UNITS = {"income": "EUR"}


@pytest.fixture(scope="module")
def asked() -> tuple[Answers, pd.DataFrame, object]:
    """Refused people, one of whom can change nothing that helps, one who cannot be read, one accepted."""
    model, X = fitted()
    refused, good = (
        X[model.predict(X) == label].head(n) for label, n in zip(model.classes_, (8, 1), strict=True)
    )
    people = pd.concat([refused, good]).astype({"income": float})
    unread = people.index[1]
    people.loc[unread, "income"] = float("nan")
    own = [{"actionable": ["purpose"]}, *[None] * (len(people) - 1)]
    return Recourse(model, X, names=NAMES, units=UNITS).certify(people, own), people, model


@pytest.mark.parametrize(("language", "decimal", "group"), [("en", ".", ","), ("de", ",", "\u202f")])
def test_what_a_letter_says_is_accepted_when_it_is_typed_in(asked, language, decimal, group) -> None:
    """Each value of the table is read back from the page, in the language's signs, and put into the row."""
    answers, people, model = asked
    called = {NAMES.get(column, column): column for column in people.columns}
    letters = 0
    for person in people.index[answers.table["cost"].gt(0)]:
        read = Reader(answers.letter(person, language=language))
        row = people.loc[[person]].astype(object)
        for name, _, value, _ in read.rows[1:]:
            column = called[name]
            typed = value.replace(group, "").removesuffix("\u00a0EUR")
            label = isinstance(people[column].iloc[0], str)
            row[column] = [typed if label else float(typed.replace(decimal, "."))]
        row = row.astype(people.dtypes)
        assert model.predict(row)[0] == model.classes_[1]
        mine = answers.changes.loc[[person]]
        assert len(read.rows) - 1 == (mine["cause"] == "action").sum()
        letters += 1
    assert letters >= 5


def test_those_without_a_change_get_honest_letters(asked) -> None:
    """No way, unreadable, accepted: no table in any of them."""
    answers, people, _ = asked
    status = answers.table["status"]
    words = {people.index[0]: "No change that is open to you", people.index[1]: "could not use your data",
             people.index[-1]: "do not need to change"}  # fmt: skip
    assert list(status.loc[list(words)]) == ["infeasible", "bad-input", "optimal"]
    for person, heading in words.items():
        page = answers.letter(person)
        assert heading in page and "<table" not in page
    assert "We looked at changes to: purpose." in answers.letter(people.index[0])


def test_names_and_units_are_on_pages_too(asked) -> None:
    answers, people, _ = asked
    page = Reader(answers.page(people.index[2]))
    assert NAMES["income"] in page.text and "\u00a0EUR" in page.text


def test_the_same_letter_from_a_folder(asked, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Words and units travel with the folder; the printed line, the file, and how easy it reads."""
    answers, people, _ = asked
    answers.save(tmp_path / "run")
    assert main(["report", str(tmp_path / "run"), "--index", "2"]) == 0
    assert NAMES["income"] in (tmp_path / "run" / "person-2.html").read_text(encoding="utf-8")
    for k, person in enumerate(people.index):
        out = tmp_path / f"{k}.html"
        options = ["--language", "de", "--date", "2026-03-09", "--readability", "--out", str(out)]
        assert main(["letter", str(tmp_path / "run"), str(k), *options]) == 0
        written, ease = capsys.readouterr().out.splitlines()[-2:]
        assert written == f"written: {out}" and int(re.findall(r"\d+", ease)[0]) >= 60
        mine, its = Reader(answers.letter(person, language="de")), Reader(out.read_text(encoding="utf-8"))
        assert mine.rows == its.rows and "9. März 2026" in its.text
    assert main(["letter", str(tmp_path / "run"), "2"]) == 0
    assert (tmp_path / "run" / "letter-2.html").is_file()


def test_a_folder_without_words_or_with_bad_ones(asked, tmp_path: Path, capsys) -> None:
    """The features' own names; one line where words.json is wrong; an action that is not accepted is not
    put into a letter."""
    answers, _, _ = asked
    run = tmp_path / "run"
    answers.save(run)
    (run / "words.json").unlink()
    assert main(["letter", str(run), "2"]) == 0
    assert "income" in (run / "letter-2.html").read_text(encoding="utf-8")
    capsys.readouterr()
    for wrong in ([], {"name": {}}, {"names": []}, {"names": {"income": 3}}, {"units": {"income": " "}}):
        (run / "words.json").write_text(json.dumps(wrong))
        assert main(["letter", str(run), "2"]) == 2
        line = capsys.readouterr().err
        assert line.count("\n") == 1 and "words.json" in line
    (run / "words.json").unlink()
    table = (run / "results.csv").read_text(encoding="utf-8").splitlines()
    place = table[0].split(",").index("action_income")
    cells = table[3].split(",")
    cells[place] = "1.5"
    (run / "results.csv").write_text(
        "\n".join([*table[:3], ",".join(cells), *table[4:], ""]), encoding="utf-8"
    )
    assert main(["letter", str(run), "2", "--out", str(tmp_path / "forged.html")]) == 2
    assert "not accepted" in capsys.readouterr().err and not (tmp_path / "forged.html").exists()


@pytest.mark.parametrize(
    "arguments",
    [["{run}", "99"], ["{run}", "-1"], ["{run}", "x"],
     ["{run}/none", "0"], ["{run}", "2", "--language", "fr"],
     ["{run}", "2", "--template", "{run}/none"], ["{run}", "2", "--date", "9.3.2026"],
     ["{run}", "2", "--template", "{run}/population.json/x"]],
)  # fmt: skip
def test_bad_commands(asked, tmp_path: Path, arguments: list[str]) -> None:
    answers, _, _ = asked
    run = tmp_path / "run"
    answers.save(run)
    assert main(["letter", *(one.format(run=run) for one in arguments)]) == 2
    assert not list(run.glob("letter-*"))


@pytest.mark.parametrize("argument", ["names", "units"])
@pytest.mark.parametrize("given", [{"income": 3}, {"income": ""}, {"nobody": "x"}, "income", ["income"]])
def test_bad_words(argument: str, given: object) -> None:
    model, X = fitted()
    with pytest.raises(BadInput, match=argument):
        Recourse(model, X, **{argument: given})


def test_hostile_columns(tmp_path: Path) -> None:
    """A column's words that are markup, in letter, page and folder."""
    model, X = fitted()
    refused = X[model.predict(X) == model.classes_[0]].head(1)
    answers = Recourse(model, X, names={"income": HOSTILE}, units={"income": HOSTILE}).certify(refused)
    answers.save(tmp_path / "run")
    assert main(["letter", str(tmp_path / "run"), "0"]) == 0
    written = (tmp_path / "run" / "letter-0.html").read_text(encoding="utf-8")
    for page in (answers.letter(refused.index[0]), written, answers.page(refused.index[0])):
        read = Reader(page)
        assert HOSTILE in read.text and "b" not in {tag for tag, _ in read.tags}

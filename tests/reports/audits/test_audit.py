"""The file for an auditor: complete, reproducible, and no change to it stays hidden."""

from __future__ import annotations

import csv
import io
import json
import shutil
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from milp_recourse import Recourse
from milp_recourse.cli import main
from milp_recourse.errors import BadInput
from milp_recourse.reports.audit.spreadsheet import spreadsheet
from tests.helpers.audit_changes import CHANGES
from tests.helpers.frame_tables import fitted


@pytest.fixture(scope="module")
def answers():
    """A dozen people: with recourse, without, and one who cannot be read."""
    model, table = fitted()
    people = table[model.predict(table) == 0].head(12).set_axis([f"={k}" for k in "abcdefghijkl"])
    people["purpose"] = people["purpose"].where(np.arange(12) != 2, "boat")
    recourse = Recourse(
        *(model, table),
        immutable=["owns"],
        bounds={"income": (0, 2800)},
        ranges={"age": (20, 55)},
        names={"income": "what you earn"},
        units={"income": "EUR"},
        conditions=["at most 2 actions"],
    )
    return recourse.certify(people, certificates=True)


@pytest.fixture(scope="module")
def audit(answers, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("audits") / "audit"
    answers.audit(out, day=date(2026, 11, 28))
    return out


def rows(audit: Path, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((audit / name).read_text(encoding="utf-8"), newline="")))


def test_it_says_everything_of_everybody(answers, audit) -> None:
    people, table = rows(audit, "people.csv"), answers.table
    assert [row["id"] for row in people] == [f"'{label}" for label in table.index]  # no formula
    assert {row["outcome"] for row in people} == {"cheapest, proven", "no way, proven", "not readable"}
    for row, status, cost in zip(people, table["status"], table["cost"], strict=True):
        assert (row["cost"] == "") == (status != "optimal") and (
            not row["cost"] or float(row["cost"]) == cost
        )
        assert bool(row["certificate"]) == (status != "bad-input")
    acts = next(row for row in people if "what you earn" in row["what to do"])
    assert " EUR" in acts["what to do"]
    stuck = {row["index"] for row in rows(audit, "no_recourse.csv")}
    assert stuck == {row["index"] for row in people if row["outcome"] == "no way, proven"}
    sources = {(r["about"], r["assumption"]): r["source"] for r in rows(audit, "assumptions.csv")}
    assert sources["income", "lowest and highest value of an action"] == "given as bounds="
    assert sources["age", "lowest and highest value of an action"] == "taken from X"
    assert sources["age", "range that people accept"] == "given as ranges="
    assert sources["owns", "changed by an action"] == "given as immutable="
    assert sources["problem", "Cost"] == "assumed, nothing else was said"
    groups = rows(audit, "groups.csv")
    assert groups[0]["people"] == "12" and {row["column"] for row in groups} == {
        "everybody",
        "owns",
        "purpose",
    }
    assert sum(int(row["people"]) for row in groups if row["column"] == "purpose") == 11
    about = json.loads((audit / "about.json").read_text())
    assert about["versions"]["numpy"] == np.__version__ and about["people"] == 12


def test_reasons_are_those_of_the_answers(answers, audit) -> None:
    optimal = [k for k, status in enumerate(answers.table["status"]) if status == "optimal"]
    assert len(optimal) > 3
    for k in optimal:
        label = answers.table.index[k]
        mine = [row for row in rows(audit, "reasons.csv") if row["index"] == str(k)]
        known = answers.reasons(label, most=1)
        assert [row["status"] for row in mine] == known["status"].tolist()
        costs = [float(row["cost"] or "nan") for row in mine]
        assert costs == pytest.approx(known["cost"].tolist(), rel=1e-6, nan_ok=True)


@pytest.mark.long
def test_the_same_answers_give_the_same_bytes(answers, audit, tmp_path: Path) -> None:
    """Solved again, in two processes, from Python or by the commands, from the audit itself; not another
    day."""
    day = ["--date", "2026-11-28"]
    answers.audit(tmp_path / "one.zip", day=date(2026, 11, 28))
    answers.audit(tmp_path / "two.zip", day=date(2026, 11, 28), jobs=2)
    assert main(["audit", str(audit), "--out", str(tmp_path / "three.zip"), *day]) == 0
    content = (tmp_path / "one.zip").read_bytes()
    assert content == (tmp_path / "two.zip").read_bytes() == (tmp_path / "three.zip").read_bytes()
    problem, runs = str(audit / "population.json"), []
    for name in ("run", "again"):
        run = tmp_path / name
        assert main(["certify", problem, "--out", str(run)]) == 3  # one cannot be read
        assert main(["audit", str(run), problem, *day]) == 0
        runs.append((tmp_path / f"{name}-audit.zip").read_bytes())
    assert runs[0] == runs[1]
    files = {p.relative_to(audit) for p in audit.rglob("*") if p.is_file()}
    answers.audit(tmp_path / "later", day=date(2027, 1, 1))
    assert [f for f in files if (audit / f).read_bytes() != (tmp_path / "later" / f).read_bytes()] == [
        Path("manifest.json")
    ]


def test_it_is_verified_as_a_folder_and_as_a_zip(answers, audit, tmp_path: Path, capsys) -> None:
    answers.audit(tmp_path / "audit.zip")
    for path in (audit, tmp_path / "audit.zip"):
        assert main(["verify", str(path)]) == 0
        said = capsys.readouterr().out.splitlines()
        assert said[0].startswith("manifest.json: of 2026") and said[1].startswith("VERIFIED 11 of 11")
        assert said[-1].startswith("VERIFIED audit: every table follows")
    assert main(["verify", str(audit), "--sample", "3"]) == 0
    assert "NOT CHECKED reasons of 9 people: not drawn" in capsys.readouterr().out


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_every_change_is_found(audit, tmp_path: Path, capsys, change) -> None:
    folder = tmp_path / "audit"
    shutil.copytree(audit, folder)
    change(folder)
    assert main(["verify", str(folder)]) == 4
    assert "REJECTED" in capsys.readouterr().out


def test_without_certificates_it_says_so(answers, tmp_path: Path, capsys) -> None:
    """And without reasons, and what stands in the way, these tables are empty."""
    model, table = fitted()
    people = table[model.predict(table) == 0].head(3)
    plain = Recourse(model, table).certify(people)
    plain.audit(tmp_path / "audit", reasons=0, why=False)
    assert rows(tmp_path / "audit", "reasons.csv") == rows(tmp_path / "audit", "no_recourse.csv") == []
    assert "3 answers have no certificate" in (tmp_path / "audit" / "README.md").read_text()
    assert main(["verify", str(tmp_path / "audit")]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("no answer has a certificate")


def test_what_is_no_audit_is_refused_in_one_line(answers, audit, tmp_path: Path, capsys) -> None:
    with pytest.raises(BadInput, match=r"^out: got .*, which exists; allowed: a new folder"):
        answers.audit(audit)
    waiting = replace(answers, results=[None, *answers.results[1:]])
    with pytest.raises(BadInput, match=r"^people: got answers for 11 of 12; allowed: everybody's"):
        waiting.audit(tmp_path / "new")
    for wrong in ({"reasons": -1}, {"reasons": True}, {"why": 1}, {"out": 3}, {"day": "2026-11-28"}):
        with pytest.raises(BadInput, match=f"^{next(iter(wrong))}: got"):
            answers.audit(**({"out": tmp_path / "new"} | wrong))
    for name in ("x" * 300, "x" * 300 + ".zip", "\0.zip"):  # these raised an OSError or a ValueError
        with pytest.raises(BadInput, match=r"a (folder|path) that can be written") as caught:
            answers.audit(tmp_path / name)
        assert "--" not in str(caught.value)
    partial = tmp_path / "partial"
    problem = str(audit / "population.json")
    assert main(["certify", problem, "--out", str(partial), "--limit", "2"]) == 0
    assert main(["audit", str(partial), problem]) == 2
    assert "answers for 2 of 12 people" in capsys.readouterr().err
    assert not (tmp_path / "partial-audit.zip").exists()
    (tmp_path / "no.zip").write_bytes(b"PK no zip")
    assert main(["verify", str(tmp_path / "no.zip")]) == 2
    assert "a zip that milp-recourse audit wrote" in capsys.readouterr().err


def test_a_formula_stays_text() -> None:
    """Of a sheet for people: no cell is computed, control characters and long texts do no harm."""
    from openpyxl import load_workbook

    table = [["id", "cost"], ["=1+1", "2.5"], ["a\x00b", ""], ["x" * 40_000, "-1"]]
    content = spreadsheet({"people": table}, frozenset({"cost"}))
    assert content == spreadsheet({"people": table}, frozenset({"cost"}))
    sheet = load_workbook(io.BytesIO(content))["people"]
    assert [c.data_type for c in sheet["A"]] == ["s"] * 4 and sheet["A2"].value == "=1+1"
    assert [c.value for c in sheet["B"]] == ["cost", 2.5, None, -1]


@pytest.mark.long
def test_the_studio_opens_an_audit(answers, audit, monkeypatch) -> None:
    """From the command line: everybody by their identifier and the user's words, with the audit's answers."""
    from tests.studio.samples import PORT, SECRET, application, ask, visited

    served = list[tuple[object, ...]]()
    monkeypatch.setattr("milp_recourse.studio.studio", lambda *given: served.append(given))
    assert main(["studio", str(audit), "--no-browser"]) == 0
    [(people, words, port, browser)] = served
    assert (port, browser) == (0, False)
    with visited(application(people, words, SECRET, PORT)) as client:
        listed = ask(client, "en/part/people/0").text
        assert all(f">{label}</a>" in listed for label in answers.table.index)
        assert "what you earn" in client.get(f"/{SECRET}/en/person/0").text
        known = answers.table.reset_index().query("status == 'optimal'").iloc[0]
        assert ask(client, f"data/answer/{known.name}").json()["cost"] == pytest.approx(known["cost"])
        assert ask(client, "data/answer/2").json()["error"].startswith("factuals.2.purpose")

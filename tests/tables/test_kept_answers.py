"""``certify(people, out=DIR)``: finished people are kept, and the same call goes on."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from milp_recourse import Recourse
from milp_recourse.cli import main
from milp_recourse.errors import BadInput, MachineFailed
from milp_recourse.reports.folder_lock import only_writer
from milp_recourse.tables import recourse as recourse_module
from tests.helpers.frame_tables import fitted

SAME = ["status", "cost", "lower_bound", "proof", "confirmed", "message", "margin", "shown_cost"]


@pytest.fixture(scope="module")
def lender():
    """A model, its table, and refused people, one of whom cannot be read."""
    model, table = fitted()
    people = table[model.predict(table) == 0].head(12).set_axis(list("abcdefghijkl"))
    return model, table, people.assign(purpose=people["purpose"].where(people.index != "c", "boat"))


def same(one, other) -> None:
    """The two say the same of everybody, to the last bit."""
    pd.testing.assert_frame_equal(one.table[SAME], other.table[SAME], check_exact=True)
    pd.testing.assert_frame_equal(one.changes, other.changes, check_exact=True)
    evidence = [[r and r.evidence for r in answers.results] for answers in (one, other)]
    assert evidence[0] == evidence[1]


def test_after_a_stop_the_same_call_solves_the_others_only(lender, tmp_path: Path, monkeypatch) -> None:
    """Half a row, a lost row and a lost certificate are made again; the answers are those of one run."""
    model, table, people = lender
    asked: list[list[int]] = []
    solve = recourse_module.solve_as_finished

    def counted(population, name, options, wanted, workers):
        asked.append(list(wanted))
        return solve(population, name, options, wanted, workers)

    monkeypatch.setattr(recourse_module, "solve_as_finished", counted)
    recourse = Recourse(model, table, immutable=["owns"], names={"income": "what you earn"})
    whole, folder = recourse.certify(people, certificates=True), tmp_path / "run"
    same(whole, recourse.certify(people, certificates=True, out=folder))
    whole.save(tmp_path / "saved")
    for name in ("population.json", "words.json", "run.json"):
        assert (folder / name).read_bytes() == (tmp_path / "saved" / name).read_bytes()
    head, *rows = (folder / "results.csv").read_bytes().splitlines(keepends=True)
    (folder / "results.csv").write_bytes(b"".join([head, *rows[:7], rows[9][:20]]))
    (folder / "certificates" / "0.json.gz").unlink()
    same(whole, recourse.certify(people, certificates=True, out=folder))
    everybody = [i for i in range(12) if i != 2]
    assert asked == [everybody, everybody, [0, 7, 8, 9, 10, 11]]
    again = (folder / "results.csv").read_bytes().splitlines()
    seconds = head.decode().split(",").index("seconds")
    cells = [
        [row.decode().split(",") for row in some]
        for some in ([head.rstrip(), *map(bytes.rstrip, rows)], again)
    ]
    assert [[*r[:seconds], *r[seconds + 1 :]] for r in cells[0]] == [
        [*r[:seconds], *r[seconds + 1 :]] for r in cells[1]
    ]
    same(whole, recourse.certify(people, certificates=True, out=folder))
    assert asked[-1] == []
    assert main(["verify", str(folder)]) == 0
    # the command goes on in the same folder
    assert main(["certify", str(folder / "population.json"), "--out", str(folder)]) == 3


def test_what_the_model_contradicts_is_kept_so(lender, tmp_path: Path) -> None:
    """A contradicted answer is one on the second call too, without being asked again."""
    model, table, people = lender
    recourse = Recourse(model, table, predict=lambda frame: np.zeros(len(frame), dtype=int))
    first = recourse.certify(people, out=tmp_path / "run")
    assert (first.table["status"].drop("c") == "limit").all()
    same(first, recourse.certify(people, out=tmp_path / "run"))


def test_another_run_is_refused_in_one_line(lender, tmp_path: Path) -> None:
    """Other people, options or limits; an edited row; a folder in use; a file. Nothing is written."""
    model, table, people = lender
    recourse, folder = Recourse(model, table), tmp_path / "run"
    recourse.certify(people, out=folder)
    before = {file: file.read_bytes() for file in folder.iterdir()}
    for other, some, more in (
        (recourse, people.head(3), {}),
        (recourse, people, {"certificates": True}),
        (Recourse(model, table, immutable=["owns"]), people, {}),
    ):
        with pytest.raises(BadInput, match=r"^out: got another run in .*; allowed: a new folder"):
            other.certify(some, out=folder, **more)
    assert {file: file.read_bytes() for file in folder.iterdir()} == before
    with only_writer(folder), pytest.raises(MachineFailed, match="another run"):
        elsewhere(recourse, people, folder)
    row = next(r for r in before[folder / "results.csv"].decode().splitlines() if ",optimal," in r)
    cost = row.split(",")[3]
    text = (folder / "results.csv").read_text().replace(f",{cost},", f",{float(cost) / 2!r},")
    (folder / "results.csv").write_text(text)
    with pytest.raises(BadInput, match=r"results\.csv: index \d+: got optimal at cost"):
        recourse.certify(people, out=folder)
    for wrong in (3, folder / "results.csv"):
        with pytest.raises(BadInput, match=r"^out: "):
            recourse.certify(people, out=wrong)


def test_a_row_that_its_certificate_contradicts_is_no_answer(lender, tmp_path: Path) -> None:
    """Edited to say that nothing can be done."""
    model, table, people = lender
    recourse, folder = Recourse(model, table), tmp_path / "run"
    recourse.certify(people, out=folder, certificates=True)
    with (folder / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    row = next(row for row in rows if row["status"] == "optimal" and row["certificate"])
    blank = ("cost", "lower_bound", "gap", "confirmed")
    row |= {k: "" for k in row if k in blank or k.startswith(("action_", "counterfactual_"))}
    row["status"] = "infeasible"
    with (folder / "results.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(BadInput, match=r"results\.csv: index \d+: got infeasible with another certificate"):
        recourse.certify(people, out=folder, certificates=True)


def elsewhere(recourse, people, folder: Path) -> None:
    """The call in another thread, in which a lock that this one holds is another's."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pool.submit(recourse.certify, people, out=folder).result()

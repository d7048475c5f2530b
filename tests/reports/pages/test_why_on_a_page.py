"""What stands in the way, or what each restriction costs, on one person's page where it is asked for."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from milp_recourse.cli import main
from milp_recourse.formats import read_instance, write_instance
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.questions.why import why
from milp_recourse.reports.pages import person_page, reasons_of
from milp_recourse.reports.view import Reason, Reasons
from tests.helpers.page_samples import FACTS, HOSTILE, solved

STUCK = "docs/examples/why_instance.json"


def test_sets_and_widenings_of_somebody_without_recourse():
    """Each minimal set with the proven cost without it, and the least widening that suffices."""
    found = why(STUCK)
    shown = reasons_of(found)
    assert "makes a way possible" in shown.heading
    assert [r.cost for r in shown.reasons] == pytest.approx([4.0, 9.0, 4.0], rel=1e-5)
    assert shown.reasons[1].restrictions == ["savings is only lowered"]
    page = person_page(
        solved(status="infeasible", cost=None, lower_bound=None, gap=None, why=shown), "t", FACTS
    )
    assert (
        "<h2>Why</h2>" in page and "savings is only lowered" in page and "income change at most +150%" in page
    )


def test_prices_of_somebody_with_recourse():
    """What lifting saves is the difference to the cost; a page without why says nothing of it."""
    person = solved(
        why=Reasons("What each restriction costs", [Reason([HOSTILE], 0.25), Reason(["b"], None)])
    )
    page = person_page(person, "t", FACTS)
    assert HOSTILE not in page and "open" in page
    assert page.count(">0.25<") >= 2  # the cost, and as much saved of 0.5
    assert "<h2>Why</h2>" not in person_page(replace(person, why=None), "t", FACTS)


def test_the_report_asks_only_where_it_is_asked(tmp_path, capsys):
    """``report --why`` on an instance's folder; of a population only with --index."""
    file = tmp_path / "stuck.json"
    write_instance(read_instance(STUCK), file)
    assert main(["certify", str(file), "--out", str(tmp_path / "out"), "--no-certificates"]) == 0
    for option, expected in (([], False), (["--why"], True)):
        page = tmp_path / f"page{expected}.html"
        assert main(["report", str(tmp_path / "out"), str(file), "--out", str(page), *option]) == 0
        assert ("<h2>Why</h2>" in page.read_text()) is expected


def test_everybody_is_not_asked_why(tmp_path, capsys):
    """One line that says what to give."""
    data = json.loads((instances_path() / "loan" / "loan_007.json").read_text())
    data.pop("reference", None)
    factual, own = data.pop("factual"), data.pop("preferences")
    data |= {"format": "milp-recourse/population-1", "factuals": [factual], "preferences": own}
    file = tmp_path / "people.json"
    file.write_text(json.dumps(data))
    classifier = data["classifier"].get("path")
    if classifier:
        (tmp_path / classifier).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / classifier).write_bytes((instances_path() / "loan" / classifier).read_bytes())
    assert main(["certify", str(file), "--out", str(tmp_path / "out"), "--no-certificates"]) == 0
    assert main(["report", str(tmp_path / "out"), str(file), "--why"]) == 2
    assert "--why" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "out"), str(file), "--why", "--index", "0"]) == 0
    assert "What each restriction costs" in (tmp_path / "out" / "person-0.html").read_text()


@pytest.mark.parametrize("cost", [0.5, 0.5 - 1e-9])
def test_what_the_gap_hides_is_nothing_saved(cost):
    """A difference within the gap is no saving."""
    page = person_page(solved(why=Reasons("x", [Reason(["a"], cost)])), "t", FACTS)
    assert ">nothing<" in page

"""Other people's recourse, judged: what is counted, how it is read, and the helper for tests."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd
import pytest

from milp_recourse.cli import main
from milp_recourse.errors import BadInput
from milp_recourse.evaluation import (
    ask,
    assert_near_optimal,
    certified_optima,
    evaluate,
    read_actions,
)
from milp_recourse.evaluation.methods import from_counterfactuals
from milp_recourse.evaluation.outside import gradient
from milp_recourse.evaluation.plots import OUTCOMES, outcome
from milp_recourse.formats import read_population
from milp_recourse.problem.population import Population

PEOPLE = read_population(Path(__file__).resolve().parents[2] / "instances" / "loan" / "population.json")
EIGHT = Population(PEOPLE.template, PEOPLE.factuals[:8], PEOPLE.preferences[:8])


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The optima of eight applicants, kept as ``certify`` keeps them."""
    folder = tmp_path_factory.mktemp("optima")
    certified_optima(EIGHT, folder)
    return folder


@pytest.fixture(scope="module")
def best(kept: Path) -> list:
    """Their optimal actions; one of them has no recourse."""
    return read_actions(kept / "results.csv", EIGHT)


@pytest.fixture(scope="module")
def optima(kept: Path) -> list:
    """Read back."""
    return certified_optima(EIGHT, kept)


def test_the_optimum_itself_is_near_and_misses_nobody(best: list, optima: list) -> None:
    """Evaluated with their own actions, the certified optima have no excess."""
    summary = evaluate(EIGHT, best, optima).summary()
    have = sum(action is not None for action in best)
    assert summary["with recourse (proven)"] == summary["feasible"] == have
    assert summary["share of those with recourse: within 5% of the optimum"] == 1.0
    assert summary["missed: recourse exists, none feasible given"] == 0
    assert summary["excess over the optimum, mean over feasible"] == pytest.approx(0.0, abs=1e-9)


def test_each_way_to_fail_is_told_apart(best: list, optima: list) -> None:
    """None given, outside the mask, outside the bounds, refused, and a dearer but feasible action."""
    actions = list(best)
    actions[0] = None
    actions[1] = {**best[1], "age": 70.0}
    actions[2] = {"savings": 1e4}
    actions[3] = {"savings": PEOPLE.factuals[3]["savings"]}
    found = evaluate(EIGHT, actions, optima).applicants
    assert not found[0].given and outcome(found[0]) == list(OUTCOMES)[4]
    assert found[1].outside_mask == "age" and found[1].cost is None and not found[1].feasible
    assert found[2].outside_range == "savings" and found[2].deployed and not found[2].feasible
    assert not found[3].deployed and outcome(found[3]) == list(OUTCOMES)[1]
    assert all(found[k].feasible for k in (4, 5, 6))
    summary = evaluate(EIGHT, actions, optima).summary()
    assert summary["missed: recourse exists, none given"] == 1
    assert summary["missed: recourse exists, none feasible given"] == 4


def test_a_method_that_never_heard_of_plausibility(optima: list) -> None:
    """The gradient's points are all accepted as it sees them, dear or cheap, plausible or not."""
    actions = ask(gradient.actions, EIGHT)
    found = evaluate(EIGHT, actions, optima)
    summary = found.summary()
    assert summary["share of given: accepted by the deployed model, causes left out"] == 1.0
    assert summary["given"] == 8
    assert summary["share of given: plausible"] < 1.0, "it was never told to be"
    assert all(one.cost >= one.lower_bound for one in found.applicants if one.feasible)  # type: ignore[operator]


def test_csv_by_order_by_index_and_as_certify_writes_it(tmp_path: Path) -> None:
    """Empty cells act on nothing, empty rows give nothing, missing rows too."""
    plain = tmp_path / "plain.csv"
    plain.write_text("amount,income,note\n1.5,,x\n,,y\n,2.5,z\n")
    three = Population(PEOPLE.template, PEOPLE.factuals[:3], PEOPLE.preferences[:3])
    assert read_actions(plain, three) == [{"amount": 1.5}, None, {"income": 2.5}]
    indexed = tmp_path / "indexed.csv"
    indexed.write_text("index,status,cost,action_amount,action_income\n2,found,1,,2.5\n0,found,1,1.5,\n")
    assert read_actions(indexed, three) == [{"amount": 1.5}, None, {"income": 2.5}]
    ends = from_counterfactuals(
        [{**PEOPLE.factuals[0], "income": 2.0}, dict(PEOPLE.factuals[1]), None], three
    )
    assert ends == [{"income": 2.0}, None, None]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("shoes\n1\n", "features"),
        ("amount\nmany\n", "a number"),
        ("amount\ninf\n", "finite"),
        ("index,amount\n7,1\n", "applicant 7"),
        ("index,amount\n0,1\n0,2\n", "at most once"),
    ],
)
def test_bad_csv_is_refused(text: str, complaint: str, tmp_path: Path) -> None:
    """One line says which row."""
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(BadInput, match=complaint):
        read_actions(path, Population(PEOPLE.template, PEOPLE.factuals[:2], PEOPLE.preferences[:2]))


def test_a_callable_must_answer_about_those_it_was_asked_about() -> None:
    """Another index or another type is refused; rows may be missing."""
    some = ask(lambda frame: frame.loc[[1], ["income"]] + 1.0, EIGHT)
    assert some[1] == {"income": PEOPLE.factuals[1]["income"] + 1.0} and some[0] is None
    with pytest.raises(BadInput, match="index"):
        ask(lambda frame: pd.DataFrame({"income": [1.0]}, index=[99]), EIGHT)
    with pytest.raises(BadInput, match="DataFrame"):
        ask(lambda frame: [1], EIGHT)


def test_the_helper_passes_and_fails(best: list, kept: Path) -> None:
    """Optimal actions pass; actions 10% dearer than allowed do not, and the worst is named."""
    assert_near_optimal(best, EIGHT, folder=kept)
    assert_near_optimal(lambda frame: pd.DataFrame(best, index=frame.index), EIGHT, folder=kept)
    with pytest.raises(AssertionError, match=r"applicant 0 got no action"):
        assert_near_optimal([None, *best[1:]], EIGHT, folder=kept)
    assert_near_optimal([None, *best[1:]], EIGHT, share=0.8, folder=kept)
    with pytest.raises(AssertionError, match=r"within 5\.0%"):
        assert_near_optimal("milp_recourse.evaluation.outside.gradient:actions", EIGHT, folder=kept)


def test_the_command_writes_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A callable of the working directory, by name; an unknown one is one line and exit code 2."""
    (tmp_path / "our_method_of_test.py").write_text(
        "def actions(frame):\n    return frame[['amount']] - 3.0\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    arguments = ["--limit", "2", "--out", "out", "--certificates"]
    assert main(["evaluate", "our_method_of_test:actions", *arguments]) == 0
    summary = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    assert summary["given"] == summary["applicants"] == 2
    assert len(list((tmp_path / "out" / "optima" / "certificates").glob("*.json.gz"))) == 2
    assert (tmp_path / "out" / "evaluation.png").stat().st_size > 1000
    assert len((tmp_path / "out" / "evaluation.csv").read_text().splitlines()) == 3
    capsys.readouterr()
    assert main(["evaluate", "our_method_of_test:nothing", *arguments]) == 2
    assert main(["evaluate", "no_such_module_here:f", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 2


def test_optima_of_another_problem_are_refused_by_the_option_that_names_them(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--optima``, not ``--out``, holds another run."""
    monkeypatch.chdir(tmp_path)
    method = "milp_recourse.evaluation.outside.gradient:actions"
    options = ["--limit", "8", "--no-plausibility", "--optima", str(kept)]
    assert main(["evaluate", method, *options]) == 2
    assert "--optima: got another run in" in capsys.readouterr().err

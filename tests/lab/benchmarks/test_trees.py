"""``bench trees``: solvers that agree, resumed where they end, and what is said of rows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from milp_recourse.errors import BadInput
from milp_recourse.judge import judge
from milp_recourse.lab.benchmarks import bench_trees as bench
from milp_recourse.lab.benchmarks import tree_report as report
from milp_recourse.lab.benchmarks.fitted import fit_network, fit_trees, read_table
from milp_recourse.lab.benchmarks.leaf_milp import LeafMilp
from milp_recourse.questions.solve import solve

pytest.importorskip("sklearn")


def plan(**changed: Any) -> bench.Plan:
    """A small run; some of it changed."""
    given = {
        "sets": ["credit", "cancer:unit"],
        "models": ["boosting-8x2", "forest-6x3"],
        "costs": ["l1", "l2-squared"],
        "per_model": 2,
        "solvers": ["bab", "highs"],
        "time_limit": 20.0,
    }
    return bench.Plan(**(given | changed))


def test_solvers_agree_and_rows_are_not_solved_twice(tmp_path: Path) -> None:
    """All prove the same, actions flip the model, certificates verify; a second run adds only what is new."""
    one = {"per_model": 1, "sets": ["credit"], "costs": ["l1", "l2-squared"]}
    rows = bench.run(plan(**one), tmp_path)
    assert len(rows) == 4 and {r["status"] for r in rows} == {"optimal"}
    assert {r["flips"] for r in rows} == {"True"} and {r["feasible"] for r in rows} == {"True"}
    own = [r for r in rows if r["solver"] == "bab"]
    assert all(r["verified"] == "True" and float(r["first_seconds"]) > 0 for r in own)
    asked: list[str] = []
    more = plan(**one, solvers=["bab", "highs", "cpsat", "leaf-milp"])
    again = bench.run(more, tmp_path, 2, asked.append)
    assert again[:4] == rows and len(again) == 8 and len(asked) == 8
    assert report.false_claims(report.table_of(again, 20.0)) == []
    said = report.write(again, tmp_path, 20.0)
    assert [line["proven"] for line in said["summary"]] == [1] * 8
    assert (tmp_path / "trees.json").exists() and (tmp_path / "trees.png").exists()
    written = (tmp_path / "trees.md").read_text(encoding="utf-8")
    assert (
        written.count("\n| boosting-8x2 | 1 | 1 of 1 |") == 1 and "proves 2 of 2 problems; 0 that" in written
    )


def test_a_problem_that_is_drawn_twice_is_solved_once(tmp_path: Path, monkeypatch: Any) -> None:
    """Its row is one, and progress is complete."""
    monkeypatch.setattr(bench, "ranked", lambda ensemble, rank: int(ensemble.refused[0]))
    asked: list[str] = []
    one = plan(models=["forest-6x3"], sets=["credit"], costs=["l1"], per_model=3, solvers=["bab"])
    rows = bench.run(one, tmp_path, 1, asked.append)
    assert len(rows) == 1 and len(asked) == len(one) == 3
    assert [line["problems"] for line in report.write(rows, tmp_path, 20.0)["summary"]] == [1]


def row(**changed: Any) -> dict[str, Any]:
    """A row as it is read from the table."""
    plain = {
        "model": "credit/forest-6x3",
        "cost_kind": "l1",
        "applicant": "7",
        "solver": "bab",
        "status": "optimal",
        "claimed_cost": "1.0",
        "cost": "1.0",
        "lower_bound": "0.9999999",
        "feasible": "True",
        "flips": "True",
        "processor_seconds": "0.5",
        "events": "[[0.1, 2.0, 0.0], [0.3, 1.0, 0.5]]",
        "first_seconds": "0.1",
    }
    return dict.fromkeys(bench.COLUMNS, "") | plain | {k: str(v) for k, v in changed.items()}


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ({"flips": False}, "not accepted"),
        ({"feasible": False}, "not accepted"),
        ({"status": "infeasible", "cost": "", "claimed_cost": "", "feasible": ""}, "infeasible"),
        ({"claimed_cost": 1.1, "cost": 1.1}, "optimal at 1.1"),
        ({"claimed_cost": 0.9}, "proven"),
        ({"status": "limit", "lower_bound": 1.2, "cost": 1.3}, "a bound of 1.2"),
    ],
)
def test_false_claims_are_seen(claim: dict[str, Any], said: str) -> None:
    """Each kind of false claim, against a proven answer."""
    assert report.false_claims(report.table_of([row(), row(solver="other")], 60.0)) == []
    [found] = report.false_claims(report.table_of([row(), row(solver="other", **claim)], 60.0))
    assert said in found


def test_what_is_not_proven_counts_at_what_it_spent_and_false_answers_at_the_limit() -> None:
    """A lower bound of what a proof takes; the limit where a claim is wrong."""
    rows = [
        row(),
        row(solver="slow", status="limit", cost="", feasible="", flips="", processor_seconds=9),
        row(solver="wrong", claimed_cost=1.5, cost=1.5),
    ]
    table = report.table_of(rows, 60.0)
    lines = {line["solver"]: line for line in report.summarise(table)}
    assert [lines[s]["median_s"] for s in ("bab", "slow", "wrong")] == [0.5, 9.0, 60.0]
    [line] = report.compared(table)
    assert line["best_peer_over_bab_median"] == 18.0
    gap = report.gaps(next(table.itertuples()), np.array([0.05, 0.2, 0.4, 0.6]))
    assert gap.tolist() == [1.0, 1.0, 0.5, 0.0]


def test_the_table_says_where_another_solver_is_better() -> None:
    """What only another proves, who is faster, and the median where three times is the aim."""
    model = {"model": "credit/forest-100x6"}
    rows = [
        row(**model, check_seconds=0.25, verified=True),
        row(**model, solver="fast", processor_seconds=0.1),
        row(**model, applicant=8, status="limit", cost="", feasible="", flips="", processor_seconds=6),
        row(**model, applicant=8, solver="fast", processor_seconds=24),
    ]
    lines = report.markdown(report.table_of(rows, 60.0)).splitlines()
    assert lines[2] == "| forest-100x6 | 2 | 1 of 2 | 3.2 | 2 of 2 | 12 | 2.1 | 0.2 | 0.1 | 1 | 0.25 |"
    said = " ".join(lines[3:])
    assert "proves 1 of 2 problems; 1 that it does not prove are proven" in said
    assert "On 1 of 2 problems" in said and "3 is the aim: 2.1 on forest-100x6" in said
    assert "False claims and refused actions, all solvers: 0" in said


def test_ratios_against_a_peer() -> None:
    """Over the problems that one of the two proves; who alone proves or has an action is counted."""
    nothing = {"status": "limit", "cost": "", "claimed_cost": "", "feasible": "", "flips": ""}
    rows = [
        row(applicant=1, processor_seconds=0.5),
        row(applicant=1, solver="peer", processor_seconds=2.0),
        row(applicant=2, processor_seconds=2.0, **nothing),
        row(applicant=2, solver="peer", processor_seconds=1.0),
        row(applicant=3, processor_seconds=9.0, status="limit"),
        row(applicant=3, solver="peer", processor_seconds=9.0, status="limit"),
        row(applicant=4, cost_kind="l2-squared"),
        row(applicant=4, cost_kind="l2-squared", solver="peer", status="refused"),
    ]
    (one, both) = report.against(report.table_of(rows, 60.0))
    assert {**one, "cost_kind": "all"} == both and one["problems"] == 3
    assert (one["both_open"], one["bab_alone_proves"], one["peer_alone_proves"]) == (1, 0, 1)
    assert one["action_elsewhere"] == 1
    assert one["median_ratio"] == (4.0 + 0.5) / 2 and 1.7 < one["p90_slower"] < 2.0


@pytest.mark.parametrize("table", ["credit", "credit:unit", "cancer"])
def test_the_plain_leaf_formulation_agrees(table: str) -> None:
    """Whole numbers, labels and scaled columns: the peer's rows say what ours say."""
    read = read_table(table, None)
    for model in (("forest", 5, 4), ("xgboost", 5, 3)):
        ensemble = fit_trees(read, *model)
        for rank in (0.0, 0.5):
            for cost in ("l1", "l2-squared"):
                instance = ensemble.instance(bench.ranked(ensemble, rank), cost)
                found, known = (
                    LeafMilp(instance).solve(20.0),
                    solve(instance, "bab"),
                )
                assert found["status"] == known.status.value == "optimal"
                verdict = judge(instance, found["action"])
                assert verdict.feasible and abs(float(verdict.cost) - known.cost) <= 2e-6 * (1 + known.cost)
                assert abs(found["claimed_cost"] - known.cost) <= 2e-6 * (1 + known.cost)


def test_problems_stay_the_same_beside_other_models() -> None:
    """So that a run can be added to."""
    few = plan(models=["forest-6x3"]).problems()
    assert few == [p for p in plan().problems() if p.model == "forest-6x3"]
    assert few != plan(models=["forest-6x3"], seed=1).problems()


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"models": ["forest"]}, "--models"),
        ({"models": ["oak-3x3"]}, "--models"),
        ({"models": ["forest-3x"]}, "--models"),
        ({"models": ["forest-3x3x3"]}, "--models"),
        ({"solvers": ["x"]}, "--solvers"),
        ({"costs": ["linf"]}, "--costs"),
        ({"solvers": ["ocean-cp"]}, "--ocean-python"),
        ({"sets": ["nothing"]}, "--sets"),
        ({"sets": ["whole7"]}, "8 or more, as whole50"),
        ({"sets": ["german:unit"]}, r"german\.data"),
    ],
)
def test_unknown_names_are_bad_input(changed: dict[str, Any], field: str, tmp_path: Path) -> None:
    """One line that names the option or the file."""
    with pytest.raises(BadInput, match=field):
        bench.run(plan(data=tmp_path, **changed), tmp_path)


def test_a_table_of_ones_own_is_read(tmp_path: Path) -> None:
    """Kinds are those of the values, all columns are levers, and rows with gaps are left out."""
    lines = ["age,share,job,paid", "30,0.5,a,1", "40,0.25,b,0", ",0.1,a,1", "50,0.75,c,1"]
    (tmp_path / "mine.csv").write_text("\n".join(lines), encoding="utf-8")
    table = read_table("mine.csv", tmp_path)
    kinds = [(f.name, f.kind, f.actionable) for f in table.features]
    assert kinds == [("age", "integer", True), ("share", "continuous", True), ("job", "categorical", True)]
    rows = sorted(np.column_stack([table.values, table.labels]).tolist())
    assert rows == [[30.0, 0.5, 0.0, 1.0], [40.0, 0.25, 1.0, 0.0], [50.0, 0.75, 2.0, 1.0]]
    assert read_table("mine.csv:unit", tmp_path).features[0].bounds == (0.0, 1.0)
    assert (read_table(str(tmp_path / "mine.csv"), None).values == table.values).all()
    with pytest.raises(BadInput, match=r"--sets: got mine\.csv, with . rows of one outcome"):
        fit_network("mine.csv", "8", tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "column b: got 2; .*outcome that people want"),
        ("a,b\n1,1\n2,1\n", "column b: got 1; .*outcome that people want"),
        ("a,b\n1,yes\n2,no\n", "column b: got yes, no; .*outcome that people want"),
        ("paid\n1\n0\n", "rows: got"),
        ("a,b\n", "rows: got"),
        ("a,b,\n1,1,\n2,0,\n", "rows: got none without a missing value"),
        ("a,b\n7,2,1\n9,4,0\n", "table: got Length of header"),
        ("a,b\n1,1\n2,0,3\n", "table: got .*line 3"),
        ("", "table: got No columns"),
        ("a,b\ninf,1\n2,0\n", "column a: got infinity"),
    ],
)
def test_a_table_that_is_none_is_refused(text: str, said: str, tmp_path: Path) -> None:
    """The line names the file and what is wrong; also of a name that begins as a data set's."""
    (tmp_path / "wholesale.csv").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=r"wholesale\.csv: " + said):
        read_table("wholesale.csv", tmp_path)


def test_a_model_without_a_depth_has_the_librarys_own() -> None:
    """A forest grows to the end, so its leaves are pure."""
    forest = fit_trees(read_table("credit", None, 0), *bench.parsed("forest-3"), 0)
    assert forest.name == "credit/forest-3"
    assert all(tree.max_depth is None and tree.get_depth() > 10 for tree in forest.estimator.estimators_)


def test_a_python_without_oceanpy_says_so() -> None:
    """Its worker answers every question, and says what is missing."""
    ensemble = fit_trees(read_table("credit:unit", None, 0), *bench.parsed("forest-6x3"), 0)
    instance = ensemble.instance(int(ensemble.refused[0]), "l1")
    with bench.worker("ocean-cp", ensemble, sys.executable) as ocean:
        for _ in range(2):
            answer = ocean.ask(instance, 5.0)
            assert answer["status"] == "refused" and "No module named 'ocean'" in answer["message"]


def test_treecf_is_asked_the_same_problem_or_says_what_is_missing() -> None:
    """Prices are the instance's own, and it proves the same cost; without it, one line says so."""
    ensemble = fit_trees(read_table("whole8", None, 0), *bench.parsed("forest-6x3"), 0)
    instance = ensemble.instance(int(ensemble.refused[-1]), "l1")
    asked = bench._asked_of_treecf(instance)
    assert isinstance(asked, dict) and asked["whole"] == [True] * 8
    moved = {f.name: instance.factual[f.name] + 1.0 for f in instance.features}
    assert sum(asked["price"]) == pytest.approx(float(instance.cost_of(moved)))
    with bench.worker("treecf", ensemble, None) as treecf:
        answer = treecf.ask(instance, 60.0)
    if answer["status"] == "refused":
        assert "No module named 'treecf'" in answer["message"]
    else:
        assert answer["claimed_cost"] == pytest.approx(solve(instance).cost)


@pytest.mark.parametrize(("table", "cost"), [("credit", "l1"), ("whole8", "l2-squared")])
def test_treecf_is_not_asked_about_labels_or_squares(table: str, cost: str) -> None:
    """Its cost is a sum of distances."""
    ensemble = fit_trees(read_table(table, None, 0), *bench.parsed("forest-2x2"), 0)
    assert isinstance(bench._asked_of_treecf(ensemble.instance(int(ensemble.refused[0]), cost)), str)

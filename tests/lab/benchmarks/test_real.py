"""Networks on published tables: solvers agree, and what is solved is not solved twice."""

from __future__ import annotations

import functools

import pytest

from milp_recourse.errors import BadInput
from milp_recourse.lab.benchmarks import bench_real as real
from milp_recourse.lab.benchmarks.fitted import fit_network
from milp_recourse.lab.benchmarks.tree_report import write
from milp_recourse.lab.known import parts
from milp_recourse.questions.solve import solve

TRAINED = functools.cache(fit_network)


@pytest.fixture(autouse=True)
def trained_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each network of this file is trained once."""
    monkeypatch.setattr(real, "fit_network", TRAINED)


def test_solvers_agree_and_rows_are_not_solved_twice(tmp_path) -> None:
    """A tiny network on the table that needs no file, by three solvers; no claim is false."""
    plan = real.Plan(["cancer"], ["4"], ["l1"], 1, ["bab", "highs-milp", "scip"], 30.0)
    rows = real.run(plan, tmp_path)
    assert [row["solver"] for row in rows] == list(plan.solvers)
    assert {row["status"] for row in rows} == {"optimal"}
    costs = [float(row["claimed_cost"]) for row in rows]
    assert max(costs) - min(costs) <= 1e-4 * max(costs)
    assert write(rows, tmp_path, plan.time_limit, "real")["false_claims"] == []
    page = (tmp_path / "real.md").read_text(encoding="utf-8")
    assert "fastest other" in page and "another solver" in page
    write(rows[:1], tmp_path, plan.time_limit, "alone")
    page = (tmp_path / "alone.md").read_text(encoding="utf-8")
    assert "other" not in page
    before = (tmp_path / "real.csv").read_bytes()
    assert real.run(plan, tmp_path) == rows and (tmp_path / "real.csv").read_bytes() == before


def test_far_people_have_lower_logits_than_near_ones(tmp_path) -> None:
    """Three of each: rows of the far say so, and without certificates nothing is checked."""
    given = (["cancer"], ["4"], ["l1"], 3, ["bab"], 30.0)
    plan = real.Plan(*given, people=["near", "far"], certificates=False)
    rows = real.run(plan, tmp_path)
    assert len(rows) == len(plan) == 6
    assert [row["model"] for row in rows] == 3 * ["cancer/4"] + 3 * ["cancer/4" + real.FAR]
    assert {(row["status"], row["verified"]) for row in rows} == {("optimal", "")}
    network = TRAINED("cancer", "4", None)
    logits = network.classifier.evaluate(network.table.inputs)[:, 0]
    near, far = ([logits[int(row["applicant"])] for row in part] for part in (rows[:3], rows[3:]))
    assert max(far) < min(near)
    assert real.chosen(network, plan) == real.chosen(network, real.Plan(*given))


@pytest.mark.parametrize(("name", "levers", "moved"), [("loan", 7, 0), ("loan:graph", 5, 3)])
def test_the_loan_table_needs_no_file(name: str, levers: int, moved: int) -> None:
    """Every column is a lever; in the graph gender and age are none, and three follow others."""
    network = fit_network(name, "4", None, seed=1)
    instance = network.instance(int(network.refused[-1]), "l1")
    assert len(instance.levers) == levers
    follow = {f for n in instance.levers for f in instance.scm.descendants({n}) - {n}}
    assert len(follow & instance.levers.keys()) == moved
    proven = solve(instance)
    assert proven.status.value == "optimal" and proven.lower_bound is not None


def test_unknown_names_are_refused() -> None:
    """One line each."""
    for change in ({"solvers": ["cplex"]}, {"models": ["4by4"]}, {"costs": ["l3"]}, {"people": ["all"]}):
        given = {"sets": ["cancer"], "models": ["4"], "costs": ["l1"], "solvers": ["bab"]} | change
        with pytest.raises(BadInput):
            real.Plan(**given, per_model=1, time_limit=1.0)


def test_a_name_that_is_said_twice_counts_once() -> None:
    """Its rows would be counted twice, and solved once."""
    assert parts("bab, highs,bab") == ["bab", "highs"]

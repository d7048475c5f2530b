"""What comes with a robust answer: a checked certificate, or the reason why there is none."""

from __future__ import annotations

import json
from dataclasses import replace
from gzip import decompress

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from milp_recourse import Recourse
from milp_recourse.cli import main
from milp_recourse.errors import BadInput
from milp_recourse.formats import instance_from_dict, read_instance
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.questions.robust import robust
from milp_recourse.reports.certificate_files import checked
from tests.certificates.attacks import HERE
from tests.questions.robust.enumeration import settled
from tests.questions.robust.problems import draw
from verify.__main__ import examine

LOAN = instances_path() / "loan" / "loan_012.json"


def forest():
    """A forest of two numbers of cents, and somebody whom it refuses."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"income": rng.uniform(0, 10, 400).round(2), "debt": rng.uniform(0, 10, 400).round(2)})
    model = RandomForestClassifier(7, max_depth=4, random_state=0).fit(X, X["income"] - X["debt"] > 1.5)
    return X, model, pd.DataFrame({"income": [2.0], "debt": [6.0]}, index=["ann"])


def test_the_ends_of_an_outcome_are_those_that_a_user_computes():
    """target + d and target - d in doubles are accepted, whatever their rounding."""
    X, model, people = forest()
    answers = Recourse(model, X).certify(people)
    tried = 0
    for by in (0.1, 0.3, 0.7, 1.1):
        found = answers.robust("ann", missed={"income": by, "debt": by})
        assert found["proof"] == "rigorous"
        ends = {name: [found["action"].get(name, people[name].iloc[0])] for name in X}
        for name in found["action"]:
            target = ends[name][0]
            ends[name] += [target - by, target + by]
        rows = pd.DataFrame([(a, b) for a in ends["income"] for b in ends["debt"]], columns=X.columns)
        assert model.predict(rows).all()
        tried += len(rows)
    assert tried > 12


def test_the_door_writes_a_certificate_for_the_population(tmp_path):
    """``verify`` reads it beside what ``population()`` says, for the person asked about."""
    X, model, people = forest()
    both = pd.concat([people.set_axis(["ben"]), people])
    answers = Recourse(model, X).certify(both)
    file, problem = tmp_path / "ann.json.gz", tmp_path / "people.json"
    found = answers.robust("ann", missed={"income": 0.5}, certificate=file)
    assert found["proof"] == "rigorous" and found["certificate"] == str(file)
    problem.write_text(json.dumps(answers.population()))
    line = examine(file, problem, 600).line
    assert line.startswith("VERIFIED optimal") and "index=1" in line
    with pytest.raises(BadInput, match="certificate"):
        answers.robust("ann", missed={"income": 0.5}, certificate=3)


def test_what_predict_refuses_is_not_called_optimal():
    """A model that says otherwise of the worst outcome alone."""
    X, model, people = forest()
    missed = {"income": 0.5, "debt": 0.5}
    found = Recourse(model, X).certify(people).robust("ann", missed=missed)
    worst = {name: found["counterfactual"][name] + found["worst"]["missed"].get(name, 0.0) for name in X}
    assert found["status"] == "optimal" and any(found["worst"]["missed"].values())

    def predict(frame: pd.DataFrame):
        there = np.isclose(frame[list(worst)], list(worst.values()), rtol=0, atol=1e-9).all(axis=1)
        return model.predict(frame[X.columns]) & ~there

    doubted = Recourse(model, X, predict=predict).certify(people).robust("ann", missed=missed)
    assert doubted["status"] == "limit" and doubted["lower_bound"] == 0.0 and doubted["proof"] == "solver"
    assert doubted["counterfactual"] == found["counterfactual"] and "predict refuses" in doubted["message"]


def test_without_a_certificate_the_message_says_so():
    """Not asked for; a causal model of trees; another back end's word."""
    asked = robust(LOAN, missed={"amount": 0.1}, certificates=False).result
    assert asked.proof == "solver" and "none was asked for" in asked.message and asked.evidence is None
    other = robust(LOAN, missed={"amount": 0.1}, backend="highs").result
    assert other.proof == "solver" and other.evidence is not None
    causal = next(seed for seed in range(400) if draw(seed).kind == "mean" and _is_causal(seed))
    drawn = draw(causal)
    settled(drawn, causal)
    found = robust(instance_from_dict(drawn.instance), drawn.missed, drawn.threshold, drawn.noise).result
    assert found.proof == "solver" and "No certificate" in found.message and "Proven" not in found.message


def _is_causal(seed):
    """Whether an effect is uncertain in a problem that has a threshold, and its answer has an action."""
    drawn = draw(seed)
    if drawn.instance["scm"]["name"] == "independent" or settled(drawn, seed) is None:
        return False
    instance = instance_from_dict(drawn.instance)
    result = robust(instance, drawn.missed, drawn.threshold, drawn.noise, None, 10, certificates=False).result
    return bool(result.action) and bool(drawn.missed)


def test_a_certificate_that_the_checker_refuses_is_taken_back():
    """The answer stays, as sure as the search; the message has the checker's reason."""
    found = robust(LOAN, missed={"amount": 0.1})
    assert checked(found) is found and found.result.proof == "rigorous"
    another = replace(found, instance=read_instance(LOAN.with_name("loan_007.json")))
    result = checked(another).result
    assert result.proof == "solver" and result.evidence is None
    assert "the checker says REJECTED: instance_sha256" in result.message


def test_the_time_limit_covers_the_certificate():
    """Whatever is reached, the answer is honest."""
    found = robust(instances_path() / "loan" / "loan_007.json", missed={"income": 0.1}, time_limit=0.05)
    assert found.result.proof != "rigorous" or checked(found).result.proof == "rigorous"
    assert found.result.seconds < 5.0


def test_one_applicant_of_a_population_by_the_command(tmp_path, capsys):
    """``--index`` names the applicant, and ``verify`` is given the population."""
    people = instances_path() / "loan" / "population.json"
    file = tmp_path / "c.json"
    assert (
        main(["robust", str(people), "--index", "12", "--missed", "amount=0.1", "--certificate", str(file)])
        == 0
    )
    assert json.loads(file.read_text())["index"] == 12
    assert examine(file, people, 600).line.startswith("VERIFIED optimal")
    capsys.readouterr()


def test_a_certificate_of_a_certain_action_is_none_of_a_row(tmp_path):
    """A folder's table is about actions as planned."""
    name = "certain_trees.json"
    line = examine(
        HERE / "accepted" / name,
        HERE / "instances" / name,
        600,
        row={"status": "optimal"},  # type: ignore[arg-type]
    ).line
    assert line.startswith("REJECTED: withstands: a row of results.csv")


def test_the_same_question_has_the_same_certificate():
    """Nothing random is in it."""
    both = [robust(LOAN, missed={"amount": 0.1}).result.evidence for _ in range(2)]
    assert both[0] == both[1] and json.loads(decompress(both[0]))["withstands"]["missed"] == {"amount": 0.1}

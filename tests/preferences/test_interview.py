"""Interviews end with what the person wants, say what that can cost at most, and can be continued."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from milp_recourse.errors import BadInput
from milp_recourse.formats import read_instance, result_to_dict
from milp_recourse.formats.strict_json import read_json, write_json
from milp_recourse.lab.interviews.simulated_people import Person, random_weights
from milp_recourse.preferences import Interview
from milp_recourse.preferences.cost_parts import with_weights
from milp_recourse.preferences.next_pair import STRATEGIES
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Status
from milp_recourse.questions.solve import solve
from tests.helpers.processes import ROOT

TREE = ROOT / "instances/credit_trees/credit_003.json"
LOAN = ROOT / "instances/loan/loan_009.json"


def true_regret(interview: Interview, person: Person) -> float:
    """What the recommended recourse costs the person beyond their own optimum, as a share of that."""
    best = solve(with_weights(interview.problem(), person.weights))
    recommended = interview.recommend()
    assert best.action is not None and recommended.action is not None
    costs = [person.cost(interview.instance.numbers(r.action or {})) for r in (recommended, best)]
    return float(costs[0] / costs[1]) - 1


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("file", [TREE, pytest.param(LOAN, marks=pytest.mark.long)], ids=["tree", "network"])
def test_the_true_regret_is_within_the_proven_one(strategy: str, file: Path) -> None:
    """At every point of an interview, whatever question is asked next."""
    instance, rng = read_instance(file), np.random.default_rng(1)
    person = Person(instance, random_weights(instance, rng))
    interview = Interview(instance, budget=3, strategy=strategy)  # type: ignore[arg-type]
    most = [interview.regret().most]
    while (question := interview.ask()) is not None:
        interview.tell(person.answer(question))
        regret = interview.regret()
        assert true_regret(interview, person) <= regret.most + 1e-6
        assert regret.attained <= regret.most
        most.append(regret.most)
    assert most[-1] < most[0] * (1.0 if strategy == "random" else 0.8)


def test_a_few_answers_find_the_optimum_of_a_tree() -> None:
    """A tree has few recourses: soon nothing is in doubt, and nothing is left to ask."""
    instance = read_instance(TREE)
    for seed in range(3):
        person = Person(instance, random_weights(instance, np.random.default_rng(seed)))
        interview = person.interviewed(Interview(instance, budget=30))
        assert len(interview.answers) < 10
        assert interview.regret().most <= 2e-6
        assert true_regret(interview, person) <= 2e-6


def test_the_same_answers_give_the_same_state(tmp_path: Path) -> None:
    """Saved in the middle and read again, the interview goes on as the one that was not interrupted."""
    instance = read_instance(LOAN)
    person = Person(instance, random_weights(instance, np.random.default_rng(2)))
    whole = person.interviewed(Interview(instance, budget=4, seed=5))
    part = Interview(instance, budget=4, seed=5)
    for _ in range(3):
        question = part.ask()
        assert question is not None
        part.regret()  # what it searches for must not change the questions
        part.tell(person.answer(question))
    part.save(tmp_path / "part.json.gz")
    read = person.interviewed(Interview.load(tmp_path / "part.json.gz"))
    assert [(q.to_dict(), a) for q, a in read.answers] == [(q.to_dict(), a) for q, a in whole.answers]
    assert read.preferences() == whole.preferences()
    results = [result_to_dict(i.recommend()) for i in (read, whole)]
    assert all(r.pop("seconds") >= 0 for r in results)
    assert results[0] == results[1]
    assert read.regret().most == whole.regret().most
    assert read.to_dict() == whole.to_dict()


def test_the_recommendation_is_certified() -> None:
    """It carries a certificate of the problem under the learned preferences."""
    instance = read_instance(TREE)
    person = Person(instance, random_weights(instance, np.random.default_rng(3)))
    interview = person.interviewed(Interview(instance))
    result = interview.recommend(certificates=True)
    assert result.status is Status.OPTIMAL and result.proof == "rigorous" and result.evidence is not None
    assert solve(interview.problem()).action == result.action


def test_a_question_stays_until_it_is_answered() -> None:
    """Asking twice shows the same."""
    interview = Interview(read_instance(TREE))
    assert interview.ask() is interview.ask()
    assert "1 of at most" not in repr(interview) and "question open" in repr(interview)


MISTAKES = {
    "method": ({"method": "hares"}, "method: got hares; allowed: .*is 'hare' meant"),
    "strategy": ({"strategy": "best"}, "strategy: got best"),
    "budget": ({"budget": -1}, "budget: got -1"),
    "seed": ({"seed": 1.5}, "seed: got 1.5"),
    "noise": ({"noise": float("nan")}, "noise"),
    "least": ({"least_weight": 0}, "least_weight: got 0"),
    "same": ({"same_within": -1}, "same_within: got -1"),
    "profile": ({"profile": "steep"}, "profile: got steep"),
    "time": ({"time_limit": 0}, "time_limit"),
    "person": ({"person": 3}, "person: got 3"),
}


@pytest.mark.parametrize("given, line", MISTAKES.values(), ids=MISTAKES)
def test_mistakes_get_one_line(given: dict, line: str) -> None:
    """The argument, what it got, what is allowed."""
    with pytest.raises(BadInput, match=line) as error:
        Interview(read_instance(TREE), **given)
    assert "\n" not in str(error.value)


def test_answers_are_checked() -> None:
    """An answer that the question does not take, and one where there is no question."""
    interview = Interview(read_instance(TREE), budget=1)
    with pytest.raises(BadInput, match="answer: got maybe; allowed: left, right, same"):
        interview.tell("maybe")
    interview.tell("left")
    assert interview.ask() is None
    with pytest.raises(BadInput, match="no question is left"):
        interview.tell("left")


def test_a_file_with_other_questions_is_refused(tmp_path: Path) -> None:
    """An answer belongs to the question that was shown."""
    interview = Interview(read_instance(TREE))
    interview.tell("left")
    interview.save(tmp_path / "i.json")
    content = read_json(tmp_path / "i.json")
    content["answers"][0]["left"] = {"income": 1.0}
    write_json(content, tmp_path / "i.json")
    with pytest.raises(BadInput, match=r"i\.json: answers\.0: got another question"):
        Interview.load(tmp_path / "i.json")


@pytest.mark.parametrize("method", ["group", "rank", "likert", "awp"])
def test_every_method_ends_with_a_certified_recourse(method: str, tmp_path: Path) -> None:
    """The same interface, also for questions about levers."""
    instance = read_instance(TREE)
    person = Person(instance, random_weights(instance, np.random.default_rng(4)))
    interview = person.interviewed(Interview(instance, method=method))  # type: ignore[arg-type]
    assert interview.recommend().status is Status.OPTIMAL
    assert interview.regret().most >= 0
    interview.save(tmp_path / "i.json")
    assert Interview.load(tmp_path / "i.json").preferences() == interview.preferences()


def test_a_stated_order_bounds_the_regret() -> None:
    """A ranking says nothing about how much easier one lever is: the regret is over all weights in the order,
    less than over all weights."""
    instance = read_instance(LOAN)
    for seed in range(4):
        person = Person(instance, random_weights(instance, np.random.default_rng(seed)))
        ranked = person.interviewed(Interview(instance, method="rank"))
        assert true_regret(ranked, person) <= ranked.regret().most
        assert ranked.regret().most < Interview(instance, method="rank", budget=0).regret().most


@pytest.mark.parametrize("kind", ["boosting", "network", "asked"])
def test_ten_lines_on_a_pipeline_of_ones_own(kind: str) -> None:
    """Labels, gaps, and a model of any kind: from choices to a certified recourse that the model confirms."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    from milp_recourse import Recourse

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal([36, 20, 8], [15, 8, 4], (400, 3)).clip(1).round())
    X.columns = ["income", "debt", "saved"]
    X["job"] = rng.choice(["none", "part", "full"], 400)
    y = X["income"] - X["debt"] + X["saved"] + 6 * (X["job"] == "full") > 28
    X.loc[rng.random(400) < 0.1, "saved"] = np.nan
    trees, network = HistGradientBoostingClassifier(max_iter=10), MLPClassifier((4,), max_iter=2000, tol=0.01)
    labels = make_column_transformer((OneHotEncoder(), ["job"]), remainder="passthrough")
    steps = (SimpleImputer(), StandardScaler(), network.set_params(random_state=0))
    model = make_pipeline(labels, *(steps if kind == "network" else (trees,))).fit(X, y)

    asked = {"steps": {"income": 4, "debt": 4, "saved": 4}} if kind == "asked" else {}
    recourse = Recourse(model.predict if kind == "asked" else model, X, **asked)  # type: ignore[arg-type]
    person = X[~model.predict(X)].iloc[[0]]
    interview = Interview(recourse, person, budget=2)
    while (question := interview.ask()) is not None:
        fewer = len(question.left.action) <= len(question.right.action)  # type: ignore[union-attr]
        interview.tell("left" if fewer else "right")
    result = interview.recommend(certificates=kind != "asked")
    assert result.status is Status.OPTIMAL and result.action
    assert result.proof == ("asked" if kind == "asked" else "rigorous")
    assert (result.evidence is None) == (kind == "asked")
    assert model.predict(person.assign(**result.action)).all()
    assert interview.answers and 0 <= interview.regret(result).cheaper < 1


def instance_with(instance: Instance, **changes: object) -> Instance:
    """The instance with other preferences."""
    return replace(instance, preferences=replace(instance.preferences, **changes), reference=None)

"""Choices and certainty through commands, documents and DataFrames; what is refused, in one line."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from milp_recourse.cli import main
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.formats import read_instance
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.formats.json_schemas import FOLDER
from milp_recourse.questions.choices import choices
from milp_recourse.questions.robust import robust
from milp_recourse.questions.solve import solve
from tests.questions.choices.compare_choices import check, refused
from verify.__main__ import examine

LOAN = instances_path() / "loan" / "loan_007.json"


def document(name: str, file):
    """A written document, which fits its schema."""
    data = json.loads(file.read_text())
    Draft202012Validator(json.loads((FOLDER / f"{name}.schema.json").read_text())).validate(data)
    return data


def test_the_commands_write_documents(tmp_path, capsys):
    """Printed, written, and as the functions say."""
    out = tmp_path / "out.json"
    assert (
        main(
            ["choices", str(LOAN), "--count", "2", "--differ", "effect", "--apart", "0.5", "--json", str(out)]
        )
        == 0
    )
    data = document("choices-1", out)
    assert len(data["choices"]) == 2 or data["exhausted"]
    assert data["choices"][0]["conditions"] == []
    assert capsys.readouterr().out.startswith("1: optimal cost=")
    assert main(["robust", str(LOAN), "--threshold", "0.1", "--json", str(out)]) == 0
    data = document("robust-1", out)
    assert data["withstands"] == {"missed": {}, "threshold": 0.1, "noise": {}}
    assert data["cost"] >= solve(LOAN).cost and data["status"] == "optimal"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["choices", "--apart", "0"], "apart"),
        (["choices", "--count", "0"], "count"),
        (["choices", "--differ", "distance", "--apart", "-1"], "apart"),
        (["choices", "--differ", "distance", "--scale", "nobody=1"], "scale.nobody"),
        (["choices", "--differ", "distance", "--scale", "income=0"], "scale.income"),
        (["choices", "--scale", "income"], "--scale"),
        (["robust", "--missed", "nobody=1"], "missed.nobody"),
        (["robust", "--missed", "income=-1"], "missed.income"),
        (["robust", "--missed", "income=wide"], "--missed"),
        (["robust", "--noise", "savings=1:2"], "noise.savings"),
        (["robust", "--noise", "savings=1:2:3"], "--noise"),
        (["robust", "--threshold", "nan"], "threshold"),
        (["robust", "--backend", "grid"], "proves"),
    ],
)
def test_bad_requests_are_one_line(arguments, line, capsys):
    """Exit code 2, the argument named."""
    command, *rest = arguments
    assert main([command, str(LOAN), *rest]) == 2
    said = capsys.readouterr().err
    assert line in said and said.count("\n") == 1


def test_a_choice_is_the_answer_of_an_ordinary_problem():
    """The second way's conditions make an instance whose optimum it is; certified like any."""
    found = choices(LOAN, 2)
    again = solve(found.problem(1), certificates=True)
    assert again.cost == found.choices[1].result.cost and again.evidence is not None
    assert found.choices[1].result.cost >= found.choices[0].result.cost


def test_who_is_accepted_as_they_are_has_one_choice():
    """Nothing to do, and nothing else differs."""
    from dataclasses import replace

    instance = read_instance(LOAN)
    easy = replace(instance, accept=replace(instance.accept, threshold=-1e6), reference=None)
    found = choices(easy)
    assert [one.result.action for one in found.choices] == [{}] and found.exhausted
    assert robust(easy, missed={"income": 1.0}).result.cost == 0.0


def test_labels_are_not_missed_and_whole_numbers_by_whole_steps():
    """Bad input, and rounding down."""
    from milp_recourse.questions.robust import uncertainty_of
    from tests.helpers.tree_samples import random_tree_instance

    labels = wholes = 0
    for seed in range(30):
        instance = random_tree_instance(seed)
        for f in instance.features:
            if f.kind in ("categorical", "ordinal", "binary"):
                labels += 1
                with pytest.raises(BadInput, match=f"missed.{f.name}"):
                    uncertainty_of(instance, {f.name: 1.0})
            elif f.kind == "integer":
                wholes += 1
                assert uncertainty_of(instance, {f.name: 1.7}).missed == {f.name: 1.0}
    assert labels and wholes


def test_effects_that_are_no_sums_are_refused_for_trees():
    """One line that names the feature."""
    from tests.helpers.tree_samples import random_causal_instance

    seen = 0
    for seed in range(3, 25):
        instance = random_causal_instance(seed)
        if instance is not None and instance.levers and not instance.missing:
            numbers = [n for n in instance.levers if instance.by_name[n].kind in ("continuous", "integer")]
            try:
                robust(instance, dict.fromkeys(numbers, 1.0), time_limit=5)
            except Unsupported as refusal:
                seen += "not by a sum" in str(refusal)
    assert seen


def test_the_door_speaks_of_columns():
    """choices as a table, robust as a document, by the names of the frame."""
    import numpy as np
    import pandas as pd
    from sklearn.linear_model import LogisticRegression

    from milp_recourse import Recourse

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": rng.uniform(0, 10, 200), "debt": rng.uniform(0, 10, 200)})
    model = LogisticRegression().fit(X, X["income"] > X["debt"] + 1)
    answers = Recourse(model, X).certify(pd.DataFrame({"income": [3.0], "debt": [6.0]}, index=["ann"]))
    ways = answers.choices("ann", count=2)
    assert list(ways.index) == [1, 2] and (ways["status"] == "optimal").all()
    assert {tuple(action) for action in ways["action"]} == {("income",), ("debt",)}
    certain = answers.robust("ann", missed={"income": 0.5, "debt": 0.5})
    [(name, value)] = certain["action"].items()
    planned = answers.table["cost"].iloc[0]
    assert certain["status"] == "optimal" and certain["cost"] > planned
    row = {"income": 3.0, "debt": 6.0, name: value - (0.5 if name == "income" else -0.5)}
    assert model.predict(pd.DataFrame([row]))[0]
    assert json.loads(certain.to_json()) == certain == json.loads(json.dumps(certain))
    assert list(certain.table["feature"]) == [name] and f"{value:.3f}"[:4] in certain._repr_html_()
    assert repr(certain).startswith(f"optimal cost={certain['cost']!r}") and "lowest output" in repr(certain)
    with pytest.raises(BadInput, match="missed"):
        answers.robust("ann", missed={"nobody": 1.0})
    paid = answers.why("ann")
    assert json.loads(paid.to_json()) == paid and paid["cost"] == pytest.approx(planned) and paid.table.empty
    assert repr(paid) == f"optimal at cost {planned:.6g}. No restriction is known to cost anything."
    narrow = pd.DataFrame({"income": [3.0], "debt": [6.0]}, index=["ann"])
    bound = Recourse(model, X, ranges={"income": (0, 4)}, immutable=["debt"]).certify(narrow)
    stuck = bound.why("ann")
    [widened] = stuck["smallest"]
    assert list(stuck.table["without"]) == ["range:income", "range:income, partly"]
    assert stuck.table["cost"].iloc[1] == widened["cost"] and "<table" in stuck._repr_html_()
    assert "income is set within 0 to 4 (own range)" in repr(stuck)
    document = ways.attrs["document"]
    assert document["format"] == "milp-recourse/choices-1" and json.loads(json.dumps(document)) == document
    assert [one["cost"] for one in document["choices"]] == list(ways["cost"])
    with pytest.raises(BadInput, match="why"):
        answers.page(why=True)
    assert "<h2>Why</h2>" in answers.page("ann", why=True)


@pytest.mark.parametrize("apart", [2, 3])
def test_the_least_total_is_that_of_every_set_tried(apart):
    """Against all sets of the listed ways; one after the other is never cheaper in total."""
    from itertools import combinations

    seen = better = 0
    for file in sorted((instances_path() / "credit_trees").glob("credit_*.json"))[:20]:
        instance = read_instance(file)
        every = choices(instance, 100)
        if len(every.choices) < 3:
            continue
        results = [one.result for one in every.choices]

        def far(some):
            return all(len(a.action.keys() ^ b.action.keys()) >= apart for a, b in combinations(some, 2))

        sets = [some for k in (2, 1) for some in combinations(results, k) if far(some)]
        most = max(len(some) for some in sets)
        least = min(sum(r.cost for r in some) for some in sets if len(some) == most)
        found = choices(instance, 2, "features", apart, together=True)
        assert len(found.choices) == most and found.total[0] == pytest.approx(least, rel=1e-9)
        assert found.total[1] <= found.total[0] and found.total[0] - found.total[1] <= 2e-6 * least + 1e-9
        greedy = [one.result.cost for one in choices(instance, 2, "features", apart).choices]
        assert len(greedy) < most or sum(greedy) >= least * (1 - 1e-9)
        seen += 1
        better += len(greedy) < most or sum(greedy) > least * (1 + 1e-6)
    assert seen >= 3 and better >= (apart == 3)
    with pytest.raises(Unsupported, match="least total"):
        choices(LOAN, 2, "distance", together=True)


@pytest.mark.parametrize("seed", [129, 167])
def test_a_feature_that_is_only_held_or_moved_by_next_to_nothing_is_no_way_of_its_own(seed):
    """Optima that could leave a feature alone at the same cost, which once counted as acting on it."""
    instance = refused(seed, False, True)
    ways = [set(one.result.action) for one in choices(instance, 6).choices]
    assert len(ways) > 1 and not any(one <= other for k, one in enumerate(ways) for other in ways[k + 1 :])
    assert check(seed, "least total", False, ("bab", "highs"), 30.0)[1] == []


@pytest.mark.long
@pytest.mark.parametrize("missed", [[], ["--missed", "income=0.05"]])
def test_what_is_called_rigorous_is_verified_against_the_file_asked_about(missed, tmp_path):
    """With a moved threshold, with and without a missed target; and not against another file."""
    certificate, out = tmp_path / "c.json", tmp_path / "out.json"
    asked = ["robust", str(LOAN), "--threshold", "0.1", *missed, "--json", str(out)]
    assert main([*asked, "--certificate", str(certificate)]) == 0
    data = document("robust-1", out)
    assert data["proof"] == "rigorous" and data["certificate"] == str(certificate)
    document("certificate-1", certificate)
    line = examine(certificate, LOAN, 600).line
    assert line.startswith("VERIFIED optimal") and '"threshold": 0.1' in line
    assert examine(certificate, LOAN.with_name("loan_012.json"), 600).line.startswith("REJECTED")

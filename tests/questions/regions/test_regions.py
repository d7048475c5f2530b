"""Regions by the doors: the table, the command, the certificate, and what is refused in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from gzip import decompress

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from milp_recourse import Recourse, solve
from milp_recourse.cli import main
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.formats import read_instance
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.formats.strict_json import write_json
from milp_recourse.judge import judge
from milp_recourse.problem.options import Clock
from milp_recourse.questions.regions import region
from milp_recourse.questions.regions.around import _proof
from milp_recourse.questions.regions.growing import Growing, Side
from milp_recourse.tables.question_tables import shortest
from tests.formats.test_schemas import validator
from tests.properties.regions import forgeries, points, verdict
from verify.__main__ import examine

LOAN = instances_path() / "loan" / "loan_011.json"


def lender(seed: int = 0):
    """Numbers, a label and a model of each kind, with people whom it refuses."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"income": rng.uniform(0, 10, 300).round(3), "debt": rng.uniform(0, 10, 300).round(3)})
    y = X["income"] - X["debt"] > 1.5
    people = pd.DataFrame({"income": [2.0, 1.0], "debt": [6.0, 5.0]}, index=["ann", "ben"])
    return X, y, people


def test_the_table_keeps_what_it_shows(tmp_path) -> None:
    """predict accepts every shown corner; the certificate is verified with the population's file."""
    X, y, people = lender()
    for model in (
        RandomForestClassifier(9, max_depth=4, random_state=0),
        make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=3000, random_state=0)),
    ):
        answers = Recourse(model.fit(X, y), X).certify(people)
        file, problem = tmp_path / "region.json.gz", tmp_path / "people.json"
        table = answers.regions("ben", certificate=file)
        assert table.attrs["proven"] and table.attrs["message"] is None
        validator("regions-1").validate(table.attrs["document"])
        rows = pd.concat([people.loc[["ben"]]] * 4, ignore_index=True)
        for k, (low, high) in enumerate(zip(table["shown_low"], table["shown_high"], strict=True)):
            rows[table["feature"].iloc[k]] = [low, high, *((low, high) if k else (high, low))]
        assert model.predict(rows).all()
        said = answers.changes.loc[["ben"]].set_index("feature")["shown"]
        for _, row in table.iterrows():
            assert row["low"] <= row["shown_low"] <= said[row["feature"]] <= row["shown_high"] <= row["high"]
        write_json(answers.population(), problem)
        outcome = examine(file, problem)
        assert outcome.claim == "region" and "index=1" in outcome.line
        validator("region-certificate-1").validate(json.loads(decompress(file.read_bytes())))


def test_effects_follow_every_point() -> None:
    """In the Loan model effects follow; the network accepts them all, exactly and as deployed."""
    instance = read_instance(LOAN)
    found = region(instance)
    assert found.proven and set(found.box.ends) == {"amount", "duration", "income", "savings"}
    rows = points(found, 50, np.random.default_rng(0))
    names = [f.name for f in instance.features]
    for row in rows.tolist():
        action = {n: v for n, v in zip(names, row, strict=True) if n in found.action}
        judgement = judge(instance, action)
        assert judgement.accepted_exact and judgement.accepted_deployed
    refused = {side: point for side, point in found.growth.held.items() if point is not None}
    assert refused and all(not judge(instance, point).accepted_exact for point in refused.values())


def test_trees_inside_a_causal_model_have_boxes_too() -> None:
    """Splits on an effect hold an end of its cause."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": rng.uniform(0, 10, 300)})
    X["savings"] = 2 * X["income"] + rng.normal(0, 1, 300)
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X, X["savings"] > 12)
    scm = {"name": "explicit", "mechanisms": {"savings": {"equation": {"product": [2.0, "income"]}}}}
    answers = Recourse(model, X, scm=scm, immutable=["savings"]).certify(
        pd.DataFrame({"income": [3.0], "savings": [5.5]})
    )
    table = answers.regions(0)
    assert table.attrs["proven"] and list(table["held_low"]) == ["refused"]
    low, high = table["low"].iloc[0], table["high"].iloc[0]
    incomes = np.linspace(low, high, 50)
    assert model.predict(pd.DataFrame({"income": incomes, "savings": 5.5 + 2 * (incomes - 3.0)})).all()


def test_forged_certificates_are_rejected() -> None:
    """Boxes that are too large, proofs of others and proofs with parts left out."""
    instance, other = read_instance(LOAN), read_instance(LOAN.with_name("loan_012.json"))
    found, theirs = (region(one) for one in (instance, other))
    own, others = (json.loads(decompress(one.evidence or b"")) for one in (found, theirs))
    assert verdict(own, instance).startswith("VERIFIED region")
    tried = dict(forgeries(found, own, others))
    assert len(tried) >= 7
    lines = {what: verdict(certificate, instance) for what, certificate in tried.items()}
    assert {what: line for what, line in lines.items() if not line.startswith("REJECTED")} == {}


def test_the_command(tmp_path, capsys) -> None:
    """It prints a line per lever, and verify accepts what it writes."""
    proof, document = tmp_path / "c.json", tmp_path / "o.json"
    assert main(["regions", str(LOAN), "--certificate", str(proof), "--json", str(document)]) == 0
    assert "income: 1.567" in capsys.readouterr().out
    assert examine(proof, LOAN).claim == "region"
    written = json.loads(document.read_text())
    validator("regions-1").validate(written)
    assert written["certificate"] == str(proof)
    assert main(["regions", str(LOAN.with_name("loan_101.json"))]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_time_limit_leaves_a_smaller_proven_box_or_says_so() -> None:
    """What is not finished is not called maximal."""
    found = region(read_instance(LOAN), time_limit=1e-3)
    assert found.message is not None
    assert found.evidence is None or found.proven


def test_who_has_no_box() -> None:
    """Nobody by that name, a refused action, a model that is asked; and who is accepted as they are."""
    X, y, people = lender()
    model = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, y)
    rich = pd.DataFrame({"income": [9.0], "debt": [1.0]}, index=["eve"])
    answers = Recourse(model, X).certify(pd.concat([people, rich]))
    assert answers.regions("eve").empty
    with pytest.raises(BadInput, match="person"):
        answers.regions("nobody")
    instance = read_instance(LOAN)
    with pytest.raises(BadInput, match="action"):
        region(instance, dict(solve(instance).action or {}) | {"income": -8.0, "amount": 8.0})
    steps = {"income": 1.0, "debt": 1.0}
    asked = Recourse(model.predict, X, desired=True, steps=steps).certify(people, backend="ask")
    with pytest.raises(Unsupported, match="read"):
        asked.regions("ann")


def test_a_corner_that_the_model_itself_refuses_takes_the_proof_away() -> None:
    """The table says which corner."""
    X, y, people = lender()
    answers = Recourse(RandomForestClassifier(9, max_depth=4, random_state=0).fit(X, y), X).certify(people)
    table = replace(answers, accepts=lambda rows: [False] * len(rows)).regions("ann")
    assert not table.attrs["proven"] and "the model itself refuses" in table.attrs["message"]


@pytest.mark.parametrize(
    ("ends", "said", "short"),
    [
        ((0.534816, 0.561839), 0.536, (0.535, 0.5618)),
        ((0.09047276, 0.9), 0.0905, (0.0905, 0.9)),
        ((2.0, 2.0), 2.0, (2.0, 2.0)),
        ((-3.14159, 3.14159), 0.0, (-3.1, 3.1)),
    ],
)
def test_shown_ends_are_short_and_inside(ends, said, short) -> None:
    """Rounded inward by at most 1% of the width, and not past the value to say."""
    assert shortest(*ends, said) == short


def test_an_end_that_reaches_a_hair_too_far_is_drawn_in() -> None:
    """The proof is then about a box that ends just short of what is refused, and the point is kept."""
    instance = read_instance(LOAN)
    result = solve(instance)
    growing = Growing(instance, instance.numbers(result.action or {}), None, Clock())
    growth = growing.run()
    side: Side = ("savings", "low")
    point = growth.held[side]
    assert point is not None
    growth.box = growth.box.moved(side, point["savings"])
    assert _proof(growing, Clock()) is not None
    assert point["savings"] < growth.box.ends["savings"][0] and growth.held[side] is not None


def test_without_a_margin_corners_are_asked_as_deployed() -> None:
    """Without a margin, rounding decides at the edge: a float32 network refused corners of proven boxes, of
    others on other processors. Where no corner is refused, the words say what the box is about."""
    proven = set()
    for k in range(12):
        instance = read_instance(LOAN.with_name(f"loan_{k:03d}.json"))
        instance = replace(instance, accept=replace(instance.accept, margin=0.0))
        found = region(instance)
        proven.add(found.proven)
        assert all(judge(instance, corner).accepted_deployed for corner in found.box.corners())
        if found.proven:
            assert found.lines()[0].startswith("in exact arithmetic")
        else:
            assert "set a margin" in (found.message or "")
    assert proven == {True, False}

"""Shared costs: the command, a certificate under an offer, tables, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from milp_recourse import Recourse
from milp_recourse.cli.app import main
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.formats import read_instance, read_population
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.formats.schema_answers import ShareModel
from milp_recourse.formats.stated import validate
from milp_recourse.questions import share as module
from milp_recourse.questions.offers import read_offers
from milp_recourse.questions.share import selection, share
from tests.properties.joint_plans import check
from verify.files.check import examine

LOAN = instances_path() / "loan" / "loan_007.json"
OFFERS = [
    {"name": "threshold", "price": 0.1, "lower": 1.0},
    {"name": "grant", "price": 0.1, "give": {"income": 0.5}},
    {"name": "course", "price": 0.3, "cheaper": {"income": 0.5, "savings": 0.25}},
]


@pytest.mark.parametrize("seed", [0, 1])
def test_enumeration_and_milp_agree(seed: int) -> None:
    """Two of the cases of the repeated check."""
    counts, wrong = check(seed)
    assert wrong == [] and counts["helped"]


def test_the_command_and_a_certificate_under_each_offer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The problems under offers are ordinary: certificates are verified against them."""
    offers = tmp_path / "offers.json"
    offers.write_text(json.dumps({"format": "milp-recourse/offers-1", "offers": OFFERS}))
    asked = ["share", str(LOAN), str(offers), "--weight", "0", "--out", str(tmp_path / "out")]
    assert main([*asked, "--json", str(tmp_path / "share.json")]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("proven: served=1 served_at_most=1")
    answer = validate(ShareModel, json.loads((tmp_path / "share.json").read_text()))
    [person] = answer.people
    assert len(person.points) == 4 and min(p.cost for p in person.points) == person.points[person.chosen].cost
    for k, point in list(enumerate(person.points))[1:3]:
        problem = tmp_path / "out" / f"offer_{k}.json"
        certificate = tmp_path / "certificate.json"
        main(["solve", str(problem), "--index", "0", "--certificate", str(certificate)])
        verdict = examine(certificate, problem)
        assert verdict.line.startswith("VERIFIED optimal"), verdict.line
        assert f"cost={point.cost!r}"[:12] in verdict.line


def test_raised_features_move_their_effects_and_not_what_is_plausible() -> None:
    """A grant starts the person at do(income := income + 0.5); the outcome is as dense as asked before."""
    instance = read_instance(LOAN)
    listed = read_offers([OFFERS[1] | {"give": {"income": 4.0}}], instance)
    assert read_offers(listed, instance) == listed  # the command reads its file once
    grant = listed[1].applied(instance)
    assert grant is not None
    after = instance.scm.counterfactual_exact(instance.factual, {"income": instance.factual["income"] + 4.0})
    assert all(grant.factual[name] == x.nearest for name, x in after.items())
    assert grant.factual["savings"] != instance.factual["savings"]
    noise = {
        name: instance.scm.mechanisms[name].noise.sd ** -2 / 2  # type: ignore[union-attr]
        for name in ("income",)
    }
    before = (
        instance.factual["income"]
        - (-4 + 0.1 * (instance.factual["age"] + 35))
        - (2 * instance.factual["gender"] + instance.factual["gender"] * instance.factual["education"])
    )
    gain = noise["income"] * (before**2 - (before + 4.0) ** 2)
    assert grant.offset == pytest.approx(-gain, abs=1e-9)


def test_tables() -> None:
    """Columns, the unit of the margin, and a row per person."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 2)), columns=["one", 2])
    model = LogisticRegression().fit(X.to_numpy(), X["one"] + X[2] > 0.5)
    people = X[model.predict(X.to_numpy()) == 0].head(6)
    answers = Recourse(model, X, predict=lambda f: model.predict(f.to_numpy())).certify(people)
    offers = [{"price": 1, "lower": 1.0, "times": 3}, {"price": 1, "give": {2: 1.0}}]
    table = answers.share(offers, budget=4, most_cost=0.25)
    assert list(table.index) == list(people.index)
    assert table["price"].sum() <= 4 and (table["cost"][table["served"]] <= 0.25).all()
    assert table["served"].sum() > (answers.table["cost"] <= 0.25).sum()
    assert table.attrs["document"]["served"] == table["served"].sum()
    with pytest.raises(BadInput, match="give"):
        answers.share([{"price": 1, "give": {"three": 1}}])


@pytest.mark.parametrize(
    ("offer", "words"),
    [
        ({"price": -1}, "offers.0.price: got -1"),
        ({"price": 1, "give": {"salary": 1}}, "offers.0.give: got salary"),
        ({"price": 1, "cheaper": {"age": 0.5}}, "offers.0.cheaper: got age"),
        ({"price": 1, "cheaper": {"income": 0}}, "offers.0.cheaper.income: got 0"),
        ({"price": 1, "cheaper": {"income": 0.5}, "times": 2}, "offers.0.times: got 2"),
        ({"price": 1, "raise": 1}, "offers.0.raise"),
    ],
)
def test_offers_that_are_refused(offer: dict[str, Any], words: str) -> None:
    """In one line that names the place."""
    with pytest.raises(BadInput, match=words.replace(".", r"\.")):
        read_offers([offer], read_instance(LOAN))


@pytest.mark.parametrize("given", [5, "[1]", {"offers": []}, [3], [{"price": 1e200}], []])
def test_documents_that_are_no_offers(given: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file and a Python value are refused alike; nothing is written."""
    if not isinstance(given, str):
        with pytest.raises(BadInput):
            read_offers(given, read_instance(LOAN))
    file, out = tmp_path / "offers.json", tmp_path / "out.json"
    file.write_text(given if isinstance(given, str) else json.dumps(given))
    assert main(["share", str(LOAN), str(file), "--json", str(out)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "offers.json" in error and not out.exists()


def test_numbers_that_are_refused() -> None:
    """Budgets are numbers; prices need a common unit."""
    people = instances_path() / "loan_smooth" / "population.json"
    with pytest.raises(BadInput, match="budget: got -1"):
        share(read_population(people)[:1], OFFERS, budget=-1)


def test_prices_without_a_common_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    """More sums than can be kept are refused, and not cut off."""
    monkeypatch.setattr(module, "MOST_STATES", 50)
    prices = [Fraction(1, 997 + i) for i in range(12)]
    ways = [{0: (price, 2 - 100 * price), 1: (Fraction(0), Fraction(2))} for price in prices]
    with pytest.raises(Unsupported, match="multiples of one unit"):
        selection(ways, Fraction(6, 1000))


def test_what_is_open_is_said() -> None:
    """A search that proves nothing leaves the choice unproven, and its bound below."""
    people = read_population(instances_path() / "loan_smooth" / "population.json")[:2]
    found = share(people, OFFERS[:1], budget=1, backend="grid")
    assert not found.proven and found.served_at_most == 2
    assert found.lower_bound is None or found.lower_bound <= found.objective

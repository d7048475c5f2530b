"""Joint plans of a table's people: what the model's own prediction says of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from milp_recourse import Recourse
from milp_recourse.formats.schema_answers import ShareModel
from milp_recourse.formats.stated import validate
from milp_recourse.tables.answers import Answers

X = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 3)), columns=["a", "b", "fixed"]).round(2)
MODEL = LogisticRegression().fit(X, X.sum(axis=1) > 0.5)
REFUSED = X[~MODEL.predict(X)].head(12)
OFFERS = [
    {"name": "lower", "price": 0.1, "lower": 0.5, "times": 2},
    {"name": "gift", "price": 0.05, "give": {"fixed": 0.75}, "times": 3},
    {"name": "course", "price": 0.05, "cheaper": {"a": 0.5}},
]


def asked(predict: Callable[[pd.DataFrame], Any] | None = None) -> Answers:
    """Answers for the refused people; a prediction of the caller's instead of the model's."""
    return Recourse(MODEL, X, immutable=["fixed"], predict=predict).certify(REFUSED)


def test_each_plan_is_confirmed_by_the_row_that_it_leads_to() -> None:
    """The gift and then the action; with a lowered threshold the prediction is another rule."""
    answers, offers_seen, nothing_to_do = asked(), set(), 0
    for offer in [None, *OFFERS]:
        table = answers.share([offer or OFFERS[1] | {"price": 100}], budget=None if offer is None else 100)
        for person, plan in table.iterrows():
            lowered = "lower" in (plan["offer"] or "")
            assert plan["status"] == "optimal" and plan["confirmed"] is (pd.NA if lowered else True)
            row = REFUSED.loc[[person]].assign(**plan["action"])
            if "gift" in (plan["offer"] or ""):
                row["fixed"] += 0.75 * int(plan["offer"][-1])
                nothing_to_do += plan["action"] == {}
            assert lowered or MODEL.predict(row)[0]
            offers_seen.add((plan["offer"] or "none")[:4])
        assert table.attrs["document"]["proven"]
    assert offers_seen == {"none", "lowe", "gift", "cour"} and nothing_to_do


def test_a_plan_that_the_model_refuses_is_not_called_optimal() -> None:
    """A prediction that refuses every row but those of X: actions and gifts lead to others."""
    known = set(map(tuple, X.to_numpy()))
    answers = asked(lambda rows: MODEL.predict(rows) & [tuple(row) in known for row in rows.to_numpy()])
    table = answers.share(OFFERS[:1], budget=0.5)  # enough for some
    lowered = table["offer"].notna()
    assert 0 < lowered.sum() < len(table)
    assert (table["status"][lowered] == "optimal").all() and table["confirmed"][lowered].isna().all()
    given = answers.share(OFFERS[1:], budget=100)
    assert set(given["offer"]) >= {"course", "gift x3"}
    for plans in (table[~lowered], given):
        assert (plans["status"] == "limit").all() and plans["confirmed"].eq(False).all()
        assert (plans["lower_bound"] == 0).all()
    for document in (table.attrs["document"], given.attrs["document"]):
        validate(ShareModel, document)
        assert not document["proven"]
    assert given.attrs["document"]["lower_bound"] == 0


def test_a_prediction_of_another_model_proves_no_plan() -> None:
    """Nor one with a lowered threshold, which belongs to the model that was read."""
    table = asked(lambda rows: ~MODEL.predict(rows)).share([OFFERS[0] | {"price": 0}], budget=0)
    assert table["offer"].notna().all()
    assert (table["status"] == "limit").all() and table["confirmed"].isna().all()

"""Lines that say which columns move together: what they mean, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingClassifier

from milp_recourse import Recourse
from milp_recourse.errors import BadInput
from milp_recourse.problem.expression import Constant, Product, Variable
from milp_recourse.problem.scm import Mechanism, StructuralCausalModel

CLOCK = "age moves with months by 1 per 12"


@pytest.fixture(scope="module")
def lender():
    """A lender who looks at age, months and income, and the table it was fitted on."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.integers(18, 70, 400), "months": rng.integers(0, 120, 400)})
    X["income"] = rng.normal(40, 12, 400).round(1)
    y = X["income"] + X["months"] / 6 + X["age"] > 85
    model = GradientBoostingClassifier(n_estimators=15, random_state=0).fit(X, y)
    return model, X, X[~model.predict(X)].head(3)


def test_who_waits_grows_older_and_pays_for_the_clock_alone(lender):
    """Age follows the months exactly, at no cost of its own, and the proof covers it."""
    model, X, people = lender
    fixed = {"increase": ["months"], "immutable": ["income"], "desired": True}
    answers = Recourse(model, X, conditions=[CLOCK], **fixed).certify(people, certificates=True)
    alone = Recourse(model, X, **(fixed | {"immutable": ["age", "income"]})).certify(people)
    moved = False
    for row, (before, after) in enumerate(
        zip(people.itertuples(), answers.counterfactuals.itertuples(), strict=True)
    ):
        waited = after.months - before.months
        moved |= waited > 0
        assert after.age == pytest.approx(before.age + waited / 12, abs=1e-12)
        result = answers.results[row]
        if result.action:
            assert set(result.action) == {"months"}
            assert result.cost == pytest.approx(waited / 119, rel=1e-6)
        if alone.results[row].cost is not None and result.cost is not None:
            assert result.cost <= alone.results[row].cost * (1 + 1e-5)
    assert moved
    assert "VERIFIED 3 of 3" in str(answers.verify())


@pytest.mark.parametrize(
    "scm",
    [
        {"name": "explicit", "mechanisms": {"months": {"equation": {"product": [0.5, "income"]}}}},
        StructuralCausalModel(
            ("income", "months"), {"months": Mechanism(Product((Constant(0.5), Variable("income"))))}
        ),
    ],
)
def test_a_causal_model_is_completed(lender, scm):
    """What moves as an effect moves what moves with it."""
    model, X, people = lender
    recourse = Recourse(model, X, True, immutable=["months"], kinds={"months": "continuous"}, scm=scm,
                        conditions=[CLOCK])  # fmt: skip
    after = recourse.certify(people.head(1)).counterfactuals.iloc[0]
    before = people.iloc[0]
    assert after.age - before.age == pytest.approx((after.income - before.income) / 24)


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("agee moves with months", "did you mean age?"),
        ("age moves with age", "one other column"),
        ("age moves with months by", "A moves with B"),
        ("age moves with months by 1 per 0", "A moves with B"),
        ("age moves with months by 0", "A moves with B"),
        ("age moves with months and income", "A moves with B"),
    ],
)
def test_other_lines_are_refused_in_one_line(lender, line, allowed):
    """The message names the line and what is allowed."""
    model, X, _ = lender
    with pytest.raises(BadInput, match=r"^conditions\.0: ") as refused:
        Recourse(model, X, True, conditions=[line])
    assert allowed in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_column_moves_with_one_other(lender):
    """Two lines about one column, a causal model that has it, and one person's line are refused."""
    model, X, people = lender
    with pytest.raises(BadInput, match="one other column"):
        Recourse(model, X, True, conditions=[CLOCK, "age moves with income"])
    with pytest.raises(BadInput, match="explicit causal model"):
        Recourse(model, X, True, scm={"name": "independent"}, conditions=[CLOCK])
    with pytest.raises(BadInput, match="conditions of everybody"):
        Recourse(model, X, True).certify(people.head(1), preferences=[{"conditions": [CLOCK]}])

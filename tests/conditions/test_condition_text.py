"""Conditions as readable lines: what is printed is read back as the same condition."""

from __future__ import annotations

import pytest

from milp_recourse.errors import BadInput
from milp_recourse.problem.conditions import (
    Acted,
    AllOf,
    AnyOf,
    AtMostActions,
    IfThen,
    LabelIn,
    Not,
    Row,
    Sum,
    condition_from_text,
    condition_text,
    meaning,
)
from milp_recourse.problem.features import Feature
from tests.helpers.generators import Style, supported_instance
from tests.helpers.random_conditions import random_conditions, with_conditions

KIND = ("mixed", "product")

FEATURES = {
    f.name: f
    for f in (
        *(
            Feature(name, "continuous", True, (0.0, 10.0))
            for name in ("amount", "income", "savings", "duration")
        ),
        Feature("job", "categorical", True, categories=("clerk", "self-employed", "boss")),
        Feature("school", "ordinal", True, categories=("none", "some", "high")),
        Feature("change of plan", "binary", True, (0.0, 1.0)),
    )
}


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("at most 2 actions", AtMostActions(2)),
        ("amount <= 5 * income", Sum((("amount", 1.0), ("income", -5.0)), "counterfactual", None, 0.0)),
        (
            "if savings rises then duration does not fall",
            IfThen(
                Not(Sum((("savings", 1.0),), "change", None, 0.0)),
                Sum((("duration", 1.0),), "change", 0.0, None),
            ),
        ),
        ("income change at most +20%", Sum((("income", 1.0),), "relative-change", None, 0.2)),
        ("income change at least -12.5%", Sum((("income", 1.0),), "relative-change", -0.125, None)),
        ("2 <= income <= 3.5", Sum((("income", 1.0),), "counterfactual", 2.0, 3.5)),
        ("income before >= 3", Sum((("income", 1.0),), "factual", 3.0, None)),
        ("school >= some", Sum((("school", 1.0),), "counterfactual", 1.0, None)),
        ("amount * income <= 2000", Sum(((("amount", "income"), 1.0),), "counterfactual", None, 2000.0)),
        ("3 * amount * income change at least 1", Sum(((("amount", "income"), 3.0),), "change", 1.0, None)),
        ("amount * savings rises", Not(Sum(((("amount", "savings"), 1.0),), "change", None, 0.0))),
        (
            "amount * amount >= income",
            Sum(((("amount", "amount"), 1.0), ("income", -1.0)), "counterfactual", 0.0, None),
        ),
        ("job is not clerk", Not(LabelIn("job", "counterfactual", (0,)))),
        ('job in {"self-employed", boss}', LabelIn("job", "counterfactual", (1, 2))),
        ('"change of plan" is acted on', Acted("change of plan")),
        ("savings is not acted on", Not(Acted("savings"))),
    ],
)
def test_lines_mean_what_they_say_and_are_printed_so(text, condition):
    """The examples of the issue among them."""
    assert condition_from_text(text, FEATURES) == condition
    assert condition_text(condition, FEATURES) == text


def test_every_random_condition_is_read_back():
    """Nested, labelled, with sums of all views: print and read are inverse."""
    for seed in range(300):
        instance = supported_instance(seed % 60, Style(plausible=0.0))
        features = {f.name: f for f in instance.features}
        for condition in with_conditions(
            instance, random_conditions(seed, instance, KIND[seed % 2])
        ).conditions:
            text = condition_text(condition, features)
            again = condition_from_text(text, features)

            demands = [meaning(one, features, instance.factual) for one in (again, condition)]
            assert _unordered(demands[0]) == _unordered(demands[1]), text


def _unordered(demand):
    """A demand with the terms of its sums, and the parts of its lists, as sets."""
    if isinstance(demand, AllOf | AnyOf):
        return type(demand), frozenset(map(_unordered, demand.parts))
    return (frozenset(demand.terms), demand.at_least) if isinstance(demand, Row) else demand


@pytest.mark.parametrize(
    "text",
    [
        *("", "at most two actions", "pay >= 3", "job >= clerk", "income >=", "income > 3", "income 3"),
        *("(income >= 3", "job is butcher", "income + savings before <= 3", "income <= 3%"),
        *(
            "1 <= income <= savings",
            "if income rises",
            "job rises",
            "job does not fall",
            "job does not change",
        ),
    ],
)
def test_what_is_no_condition_is_refused_in_one_line(text):
    """With the text, and what was expected where."""
    with pytest.raises(BadInput) as error:
        condition_from_text(text, FEATURES, "conditions.0")
    assert str(error.value).startswith("conditions.0: got") and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("income < 3", "<= (a limit that cannot be reached has no cheapest action)"),
        ("income > 3", ">= (a limit that cannot be reached has no cheapest action)"),
        ("amount / income <= 3", "not A / B <= 5"),
        ("job != clerk", "NAME is not LABEL"),
        ("job rises", "a feature with numbers or order where it says 'job'"),
    ],
)
def test_signs_of_other_languages_and_labels_that_rise_are_told_what_to_write(text, instead):
    """A categorical label has no order that an index could lend it."""
    with pytest.raises(BadInput) as error:
        condition_from_text(text, FEATURES)
    assert instead in error.value.allowed
    assert condition_from_text("school rises", FEATURES) == Not(Sum((("school", 1.0),), "change", None, 0.0))


JOINED = FEATURES | {
    "hours-per-week": Feature("hours-per-week", "integer", True, (1.0, 99.0)),
    "income-tax": Feature("income-tax", "continuous", True, (0.0, 9.0)),
    "tax": Feature("tax", "continuous", True, (0.0, 9.0)),
    "work": Feature("work", "categorical", True, categories=("State-gov", "Self-emp", "Self-emp-inc")),
}


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("hours-per-week change at most 5", '"hours-per-week" change at most 5'),
        ("hours-per-week <= 2*hours-per-week before - 5", None),
        ("2 * hours-per-week - income >= 3", '2 * "hours-per-week" - income >= 3'),
        ("work is Self-emp-inc or work is not Self-emp", 'work is "Self-emp-inc" or work is not "Self-emp"'),
        ("work in {State-gov, Self-emp}", 'work in {"State-gov", "Self-emp"}'),
        ("income-tax <= 3", "income - tax <= 3"),
        ("hours-per <= 3", None),
        ("hours-per-weekend <= 3", None),
    ],
)
def test_names_with_hyphens_need_no_quotes(text, condition):
    """Unless the text is a sum of other features already; half a name, or more than one, is none."""
    if condition is None:
        with pytest.raises(BadInput):
            condition_from_text(text, JOINED)
    else:
        assert condition_from_text(text, JOINED) == condition_from_text(condition, JOINED)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("amout <= 3", "(did you mean amount?)"),
        ("job is clrk", "(did you mean clerk?)"),
        ("income <= 3000 EUR", "numbers are in the feature's own unit"),
        ("income change at most 20% per year", "numbers are in the feature's own unit"),
    ],
)
def test_misspelt_names_and_units_are_told_what_to_write(text, hint):
    """The nearest name; that units are not written."""
    with pytest.raises(BadInput) as error:
        condition_from_text(text, FEATURES)
    assert hint in error.value.allowed

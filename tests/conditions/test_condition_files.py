"""Conditions in files: read strictly, written back the same, and refused in one line that names the place."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from milp_recourse.certificates import instance_digest
from milp_recourse.errors import BadInput
from milp_recourse.formats import (
    instance_from_dict,
    instance_to_dict,
    population_from_dict,
    population_to_dict,
)
from tests.helpers.format_samples import loan_instance, loan_population

SAID: list[dict[str, Any]] = [
    {"at_most_actions": 2},
    {"sum": {"amount": 1, "income": -5}, "of": "counterfactual", "at_most": 0},
    {"if": {"not": {"feature": "savings", "of": "change", "at_most": 0}}, "then": {"acted": "income"}},
    {"any": [{"feature": "income", "of": "relative-change", "at_most": 0.2}, {"all": []}]},
]


def said(*conditions: Any, own: Any = None) -> dict[str, Any]:
    data = copy.deepcopy(loan_instance()) | {"conditions": list(conditions)}
    if own is not None:
        data["preferences"]["conditions"] = own
    return data


def test_what_is_read_is_written_back_and_counts_in_the_digest():
    """Everybody's conditions first, then the applicant's own; without conditions nothing changes."""
    instance = instance_from_dict(said(*SAID, own=[{"acted": "amount"}]))
    written = instance_to_dict(instance)
    assert written["conditions"][:2] == SAID[:2] and written["preferences"]["conditions"] == [
        {"acted": "amount"}
    ]
    again = instance_from_dict(written)
    assert again.all_conditions == instance.all_conditions and len(again.all_conditions) == 5
    plain = instance_from_dict(loan_instance())
    assert "conditions" not in instance_to_dict(plain)
    assert instance_digest(plain) == instance_digest(instance_from_dict(said()))


@pytest.mark.parametrize(
    ("condition", "line"),
    [
        ({"at_most_actions": -1}, "conditions.0.at_most_actions: got -1; allowed: a number at least 0"),
        ({"at_most_actions": True}, "conditions.0.at_most_actions: got true; allowed: a whole number"),
        ({"acted": "pay"}, "conditions.0.acted: got pay, an unknown feature; allowed: gender"),
        ({"feature": "income", "of": "change"}, "conditions.0: got no bound"),
        (
            {"feature": "income", "of": "growth", "at_most": 1},
            "conditions.0.of: got growth; allowed: 'factual'",
        ),
        (
            {"feature": "income", "of": "change", "in": ["a"]},
            "conditions.0.of: got change; allowed: factual or counterfactual",
        ),
        (
            {"feature": "income", "of": "counterfactual", "in": ["a"]},
            "conditions.0.in.0: got 'a'; allowed: a number",
        ),
        (
            {"feature": "income", "of": "change", "at_most": "high"},
            "conditions.0.at_most: got 'high'; allowed: a number",
        ),
        ({"sum": {}, "of": "change", "at_most": 1}, "conditions.0.sum"),
        (
            {"sum": {"income": 1}, "of": "change", "at_least": 2, "at_most": 1},
            "conditions.0: got at_least 2.0 above",
        ),
        ({"if": {"acted": "income"}}, "conditions.0.then: got nothing; allowed: this field is required"),
        ({"some": []}, "conditions.0: got the unknown operator 'some'"),
        ({"acted": "income", "of": "change"}, "conditions.0.of: got an unknown key; allowed: acted"),
        (7, "conditions.0: got 7; allowed: an object with one of the keys"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(condition, line):
    """File, field, what was got, what is allowed."""
    with pytest.raises(BadInput) as error:
        instance_from_dict(said(condition))
    assert str(error.value).startswith(line) and "\n" not in str(error.value)


def test_nesting_ends_somewhere():
    """Forty levels are read; five hundred are refused in one line."""
    deep: dict[str, Any] = {"acted": "income"}
    for _ in range(30):
        deep = {"not": deep}
    assert len(instance_from_dict(said(deep)).conditions) == 1
    for _ in range(470):
        deep = {"not": deep}
    with pytest.raises(BadInput, match="nesting"):
        instance_from_dict(said(deep))


def test_the_relative_change_of_nothing_is_that_persons_bad_input():
    """An instance is refused; of a population the one person, and the others go on."""
    condition = {"feature": "income", "of": "relative-change", "at_most": 0.2}
    data = said(condition)
    data["factual"]["income"] = 0
    with pytest.raises(
        BadInput, match="condition 0: income: got factual 0; allowed: a factual value that is not 0"
    ):
        instance_from_dict(data)
    crowd = copy.deepcopy(loan_population()) | {"conditions": [condition]}
    assert isinstance(crowd["factuals"], list)
    crowd["factuals"][0]["income"] = 0
    people = population_from_dict(crowd)
    assert list(people.unreadable) == [0] and "factuals.0: condition 0: income" in str(people.unreadable[0])
    assert people[1].conditions == people.template.conditions
    assert population_to_dict(people, {0: crowd["factuals"][0]})["conditions"] == [condition]

"""One view of an answer: the same from a result and from the document it was written as, and its words."""

import math
from dataclasses import replace

import pytest

from milp_recourse.formats import instance_from_dict, read_instance, result_to_dict
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.formats.schema_answers import ResultModel
from milp_recourse.formats.stated import validate
from milp_recourse.questions.solve import solve
from milp_recourse.reports.result_rows import cells, header
from milp_recourse.reports.view import BAD_INPUT, Person, changes_of, in_words, person_of
from tests.helpers.format_samples import tree_instance

SMOKE = instances_path() / "smoke"


@pytest.mark.parametrize("name", ["hold", "infeasible_bounds", "already_accepted", "categorical"])
def test_a_result_and_its_document_give_one_view(name: str) -> None:
    """Every field of it, and so every row."""
    instance = read_instance(SMOKE / f"{name}.json")
    result = solve(instance)
    made = person_of(result, instance, "x")
    read = person_of(validate(ResultModel, result_to_dict(result)), instance, "x")
    names = [f.name for f in instance.features]
    assert read == made and read.action == dict(result.action or {})
    assert cells(0, read, names) == cells(0, made, names)
    assert person_of(result, None, "x") == replace(made, features=[])


def test_the_message_that_repeats_the_status_is_no_note() -> None:
    """A row of results.csv has it all the same."""
    person = person_of(solve(read_instance(SMOKE / "infeasible_bounds.json")))
    assert person.message == person.sentence and person.note is None
    assert replace(person, message="why").note == "why" and Person("", BAD_INPUT).sentence is None
    assert len(cells(3, Person("", BAD_INPUT, message="a\nb"), ["f"])) == len(header(["f"]))
    assert cells(3, Person("", BAD_INPUT, message="a\nb"), [])[-1] == "a b"


def test_words_keep_the_actions_order_and_say_what_is_missing() -> None:
    """What is held is held; numbers that look alike get all of their digits; an unknown name is refused."""
    instance = instance_from_dict(tree_instance())
    income, cards = instance.factual["income"], int(instance.factual["cards"])
    action = {"cards": cards, "income": income + 1e-9}
    words = f"hold cards at {cards}; income from {income:.6g} to {income + 1e-9:.17g}"
    assert in_words(changes_of(instance, action)) == words
    unknown = replace(instance, factual={**instance.factual, "cards": math.nan})
    assert in_words(changes_of(unknown, {"cards": 3})) == "cards from missing to 3"
    assert in_words(changes_of(instance)) == in_words(changes_of(instance, {})) == "none needed"
    with pytest.raises(KeyError):
        changes_of(instance, {"nothing": 1.0})

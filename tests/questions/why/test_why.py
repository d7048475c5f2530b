"""Answers to "why not?", applied: with each feasible at the stated cost, without any part impossible."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from itertools import combinations

import pytest

from milp_recourse import Status, solve
from milp_recourse.errors import BadInput
from milp_recourse.formats.json_schemas import FOLDER
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.population import Population
from milp_recourse.problem.scm import StructuralCausalModel
from milp_recourse.questions.why import Why, lift, restrictions, why, why_population, widen
from milp_recourse.questions.why.restrictions import minimal_sets
from milp_recourse.questions.why.widening import _span
from tests.helpers.format_samples import loan_instance
from tests.helpers.generators import Style, supported_instance
from tests.helpers.random_conditions import random_conditions, with_conditions
from tests.helpers.tree_samples import random_tree_instance


def small(**changes) -> Instance:
    """x + y + z >= 8 from zeros, each within 0 to 5; z is left alone, x stays within 0 to 2."""
    features = tuple(Feature(name, "continuous", True, (0.0, 5.0)) for name in "xyz")
    made = Instance(
        features,
        StructuralCausalModel(("x", "y", "z"), {}),
        ReluNetwork.from_layers([([[1.0, 1.0, 1.0]], [-8.0])], "float64"),
        {"x": 0.0, "y": 0.0, "z": 0.0},
        Preferences(("x", "y"), {}, {"x": (0.0, 2.0)}),
        Cost.pure("l1", dict.fromkeys("xyz", 1.0)),
    )
    return replace(made, **changes)


def close(a: float | None, b: float | None) -> bool:
    return a is not None and b is not None and abs(a - b) <= 2e-6 * abs(b) + 1e-9


def faults(instance: Instance, found: Why) -> list[str]:
    """What is wrong with an answer, by applying it."""
    wrong = []
    for one in found.minimal:
        if not close(solve(lift(instance, one.lift)).cost, one.result.cost):
            wrong.append(f"{one.lift} is not feasible at {one.result.cost}")
        for part in one.lift:
            if solve(lift(instance, set(one.lift) - {part})).status is not Status.INFEASIBLE:
                wrong.append(f"{one.lift} is not minimal: {part} is not needed")
    for one in found.smallest:
        if not close(solve(widen(instance, one.id, one.end, one.to)).cost, one.result.cost):
            wrong.append(f"{one.id} {one.end} at {one.to} is not feasible at {one.result.cost}")
        width, sign = _span(instance, one.id)[0], -1 if one.end == "low" else 1
        less = widen(instance, one.id, one.end, one.to - sign * 1e-6 * width)
        if solve(less).status is not Status.INFEASIBLE:
            wrong.append(f"{one.id} {one.end} at {one.to}: less is enough")
    for id, one in found.prices.items():
        if not close(solve(lift(instance, [id])).cost, one.cost):
            wrong.append(f"the price of {id} is not {one.cost}")
    return wrong


def test_the_small_one_by_hand():
    """7 is what x and y reach; lifting x's range, or z's mask, is enough, and x up to 3 is the least."""
    found = why(small()).to_dict()
    assert (
        found["status"] == "infeasible"
        and found["restrictions"] == ["mask:z", "range:x"]
        and found["complete"]
    )
    assert sorted(one["lift"] for one in found["minimal"]) == [["mask:z"], ["range:x"]]
    assert [one["cost"] for one in found["minimal"]] == pytest.approx([8.0, 8.0])
    [least] = found["smallest"]
    assert (least["id"], least["end"], least["from"]) == ("range:x", "high", 2.0)
    assert 3.0 <= least["to"] <= 3.0 + 5e-6 and least["cost"] == pytest.approx(8.0)
    assert list(least) == ["id", "end", "from", "to", "cost", "lower_bound"] and found["prices"] == {}


def test_what_each_restriction_costs_by_hand():
    """With x within 0 to 2.5 in a dearer direction: the optimum, and what lifting saves."""
    instance = small(
        preferences=Preferences(("x", "y", "z"), {"z": 3.0}, {"x": (0.0, 2.0)}),
    )
    found = why(instance).to_dict()
    assert found["status"] == "optimal" and found["cost"] == pytest.approx(2 + 5 + 3)
    assert found["prices"] == {"range:x": pytest.approx(8.0)} and found["minimal"] == found["smallest"] == []


@pytest.mark.parametrize("trees", [False, True])
def test_every_answer_is_checked_by_applying_it(trees):
    """Networks with causes and plausibility, and ensembles, under random conditions."""
    sets = 0
    for seed in range(15):
        plain = random_tree_instance(seed) if trees else supported_instance(seed, Style(plausible=0.2))
        instance = with_conditions(plain, random_conditions(seed, plain, "mixed"))
        found = why(instance)
        assert found.complete
        sets += len(found.minimal) + len(found.smallest)
        assert faults(instance, found) == [], seed
        _as_the_schema_says(found.to_dict())
    assert sets >= 2


def test_all_minimal_sets_are_found():
    """Against trying every set, for random monotone families."""
    ids = ["a", "b", "c", "d", "e"]
    families = [[], [{"a"}], [{"a", "b"}, {"c"}, {"d", "e"}], [set(p) for p in combinations(ids, 3)], [set()]]
    for family in families:
        asked = []

        def suffices(some, family=family, asked=asked):
            asked.append(some)
            return any(one <= some for one in family)

        found, settled = minimal_sets(ids, suffices)
        assert settled and sorted(map(sorted, found)) == sorted(map(sorted, family))
        assert len(asked) == len(set(asked)), "no set is asked about twice"


def test_what_stays_open_is_said():
    """A set that is not decided makes the answer incomplete, and is not passed off as insufficient."""
    found, settled = minimal_sets("ab", lambda s: True if s == {"a", "b"} else None if s == {"a"} else False)
    assert found == [] and not settled, "whether a alone is enough is open, so a and b may not be minimal"
    answers = {"abc": True, "ab": True, "c": True, "a": False, "b": None}
    found, settled = minimal_sets("abc", lambda s: answers.get("".join(sorted(s)), "c" in s))
    assert found == [{"c"}] and not settled
    assert why(small(), time_limit=1e-6).complete in (False, True)  # settled by bounds alone, or not at all


def test_lifting_a_mask_needs_a_price_and_bounds_stay():
    """A feature without a scale cannot be priced; an unknown id is one line."""
    assert restrictions(small(cost=Cost.pure("l1", {"x": 1.0, "y": 1.0}))) == ["range:x"]
    assert lift(small(), ["mask:z", "range:x"]).levers == dict.fromkeys("xyz", (0.0, 5.0))
    with pytest.raises(BadInput, match="lift: got bounds:x; allowed: mask:z, range:x"):
        lift(small(), ["bounds:x"])


def test_the_command_writes_the_document(tmp_path):
    """Table on the terminal, JSON where asked for."""
    data = loan_instance() | {"conditions": [{"at_most_actions": 0}]}
    file, out = tmp_path / "me.json", tmp_path / "why.json"
    file.write_text(json.dumps(data))
    done = subprocess.run(
        [sys.executable, "-m", "milp_recourse", "why", str(file), "--json", str(out)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(out.read_text())
    assert found["status"] == "infeasible" and ["condition:0"] in [one["lift"] for one in found["minimal"]]
    assert "condition:0" in found["restrictions"] and "range:income" in found["restrictions"]
    assert "at most 0 actions" in done.stdout
    _as_the_schema_says(found)


def _as_the_schema_says(document):
    from jsonschema import Draft202012Validator

    Draft202012Validator(json.loads((FOLDER / "why-1.schema.json").read_text())).validate(document)


def test_everybody_of_a_population_is_asked_together():
    """The same minimal sets as one by one, and a count of whose way a restriction stands in."""
    population = population_of([small(), small(factual={"x": 1.0, "y": 4.0, "z": 0.0}), beyond()])
    found = why_population(population)
    assert found.statuses == {"infeasible": 3} and found.complete and found.beyond_help == 0
    for k, one in found.people.items():
        assert {w.lift for w in one.minimal} == {w.lift for w in why(population[k]).minimal}
    table = {row["id"]: (row["people"], row["alone"]) for row in found.table()}
    assert table == {"mask:z": (3, 3), "range:x": (2, 2), "mask:x": (1, 1)}
    document = found.to_dict()
    assert set(document["people"]) == {"0", "1", "2"} and document["statuses"] == {"infeasible": 3}


def beyond() -> Instance:
    """Somebody who may not act on x at all: lifting its range is not what helps."""
    return small(preferences=Preferences(("y",), {}, {}))


def population_of(people: list[Instance]) -> Population:
    return Population(people[0], [one.factual for one in people], tuple(one.preferences for one in people))

"""``step`` and ``values`` in files: what they mean, what is refused, and that they are written again."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from milp_recourse.certificates import canonical_content, instance_digest
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.formats import read_instance, write_instance
from milp_recourse.judge import judge
from milp_recourse.problem.conditions import condition_from_text, condition_text
from milp_recourse.problem.features import Steps, Values
from milp_recourse.questions.robust import robust
from tests.helpers.lattices import random_problem
from verify.files.many import by_digest


def problem(**first: Any) -> dict[str, Any]:
    """A network's problem whose first feature, ``a``, has these entries."""
    made = random_problem(random.Random(3), trees=False, causes=False, conditions=False)
    a = {"name": "a", "kind": "continuous", "actionable": True, "bounds": [-3, 3]}
    made["features"][0] = a | first
    made["factual"]["a"] = 0.25
    return made


def read(given: dict[str, Any], folder: Path) -> Any:
    """The instance of a file with this content."""
    path = folder / "instance.json"
    path.write_text(json.dumps(given))
    return read_instance(path)


def test_steps_are_counted_in_decimals(tmp_path: Path) -> None:
    """0.3 is a multiple of a tenth; 3 times the double 0.1 is another double, and is not."""
    instance = read(problem(step=0.1), tmp_path)
    assert instance.by_name["a"].only == Steps(0.1)
    assert instance.levers["a"] == (-3.0, 3.0)
    assert not any("0.3" in fault for fault in judge(instance, {"a": 0.3}).faults)
    assert any("0.30000000000000004" in fault for fault in judge(instance, {"a": 3 * 0.1}).faults)
    assert not instance.may_hold("a")


def test_the_ends_of_an_interval_are_steps(tmp_path: Path) -> None:
    """Bounds are cut to what an action may set, and a lever without such a value is none."""
    assert read(problem(step={"step": 2, "from": 0.5}), tmp_path).levers["a"] == (-1.5, 2.5)
    assert read(problem(values=[1, -7, 2.5]), tmp_path).levers["a"] == (1.0, 2.5)
    assert "a" not in read(problem(values=[4.0]), tmp_path).levers


MISTAKES = {
    "both": ({"step": 1, "values": [1]}, "features.0.values", "step says"),
    "zero": ({"step": 0}, "features.0.step", "above 0"),
    "labels": (
        {"kind": "ordinal", "categories": ["x"], "bounds": None, "step": 1},
        "features.0.step",
        "values",
    ),
    "binary": ({"kind": "binary", "bounds": [0, 1], "step": 1}, "features.0.step", "values"),
    "fraction": ({"kind": "integer", "step": 0.5}, "features.0.step", "whole"),
    "too many": ({"step": 1e-6}, "features.0.step", "1000000 values"),
    "none": ({"values": []}, "features.0.values", "1"),
    "twice": ({"values": [1, 1.0]}, "features.0.values", "each value once"),
    "a label": ({"values": ["one"]}, "features.0.values.0", "no labels"),
    "half": ({"kind": "integer", "values": [0.5]}, "features.0.values.0", "whole"),
    "no label": (
        {"kind": "categorical", "categories": ["x", "y"], "bounds": None, "values": ["z"]},
        "features.0.values.0",
        "x, y",
    ),
    "unknown key": ({"step": {"step": 1, "form": 2}}, "features.0.step.form", "from"),
}


@pytest.mark.parametrize(("entries", "field", "word"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes(entries: dict[str, Any], field: str, word: str, tmp_path: Path) -> None:
    """One line names the field and what is allowed."""
    with pytest.raises(BadInput) as raised:
        read(problem(**entries), tmp_path)
    assert raised.value.field == field or field in str(raised.value)
    assert word in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("seed", range(12))
def test_round_trip_and_digest(seed: int, tmp_path: Path) -> None:
    """What is written is read as the same problem, and the checker computes the same digest."""
    given = random_problem(random.Random(seed), seed % 2 == 0, seed % 4 >= 2, seed % 3 == 0)
    instance = read(given, tmp_path)
    folder = tmp_path / "written"
    folder.mkdir()
    write_instance(instance, folder / "again.json")
    again = read_instance(folder / "again.json")
    assert canonical_content(again) == canonical_content(instance)
    assert set(by_digest(folder)) == {instance_digest(instance)} == {instance_digest(again)}


def test_the_digest_is_that_of_before_without_them(tmp_path: Path) -> None:
    """Features without steps and values have no such keys in the canonical content."""
    content = canonical_content(read(problem(), tmp_path))
    assert not {"step", "values"} & content["features"][0].keys()


def test_in_with_numbers(tmp_path: Path) -> None:
    """A numeric feature is one of some numbers: the same as text and as JSON."""
    given = problem()
    given["conditions"] = [{"feature": "a", "of": "counterfactual", "in": [2, -1.5]}]
    instance = read(given, tmp_path)
    named = {f.name: f for f in instance.features}
    [condition] = instance.conditions
    assert condition_from_text("a in {-1.5, 2}", named) == condition
    assert condition_from_text(condition_text(condition, named), named) == condition
    for value, kept in ((-1.5, True), (2.0, True), (0.0, False)):
        faults = judge(instance, {"a": value}).faults
        assert any("condition 0" in fault for fault in faults) != kept
    wrong = copy.deepcopy(given)
    wrong["conditions"][0]["in"] = ["x"]
    with pytest.raises(BadInput, match="a number"):
        read(wrong, tmp_path)


def test_what_does_not_know_them_says_so(tmp_path: Path) -> None:
    """Actions whose targets are missed are refused in one line."""
    instance = read(problem(step=0.5), tmp_path)
    with pytest.raises(Unsupported, match="a takes steps or listed values only"):
        robust(instance, missed={"a": 0.1})


def test_values_are_shown_as_given() -> None:
    """The words for a lattice in messages."""
    assert str(Steps(1.0)) == "a whole number"
    assert str(Values((12.0, 24.0))) == "one of 12, 24"

"""What is read, written and read again is the same problem."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from milp_recourse.errors import BadInput
from milp_recourse.formats import (
    instance_from_dict,
    instance_to_dict,
    population_from_dict,
    population_to_dict,
    read_any,
    read_instance,
    read_population,
    write_instance,
    write_population,
)
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.formats.write import population_digest
from milp_recourse.judge import judge
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Instance
from milp_recourse.problem.population import Population
from tests.helpers.format_samples import loan_instance, loan_population, tree_instance

SHIPPED = sorted(instances_path().glob("smoke/*.json")) + sorted(instances_path().glob("loan/loan_00*.json"))


@pytest.mark.parametrize("sample", [loan_instance, tree_instance])
def test_an_instance_survives_the_round_trip(sample):
    """Instance -> JSON -> instance -> JSON gives the same JSON."""
    written = instance_to_dict(instance_from_dict(sample()))
    assert instance_to_dict(instance_from_dict(json.loads(json.dumps(written)))) == written


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_shipped_instances_survive_the_round_trip(file):
    """So does every shipped instance, classifier files included."""
    written = instance_to_dict(read_instance(file))
    assert instance_to_dict(instance_from_dict(written)) == written


@pytest.mark.parametrize("kind", ["percentile", "percentile-max"])
def test_quantiles_survive_the_round_trip(kind):
    """Knots as they were, an ordinal's by index; a category has none and costs its weight."""
    data = tree_instance()
    data["cost"] = {
        "kind": kind,
        "quantiles": {"income": [[0, 0], [50, 0.75], [100, 1]], "degree": [[0, 0.25], [2, 1]]},
    }
    written = instance_to_dict(instance_from_dict(data))
    assert written["cost"] == data["cost"]
    assert instance_to_dict(instance_from_dict(json.loads(json.dumps(written)))) == written
    action = {"income": 75.0, "degree": 2.0, "job": 2.0}  # 0.60375 -> 0.875, 0.625 -> 1, weight 3
    parts = [0.875 - 0.60375, 0.375, 3.0]
    expected = sum(parts) if kind == "percentile" else max(parts)
    assert float(judge(instance_from_dict(written), action).cost) == pytest.approx(expected, rel=1e-12)


def test_labels_become_indices_and_defaults_are_filled_in():
    """Inside, values are numbers; weights default to 1, ordinals enter by code, categoricals one-hot."""
    instance = instance_from_dict(tree_instance())
    assert instance.factual == {"income": 40.25, "cards": 2.0, "owner": 0.0, "degree": 1.0, "job": 1.0}
    assert instance.weights == {"income": 1.0, "degree": 1.0, "job": 3.0}
    assert instance.columns == ("income", "cards", "owner", "degree", "job=none", "job=part", "job=full")
    assert instance.accept == Acceptance(0.5, strict=True)
    assert instance.levers == {"income": (10.0, 90.0), "degree": (0.0, 2.0), "job": (0.0, 2.0)}
    assert isinstance(instance.classifier, TreeEnsemble)
    assert instance.classifier.score(instance.model_rows(instance.factual_row)) == pytest.approx(0.35)


def test_the_mask_is_kept_in_feature_order():
    """The order in which the file names the actionable features does not matter."""
    data = loan_instance()
    data["preferences"]["actionable"] = ["savings", "amount", "income"]
    assert instance_from_dict(data).preferences.actionable == ("amount", "income", "savings")


@pytest.mark.parametrize("name", ["plain.json", "packed.json.gz"])
def test_files_are_written_and_read_by_name(tmp_path: Path, name: str):
    """``.gz`` means gzip, both ways; a missing folder is made; nothing else is left behind."""
    file = tmp_path / "new" / name
    instance = instance_from_dict(loan_instance())
    write_instance(instance, file)
    assert file.read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")
    assert instance_to_dict(read_instance(file)) == instance_to_dict(instance)
    assert [path.name for path in file.parent.iterdir()] == [name]


def test_a_population_survives_the_round_trip(tmp_path: Path):
    """Factuals as a list; one mask for all is written once."""
    population = population_from_dict(loan_population())
    assert len(population) == 3
    assert [one.factual["income"] for one in population] == [0.75, 1.5, 9.0]
    assert population[2].classifier is population[0].classifier
    write_population(population, tmp_path / "people.json.gz")
    again = read_population(tmp_path / "people.json.gz")
    assert population_to_dict(again) == population_to_dict(population)
    assert isinstance(population_to_dict(again)["preferences"], dict)


def test_identifiers_stand_beside_a_list_of_applicants(tmp_path: Path):
    """One each; a table has its own column."""
    data = loan_population() | {"ids": ["x", "y", "x"]}
    population = population_from_dict(data)
    assert population.ids == ("x", "y", "x") and population_to_dict(population)["ids"] == ["x", "y", "x"]
    with pytest.raises(BadInput, match="ids: got a list of 2; allowed: 3, one per applicant"):
        population_from_dict(data | {"ids": ["x", "y"]})
    with pytest.raises(BadInput, match="ids: got a list beside a CSV file; allowed: a column 'id'"):
        population_from_dict(data | {"factuals": {"csv": "people.csv"}}, tmp_path)


def test_preferences_may_differ_by_applicant():
    """A list of preferences goes with the applicants in order."""
    data = loan_population()
    data["preferences"] = [{"actionable": [name]} for name in ("amount", "income", "savings")]
    population = population_from_dict(data)
    assert [one.preferences.actionable for one in population] == [("amount",), ("income",), ("savings",)]
    assert len(population_to_dict(population)["preferences"]) == 3


def test_applicants_may_come_from_a_table(tmp_path: Path):
    """A CSV beside the population, its columns in any order."""
    data = loan_population()
    names = sorted(data["factuals"][0])
    rows = [",".join(names), *(",".join(str(one[name]) for name in names) for one in data["factuals"])]
    (tmp_path / "people.csv").write_text("\n".join(rows) + "\n")
    expected = population_from_dict(data).factuals
    data["factuals"] = {"csv": "people.csv"}
    (tmp_path / "population.json").write_text(json.dumps(data))
    assert read_population(tmp_path / "population.json").factuals == expected


def test_read_any_goes_by_the_format(tmp_path: Path):
    """One reader for both formats; the particular readers refuse the other."""
    for name, data in (("one.json", loan_instance()), ("many.json", loan_population())):
        (tmp_path / name).write_text(json.dumps(data))
    assert isinstance(read_any(tmp_path / "one.json"), Instance)
    assert isinstance(read_any(tmp_path / "many.json"), Population)
    with pytest.raises(BadInput, match="format: got milp-recourse/instance-1; allowed: milp-recourse/pop"):
        read_population(tmp_path / "one.json")


def test_numbers_denote_the_nearest_double(tmp_path: Path):
    """More digits than a double holds, whole numbers beyond 2^53, and underflow to 0."""
    data = loan_instance()
    data["classifier"]["dtype"] = "float64"
    text = json.dumps(data).replace("0.75", "0.75000000000000000000001").replace("-3.0", "9007199254740993")
    file = tmp_path / "digits.json.gz"
    file.write_bytes(gzip.compress(text.replace("3.5", "1e-400").encode()))
    factual = read_instance(file).factual
    assert (factual["income"], factual["savings"], factual["age"]) == (0.75, 2.0**53, 0.0)


def test_an_ordinal_range_is_given_by_index():
    """Ranges and domains of ordinal features are numbers: indices of the labels."""
    data = tree_instance()
    data["preferences"]["ranges"]["degree"] = [1, 2]
    data["features"][3] |= {"domain": [0, 1], "monotone": "increase"}
    instance = instance_from_dict(data)
    assert instance.allowed("degree") == (1.0, 1.0)
    assert np.array_equal(instance.model_rows(instance.factual_row)[3:], [1, 0, 1, 0])


def test_a_person_who_cannot_be_read_holds_up_nobody(tmp_path: Path):
    """The others keep their places; the reason names the file, the row and the value; nothing is written."""
    data = loan_population()
    names = list(data["factuals"][0])
    rows = [[str(one[name]) for name in names] for one in data["factuals"]]
    rows[1][names.index("income")] = ""
    rows[2][names.index("gender")] = "0.5"
    (tmp_path / "people.csv").write_text("\n".join(",".join(row) for row in [names, *rows]) + "\n")
    data["factuals"] = {"csv": "people.csv"}
    (tmp_path / "population.json").write_text(json.dumps(data))
    population = read_population(tmp_path / "population.json")
    assert len(population) == 3 and population[0].factual["income"] == 0.75
    reasons = {k: str(reason).removeprefix(f"{tmp_path}/") for k, reason in population.unreadable.items()}
    assert reasons == {
        1: "people.csv: row 2.income: got null; allowed: a value: a network has no rule for missing values",
        2: "people.csv: row 3.gender: got 0.5; allowed: 0 or 1",
    }
    for k, reason in population.unreadable.items():
        with pytest.raises(BadInput) as caught:
            population[k]
        assert caught.value is reason
    with pytest.raises(BadInput, match=r"row 2\.income"):
        write_population(population, tmp_path / "again.json")
    digest = population_digest(population)
    table = (tmp_path / "people.csv").read_text()
    (tmp_path / "people.csv").write_text(table.replace("0.5,", "0.25,"))
    assert population_digest(read_population(tmp_path / "population.json")) != digest


def test_missing_values_of_a_population(tmp_path: Path):
    """null in a list and an empty cell say the same, where the trees have rules."""
    data = tree_instance()
    data |= {"format": "milp-recourse/population-1"}
    factual = data.pop("factual")
    data.pop("reference")
    for tree in data["classifier"]["trees"]:
        tree["missing_left"] = [True] * len(tree["left"])
    people = [factual, factual | {"income": None}, factual | {"job": None, "degree": None}]
    data["factuals"] = people
    listed = population_from_dict(data)
    assert [set(one.missing) for one in listed] == [set(), {"income"}, {"job", "degree"}]
    names = list(factual)
    lines = [names, *(["" if one[n] is None else str(one[n]) for n in names] for one in people)]
    (tmp_path / "people.csv").write_text("\n".join(",".join(line) for line in lines) + "\n")
    tabled = population_from_dict(data | {"factuals": {"csv": "people.csv"}}, tmp_path)
    assert tabled.factuals == listed.factuals
    assert population_digest(tabled) == population_digest(listed)
    assert population_to_dict(listed)["factuals"] == people

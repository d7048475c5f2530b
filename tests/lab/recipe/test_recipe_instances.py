"""The Loan recipe's files: right design, valid, and the same for the same seed."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from milp_recourse.formats import read_instance, read_population
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.formats.strict_json import read_json, write_json
from milp_recourse.judge import judge
from milp_recourse.lab.recipe.files import write_instance
from milp_recourse.lab.recipe.index import checksum_faults
from milp_recourse.lab.recipe.loan_instances import LoanSettings, applicant_design, write_loan
from milp_recourse.lab.recipe.training import Training
from milp_recourse.problem.loan import loan_as_printed
from milp_recourse.questions.solve import solve
from verify.files.check import examine

TINY = LoanSettings((600, 50, 400), Training((6, 6), 64, 10), applicants=140, points=200)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run of the recipe."""
    out = tmp_path_factory.mktemp("loan")
    write_loan(out, 0, TINY)
    return out


def test_the_design_covers_every_combination() -> None:
    """80 plain, 40 ranked, then k = 3, 2, 1, 4 with every kind of weights and plausibility."""
    designs = [applicant_design(k) for k in range(240)]
    assert designs[:80] == [(4, False, True)] * 80
    assert designs[80:120] == [(4, True, True)] * 40
    assert [k for k, *_ in designs[120:128]] == [3, 2, 1, 4] * 2
    counts = Counter(designs[120:])
    assert len(counts) == 16
    assert set(counts.values()) == {7, 8}


def test_every_file_is_a_valid_instance_that_needs_recourse(made: Path) -> None:
    """Files read back, follow the design, and the factual is refused exactly and as deployed."""
    files = sorted(made.glob("loan_*.json"))
    assert len(files) == TINY.applicants
    for index, path in enumerate(files):
        instance, content = read_instance(path), read_json(path)
        count, ranked, plausible = applicant_design(index)
        assert len(instance.preferences.actionable) == count
        assert instance.plausible == plausible
        assert content["name"] == path.stem
        assert content["description"]
        weights = sorted(instance.weights.values())
        assert weights == (
            pytest.approx(np.linspace(1, 7, max(2, count))[:count]) if ranked else [1.0] * count
        )
        judgement = judge(instance, {})
        assert not judgement.accepted_exact
        assert not judgement.accepted_deployed


def test_the_population_holds_every_refused_row(made: Path) -> None:
    """One row per refused test row, the first ones being the instances."""
    population, report = read_population(made / "population.json"), read_json(made / "report.json")
    assert len(population) == report["refused_test_rows"]
    for index in (0, 5):
        instance = read_instance(made / f"loan_{index:03d}.json")
        assert population.factuals[index] == instance.factual
    with (made / "refused.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == len(population)


def test_bounds_are_those_of_the_refused_train_rows_and_scales_follow(made: Path) -> None:
    """s_i = sqrt(4 sd_i (max_i - min_i)) with the sd of all train rows."""
    from milp_recourse.lab.recipe.loan_rows import sample_loan

    instance = read_instance(made / "loan_000.json")
    rows = sample_loan(0, TINY.sizes).train.rows
    refused = rows[[instance.classifier.deployed_logit(row) < 0 for row in rows]]
    for k, f in enumerate(instance.features):
        if f.actionable:
            assert f.bounds == (refused[:, k].min(), refused[:, k].max())
            scale = np.sqrt(4 * rows[:, k].std() * (f.bounds[1] - f.bounds[0]))
            assert instance.cost.lengths[f.name] == pytest.approx(scale, rel=1e-14)


def test_a_seed_fixes_every_byte_and_keeps_references(made: Path, tmp_path: Path) -> None:
    """Running the recipe again over its own output changes nothing, not even known answers."""
    first = made / "loan_000.json"
    reference = {"status": "optimal", "cost": 1.5, "lower_bound": 1.5}
    write_json(read_json(first) | {"reference": reference}, first)
    before = {path.name: path.read_bytes() for path in made.iterdir()}
    write_loan(made, 0, TINY)
    assert {path.name: path.read_bytes() for path in made.iterdir()} == before
    assert read_json(first)["reference"] == reference


def test_a_changed_problem_loses_its_reference(tmp_path: Path) -> None:
    """An answer to another problem is no answer."""
    path = tmp_path / "x.json"
    write_json({"factual": {"a": 1}, "reference": {"status": "infeasible"}}, path)
    write_instance(path, {"factual": {"a": 2}})
    assert read_json(path) == {"factual": {"a": 2}}


def test_written_json_denotes_the_same_doubles(tmp_path: Path) -> None:
    """Numbers survive writing bit for bit; NaN is refused."""
    values = np.random.default_rng(0).normal(size=300).tolist()
    content = {"long": values, "nested": [{"a": [1, 2], "b": {}}] * 30, "text": 'quote " and ü'}
    write_json(content, tmp_path / "x.json")
    assert read_json(tmp_path / "x.json") == content
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(float("nan"), tmp_path / "y.json")


def test_the_shipped_margin_covers_the_proven_bound() -> None:
    """On shipped Loan instances an exactly accepted action cannot be refused by the float32 model."""
    folder = instances_path() / "loan"
    margin = json.loads((folder / "report.json").read_text())["margin"]
    assert margin["covers_rigorous"]
    assert margin["chosen"] >= margin["rigorous_float32_bound"] > margin["largest_observed_error"]
    assert read_instance(folder / "loan_000.json").accept.margin == margin["chosen"]


def test_every_shipped_file_is_as_listed() -> None:
    """instances/index.csv has the checksum of every instance, classifier and table."""
    assert checksum_faults(instances_path()) == []


def test_attempts_are_listed_and_the_first_ships(tmp_path: Path) -> None:
    """Three classifiers of one data set; the written one is the first row's, whatever the others are."""
    pytest.importorskip("torch")
    training = Training((6, 6), 64, 10, solver="sgd", library="torch", learning_rate=0.1)
    write_loan(tmp_path, 4, LoanSettings((600, 50, 400), training, applicants=0, points=200, attempts=3))
    with (tmp_path / "attempts.csv").open(newline="") as file:
        attempts = list(csv.DictReader(file))
    assert [(row["seed"], row["shipped"]) for row in attempts] == [("4", "yes"), ("5", "no"), ("6", "no")]
    assert len({row["logit_sd_test_rows"] for row in attempts}) == 3
    report = read_json(tmp_path / "report.json")
    assert f"{report['logit_sd_test_rows']:.4f}" == attempts[0]["logit_sd_test_rows"]
    assert report["refused_test_rows"] == int(attempts[0]["refused_test_rows"])
    assert len(read_population(tmp_path / "population.json")) == report["refused_test_rows"]
    assert list(tmp_path.glob("loan_*.json")) == []


def test_the_smooth_population_is_the_first_of_ten_attempts() -> None:
    """Its classifier's numbers are those of attempts.csv, near the released classifier's; loan is steep."""
    from milp_recourse.lab.recipe.loan_rows import sample_loan
    from milp_recourse.lab.recipe.training import deployed_logits

    folder = instances_path() / "loan_smooth"
    with (folder / "attempts.csv").open(newline="") as file:
        attempts = list(csv.DictReader(file))
    assert [int(row["seed"]) for row in attempts] == list(range(10))
    assert [row["shipped"] for row in attempts] == ["yes"] + 9 * ["no"]
    population = read_population(folder / "population.json")
    test = sample_loan(0).test
    logits = deployed_logits(population.template.classifier, test.rows)
    assert f"{logits.std():.4f}" == attempts[0]["logit_sd_test_rows"]
    assert (logits < 0).sum() == len(population) == int(attempts[0]["refused_test_rows"])
    assert all(3.5 < float(row["logit_sd_test_rows"]) < 4.5 for row in attempts)
    assert all(0.89 < float(row["test_accuracy"]) < 0.93 for row in attempts)
    assert read_json(instances_path() / "loan" / "report.json")["logit_sd_test_rows"] > 70


def test_the_printed_population_has_the_answers_that_are_written(tmp_path: Path) -> None:
    """Three of its people: as expected.csv says, with certificates that verify."""
    folder = instances_path() / "loan_printed"
    people = read_population(folder / "population.json")
    assert people.template.scm.name == loan_as_printed().name
    with (folder / "expected.csv").open(newline="") as file:
        expected = list(csv.DictReader(file))
    assert len(expected) == 100 and len(people) == read_json(folder / "report.json")["refused_test_rows"]
    assert sum(row["confirmed_by"] == "highs" for row in expected) >= 95
    assert {row["status"] for row in expected} <= {"optimal", "infeasible"}
    for k in range(3):
        result = solve(people[k], "bab", certificates=True, index=k)
        assert result.status.value == expected[k]["status"]
        if result.cost is not None:
            assert result.cost == pytest.approx(float(expected[k]["cost"]), rel=3e-6)
        (tmp_path / "c.json.gz").write_bytes(result.evidence)
        assert examine(tmp_path / "c.json.gz", folder / "population.json", 600.0).claim is not None


def test_released_training_differs_in_solver_and_library_alone() -> None:
    """Batch, epochs, rate and layers are the paper's in both."""
    paper, released = Training(), Training.released()
    assert (released.solver, released.library) == ("sgd", "torch")
    assert (paper.solver, paper.library) == ("adam", "sklearn")
    for name in ("hidden", "batch", "epochs", "learning_rate"):
        assert getattr(paper, name) == getattr(released, name)

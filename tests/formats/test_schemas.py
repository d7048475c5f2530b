"""The shipped JSON Schema files are those of the models, and real files fit them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter, ValidationError

from milp_recourse.errors import BadInput
from milp_recourse.formats import instance_from_dict, result_to_dict, scm_to_dict
from milp_recourse.formats.instances_path import instance_files, instances_path
from milp_recourse.formats.json_schemas import FOLDER, json_schemas
from milp_recourse.formats.schema import CostModel
from milp_recourse.formats.schema_answers import RobustModel, WidenedModel
from milp_recourse.formats.schema_classifiers import InlineClassifier
from milp_recourse.formats.schema_scm import NoiseModel, ScmModel
from milp_recourse.formats.stated import document, validate
from milp_recourse.formats.strict_json import read_json
from milp_recourse.judge import conclude
from milp_recourse.problem.loan import loan
from milp_recourse.problem.result import Status
from milp_recourse.solvers import Proposal
from tests.helpers.format_samples import loan_instance, loan_population, tree_instance


def validator(name: str) -> Draft202012Validator:
    schema = json.loads((FOLDER / f"{name}.schema.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_schema_files_are_up_to_date():
    """Else run: python -m milp_recourse.formats.json_schemas."""
    assert {file.name: file.read_text() for file in FOLDER.glob("*.json")} == json_schemas()


def test_samples_and_shipped_instances_fit():
    """Instances of every kind, an explicit SCM among them."""
    instance, explicit = validator("instance-1"), loan_instance()
    explicit["scm"] = scm_to_dict(loan(), explicit=True)
    for data in (loan_instance(), tree_instance(), explicit):
        instance.validate(data)
    for file in [*instance_files("smoke"), *instance_files("loan", 20)]:
        instance.validate(json.loads(file.read_text()))


def test_populations_and_classifier_files_fit():
    """The shipped ones too."""
    validator("population-1").validate(loan_population())
    validator("classifier").validate(loan_instance()["classifier"])
    for file in instances_path().glob("*/classifier.json"):
        validator("classifier").validate(json.loads(file.read_text()))
    for file in instances_path().glob("*/population.json"):
        validator("population-1").validate(json.loads(file.read_text()))


@pytest.mark.parametrize(
    "proposal",
    [
        Proposal({"savings": 20.0, "income": 5.0, "amount": -10.0}, 0.5, "solver", nodes=3),
        Proposal(None, float("inf"), "rigorous"),
        Proposal(None, None),
        Proposal(None, 0.25, "solver", message="time"),
    ],
    ids=["an action", "infeasible", "not found", "limit"],
)
def test_results_fit(proposal):
    """Every kind of result has every key of the format, null where there is nothing to say."""
    written = result_to_dict(
        conclude(instance_from_dict(loan_instance() | {"plausibility": None}), proposal, "fake", 0.1)
    )
    validator("result-1").validate(written)
    assert json.loads(json.dumps(written, allow_nan=False)) == written
    assert {"status", "cost", "lower_bound", "gap", "proof", "action", "logit", "score"} <= set(written)


def test_the_schema_refuses_what_the_reader_refuses():
    """Unknown keys, wrong types and unknown kinds, to say the least."""
    check = validator("instance-1")
    for path, value in (
        (["surprise"], 1),
        (["features", 0, "kind"], "real"),
        (["cost", "scale", "amount"], 0),
        (["scm", "name"], "lone"),
        (["factual", "age"], True),
        (["classifier", "layers", 0, "bias"], "0"),
    ):
        data = copy.deepcopy(loan_instance())
        here = data
        for step in path[:-1]:
            here = here[step]
        here[path[-1]] = value
        assert not check.is_valid(data), path


def test_certificates():
    """Accepted certificates fit; those malformed in their shape, not in their numbers alone, do not."""
    schema, folder = validator("certificate-1"), Path(__file__).parent.parent / "certificates"
    for file in sorted((folder / "accepted").iterdir()):
        schema.validate(read_json(file))
    shapes = "unknown_key", "unknown_node", "negative_bound", "no_claim", "fractional_index", "empty_node"
    for name in shapes:
        assert list(schema.iter_errors(read_json(folder / "malformed" / f"{name}.json"))), name


@pytest.mark.parametrize(
    ("name", "model"),
    [("cost", CostModel), ("scm", ScmModel), ("classifier", InlineClassifier), ("noise", NoiseModel)],
)
def test_a_wrong_kind_is_told_every_kind(name: str, model: object) -> None:
    """What the message lists is what the schema has."""
    field = "name" if name == "scm" else "kind"
    with pytest.raises(ValidationError) as known:
        TypeAdapter(model).validate_python({field: "nonsense"})
    tags = known.value.errors()[0]["ctx"]["expected_tags"]
    with pytest.raises(BadInput) as told:
        validate(dict[str, model], {name: {field: "nonsense"}})  # type: ignore[valid-type]
    assert all(tag in str(told.value) for tag in tags.split(", "))


def test_an_answer_has_the_keys_of_its_model() -> None:
    """In the model's order; what may be left out is left out where it is None, and nothing else is."""
    found = SimpleNamespace(status=Status.OPTIMAL, cost=1.0, lower_bound=0.5, proof=None, message=None)
    widened = document(WidenedModel, found, id="range:a", end="low", from_=0.0, to=1.0)
    assert list(widened) == ["id", "end", "from", "to", "cost", "lower_bound"]
    own = {"action": {}, "counterfactual": {}, "withstands": {}, "worst": None, "cuts": 1, "rounds": 2}
    robust = document(RobustModel, found, **own, certificate=None)
    assert robust["format"] == "milp-recourse/robust-1" and robust["status"] == "optimal"
    assert "certificate" not in robust and robust["message"] is None
    assert document(RobustModel, found, **own, certificate="c.json")["certificate"] == "c.json"
    with pytest.raises(AttributeError):
        document(WidenedModel, found)

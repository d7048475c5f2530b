"""Structural equations written out mean what the built-in ones mean."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from milp_recourse.errors import BadInput
from milp_recourse.formats import instance_from_dict, instance_to_dict, scm_to_dict
from milp_recourse.formats.schema import read_any
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.expression import NetworkOutput, Variable
from milp_recourse.problem.loan import loan, loan_as_printed
from milp_recourse.problem.scm import Mechanism, StructuralCausalModel
from tests.helpers.format_samples import loan_instance

ROOT = Path(__file__).parents[2]

DO = {"amount": 0.3, "income": 2.7}
SAVINGS_AS_NETWORK = {
    "network": {
        "layers": [{"weight": [[1]], "bias": [0]}, {"weight": [[1.5]], "bias": [-4]}],
    },
    "inputs": ["income"],
}


def with_scm(scm):
    return instance_from_dict(loan_instance() | {"scm": json.loads(json.dumps(scm))})


@pytest.mark.parametrize("built_in", [loan, loan_as_printed])
def test_loan_written_out_is_loan(built_in):
    """Same noise, same counterfactuals (float and exact), same density, all seven mechanisms."""
    scm = built_in()
    written = scm_to_dict(scm, explicit=True)
    again = with_scm(written).scm
    assert set(written["mechanisms"]) == set(scm.features)
    assert again.mechanisms == scm.mechanisms
    x = scm.sample(50, np.random.default_rng(7))
    action = np.full_like(x, np.nan)
    action[:, 1] = 4.0
    action[::2, 5] = 1.0
    np.testing.assert_array_equal(again.abduct(x), scm.abduct(x))
    np.testing.assert_array_equal(again.counterfactual(x, action), scm.counterfactual(x, action))
    np.testing.assert_array_equal(again.log_density(x), scm.log_density(x))
    row = dict(zip(scm.features, map(float, x[0]), strict=True))
    assert again.counterfactual_exact(row, {"age": 3.0}) == scm.counterfactual_exact(row, {"age": 3.0})


def test_a_one_unit_network_says_the_savings_equation():
    """-4 + 1.5 relu(income) as a ReLU network: the same exact counterfactual."""
    written = scm_to_dict(loan(), explicit=True)
    written["mechanisms"]["savings"]["equation"] = SAVINGS_AS_NETWORK
    instance = with_scm(written)
    assert isinstance(instance.scm.mechanisms["savings"].equation, NetworkOutput)
    exact = instance.scm.counterfactual_exact(instance.factual, DO)
    assert exact == loan().counterfactual_exact(instance.factual, DO)
    assert exact["savings"] == Enclosure.of(Fraction(-3) + Fraction(3, 2) * (Fraction(2.7) - Fraction(0.75)))
    assert (
        instance_to_dict(instance_from_dict(instance_to_dict(instance)))["scm"]
        == instance_to_dict(instance)["scm"]
    )


def test_every_form_of_expression_can_be_written():
    """sum, product, relu, sigmoid, square, network, numbers and names survive the round trip."""
    equation = {
        "sum": [
            1.5,
            "age",
            {"product": [2.0, {"square": "education"}]},
            {"relu": {"sigmoid": "gender"}},
            {
                "network": {"layers": [{"weight": [[1.0, -1.0]], "bias": [0.5]}]},
                "inputs": ["age", {"sum": ["gender"]}],
            },
        ]
    }
    mechanism = {"equation": equation, "link": {"kind": "sigmoid", "offset": -1.0, "scale": 90.0}}
    noises = [{"kind": "normal", "sd": 2.0}, {"kind": "gamma", "shape": 3.0, "scale": 0.5}]
    for noise in [*noises, {"kind": "bernoulli", "p": 0.25}]:
        scm = {"name": "explicit", "mechanisms": {"savings": mechanism | {"noise": noise}}}
        data = loan_instance() | {"scm": scm, "plausibility": None}
        data["factual"] = data["factual"] | {"savings": 5.0}
        instance = instance_from_dict(data)
        assert scm_to_dict(instance.scm) == scm
        assert instance.scm.parents("savings") == {"age", "education", "gender"}
        assert instance.scm.parents("income") == frozenset()


def test_the_built_in_models_are_written_by_name():
    """Unless their equations are asked for."""
    assert scm_to_dict(loan()) == {"name": "loan"}
    assert scm_to_dict(loan_as_printed()) == {"name": "loan-as-printed"}


def test_labels_without_order_stand_outside_the_graph():
    """Their numbers say nothing: refused from a file, in Python, and by the checker (an attack file)."""
    attack = ROOT / "tests/certificates/instances/category_as_a_cause.json"
    with pytest.raises(BadInput, match=r"job.*no categorical feature as a cause"):
        read_any(attack)
    instance = read_any(attack.with_name("gaps.json"))
    names = [f.name for f in instance.features]
    reads = StructuralCausalModel(names, {"debt": Mechanism(Variable("job"))})
    with pytest.raises(BadInput, match=r"job.*no categorical feature as a cause"):
        replace(instance, scm=reads)
    follows = StructuralCausalModel(names, {"job": Mechanism(Variable("debt"))})
    with pytest.raises(BadInput, match="allowed: none: job is categorical"):
        replace(instance, scm=follows)

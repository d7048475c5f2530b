"""Thresholds that are logits: faces of boxes within rounding of what is needed are decided exactly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from milp_recourse import solve
from milp_recourse.problem.instance import Acceptance, Instance
from milp_recourse.problem.result import Status
from tests.certificates.random_cases import complaints
from tests.helpers.at_a_logit import at_a_logit
from tests.helpers.generators import SEVERAL_LEVERS, random_instance
from tests.properties.run import case


def just_above(seed: int) -> Instance:
    """The logit that is asked for is the double above the own one, which most actions leave as it is."""
    instance = random_instance(seed, SEVERAL_LEVERS[seed % len(SEVERAL_LEVERS)])
    own = instance.classifier.evaluate(instance.model_rows(instance.factual_row[None]))[0, 0]
    return replace(instance, accept=Acceptance(float(np.nextafter(own, np.inf)), 0.0))


@pytest.mark.parametrize("seed", [895, 1434, 1559, 1889, 2120])
def test_faces_on_the_edge_are_closed_and_certified(seed: int, tmp_path: Path) -> None:
    """They were split into ever smaller boxes, whose points were judged one by one, without an end."""
    instance = at_a_logit(seed)
    assert instance is not None
    closed_and_certified(instance, tmp_path)


@pytest.mark.parametrize("seed", [117, 2526])
def test_the_same_one_double_above_the_own_logit(seed: int, tmp_path: Path) -> None:
    """Whether :func:`at_a_logit` finds these depends on the machine: some round a row's logit up.

    On others the deployed model refuses every action that is accepted exactly; the search says so at once.
    """
    instance = just_above(seed)
    result = solve(instance, "bab", 20.0)
    if result.status is not Status.LIMIT:
        closed_and_certified(instance, tmp_path)
        return
    assert result.message is not None and "the deployed model refuses" in result.message
    assert (result.nodes or 0) < 400


def closed_and_certified(instance: Instance, tmp_path: Path) -> None:
    """Whether it is solved in few nodes, with a certificate that verifies."""
    result = solve(instance, "bab", 20.0, certificates=True)
    assert result.status is not Status.LIMIT
    assert (result.nodes or 0) < 400
    assert result.proof == "rigorous"
    assert not complaints(instance, result, tmp_path)


def test_units_that_bend_there_are_asked_for_their_signs() -> None:
    """A box's largest logit is above what is needed, at an action where a unit's argument has the wrong
    sign."""
    result = solve(case(712119), "bab", 20.0)
    assert result.status is Status.OPTIMAL
    assert result.cost == 2.0

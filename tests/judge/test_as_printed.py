"""The shortest decimals of an action, set together, are feasible and hardly dearer."""

import os
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from milp_recourse import solve
from milp_recourse.formats import read_instance, read_population
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.judge import judge
from milp_recourse.judge.as_printed import DEARER, as_printed, nobody
from tests.helpers.generators import Style, random_instance

FILES = sorted((instances_path() / "loan").glob("loan_0[0-2]*.json"))
FILES += sorted((instances_path() / "credit_trees").glob("*.json"))[:10]


def digits(value: float) -> int:
    """How many digits the shortest decimal of a double has."""
    return len(Decimal(repr(value)).normalize().as_tuple().digits)


@pytest.fixture(scope="module")
def solved():
    """Instances with their cheapest actions."""
    pairs = []
    for instance in (*map(read_instance, FILES), *(random_instance(k, Style()) for k in range(40))):
        result = solve(instance, time_limit=20.0)
        if result.action:
            pairs.append((instance, instance.numbers(result.action)))
    assert len(pairs) > 40
    return pairs


def test_what_is_said_is_feasible_and_hardly_dearer(solved):
    """The same features are acted on, within the allowance, with fewer digits in most cases."""
    fewer = []
    for (instance, action), said in zip(solved, as_printed(solved), strict=True):
        verdict = judge(instance, said.action)
        assert verdict.feasible and verdict.cost == said.cost
        assert said.action.keys() == action.keys()
        assert said.cost <= judge(instance, action).cost * (1 + DEARER)
        fewer += [digits(said.action[n]) - digits(v) for n, v in action.items() if digits(v) > 9]
    assert np.mean(fewer) < -8


def test_the_row_as_it_is_said_is_accepted(solved):
    """Effects are rounded, too, and the model is asked about the row with all rounded values."""
    for (instance, _), said in zip(solved, as_printed(solved), strict=True):
        verdict = judge(nobody(instance, {**instance.factual, **said.counterfactual}), {})
        assert verdict.accepted_exact and verdict.accepted_deployed
        after = judge(instance, said.action).counterfactual
        assert {n for n, v in after.items() if v != instance.factual[n]} <= said.counterfactual.keys()


def test_one_digit_less_would_be_refused_or_dear(solved):
    """Of an action on one number, no decimal with fewer digits will do."""
    tried = 0
    for (instance, action), said in zip(solved, as_printed(solved), strict=True):
        [(name, value), *more] = said.action.items()
        if more or instance.by_name[name].integral or digits(value) < 2:
            continue
        unit = Decimal(10) ** (Decimal(repr(value)).adjusted() - digits(value) + 2)
        for end in (Decimal(repr(action[name])) // unit * unit + k * unit for k in (-1, 0, 1, 2)):
            shorter = {name: float(end)}
            if digits(float(end)) < digits(value):
                verdict = judge(instance, shorter)
                assert not verdict.feasible or verdict.cost > judge(instance, action).cost * (1 + DEARER)
                tried += 1
    assert tried > 10


def test_whole_numbers_labels_and_infeasible_actions_stay(solved):
    """There is nothing to shorten, or nothing to keep."""
    instance, action = next(pair for pair in solved if len(pair[1]) > 1)
    other = replace(instance, accept=replace(instance.accept, threshold=1e6))
    [said] = as_printed([(other, action)])
    assert said.action == action


SAID = """
from milp_recourse.formats import read_population
from milp_recourse.judge.as_printed import as_printed
people = read_population({0!r})
print([said.counterfactual for said in as_printed([(people[k], action) for k, action in {1}])])
"""


def test_the_same_is_said_in_every_process():
    """The digits of an effect depend on those before it, so the order must not be a set's."""
    file = instances_path() / "gmsc" / "population.json"
    people, actions = read_population(file), []
    for k, one in enumerate(people):
        result = solve(one, time_limit=20.0)
        if result.action:
            actions.append((k, one.numbers(result.action)))
    command = [sys.executable, "-c", SAID.format(str(file), actions)]
    said = {subprocess.check_output(command, env={**os.environ, "PYTHONHASHSEED": seed}) for seed in "0123"}
    assert len(actions) > 3 and len(said) == 1

"""Applicants lowered together get, number for number, the arrays that each gets alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np
import pytest

from milp_recourse.backends.bab import People
from milp_recourse.benchmarks.settings import in_setting
from milp_recourse.bounds.tape import Tape
from milp_recourse.engine.stack import stack as make_stack
from milp_recourse.errors import Unsupported
from milp_recourse.formats import read_population
from milp_recourse.instance import Instance, Preferences
from milp_recourse.instances_path import instances_path
from milp_recourse.program import lower
from milp_recourse.program.cohort import programs
from milp_recourse.program.rationals import Mixed, Rationals
from tests.properties.generators import Style, _factual, supported_instance

STYLES = (
    Style(levers=4, curves=False, gamma=False),
    Style(levers=4),
    Style(levers=3, plausible=1.0, discrete=False),
    Style(levers=3, plausible=1.0, gamma=False, curves=False),
    Style(levers=5, causes=False),
)


def differences(instances: list[Instance]) -> Iterator[str]:
    """Fields of the stacks that are not what one program per applicant and configuration gives."""
    alone: defaultdict[tuple[int, tuple[str, ...]], list[Tape]] = defaultdict(list)
    for person, instance in enumerate(instances):
        program = lower(instance)
        for acted in program.configurations():
            tape = Tape(program.fix(acted))
            if len(tape.actions):
                alone[person, tuple(a.feature for a in tape.program.actions)].append(tape)
    people = People(instances)
    for k, (stack, persons) in enumerate(people.stacks):
        for column, (person, tape) in enumerate(people.members[k]):
            assert persons[column] == person
            own = alone[person, tuple(a.feature for a in tape.program.actions)].pop(0)
            expected = make_stack([own])
            for f in fields(stack):
                mine, its = getattr(stack, f.name), getattr(expected, f.name)
                if isinstance(mine, tuple) and mine and isinstance(mine[0], np.ndarray):
                    same = all(map(np.array_equal, mine, its))
                elif isinstance(mine, np.ndarray):
                    same = np.array_equal(mine[..., [column]] if f.name in OWN else mine, its)
                else:
                    same = mine == its
                if not same:
                    yield f.name
    assert not any(alone.values()), "every configuration is in a stack"


OWN = [
    "unit_offset",
    "first_offset",
    "row_offset",
    "row_low",
    "row_high",
    "residual_offset",
    "ball_offset",
    "lower",
    "upper",
    "factual",
    "kappa",
    "beta",
    "omega",
    "jump",
    "jump_largest",
    "fixed",
]
"""What each applicant has its own of."""


def others(instance: Instance, seed: int, count: int = 9) -> list[Instance]:
    """The same model's applicants: other factuals, weights and ranges, some of them alike."""
    rng = np.random.default_rng([seed, 7])
    kinds = {f.name: f.kind for f in instance.features}
    people = [instance]
    for _ in range(count):
        weights = {n: float(rng.choice([0.5, 1.0, 3.0])) for n in instance.preferences.actionable}
        preferences = Preferences(instance.preferences.actionable, weights, instance.preferences.ranges)
        person = replace(instance, factual=_factual(rng, instance.scm, kinds), preferences=preferences)
        try:
            lower(person)
        except Unsupported:
            continue
        people += [person] * int(rng.integers(1, 3)) if person.levers else []
    return people


@pytest.mark.parametrize("style", range(len(STYLES)))
def test_random_populations(style: int) -> None:
    together = 0
    for seed in range(style, 120, len(STYLES)):
        instances = others(supported_instance(seed, STYLES[style]), seed)
        assert not list(differences(instances)), seed
        together += any(len(people) > 1 for people, _ in programs(instances))
    assert together >= 8, "of 24 populations"


@pytest.mark.parametrize("setting, plausible", [("4", True), ("random", True), ("random", False)])
def test_loan(setting: str, plausible: bool) -> None:
    people = in_setting(read_population(instances_path() / "loan" / "population.json"), setting, plausible, 0)
    instances = [people[i] for i in range(60)]
    assert not list(differences(instances))
    alone = sum(len(members) == 1 for members, _ in programs(instances))
    assert alone <= 6, "hardly anyone is lowered alone"


def test_a_wrong_number_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison sees one applicant's bias off by an ulp."""
    people = read_population(instances_path() / "loan" / "population.json")
    exact = Rationals.nearest
    monkeypatch.setattr(Rationals, "nearest", lambda self: np.nextafter(exact(self), np.inf))
    assert list(differences([people[i] for i in range(8)]))


def test_numbers_are_exact_and_structure_is_asked() -> None:
    x = Rationals.of(np.array([0.1, 0.1, 5e-324, -2.5]))
    assert (x + x * -1).numerator.tolist() == [0, 0, 0, 0]
    assert x.relu().nearest().tolist() == [0.1, 0.1, 5e-324, 0.0]
    assert x.square().nearest()[3] == 6.25
    with pytest.raises(Mixed) as caught:
        bool(x == Rationals.of(np.full(4, 0.1)))
    assert caught.value.labels.tolist() == [True, True, False, False]
    with pytest.raises(TypeError):
        bool(x)


def test_factuals_outside_their_bounds_part_the_applicants() -> None:
    """Holding is allowed inside the bounds only, so the configurations differ."""
    people = read_population(instances_path() / "loan" / "population.json")
    template = people.template
    narrow = tuple(replace(f, bounds=(-1.0, 1.0)) if f.actionable else f for f in template.features)
    template = replace(template, features=narrow)
    instances = [
        replace(template, factual=people.factuals[i], preferences=people.preferences[i]) for i in range(40)
    ]
    assert len({tuple(members) for members, _ in programs(instances)}) > 1
    assert not list(differences(instances))

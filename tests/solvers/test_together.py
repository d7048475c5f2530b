"""Applicants lowered together get, number for number, the arrays that each gets alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from milp_recourse.engine.networks import engine
from milp_recourse.engine.networks.engine import Closed, searched
from milp_recourse.engine.networks.problem_arrays import lowered
from milp_recourse.engine.networks.propose import Run
from milp_recourse.errors import Unsupported
from milp_recourse.formats import read_population
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.judge.conclude import Proposal
from milp_recourse.lab.benchmarks.bench_settings import in_setting
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.options import Options
from milp_recourse.program import lower
from milp_recourse.program.forms import Mixed, Rationals
from milp_recourse.questions.solve import solve_together
from milp_recourse.solvers import backend as find_backend
from tests.helpers.generators import SEVERAL_LEVERS, _factual, supported_instance


def differences(instances: list[Instance]) -> Iterator[str]:
    """Arrays of applicants lowered together that are not those that each gets alone."""
    lowered_too = set[int]()
    for people, group in lowered(instances):
        lowered_too |= set(people)
        for k, person in enumerate(people):
            [(_, alone)] = lowered([instances[person]])
            mine, its = group.problems(k), alone.problems(0)
            yield from (
                name for name in mine._fields if not np.array_equal(getattr(mine, name), getattr(its, name))
            )
    assert lowered_too == set(range(len(instances)))


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


@pytest.mark.parametrize("style", range(len(SEVERAL_LEVERS)))
def test_random_populations(style: int) -> None:
    together = 0
    for seed in range(style, 35, len(SEVERAL_LEVERS)):
        instances = others(supported_instance(seed, SEVERAL_LEVERS[style]), seed)
        assert not list(differences(instances)), seed
        together += any(len(people) > 1 for people, _ in lowered(instances))
    assert together >= 1, "of 7 populations"


@pytest.mark.parametrize("setting, plausible", [("4", True), ("random", True), ("random", False)])
def test_loan(setting: str, plausible: bool) -> None:
    people = in_setting(read_population(instances_path() / "loan" / "population.json"), setting, plausible, 0)
    instances = [people[i] for i in range(60)]
    assert not list(differences(instances))
    alone = sum(len(members) == 1 for members, _ in lowered(instances))
    assert alone <= 6, "hardly anyone is lowered alone"


def test_arrays_are_of_one_kind() -> None:
    """Writable and contiguous, in one configuration or several: numba compiles once for each kind."""
    people = read_population(instances_path() / "loan" / "population.json")
    for setting in ("1", "4"):
        chosen = in_setting(people, setting, True, 0)
        for _, group in lowered([chosen[i] for i in range(3)]):
            arrays = [v for v in group.problems(0) if isinstance(v, np.ndarray)]
            assert all(v.flags.writeable and v.flags.c_contiguous for v in arrays)


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


def test_factuals_outside_their_bounds() -> None:
    """Holding is allowed inside the bounds only: who may hold is each applicant's own."""
    people = read_population(instances_path() / "loan" / "population.json")
    template = people.template
    narrow = tuple(replace(f, bounds=(-1.0, 1.0)) if f.actionable else f for f in template.features)
    template = replace(template, features=narrow)
    instances = [
        replace(template, factual=people.factuals[i], preferences=people.preferences[i]) for i in range(40)
    ]
    assert not list(differences(instances))


def test_a_search_between_two_answers_changes_none_of_them() -> None:
    """Searches share their memory. The rest of one that is not finished with its first nodes was searched
    after the answers before it were handed on; whoever judged these searched in the same memory, and all
    seven such answers among these applicants became others."""
    population = read_population(instances_path() / "loan" / "population.json")
    instances = [population[k] for k in range(64)]
    [(people, group)] = lowered(instances)
    arrays, options = group.people(people), [Options()] * len(instances)

    def said(found: Closed | Proposal) -> tuple[object, ...]:
        bound = found.bound if isinstance(found, Closed) else found.lower_bound
        return type(found).__name__, bound, found.nodes, found.action

    alone = [said(found) for part in searched(instances, arrays, options) for found in part]
    beside = []
    for part in searched(instances, arrays, options):
        beside += map(said, part)
        Run(instances[0], group.problems(0)).examine(3)
    assert beside == alone
    assert sum(name == "Proposal" for name, *_ in alone) > 3


def test_none_that_is_finished_waits_for_a_longer_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to 63 applicants had waited until the search of another, which may take minutes, had ended."""

    def longer(*_: object) -> Proposal:
        raise TimeoutError

    population = read_population(instances_path() / "loan" / "population.json")
    instances = [population[k] for k in range(64)]
    whole, found = list(solve_together(instances, "bab")), []
    monkeypatch.setattr(engine, "_alone", longer)
    with pytest.raises(TimeoutError):
        for k, proposal in find_backend("bab").solve_many(instances, Options()):
            found.append((k, proposal))
    assert len(found) > 3
    assert all(proposal.lower_bound == whole[k].lower_bound for k, proposal in found)

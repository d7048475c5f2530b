"""Branch and bound against references, ``highs`` and brute force, whoever is lowered together."""

from __future__ import annotations

import functools
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from milp_recourse import certificates, solve, solve_population
from milp_recourse.engine.networks import search
from milp_recourse.formats import read_instance
from milp_recourse.judge import conclude
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.expression import NetworkOutput, Variable, as_expression
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.noise import Normal
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result, Status, gap_tolerance
from milp_recourse.problem.scm import Link, Mechanism, StructuralCausalModel
from milp_recourse.questions.solve import _run_many
from milp_recourse.solvers import Options
from milp_recourse.solvers.bab import BabBackend
from tests.helpers.brute_force import attack, brute_force, complaints
from tests.helpers.generators import _with_threshold, random_instance, random_network
from tests.properties.run import Tally, case, examine_instance

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
LOAN = sorted((INSTANCES / "loan").glob("loan_*.json"))
SMOKE = sorted((INSTANCES / "smoke").glob("*.json"))
TIME_LIMIT = 30.0


def able(instance: Instance) -> bool:
    return BabBackend().why_not(instance) is None


@functools.cache
def shipped(every: int) -> tuple[Instance, ...]:
    """All of smoke and every so many of Loan; equal networks are one object: lowered together."""
    found = [read_instance(path) for path in (*SMOKE, *LOAN[::every])]
    same: dict[bytes, ReluNetwork] = {}
    result = []
    for instance in found:
        network = instance.classifier
        if able(instance) and isinstance(network, ReluNetwork):
            content = b"".join(v.tobytes() for v in (*network.weights, *network.biases))
            result.append(replace(instance, classifier=same.setdefault(content, network)))
    return tuple(result)


def run(instances: list[Instance] | tuple[Instance, ...], limit: float = TIME_LIMIT):
    """Results, in order, of one batch."""
    found = dict(_run_many(instances, BabBackend(), Options(limit)))
    return [found[k] for k in range(len(instances))]


@functools.cache
def together() -> tuple[Result, ...]:
    return tuple(run(shipped(24)))


def check_reference(instance: Instance, result: Result) -> None:
    known = instance.reference
    assert known is not None
    assert result.status.value == known.status, instance.name
    if known.status == "optimal":
        assert abs(result.cost - known.cost) <= gap_tolerance(known.cost), instance.name
        assert result.lower_bound <= known.cost + 1e-12
        assert result.accepted_exact and result.accepted_deployed


def check_same(first: Result, second: Result, name: str = "") -> None:
    """Same status; costs within the gap, each no less than the other's bound."""
    assert first.status is second.status, name
    if first.cost is not None:
        assert abs(first.cost - second.cost) <= gap_tolerance(first.cost), name
        assert max(first.lower_bound, second.lower_bound) <= min(first.cost, second.cost) * (1 + 1e-12), name


def check_unchanged(first: Result, second: Result, name: str = "") -> None:
    """Everything the same, to the last bit, but the seconds."""
    assert replace(first, seconds=0.0) == replace(second, seconds=0.0), name


def test_one_batch_agrees_with_every_reference() -> None:
    """Smoke and Loan together: many structures at once."""
    assert len(together()) >= 40
    for instance, result in zip(shipped(24), together(), strict=True):
        check_reference(instance, result)
        assert complaints(instance, result) == []


@pytest.mark.parametrize("way", ["alone", "shuffled"])
def test_the_answers_do_not_depend_on_the_batch(way: str) -> None:
    """Everything is the same to the last bit."""
    instances = list(shipped(24))
    order = np.random.default_rng(1).permutation(len(instances))[: 12 if way == "alone" else 30]
    chosen = [instances[k] for k in order]
    found = [run([instance])[0] for instance in chosen] if way == "alone" else run(chosen)
    for k, result in zip(order, found, strict=True):
        check_unchanged(together()[k], result, instances[k].name)


def loan_population(count: int, every: int = 1) -> Population:
    """Applicants of Loan with one model: all lowered together, as in a deployment."""
    people = [read_instance(path) for path in LOAN[::every][:count]]
    template = next(i for i in people if not i.plausible)
    return Population(template, [i.factual for i in people], tuple(i.preferences for i in people))


def test_a_population_is_the_same_in_processes_in_one_batch_and_one_by_one() -> None:
    """jobs=2, jobs=1, and each applicant alone."""
    people = loan_population(12, 16)
    one = list(solve_population(people, "bab", TIME_LIMIT))
    two = list(solve_population(people, "bab", TIME_LIMIT, jobs=2))
    assert len(one) == len(two) == len(people)
    assert {r.status for r in one} <= {Status.OPTIMAL, Status.INFEASIBLE}
    assert sum(bool(r.action) for r in one) >= 6
    for k, (first, second) in enumerate(zip(one, two, strict=True)):
        check_unchanged(first, second)
        if k % 4 == 0:
            check_unchanged(first, solve(people[k], "bab", TIME_LIMIT))


def test_the_first_certificates_come_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches double: whoever interrupts a run early keeps rows."""
    sizes: list[int] = []
    own = certificates.certificates_for

    def counting(instances, *rest):
        sizes.append(len(instances))
        return own(instances, *rest)

    monkeypatch.setattr(certificates, "certificates_for", counting)
    results = list(solve_population(loan_population(40, 4), "bab", TIME_LIMIT, certificates=True))
    assert all(result.evidence for result in results)
    assert sizes == [8, 16, 8, 4, 2, 1, 1]


def test_nobody_is_solved_who_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A back end that takes 256 together is given the two who are asked for."""
    given: list[int] = []
    own = BabBackend.solve_many

    def counting(self, instances, options):
        given.append(len(instances))
        return own(self, instances, options)

    monkeypatch.setattr(BabBackend, "solve_many", counting)
    assert len(list(solve_population(loan_population(12, 16), "bab", TIME_LIMIT, first=3, last=5))) == 2
    assert given == [2]


# -- random problems -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(400, 412))
def test_bab_survives_brute_force_and_agrees_with_highs(seed: int) -> None:
    """Every demand met; nothing cheaper than the bound; nothing feasible where infeasible."""
    tally = Tally()
    examine_instance(seed, case(seed), "bab", "highs", 5.0, tally)
    assert tally.disagreements == []
    assert tally.counts["solved"] == 1 or tally.counts["unsupported"] == 1


def test_random_problems_in_one_batch_are_those_alone() -> None:
    """Nothing in common but the batch: every problem has its own structure."""
    instances = [i for i in map(random_instance, range(500, 512)) if i.levers and able(i)]
    good = []
    for instance in instances:
        try:
            good.append((instance, solve(instance, "bab", 5.0)))
        except Exception as error:
            assert type(error).__name__ == "Unsupported", error
    for (instance, alone), result in zip(good, run([i for i, _ in good], limit=5.0), strict=True):
        if Status.LIMIT not in (alone.status, result.status):
            check_unchanged(alone, result, instance.name)
    assert len(good) >= 6


def deep_instance(seed: int, actions: int, depth: int) -> Instance:
    """So many levers, a network among the causes, and a random network of so many layers behind it."""
    rng = np.random.default_rng(seed)
    names = [f"f{k}" for k in range(actions + 1)]
    noise = Normal(1.0)
    mechanisms = {n: Mechanism(as_expression(0.0), Link(), noise) for n in names}
    parents = tuple(Variable(n) for n in names[: min(2, actions)])
    mechanism = random_network(rng, len(parents), 1, 3)
    mechanisms[names[-1]] = Mechanism(NetworkOutput(mechanism, parents), Link(), noise)
    scm = StructuralCausalModel(names, mechanisms)
    row = scm.generate(rng.normal(size=len(names)))
    factual = {n: float(v) for n, v in zip(names, row, strict=True)}
    features = tuple(
        Feature(
            n, "continuous", n != names[-1], (factual[n] - 1.5, factual[n] + 1.5) if n != names[-1] else None
        )
        for n in names
    )
    sizes = [len(names), *[5] * depth, 1]
    layers = [(rng.normal(size=(b, a)) / np.sqrt(a), 0.5 * rng.normal(size=b)) for a, b in pairwise(sizes)]
    cost = Cost.pure("l2-squared", {n: float(0.5 + rng.random()) for n in names[:-1]})
    instance = Instance(
        features, scm, ReluNetwork.from_layers(layers), factual, Preferences(tuple(names[:-1])), cost
    )
    return _with_threshold(rng, instance, "float64")


@pytest.mark.parametrize(("actions", "depth"), [(1, 1), (2, 3), (3, 4), (4, 1), (5, 1), (6, 3), (1, 4)])
def test_depths_and_numbers_of_actions(actions: int, depth: int) -> None:
    """Against highs and against points near the answer; a network among the causes."""
    decided = 0
    for seed in range(2 if actions < 5 else 1):
        instance = deep_instance(seed, actions, depth)
        result = solve(instance, "bab", TIME_LIMIT)
        assert result.status in (Status.OPTIMAL, Status.INFEASIBLE)
        assert complaints(instance, result) == []
        exact = solve(instance, "highs", 30.0)
        if exact.status is Status.LIMIT:
            assert result.cost is None or exact.lower_bound <= result.cost
            assert exact.cost is None or result.lower_bound <= exact.cost
        else:
            check_same(exact, result, f"{seed}")
            decided += 1
        near = attack(instance, result, np.random.default_rng(seed))
        assert near is None or near.cost >= result.lower_bound * (1 - 1e-12)
        if actions <= 2:
            found = brute_force(instance)
            assert found is None or found.cost >= result.lower_bound * (1 - 1e-12)
    assert decided, "highs needs less than a second here"


# -- limits --------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1e-6, 3e-3, 2e-2])
def test_a_limit_is_honest(limit: float) -> None:
    """lower bound <= reference <= cost, for everybody; the shortest limit decides nearly nobody."""
    instances = [i for i in shipped(24) if i.name.startswith("loan")]
    results = run(instances, limit=limit)
    stopped = 0
    for instance, result in zip(instances, results, strict=True):
        known = instance.reference
        if result.status is not Status.LIMIT:
            check_reference(instance, result)
            continue
        stopped += 1
        assert complaints(instance, result) == []
        if known.status == "optimal":
            assert result.lower_bound <= known.cost
            assert result.cost is None or known.cost <= result.cost * (1 + 2e-6)
        else:
            assert result.cost is None
    if limit == 1e-6:
        assert stopped >= len(instances) // 2


def test_rows_of_any_layout_are_started_from_without_compiling_again() -> None:
    """A table's columns lie one after the other in memory; the compiled search has one kind of array."""
    instance = shipped(24)[-1]
    rows = np.asfortranarray(np.array([list(instance.factual.values())] * 3, dtype=float))
    ((_, proposal),) = BabBackend().solve_many([instance], Options(TIME_LIMIT, starts=rows))
    check_reference(instance, conclude(instance, proposal, "bab", 0.0))
    assert len(search.run.signatures) == 1


def test_a_watched_bound_is_never_above_the_cost() -> None:
    """Open nodes may have larger bounds than the action in hand costs before they are closed."""
    instance = read_instance(Path(__file__).parent / "watched" / "relucauses-5107.json")
    watched: list[tuple[float, float]] = []
    BabBackend().solve(instance, Options(TIME_LIMIT, watch=lambda *costs: watched.append(costs)))
    assert watched
    assert all(bound <= cost for cost, bound in watched)


def test_a_wrong_bound_would_be_noticed() -> None:
    """The checks above can fail: a proposal with a bound above the reference is found out."""
    instance = next(i for i in shipped(24) if i.reference.status == "optimal" and i.reference.cost > 1e-3)
    (_, proposal) = next(BabBackend().solve_many([instance], Options()))
    lie = replace(proposal, lower_bound=instance.reference.cost * 1.01)
    with pytest.raises(AssertionError):
        check_reference(instance, conclude(instance, lie, "bab", 0.0))

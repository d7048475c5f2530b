"""Several threads find what one does."""

from __future__ import annotations

import math
from contextlib import closing
from threading import Event

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from milp_recourse import read_instance, solve, solve_population
from milp_recourse.cli import main
from milp_recourse.engine.blas_threads import ONE_BLAS_THREAD
from milp_recourse.engine.networks import engine, propose, search, search_on, sign_tree, stages, team
from milp_recourse.engine.networks.problem_arrays import lower, why_not
from milp_recourse.engine.networks.work import pool, workspace
from milp_recourse.errors import BadInput
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.reports.instances import solve_files
from tests.helpers.amounts import amounts
from tests.helpers.generators import Style, random_instance, with_percentile_cost
from tests.helpers.loan_people import refused_file
from tests.helpers.wide import wide


@pytest.fixture
def crowded(monkeypatch):
    """Turns of few nodes each, from the first nodes on; how many nodes other threads have examined."""
    monkeypatch.setattr(search_on, "first_slice", lambda p, few: (4, -1))
    monkeypatch.setattr(search_on, "STAGES_FROM", math.inf)
    monkeypatch.setattr(team, "CROWD", 1)
    monkeypatch.setattr(team, "TURN", 2)
    several, seen = team._examined, [0]

    def counted(run, examine, count, stop):
        before = int(run.tree.now.examined)
        why = several(run, examine, count, stop)
        seen[0] += int(run.tree.now.examined) - before if type(run) is propose.Run else 0
        return why

    monkeypatch.setattr(team, "_examined", counted)
    return seen


def searched(instance, threads):
    """A search's best cost and bound, and how many nodes it had."""
    with closing(team.Team(threads, instance) if threads > 1 else propose.Run(instance)) as state:
        bound, message = search_on.search_on(state)
        assert message is None
        return state.best.cost, bound, int(state.tree.now.examined)


def is_same(instance, *numbers):
    """Assert that the costs are the same to the gap, and each below no bound; whether there is an action."""
    least, alone, _ = searched(instance, 1)
    for threads in numbers:
        cost, bound, _ = searched(instance, threads)
        assert (cost == math.inf) == (least == math.inf), threads
        if cost < math.inf:
            assert abs(cost - least) <= instance.gap_tolerance(least), threads
            assert max(bound, alone) <= min(cost, least), threads
    return least < math.inf


STYLES = {
    "all": (Style(levers=5, width=16), 30),
    "free": (Style(levers=7, width=24, causes=False, discrete=False), 40),
    "causes": (Style(levers=5, width=16, discrete=False), 60),
}


@pytest.mark.parametrize(("style", "seeds"), STYLES.values(), ids=STYLES)
def test_as_one_thread(crowded, style, seeds):
    """Of random problems, among them such as rounding leaves open."""
    for seed in range(seeds):
        instance = random_instance(seed, style)
        if why_not(instance) is None and instance.levers:
            is_same(instance, 2, 3)
    assert crowded[0] > 30


def test_costs_between_knots(crowded):
    """Compiled code writes the lines below such costs in a node into the levers, of which each thread has its
    own."""
    drawn = 0
    for seed in range(60):
        instance = with_percentile_cost(seed, random_instance(seed, Style(levers=6, width=24, causes=False)))
        if why_not(instance) is None and instance.levers:
            drawn += is_same(instance, 2, 4)
    assert drawn > 20 and crowded[0] > 100


@pytest.mark.parametrize("labels", [False, True])
def test_many_nodes(crowded, labels):
    """Of wide networks over whole numbers or labels."""
    assert is_same(wide(0, labels), 2)
    assert crowded[0] > 30


def test_the_same_threads_find_the_same(crowded):
    """No number of nodes depends on the clock."""
    instance = wide(1, False)
    assert len({searched(instance, 2) for _ in range(3)}) == 1
    assert crowded[0] > 0


def begun(instance, **named):
    """A search by two threads that has had a turn."""
    state = team.Team(2, instance, **named)
    while not state._helpers:
        why = state.examine(8)
        state.confirm()
        state.react(why)
    return state


def test_only_levers_are_written_to(crowded):
    """What threads share of a problem stays as it is; levers are each thread's own."""
    instance = with_percentile_cost(0, wide(0, False))
    state, fresh = begun(instance), lower(instance)
    for name, array in fresh._asdict().items():
        if isinstance(array, np.ndarray):
            assert name == "lever" or array.tobytes() == getattr(state.problem, name).tobytes(), name
    assert not np.shares_memory(state.problem.lever, state._helpers[0].problem.lever)


def test_memory_of_another_shape(crowded):
    """A search may go on in memory that was made for others, with or without room for bent lines."""
    instance = wide(0, False)
    problem = lower(instance)
    for bends in (False, True):
        memory = workspace(problem, bends), pool(problem, 256, bends)
        search.begin(problem, *memory)
        state = begun(instance, problem=problem, begun=memory)
        assert state._helpers[0].tree.cut.shape[1] == state.tree.cut.shape[1]
        bound, message = search_on.search_on(state)
        assert message is None and bound <= state.best.cost
        state.close()


def test_a_turn_that_is_interrupted(crowded, monkeypatch):
    """What is open stays in the bound, also where the search goes on, and the threads end."""
    state = begun(wide(0, False))
    before, stopped = state.proven, []
    own = propose.Run.examine

    def interrupted(run, share, around=-1):
        if run is state:
            raise KeyboardInterrupt
        return own(run, share, around)

    several = team._examined
    monkeypatch.setattr(propose.Run, "examine", interrupted)
    monkeypatch.setattr(
        team, "_examined", lambda run, e, n, stop: stopped.append(stop) or several(run, e, n, stop)
    )
    with pytest.raises(KeyboardInterrupt):
        state.examine(64)
    assert stopped and all(stop.is_set() for stop in stopped)
    assert state.proven == before and not state._helpers
    monkeypatch.setattr(propose.Run, "examine", own)
    assert state.examine(64) == search.DONE and state.proven == before


@pytest.mark.parametrize("broken", ["_open", "_moved"])
def test_a_deal_that_is_interrupted(crowded, monkeypatch, broken):
    """Slots are both open and free then, and no node is examined that lies in one."""
    state = begun(wide(0, False))
    before, calls, whole = state.proven, [], getattr(team, broken)

    def interrupted(*given):
        calls.append(given)
        if len(calls) == 2:
            raise MemoryError
        return whole(*given)

    monkeypatch.setattr(team, broken, interrupted)
    with pytest.raises(MemoryError):
        state.examine(64)
    assert state.examine(64) == search.DONE and state.proven == before


def test_a_stopped_thread_ends():
    """However many nodes it was to examine."""
    state, stop = propose.Run(wide(0, False)), Event()
    stop.set()
    assert team._examined(state, state.examine, 10**9, stop) == search.MORE


def test_what_another_thread_found_and_does_not_pass(crowded):
    """Nodes were closed against its cost, so that no bound may exceed it."""
    state = begun(wide(0, False))
    one, cost = state._helpers[0], 0.25 * state.least
    one.work.now.best_cost = one.least = one.confirmed = cost
    one.refused = dict(state.best.action)
    state._take_over(one)
    assert state.least == cost and state.target <= cost and state.refused is not None


def test_no_more_nodes_than_fit(crowded):
    """Room for all nodes of a turn is there before these are dealt out."""
    state = begun(wide(0, False))
    before = int(state.tree.now.open)
    state.tree.now.free = team.RESERVE
    assert state.examine(10**4) == search.FULL
    assert int(state.tree.now.open) == before


def test_stages_and_signs(monkeypatch):
    """Searches beside one have as many threads, and sides of signs are relaxed at once."""
    monkeypatch.setattr(search_on, "first_slice", lambda p, few: (4, -1))
    monkeypatch.setattr(search_on, "STAGES_FROM", 0.0)
    monkeypatch.setattr(stages, "TELL", 0)
    monkeypatch.setattr(stages, "PATIENCE", 0.0)
    for module in (stages, sign_tree):
        monkeypatch.setattr(module, "SHARE", 8.0)
    monkeypatch.setattr(sign_tree, "WITHOUT", 0.0)
    monkeypatch.setattr(team, "CROWD", 1)
    sides = []
    top = sign_tree.SignTree._top
    monkeypatch.setattr(sign_tree.SignTree, "_top", lambda *given: sides.append(1) or top(*given))
    for seed in range(4):
        for cost in ("l1", "l2-squared"):
            assert is_same(amounts(seed, cost), 2, 3)
    assert len(sides) > 10


def test_one_blas_thread_for_all_who_are_inside():
    """Two who are inside at once, of whom the first one leaves first, leave BLAS as it was."""

    def count():
        return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]

    before = count()
    ONE_BLAS_THREAD.__enter__()
    ONE_BLAS_THREAD.__enter__()
    ONE_BLAS_THREAD.__exit__()
    assert set(count()) == {1}
    ONE_BLAS_THREAD.__exit__()
    assert count() == before


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_a_wrong_number_is_one_line(threads):
    """As for jobs."""
    with pytest.raises(BadInput, match="threads"):
        solve(random_instance(0), threads=threads)


def test_every_door_leads_to_them(monkeypatch, tmp_path):
    """Functions for one, for files and a population; commands for an instance, a population and one of it."""
    monkeypatch.setattr(search, "first_slice", lambda p, few: (1, -1))
    made = set()

    def counted(threads, *given):
        made.add(threads)
        return team.Team(threads, *given)

    monkeypatch.setattr(engine, "Team", counted)
    one, people = instances_path() / "loan" / "loan_169.json", refused_file(tmp_path, 3)
    solve(read_instance(one), threads=2)
    list(solve_files([one], None, None, 1, threads=3))
    assert len(list(solve_population(people, threads=8))) == 3
    for threads, given in (
        ("4", ["solve", one]),
        ("5", ["certify", one, "--out", tmp_path / "5"]),
        ("6", ["certify", people, "--out", tmp_path / "6"]),
        ("7", ["certify", people, "--out", tmp_path / "7", "--index", "1"]),
    ):
        assert main([*map(str, given), "--threads", threads]) == 0
    assert made == {2, 3, 4, 5, 6, 7, 8}

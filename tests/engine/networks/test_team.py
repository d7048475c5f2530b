"""Several threads find what one does."""

from __future__ import annotations

import math
from contextlib import closing

import pytest

from milp_recourse import solve
from milp_recourse.engine.networks import propose, search_on, team
from milp_recourse.engine.networks.problem_arrays import why_not
from milp_recourse.errors import BadInput
from tests.helpers.generators import Style, random_instance
from tests.helpers.wide import wide


@pytest.fixture
def crowded(monkeypatch):
    """Turns of few nodes each, from the first nodes on; how many nodes helpers have examined."""
    monkeypatch.setattr(search_on, "first_slice", lambda p, few: (4, -1))
    monkeypatch.setattr(search_on, "STAGES_FROM", math.inf)
    monkeypatch.setattr(team, "CROWD", 1)
    monkeypatch.setattr(team, "TURN", 2)
    gather, seen = team.Team._gather, [0]

    def counted(self, gained):
        seen[0] += sum(int(tree.now.examined) for _, tree in self.helpers)
        gather(self, gained)

    monkeypatch.setattr(team.Team, "_gather", counted)
    return seen


def searched(instance, threads):
    """A search's best cost and bound, and how many nodes it had."""
    with closing(propose.Run(instance, threads=threads)) as state:
        bound, message = search_on.search_on(state)
        assert message is None
        return state.best.cost, bound, int(state.tree.now.examined)


STYLES = {
    "all": (Style(levers=5, width=16), 30),
    "free": (Style(levers=7, width=24, causes=False, discrete=False), 40),
    "causes": (Style(levers=5, width=16, discrete=False), 80),
}


@pytest.mark.parametrize(("style", "seeds"), STYLES.values(), ids=STYLES)
def test_as_one_thread(crowded, style, seeds):
    """Of random problems, among them such as rounding leaves open, costs are the same to the gap."""
    for seed in range(seeds):
        instance = random_instance(seed, style)
        if why_not(instance) is not None or not instance.levers:
            continue
        least, alone, _ = searched(instance, 1)
        for threads in (2, 3):
            cost, bound, _ = searched(instance, threads)
            assert (cost == math.inf) == (least == math.inf), (seed, threads)
            if cost < math.inf:
                assert abs(cost - least) <= instance.gap_tolerance(least), (seed, threads)
                assert bound <= least, (seed, threads)
                assert alone <= cost, (seed, threads)
    assert crowded[0] > 30


def test_labels_and_many_nodes(crowded):
    """Of wide networks over whole numbers or labels."""
    for labels in (False, True):
        instance = wide(0, labels)
        least, alone, _ = searched(instance, 1)
        cost, bound, _ = searched(instance, 2)
        assert abs(cost - least) <= instance.gap_tolerance(least)
        assert max(bound, alone) <= min(cost, least)
    assert crowded[0] > 30


def test_the_same_threads_find_the_same(crowded):
    """No number of nodes depends on the clock."""
    instance = wide(1, False)
    assert len({searched(instance, 2) for _ in range(3)}) == 1
    assert crowded[0] > 0


def test_nothing_is_lost_where_a_turn_is_interrupted(crowded, monkeypatch):
    """What is open goes back to the search, whose bound stays one."""
    state = propose.Run(wide(0, False), threads=2)
    while not state._team.helpers:
        state.examine(8)
        state.confirm()
    before, part = state.proven, propose.Run.slice
    monkeypatch.setattr(propose.Run, "slice", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    opened = int(state.tree.now.open)
    with pytest.raises(KeyboardInterrupt):
        state._team.turn(8, -1)
    assert int(state.tree.now.open) == opened
    assert state.proven == before
    monkeypatch.setattr(propose.Run, "slice", part)


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_a_wrong_number_is_one_line(threads):
    """As for jobs."""
    with pytest.raises(BadInput, match="threads"):
        solve(random_instance(0), threads=threads)

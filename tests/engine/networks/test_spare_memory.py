"""Memory goes from a search that has ended to the next of its shape, and is never two searches' at once."""

from __future__ import annotations

from contextlib import closing

import pytest

from milp_recourse.engine.networks import search
from milp_recourse.engine.networks.problem_arrays import lower
from milp_recourse.engine.networks.propose import Run
from milp_recourse.engine.networks.search import MOST_SHAPES, Spare
from milp_recourse.questions.solve import solve
from tests.helpers.generators import random_instance


def test_a_search_in_the_middle_of_another_has_its_own() -> None:
    """The first one's numbers stay; what it gives back, the next one of its shape takes."""
    instance = random_instance(3)
    with closing(Run(instance)) as first:
        first.examine(3)
        before, known = first.work.unit.block.copy(), int(first.tree.now.examined)
        with closing(Run(instance)) as second:
            assert second.work is not first.work
            second.examine(30)
        assert (first.work.unit.block == before).all() and int(first.tree.now.examined) == known
        own = first.work
    with closing(Run(instance)) as third:
        assert third.work is own
    with pytest.raises(AttributeError):
        first.examine(1)


def test_spare_memory_does_not_grow_with_the_number_of_shapes() -> None:
    """What is given back of many shapes is let go; what is lent while an error passes is not kept."""
    spare, problems = Spare(lambda p: [0]), [lower(random_instance(seed)) for seed in range(12)]
    for p in problems:
        with spare.lent(p) as own:
            own[0] += 1
        assert len(spare._free) <= MOST_SHAPES + 1
    last = spare.take(problems[-1])
    assert last == [1] and spare.take(problems[-1]) == [0]
    with pytest.raises(ValueError), spare.lent(problems[0]):
        raise ValueError
    assert spare.take(problems[0]) == [0]


def test_answers_are_those_in_new_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit, whoever was before."""
    instances = [random_instance(seed) for seed in (5, 6, 5, 7, 6)]
    used = [solve(one, "bab") for one in instances]
    monkeypatch.setattr(search.SPARE, "give", lambda *_: None)
    monkeypatch.setattr(search.SPARE, "_free", {})
    new = [solve(one, "bab") for one in instances]
    assert [(a.cost, a.lower_bound, a.action, a.nodes) for a in used] == [
        (b.cost, b.lower_bound, b.action, b.nodes) for b in new
    ]

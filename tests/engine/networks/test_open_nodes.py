"""The open nodes: whatever is put in or taken out, from the top or anywhere, the least bound is on top."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from tests.helpers.processes import uncompiled


def shuffled(trials: int) -> None:
    """Random insertions and removals, by the functions themselves; run where nothing is compiled."""
    from milp_recourse.engine.networks import search, work

    rng, size = np.random.default_rng(0), 40
    w = SimpleNamespace(now=SimpleNamespace(best_cost=np.inf))  # no action is in hand
    for _ in range(trials):
        heap, now = np.zeros(size, dtype=np.int64), np.zeros(1, work.COUNTS)[0]
        t = SimpleNamespace(heap=heap, bound=np.zeros(size), now=now, free=np.arange(size))
        t.now.free = size
        inside: set[int] = set()
        for _ in range(150):
            free = sorted(set(range(size)) - inside)
            what = rng.random()
            if not inside or (what < 0.5 and free):
                t.free[: len(free)] = rng.permutation(free)
                slot = int(t.free[len(free) - 1])
                search._push(t, float(rng.integers(0, 10)))
                inside.add(slot)
            elif what < 0.75:
                top = int(search._next(t, w))
                assert t.bound[top] == min(t.bound[sorted(inside)])
                inside.remove(top)
            else:
                slot = int(rng.choice(sorted(inside)))
                t.now.young = slot + 1  # a child of the node before
                assert search._next(t, w) == slot
                inside.remove(slot)
            n = int(t.now.open)
            assert set(t.free[: t.now.free].tolist()) == set(range(size)) - inside
            assert set(t.heap[:n].tolist()) == inside
            assert all(t.bound[t.heap[(k - 1) // 2]] <= t.bound[t.heap[k]] for k in range(1, n))


def test_the_least_bound_is_on_top() -> None:
    """150 steps, 40 times over."""
    uncompiled("from tests.engine.networks.test_open_nodes import shuffled; shuffled(40)")

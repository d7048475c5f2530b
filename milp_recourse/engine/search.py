r"""The tree: boxes of many applicants, bounded in batches, until every applicant is proven.

A node is a box of one applicant's actions in one configuration, with the signs of the ReLUs that were
split on. It is closed when its bound reaches the applicant's target, the cost in hand less half the
allowed gap (without one: more than any action can cost), so that closing every node proves the
optimum, or that there is none.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from milp_recourse.engine import local
from milp_recourse.engine.branch import Choices, children
from milp_recourse.engine.contract import contract
from milp_recourse.engine.incumbents import Best, Incumbents, Judge
from milp_recourse.engine.kernel import Examined, costs_of, examine
from milp_recourse.engine.nodes import Nodes
from milp_recourse.engine.relaxation import rounding
from milp_recourse.engine.stack import Stack

Array = np.ndarray

BATCH = 2048
"""Nodes bounded at once: large enough that Python's overhead is a tenth, small enough for the cache."""

_WIDTH = 8  # nodes of one applicant and configuration per batch, when there are others to fill it
_AHEAD = 0.5  # nodes with bounds beyond this share of the way to the target wait
_SAMPLES, _HOPS = 32, 6  # of the first local search
_DIVES, _DIVE_HOPS = 2, 4  # local searches from relaxed optima while there is no action at all
_DIVE_AFTER = 16  # nodes until the next one, and then whenever the work has doubled
_NEARLY = 40  # exact judgements spent on actions within rounding of feasible, per applicant


@dataclass
class Pool:
    """The open nodes of one stack, and the population's number of each of its applicants."""

    stack: Stack
    people: Array
    errors: list[Any]
    nodes: Nodes


@dataclass(frozen=True)
class Finished:
    """One applicant's outcome.

    Attributes
    ----------
    person
        Its number.
    best
        The best action; None without one.
    bound
        Proven lower bound of the cost; inf: no action exists.
    nodes, seconds
        Nodes examined and this applicant's share of the time.
    late
        Whether nodes were left when time, or nodes, ran out.
    stuck
        Whether boxes too small to split were left.
    """

    person: int
    best: Best | None
    bound: float
    nodes: int
    seconds: float
    late: bool
    stuck: bool


class Search:
    """Branch and bound for ``count`` applicants at once.

    Parameters
    ----------
    stacks
        Fixed programs, with the number of the applicant of every column.
    judge
        Exact judgement, for actions within rounding of the threshold.
    time_limit
        Seconds per applicant, measured as its share of every batch; None for no limit.
    batch
        Nodes bounded at once.
    spent
        Seconds that each applicant has had before, for lowering.
    cheaper_than
        Only asked is whether an action costs less than this (count,): the first one ends the search.
    node_limit
        Per applicant; None for no limit.
    allowance
        The absolute part of every applicant's tolerance (count,); None: zeros.
    """

    def __init__(
        self,
        stacks: Sequence[tuple[Stack, Array]],
        count: int,
        judge: Judge,
        time_limit: float | None = None,
        batch: int = BATCH,
        spent: float = 0.0,
        cheaper_than: Array | None = None,
        node_limit: int | None = None,
        allowance: Array | None = None,
    ) -> None:
        self.judge, self.time_limit, self.batch = judge, time_limit, batch
        self.incumbents = Incumbents(count, cheaper_than, allowance)
        self._any_action_will_do, self.node_limit = cheaper_than is not None, node_limit
        self.work = np.zeros(count, dtype=np.int64)
        self.seconds = np.full(count, spent)
        self.stuck = np.full(count, np.inf)  # least bound of the nodes given up
        self._dives = np.zeros(count, dtype=np.int64)
        self._dived_at = np.zeros(count, dtype=np.int64)
        self._judged = np.zeros(count, dtype=np.int64)
        self.pools = [self._pool(stack, people) for stack, people in stacks]

    def run(self) -> Iterator[Finished]:
        """Every applicant, as soon as it is finished."""
        self._first_actions()
        waiting = np.ones(len(self.work), dtype=bool)
        while waiting.any():
            least = self._least()
            over = np.zeros(len(waiting), dtype=bool)
            if self.time_limit is not None:
                over = np.isfinite(least) & (self.seconds > self.time_limit)
            if self._any_action_will_do:
                over |= self.incumbents.found(np.arange(len(waiting)))
            if self.node_limit is not None:
                over |= np.isfinite(least) & (self.work >= self.node_limit)
            if over.any():
                for pool in self.pools:
                    pool.nodes = pool.nodes.take(~over[pool.people[pool.nodes.who]])
            for done in np.flatnonzero(waiting & (~np.isfinite(least) | over)):
                waiting[done] = False
                yield self._finished(int(done), float(least[done]))
            for k in range(len(self.pools)):
                self._step(k, least)

    # -- opening -------------------------------------------------------------------------

    def _pool(self, stack: Stack, people: Array) -> Pool:
        start = time.perf_counter()
        roots = Nodes.roots(stack.lower.copy(), stack.upper.copy())
        far = np.maximum(np.abs(stack.lower - stack.factual), np.abs(stack.upper - stack.factual))
        dearest = (stack.kappa * far * far + stack.beta * far + stack.jump).sum(axis=0) + stack.fixed
        dearest = dearest + (stack.omega * far + stack.jump_largest).max(axis=0)
        np.maximum.at(self.incumbents.dearest, people, 1.01 * dearest + 1e-9)
        errors = rounding(stack, stack.lower, stack.upper, roots.who)
        np.add.at(self.seconds, people, (time.perf_counter() - start) / len(people))
        return Pool(stack, people, errors, roots)

    def _first_actions(self, seed: int = 0) -> None:
        """Sample, then search locally, in every stack."""
        for k, pool in enumerate(self.pools):
            start = time.perf_counter()
            if self.time_limit is not None and (self.seconds[pool.people] > self.time_limit).all():
                continue
            stack, nodes = pool.stack, pool.nodes
            draws = np.random.default_rng(seed).random((_SAMPLES, pool.stack.actions + 1, len(nodes)))
            target = self.incumbents.target(pool.people)
            who = nodes.who
            costs = costs_of(stack, who)
            low, high = contract(stack, costs, nodes.low, nodes.high, who, target)
            alive = np.flatnonzero(~(low > high).any(axis=0))
            if len(alive):
                low, high, who, costs = (
                    low[:, alive],
                    high[:, alive],
                    who[alive],
                    costs.take(alive),
                )
                first = local.sampled(stack, costs, low, high, who, draws[:, :, alive])
                found = local.polish(
                    stack,
                    costs,
                    first,
                    low,
                    high,
                    who,
                    pool.errors[-1][alive],
                    target[alive],
                    _HOPS,
                )
                self.incumbents.offer(k, pool.people[alive], alive, found.point, found.cost)
            np.add.at(self.seconds, pool.people, (time.perf_counter() - start) / max(1, len(nodes)))

    # -- one batch -----------------------------------------------------------------------

    def _least(self) -> Array:
        """Least bound of every applicant's open nodes; inf where none are open."""
        least = np.full(len(self.work), np.inf)
        for pool in self.pools:
            np.minimum.at(least, pool.people[pool.nodes.who], pool.nodes.bound)
        return least

    def _pick(self, pool: Pool, least: Array) -> Array:
        """The nodes to examine next: each applicant's best, in turn."""
        people = pool.people[pool.nodes.who]
        order = np.lexsort((pool.nodes.bound, people))
        people = people[order]
        new = np.ones(len(people), dtype=bool)
        new[1:] = people[1:] != people[:-1]
        rank = np.arange(len(people)) - np.maximum.accumulate(np.where(new, np.arange(len(people)), 0))
        width = max(_WIDTH, self.batch // max(1, int(new.sum())))
        room = np.maximum(self.incumbents.target(people) - least[people], 0.0)
        soon = (rank < width) & (pool.nodes.bound[order] <= least[people] + _AHEAD * room)
        order, rank = order[soon], rank[soon]
        return order[np.argsort(rank, kind="stable")[: self.batch]]

    def _step(self, k: int, least: Array) -> None:
        start = time.perf_counter()
        pool = self.pools[k]
        reached = pool.nodes.bound >= self.incumbents.target(pool.people[pool.nodes.who])
        if reached.any():
            pool.nodes = pool.nodes.take(~reached)
        picked = self._pick(pool, least)
        if not len(picked):
            return
        nodes = pool.nodes.take(picked)
        rest = np.ones(len(pool.nodes), dtype=bool)
        rest[picked] = False
        pool.nodes = pool.nodes.take(rest)
        people = pool.people[nodes.who]
        target = self.incumbents.target(people)
        found = examine(pool.stack, pool.errors, nodes, target)
        self._take_actions(k, found)
        left = nodes.take(found.index)
        left.low, left.high, left.bound, left.cut = (
            v for v in (found.low, found.high, found.bound, found.cut)
        )
        if found.choices is not None and len(left):
            self._dive(k, left, found.point)
            self._branch(k, left, Choices(*(v for v in vars(found.choices).values())))
        share = (time.perf_counter() - start) / len(people)
        np.add.at(self.work, people, 1)
        np.add.at(self.seconds, people, share)

    def _branch(self, k: int, left: Nodes, choices: Choices) -> None:
        pool = self.pools[k]
        first, second, stuck = children(left, choices, pool.stack.integral)
        if stuck.any():
            np.minimum.at(self.stuck, pool.people[left.who[stuck]], left.bound[stuck])
        pool.nodes = pool.nodes.joined([first.take(~stuck), second.take(~stuck)])

    def _take_actions(self, k: int, found: Examined) -> None:
        """Offer what the kernel met; what is within rounding of feasible is judged exactly."""
        pool = self.pools[k]
        if found.met is not None:
            who, actions, cost = found.met.who, found.met.actions, found.met.cost
            self.incumbents.offer(k, pool.people[who], who, actions, cost)
            nearly = found.met.nearly & (found.met.price < self.incumbents.cost[pool.people[who]])
            for j in np.flatnonzero(nearly).tolist():
                applicant = int(pool.people[who[j]])
                cheaper = found.met.price[j] < self.incumbents.cost[applicant]
                if self._judged[applicant] < _NEARLY and cheaper:
                    self._judged[applicant] += 1
                    self._judge(k, int(who[j]), actions[:, j])
        if found.points is not None:
            who, actions = found.points.who, found.points.actions
            for j in range(len(who)):
                self._judge(k, int(who[j]), actions[:, j])

    def _judge(self, k: int, column: int, action: Array) -> None:
        cost = self.judge(k, column, action)
        if cost is not None:
            columns = np.array([column])
            self.incumbents.offer(
                k, self.pools[k].people[columns], columns, action[:, None], np.array([cost])
            )

    def _dive(self, k: int, left: Nodes, points: Array) -> None:
        """Search locally from the relaxed optimum of each applicant's best node, now and then."""
        pool = self.pools[k]
        people = pool.people[left.who]
        order = np.argsort(left.bound, kind="stable")
        chosen = order[np.unique(people[order], return_index=True)[1]]
        person = people[chosen]
        lacking = ~self.incumbents.found(person) & (self._dives[person] < _DIVES)
        due = lacking | (self.work[person] > np.maximum(_DIVE_AFTER, 2 * self._dived_at[person]))
        chosen, person = chosen[due], person[due]
        if not len(chosen):
            return
        self._dives[person] += 1
        self._dived_at[person] = self.work[person]
        column = left.who[chosen]
        who = column
        found = local.polish(
            pool.stack,
            costs_of(pool.stack, who),
            points[:, chosen],
            pool.stack.lower[:, column],
            pool.stack.upper[:, column],
            who,
            pool.errors[-1][who],
            self.incumbents.target(person),
            _DIVE_HOPS,
        )
        self.incumbents.offer(k, person, column, found.point, found.cost)

    def _finished(self, person: int, least: float) -> Finished:
        best = self.incumbents.best[person]
        target = float(self.incumbents.target(np.array([person]))[0])
        late, stuck = least < target, float(self.stuck[person]) < target
        bound = min(least, float(self.stuck[person]))
        if best is not None:
            bound = min(bound, target)
        return Finished(
            person,
            best,
            max(0.0, bound),
            int(self.work[person]),
            float(self.seconds[person]),
            late,
            stuck,
        )

"""The back end ``ask``: actions are put to the classifier in the order of their cost, until one is accepted.

Nothing need be known of the classifier but its answers, so any function will do. The first accepted action is
the cheapest one, because every cheaper action was asked before it and refused. What an action makes of the
row, and whether it keeps masks, domains, conditions and plausibility, is computed exactly, as everywhere, and
rows that break one of these are not asked. Costs are ordered as doubles; the lower bound is less by what
these can be off.

Rows are asked in batches of :data:`FIRST` rows, or a fifth of all that were asked before. So at most
1.2 n + :data:`FIRST` + 3 rows are asked, where n counts the different rows of allowed actions that cost no
more than the optimum. The three are the factual, asked alone and among others, and the action that is
returned, asked a second time alone: a function that answers differently is an error.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.judge import Judgement, counterfactual_if_allowed, judge, judged_together
from milp_recourse.problem.asked_model import two_answers
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.options import LATE, Clock
from milp_recourse.solvers.in_order import ROOM, InOrder, endless_levers, has_limits_only
from milp_recourse.solvers.protocol import Options, Proposal

Array = NDArray[np.float64]

FIRST = 16
"""The number of rows in the first batches."""

TOGETHER = 2**15
"""The most rows in a batch."""

TOO_MANY = (
    f"more than {ROOM} actions wait to be asked: take fewer levers, larger steps, or a limit on actions"
)
"""The message of an answer whose search would take too much memory."""

_LOOK = 256  # so many actions are judged between two looks at the clock


class AskBackend:
    """Asks the classifier about every action that is cheaper than the answer."""

    name = "ask"
    proves = True

    def unavailable(self) -> str | None:
        """None: numpy is all it needs."""
        return None

    def why_not(self, instance: Instance) -> str | None:
        """A lever without steps, or several outcomes of an action; else None."""
        if instance.scenarios:
            return "it plans for one outcome of each action"
        endless = endless_levers(instance)
        return _needs_steps(instance, endless) if endless else None

    def keeps_lattices(self, instance: Instance) -> bool:
        """True: it asks about the values that may be set, and no others."""
        return True

    def solve(self, instance: Instance, options: Options) -> Proposal:
        """The cheapest accepted action, or that there is none, or a bound when time runs out."""
        return _Search(instance, options).run()


def _needs_steps(instance: Instance, names: list[str]) -> str:
    """What to do about levers with too many values to ask about."""
    width = {name: instance.levers[name][1] - instance.levers[name][0] for name in names}
    steps = ", ".join(f"{name!r}: {_round(width[name] / 20):g}" for name in names)
    listed = ", ".join(names)
    are = "are levers that take any number" if len(names) > 1 else "is a lever that takes any number"
    return f"{listed} {are}; with steps, such as steps={{{steps}}}, the answer would be exact"


def _round(width: float) -> float:
    """A width to one significant digit; 1 for none."""
    return float(f"{width:.1g}") or 1.0


class _Batch(NamedTuple):
    """Actions whose rows are to be asked: costs, actions as :class:`InOrder` gives them, rows of features."""

    costs: Array
    actions: Array
    rows: Array

    @property
    def many(self) -> int:
        """The number of actions."""
        return len(self.costs)

    def and_then(self, more: _Batch) -> _Batch:
        """One batch after another."""
        return _Batch(*(np.concatenate(both) for both in zip(self, more, strict=True)))


class _Search:
    """The search for one person.

    Attributes
    ----------
    rest
        The judgement of doing nothing.
    asked
        The number of rows asked.
    seconds
        The time that the classifier took.
    free
        Whether all demands are kept anyway.
    known
        The rows asked, where two actions can lead to one.
    """

    def __init__(self, instance: Instance, options: Options) -> None:
        self.instance, self.watch = instance, options.watch
        self.clock = Clock.start(options.time_limit)
        self.rest = judge(instance, {})
        self.asked, self.seconds = 1, 0.0
        self.order = InOrder(instance)
        self.columns = [[f.name for f in instance.features].index(name) for name in self.order.names]
        self.free = _is_free(instance)
        self.known: set[bytes] = set()
        self.factual = instance.factual_row

    def run(self) -> Proposal:
        """Ask until an action is accepted, none is left, or time is over."""
        if self.rest.feasible:
            return Proposal({}, 0.0, "asked", self.asked, judgement=self.rest)
        nobody = _Batch(np.zeros(0), np.zeros((0, len(self.columns))), np.zeros((0, len(self.factual))))
        batch, size = nobody, FIRST
        for costs, actions in self.order:
            at = 0
            while at < len(costs):
                if self.clock.over:
                    return self._ended(min([*batch.costs[:1], costs[at]]), LATE)
                some = slice(at, at + min(size - batch.many, TOGETHER if self.free else _LOOK))
                at = some.stop
                batch = batch.and_then(self._rows(costs[some], actions(some)))
                if batch.many == size:
                    found = self._first(batch)
                    if found is not None:
                        return found
                    batch, size = nobody, self._size()
        found = self._first(batch) if batch.many else None
        if found is None and self.order.full:
            return self._ended(self.order.done, TOO_MANY)
        return found or Proposal(None, math.inf, "asked", self.asked)

    def _bound(self, cost: float) -> float:
        """A number that no action costs less than which comes with this cost or later."""
        return max(0.0, float(cost) * (1 - 2 * self.order.off))

    def _ended(self, cost: float, message: str) -> Proposal:
        return Proposal(None, self._bound(cost), "asked", self.asked, message)

    def _size(self) -> int:
        """The size of the next batch: what 1.2 times allows, and what there is time for."""
        size, left = min(max(FIRST, self.asked // 5), TOGETHER), self.clock.left(0.0)
        if left is not None and self.seconds:
            size = max(1, min(size, int(left * self.asked / self.seconds)))
        return size

    def _first(self, batch: _Batch) -> Proposal | None:
        """The proposal of the first accepted action of a batch, if there is one."""
        if self.asked == 1:  # the factual once more, among others
            nothing = np.full(len(self.columns), np.nan)
            *accepted, factual = self._accepted([*batch.actions, nothing], [*batch.rows, self.factual])
            if factual is not _is_accepted(self.rest):
                raise two_answers()
        else:
            accepted = self._accepted(batch.actions, batch.rows)
        if True not in accepted:
            if self.watch is not None:
                self.watch(math.inf, self._bound(batch.costs[-1]))
            return None
        first = accepted.index(True)
        judgement = judge(self.instance, self._action(batch.actions[first]))
        self.asked += 1
        if not judgement.feasible:
            raise two_answers()
        bound = self._bound(batch.costs[first])
        return Proposal(judgement.action, bound, "asked", self.asked, judgement=judgement)

    def _accepted(self, actions: Iterable[Array], rows: Sequence[Array] | Array) -> list[bool]:
        """What the classifier says of rows."""
        begun, one = time.perf_counter(), self.instance
        self.asked += len(rows)
        if isinstance(one.classifier, ReluNetwork):
            verdicts = judged_together([(one, self._action(action)) for action in actions])
            said = [_is_accepted(verdict) for verdict in verdicts]
        else:
            said = (one.classifier.scores(one.model_rows(np.asarray(rows))) > one.accept.above).tolist()
        self.seconds += time.perf_counter() - begun
        return said

    def _rows(self, costs: Array, actions: Array) -> _Batch:
        """The batch of those actions that keep all demands and lead to a row that was not asked before."""
        rows = np.tile(self.factual, (len(costs), 1))
        if self.free:
            rows[:, self.columns] = np.where(np.isnan(actions), rows[:, self.columns], actions)
            return _Batch(costs, actions, rows)
        kept = []
        for k, action in enumerate(actions):
            after = counterfactual_if_allowed(self.instance, self._action(action))
            if after is None:
                continue
            rows[k] = [after[f.name] for f in self.instance.features]
            key = rows[k].tobytes()
            if key not in self.known:
                self.known.add(key)
                kept.append(k)
        return _Batch(costs[kept], actions[kept], rows[kept])

    def _action(self, row: Array) -> dict[str, float]:
        return {name: v for name, v in zip(self.order.names, row.tolist(), strict=True) if not math.isnan(v)}


def _is_accepted(verdict: Judgement) -> bool:
    return verdict.accepted_exact and verdict.accepted_deployed


def _is_free(instance: Instance) -> bool:
    """Whether every action that :class:`InOrder` makes keeps all demands, and no two lead to one row."""
    if instance.scm.edges or instance.plausible or not has_limits_only(instance.demand):
        return False
    ends = ((f.domain, instance.factual[f.name]) for f in instance.features)
    return all(domain is None or math.isnan(x) or domain[0] <= x <= domain[1] for domain, x in ends)

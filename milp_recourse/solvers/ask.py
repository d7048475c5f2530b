"""The back end ``ask``: actions are put to the classifier in the order of their cost, until one is accepted.

Nothing need be known of the classifier but its answers, so any function will do. The first accepted action is
the cheapest one, because every cheaper action was asked before it and refused. What an action makes of the
row, and whether it keeps masks, domains, conditions and plausibility, is computed exactly, as everywhere, and
rows that break one of these are not asked.

Rows are asked in batches of :data:`FIRST` rows, or a fifth of all that were asked before. So at most
1.2 n + :data:`FIRST` + 3 rows are asked, where n counts the different rows of allowed actions that cost no
more than the optimum. The three are the factual, asked alone and among others, and the action that is
returned, asked a second time alone: a function that answers differently is an error.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.judge import Judgement, counterfactual_if_allowed, judge, judged_together
from milp_recourse.problem.asked_model import two_answers
from milp_recourse.problem.enclosure import round_down
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.options import LATE, Clock
from milp_recourse.solvers.in_order import InOrder, endless_levers, has_limits_only
from milp_recourse.solvers.protocol import Options, Proposal

Array = NDArray[np.float64]

FIRST = 16
"""The number of rows in the first batches."""

TOGETHER = 2**15
"""The most rows in a batch."""

WAITING = 4_000_000
"""The most actions that may wait for their turn; they take about 2 GB."""

TOO_MANY = f"{WAITING} actions wait to be asked: take fewer levers, larger steps, or a limit on actions"
"""The message of an answer whose search would take too much memory."""

_LOOK = 256  # so many actions are made between two looks at the clock


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


class _Waiting(NamedTuple):
    """An action whose row is to be asked."""

    cost: Fraction
    action: Mapping[str, float]
    row: Array


class _Search:
    """The search for one person.

    Attributes
    ----------
    rest
        The judgement of doing nothing.
    asked
        The number of rows asked.
    bound
        No accepted action costs less.
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
        self.asked, self.bound, self.seconds = 1, Fraction(0), 0.0
        self.place = {f.name: k for k, f in enumerate(instance.features)}
        self.free = _is_free(instance)
        self.known: set[bytes] = set()
        self.factual = instance.factual_row

    def run(self) -> Proposal:
        """Ask until an action is accepted, none is left, or time is over."""
        if self.rest.feasible:
            return Proposal({}, 0.0, "asked", self.asked, judgement=self.rest)
        order, batch, size = InOrder(self.instance), list[_Waiting](), FIRST
        for number, (cost, action) in enumerate(order):
            if number % _LOOK == 0 and (self.clock.over or len(order.heap) > WAITING):
                self.bound = batch[0].cost if batch else cost
                return self._ended(LATE if self.clock.over else TOO_MANY)
            row = self._row(action) if action else None
            if row is None:
                continue
            batch.append(_Waiting(cost, action, row))
            if len(batch) == size:
                found = self._first(batch)
                if found is not None:
                    return found
                batch, size = [], self._size()
        return self._first(batch) or Proposal(None, math.inf, "asked", self.asked)

    def _ended(self, message: str) -> Proposal:
        return Proposal(None, max(0.0, round_down(self.bound)), "asked", self.asked, message)

    def _size(self) -> int:
        """The size of the next batch: what 1.2 times allows, and what there is time for."""
        size, left = min(max(FIRST, self.asked // 5), TOGETHER), self.clock.left(0.0)
        if left is not None and self.seconds:
            size = max(1, min(size, int(left * self.asked / self.seconds)))
        return size

    def _first(self, batch: list[_Waiting]) -> Proposal | None:
        """The proposal of the first accepted action of a batch, if there is one."""
        if not batch:
            return None
        if self.asked == 1:  # the factual once more, among others
            *accepted, factual = self._accepted([*batch, _Waiting(Fraction(0), {}, self.factual)])
            if factual is not _is_accepted(self.rest):
                raise two_answers()
        else:
            accepted = self._accepted(batch)
        self.bound = batch[-1].cost
        if True not in accepted:
            if self.watch is not None:
                self.watch(math.inf, max(0.0, round_down(self.bound)))
            return None
        cost, action, _ = batch[accepted.index(True)]
        judgement = judge(self.instance, action)
        self.asked += 1
        if not judgement.feasible:
            raise two_answers()
        return Proposal(action, max(0.0, round_down(cost)), "asked", self.asked, judgement=judgement)

    def _accepted(self, batch: list[_Waiting]) -> list[bool]:
        """What the classifier says of the rows of a batch."""
        begun, one = time.perf_counter(), self.instance
        self.asked += len(batch)
        if isinstance(one.classifier, ReluNetwork):
            said = [_is_accepted(v) for v in judged_together([(one, w.action) for w in batch])]
        else:
            rows = one.model_rows(np.array([waiting.row for waiting in batch]))
            said = (one.classifier.scores(rows) > one.accept.above).tolist()
        self.seconds += time.perf_counter() - begun
        return said

    def _row(self, action: Mapping[str, float]) -> Array | None:
        """The row after an action; None if the action breaks a demand or the row was asked before."""
        if self.free:
            row = self.factual.copy()
            for name, value in action.items():
                row[self.place[name]] = value
            return row
        after = counterfactual_if_allowed(self.instance, action)
        if after is None:
            return None
        row = np.array([after[name] for name in self.place])
        key = row.tobytes()
        if key in self.known:
            return None
        self.known.add(key)
        return row


def _is_accepted(verdict: Judgement) -> bool:
    return verdict.accepted_exact and verdict.accepted_deployed


def _is_free(instance: Instance) -> bool:
    """Whether every action that :class:`InOrder` makes keeps all demands, and no two lead to one row."""
    if instance.scm.edges or instance.plausible or not has_limits_only(instance.demand):
        return False
    ends = ((f.domain, instance.factual[f.name]) for f in instance.features)
    return all(domain is None or math.isnan(x) or domain[0] <= x <= domain[1] for domain, x in ends)

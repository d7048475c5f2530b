"""One solver on one instance: its answer, when that improved, and the exact judgement of its action."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from milp_recourse.judge import judge
from milp_recourse.problem.instance import Instance

Answer = dict[str, Any]

MOST_EVENTS = 60
"""How many improvements are kept."""


class Events:
    """Processor seconds at which the best cost or the bound improved: [seconds, cost or None, bound]."""

    def __init__(self) -> None:
        self.start, self.kept = time.process_time(), [[0.0, math.inf, 0.0]]

    def __call__(self, cost: float, bound: float) -> None:
        """Note a cost and a bound, if one of them is better than before."""
        _, best, proven = self.kept[-1]
        if cost < best or bound > proven:
            self.kept.append([time.process_time() - self.start, min(cost, best), max(bound, proven)])

    def listed(self) -> list[list[float | None]]:
        """At most :data:`MOST_EVENTS` improvements: every better cost, and bounds in equal steps."""
        steps, chosen, known = max(1, MOST_EVENTS - 20), [], (math.inf, -1)
        top = max((b for _, _, b in self.kept), default=0.0) or 1.0
        for seconds, cost, bound in self.kept[1:]:
            now = (cost, int(steps * bound / top))
            if now != known:
                chosen.append([round(seconds, 4), cost if math.isfinite(cost) else None, bound])
            known = now
        return chosen[:MOST_EVENTS]


def clocked(instance: Instance, solve: Callable[[Events], Answer]) -> Answer:
    """A solver's answer with its wall and processor seconds, its improvements, and its action judged."""
    events, wall = Events(), time.perf_counter()
    found = solve(events)
    times = {"processor_seconds": time.process_time() - events.start, "seconds": time.perf_counter() - wall}
    return found | times | {"events": events.listed()} | judged(instance, found.get("action"))


def judged(instance: Instance, action: Any) -> Answer:
    """An action by numbers, its exact cost, and whether it is feasible; three times None without one."""
    if action is None:
        return {"action": None, "cost": None, "feasible": None}
    plain = {f: _number(instance, f, value) for f, value in action.items()}
    verdict = judge(instance, plain)
    return {"action": plain, "cost": float(verdict.cost), "feasible": verdict.feasible}


def _number(instance: Instance, name: str, value: Any) -> float:
    """A label by its index, anything else as it is."""
    categories = instance.by_name[name].categories
    return categories.index(value) if categories and isinstance(value, str) else float(value)

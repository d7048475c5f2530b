"""Judging actions exactly, and the one place where results are made."""

from milp_recourse.judge.conclude import conclude
from milp_recourse.judge.good_already import already_good, already_good_among, without_search
from milp_recourse.judge.judgement import (
    ROUNDOFF,
    Action,
    Judgement,
    deltas,
    judge,
    judged_together,
    known_factual,
)
from milp_recourse.judge.polish import Repair, held_exactly, without_idle_holds

__all__ = [
    "ROUNDOFF",
    "Action",
    "Judgement",
    "Repair",
    "already_good",
    "already_good_among",
    "conclude",
    "deltas",
    "held_exactly",
    "judge",
    "judged_together",
    "known_factual",
    "without_idle_holds",
    "without_search",
]

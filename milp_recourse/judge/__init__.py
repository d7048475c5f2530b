"""Judging actions exactly, and the one place where results are made."""

from milp_recourse.judge.conclude import (
    Repair,
    already_good,
    at_once,
    at_rest,
    at_rest_in_words,
    conclude,
    held_exactly,
    without_idle_holds,
    without_search,
)
from milp_recourse.judge.judgement import (
    ROUNDOFF,
    Action,
    Judgement,
    counterfactual_if_allowed,
    judge,
    judged_together,
    known_factual,
    model_inputs,
)

__all__ = [
    "ROUNDOFF",
    "Action",
    "Judgement",
    "Repair",
    "already_good",
    "at_once",
    "at_rest",
    "at_rest_in_words",
    "conclude",
    "counterfactual_if_allowed",
    "held_exactly",
    "judge",
    "judged_together",
    "known_factual",
    "model_inputs",
    "without_idle_holds",
    "without_search",
]

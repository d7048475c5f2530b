"""Evaluation of any recourse method against the certified optima."""

from milp_recourse.evaluation.evaluate import Evaluation, evaluate
from milp_recourse.evaluation.methods import ask, read_actions
from milp_recourse.evaluation.optima import certified_optima
from milp_recourse.evaluation.testing import assert_near_optimal

__all__ = ["Evaluation", "ask", "assert_near_optimal", "certified_optima", "evaluate", "read_actions"]

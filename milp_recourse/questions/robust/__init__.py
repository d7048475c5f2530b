"""Certainty: the cheapest action that is accepted even if targets are missed, the threshold moves or noise
differs."""

from milp_recourse.questions.robust.certain import Robust, robust
from milp_recourse.questions.robust.uncertainty import Uncertainty, uncertainty_of

__all__ = ["Robust", "Uncertainty", "robust", "uncertainty_of"]

"""Certainty: the cheapest action that holds although targets are missed, thresholds move or noise differs."""

from milp_recourse.robust.certain import ROBUST_FORMAT, Robust, robust
from milp_recourse.robust.uncertainty import Uncertainty, uncertainty_of

__all__ = ["ROBUST_FORMAT", "Robust", "Uncertainty", "robust", "uncertainty_of"]

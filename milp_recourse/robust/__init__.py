"""Certainty: the cheapest action that holds although targets are missed, thresholds move or noise differs."""

from milp_recourse.robust.certain import Robust, robust
from milp_recourse.robust.uncertainty import Uncertainty, uncertainty_of

__all__ = ["Robust", "Uncertainty", "robust", "uncertainty_of"]

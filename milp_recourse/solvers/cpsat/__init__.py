"""OR-Tools' CP-SAT for tree ensembles: levers that move only themselves, and causal models."""

from milp_recourse.solvers.cpsat.backend import CpsatBackend

__all__ = ["CpsatBackend"]

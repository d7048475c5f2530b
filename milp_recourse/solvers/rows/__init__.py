"""From the neutral program to a mixed-integer program, one function per formula."""

from milp_recourse.solvers.rows.atom_rows import equal_parts
from milp_recourse.solvers.rows.encode import bounded, encode, whole_problem
from milp_recourse.solvers.rows.mixed_integer import MixedInteger

__all__ = ["MixedInteger", "bounded", "encode", "equal_parts", "whole_problem"]

"""From the neutral program to a mixed-integer program, one function per formula."""

from milp_recourse.encodings.encode import encode, whole_problem
from milp_recourse.encodings.mixed_integer import MixedInteger

__all__ = ["MixedInteger", "encode", "whole_problem"]

"""Lines of a sigmoid whose slope is too small for a double, over intervals that are too long."""

from __future__ import annotations

from tests.helpers.processes import uncompiled


def test_a_lower_line_of_a_sigmoid_is_below_it_far_out() -> None:
    """1.2e-304 z over [-1e60, 0]: what the clamped slope may be off by, times the length, was left out."""
    code = """
from milp_recourse.engine.networks.elementary import SIGMOID, lowest
import math
m, l, t = 1.2e-304, -1e60, -1e60
curve = lambda z: 1.0 / (1.0 + math.exp(-z)) if z > -700.0 else 0.0
least = min(curve(z) - m * z for z in (l, -800.0, -700.0, -100.0, 0.0))
print(lowest(SIGMOID, m, l, 0.0, t, -math.inf) <= min(least, 8.4e-302))
"""
    assert uncompiled(code).split() == ["True"]

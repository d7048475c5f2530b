"""Steps and lists of values, against enumeration."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

from milp_recourse.problem.features import WHOLE, Feature, Lattice, Steps, Values

STEPS = [(0.1, 0.0), (0.1, 0.05), (50.0, 0.0), (1.0, 0.5), (2.5, -1.25), (1e-3, 7.0), (0.3, 1e6), (1.0, 3.0)]
LISTS = [Values((12.0, 24.0, 36.0)), Values((-0.5,)), Values((0.1, 0.2, 0.30000000000000004))]
LATTICES: list[Lattice] = [*(Steps(*one) for one in STEPS), *LISTS]


def all_values(lattice: Lattice, low: float, high: float) -> list[float]:
    """The values, from their definition."""
    if isinstance(lattice, Values):
        return [v for v in lattice.values if low <= v <= high]
    s, v = Fraction(repr(lattice.step)), Fraction(repr(lattice.origin))
    ks = range(math.floor((Fraction(low) - v) / s) - 2, math.ceil((Fraction(high) - v) / s) + 3)
    return sorted({x for x in (float(v + k * s) for k in ks) if low <= x <= high})


@pytest.mark.parametrize("lattice", LATTICES, ids=repr)
def test_floor_and_ceil(lattice: Lattice) -> None:
    """Both are the nearest listed values, at values, beside them and between them."""
    rng = random.Random(1)
    near = lattice.origin if isinstance(lattice, Steps) else lattice.values[0]
    width = 40 * lattice.step if isinstance(lattice, Steps) else 50.0
    values = all_values(lattice, near - 2 * width, near + 2 * width)
    assert values == lattice.within(near - 2 * width, near + 2 * width).tolist()
    xs = [rng.uniform(near - width, near + width) for _ in range(100)]
    for v in all_values(lattice, near - width, near + width):
        xs += [v, math.nextafter(v, math.inf), math.nextafter(v, -math.inf)]
    for x in xs:
        below = max((v for v in values if v <= x), default=-math.inf)
        above = min((v for v in values if v >= x), default=math.inf)
        assert (lattice.floor(x), lattice.ceil(x), x in lattice) == (below, above, x in values)
        assert lattice.before(x) == max((v for v in values if v < x), default=-math.inf)
        assert lattice.after(x) == min((v for v in values if v > x), default=math.inf)
        assert lattice.nearest(x) in (below, above)
    assert lattice.floors(np.array(xs)).tolist() == [lattice.floor(x) for x in xs]
    assert lattice.ceils(np.array(xs)).tolist() == [lattice.ceil(x) for x in xs]


def test_a_tenth_is_a_tenth() -> None:
    """Steps are counted in decimals: 0.3 is three tenths, though 3 times the double 0.1 is another double."""
    assert 0.3 in Steps(0.1)
    assert 3 * 0.1 not in Steps(0.1)
    assert Steps(0.1).floor(3 * 0.1) == 0.3


def test_steps_finer_than_doubles() -> None:
    """Where steps are finer than doubles, every double is a value."""
    assert 1.0000000000000002 in Steps(1e-20)
    assert math.pi * 1e10 in Steps(1e-20)


def test_what_a_kind_allows() -> None:
    """Whole numbers and labels are steps of 1; continuous features allow every double."""
    assert Feature("a", "integer").lattice == WHOLE == Feature("b", "ordinal", categories=("x", "y")).lattice
    assert Feature("a").lattice is None
    assert Feature("a", "integer", only=Steps(5.0)).lattice == Steps(5.0)
    assert WHOLE.floor(-math.inf) == -math.inf and math.isnan(WHOLE.floor(math.nan))

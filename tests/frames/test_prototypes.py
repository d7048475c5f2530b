"""Prototypes: rows far from each other that stand for all rows."""

import numpy as np

from milp_recourse.frames.from_data import prototypes


def test_rows_with_a_missing_value_are_left_out():
    """They have no distance; the others are chosen as if these were not there."""
    whole = np.array([[0.0, 1.0], [10.0, 2.0], [3.0, 3.0], [4.0, 2.5]])
    missing = np.array([[np.nan, 2.0], [5.0, np.nan]])
    mixed = np.concatenate([missing[:1], whole[:2], missing[1:], whole[2:]])
    found = prototypes(mixed, [1.0, 1.0], 3)
    assert found.tolist() == prototypes(whole, [1.0, 1.0], 3).tolist()
    assert len(np.unique(found, axis=0)) == 3


def test_each_is_the_farthest_from_those_before():
    """From the row nearest to the median, in scales."""
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [9.0, 0.0], [1.0, 500.0]])
    assert prototypes(rows, [1.0, 100.0], 3).tolist() == [[1.0, 0.0], [9.0, 0.0], [1.0, 500.0]]


def test_no_row_remains_where_all_have_a_missing_value():
    """The caller says that there are none."""
    assert prototypes(np.full((2, 3), np.nan), [1.0, 1.0, 1.0], 2).shape == (0, 3)

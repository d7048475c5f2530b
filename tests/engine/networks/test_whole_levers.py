"""Whole levers in a Lagrangian: no whole value of the box costs less than what is said to be the least."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from milp_recourse.engine.networks import levers
from milp_recourse.engine.networks.lever_arrays import COLUMN, INTERVAL, LEVER
from milp_recourse.formats import read_instance
from milp_recourse.judge import judge
from milp_recourse.questions.solve import solve


def test_the_least_term_is_at_most_that_of_every_whole_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the ends of the box lie between whole values, as what a ball cuts off does."""
    for name in ("term", "least_at", "kink_of"):
        monkeypatch.setattr(levers, name, getattr(getattr(levers, name), "py_func", getattr(levers, name)))
    respond = getattr(levers.respond, "py_func", levers.respond)
    rng, between = np.random.default_rng(1), 0
    for _ in range(3000):
        lever, box = np.zeros(1, LEVER), np.zeros(1, INTERVAL)
        grid, shift = 2.0 ** rng.integers(-3, 3), rng.choice([0.0, 0.375])
        lever[0].grid, lever[0].shift = grid, shift
        lever[0].linear, lever[0].square, lever[0].fixed = rng.uniform(0.0, 2.0, 3) * (rng.random(3) < 0.7)
        lever["down"] = down = rng.choice([1.0, rng.uniform(0.1, 4.0)])
        box[0].lo, box[0].hi = np.sort(rng.normal(0.0, 2.0 * grid, 2))
        box["mode"] = at_rest = rng.choice([0.0, 1.0])
        gain = rng.normal(0.0, 3.0, 2) * (1.0, rng.random() < 0.5)  # the second one at the kink
        p = SimpleNamespace(start=np.array([0, 1]), lever=lever, column=np.zeros(1, COLUMN))
        choice = np.zeros(1)
        least = respond(p, box, np.ones(1, dtype=np.uint8), 0, gain, 1.0, 0.0, choice)
        values = np.arange(-40, 41) * grid + shift
        values = values[(values >= box[0].lo) & (values <= box[0].hi)]
        linear, square, fixed = lever[0].linear, lever[0].square, lever[0].fixed
        size = np.where(values > 0.0, values, -down * values)
        true = linear * size + square * size**2 - gain[0] * values - gain[1] * abs(values) + fixed
        assert least <= min([*true.tolist(), *([0.0] if at_rest == 0.0 else [])], default=np.inf) + 1e-12
        between += len(values) > 0 and box[0].lo < choice[0] < box[0].hi
    assert between > 300


def test_a_whole_lever_cut_between_whole_values() -> None:
    """The ball leaves -0.22 to 0.72 of a lever in steps of 0.25. The least was sought at -0.22 and 0.03, and
    0.32757077 was called a proven bound, where an action costs 0.32749360."""
    instance = read_instance(Path(__file__).with_name("on_an_edge") / "whole_lever_cut_between.json")
    known = judge(instance, {"f0": 4.7384411866641205})
    assert known.feasible
    for backend in ("bab", "highs"):
        result = solve(instance, backend, 30)
        assert result.cost == pytest.approx(float(known.cost), rel=1e-6)
        assert result.lower_bound is not None
        assert result.lower_bound <= known.cost

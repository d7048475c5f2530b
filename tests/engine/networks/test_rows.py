"""Rows that conditions put on a problem: corners, edges, values that are set, and many levers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from milp_recourse import Status, solve
from milp_recourse.engine.networks import linear_bounds, rows
from milp_recourse.engine.networks.causes import Effects
from milp_recourse.engine.networks.lever_arrays import INTERVAL, LEVER
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.expression import Constant, Expression, Product, Variable
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scm import Link, Mechanism, StructuralCausalModel
from milp_recourse.program.lower import lower
from milp_recourse.program.on_rows import onto_rows
from tests.helpers.random_conditions import with_conditions


def two_levers(cause: Expression | None = None, kind: str = "l2-squared") -> Instance:
    """x and y from 0 to 3, refused at (0.5, 0.25); ``cause`` is y's equation."""
    equations = {"x": Constant(0.0), "y": cause or Constant(0.0)}
    scm = StructuralCausalModel(
        ("x", "y"), {name: Mechanism(equation, Link(), None) for name, equation in equations.items()}
    )
    features = tuple(Feature(name, "continuous", True, (0.0, 3.0)) for name in ("x", "y"))
    network = ReluNetwork.from_layers([([[1.0, 0.5], [0.5, 1.0]], [-1.5, -1.0]), ([[1.0, 1.0]], [-1.0])])
    cost = Cost.pure(kind, {"x": 1.0, "y": 1.0})
    return Instance(features, scm, network, {"x": 0.5, "y": 0.25}, Preferences(("x", "y")), cost)


def between(name: str, low: float, high: float) -> dict[str, Any]:
    return {"feature": name, "of": "counterfactual", "at_least": low, "at_most": high}


def total(terms: dict[str, float], **ends: float) -> dict[str, Any]:
    return {"sum": terms, "of": "counterfactual", **ends}


HALF = Product((Constant(0.7), Variable("x")))

CORNERS: dict[str, tuple[Expression | None, list[dict[str, Any]], float | None]] = {
    "one point": (
        None,
        [between("x", 0, 2.5), between("y", 0, 1.5), total({"x": 1, "y": 1}, at_least=4)],
        5.5625,
    ),
    "an edge": (None, [total({"x": 1, "y": 1}, at_least=2.3, at_most=2.3)], 2.1125),
    "a value that is set": (HALF, [between("y", 0.5, 0.5)], 265 / 144),
    "one that must be": (HALF, [between("y", 0.5, 0.5), {"acted": "y"}], 265 / 144),
    "an interval of it": (HALF, [between("y", 0.3, 0.5), {"acted": "y"}], 265 / 144),
    "beyond every corner": (None, [total({"x": 1, "y": 1}, at_least=6.1)], None),
    "too little room": (HALF, [between("y", 3.1, 4.0), {"acted": "y"}], None),
}
"""An equation for y, conditions, and the least cost: by hand (x + y / 2 = 25 / 12 where y is 1 / 2)."""


@pytest.mark.parametrize("name", CORNERS)
def test_what_rows_leave_is_found_and_proven(name: str) -> None:
    """Where rows leave a point or an edge, it is the answer; where they leave nothing, that is proven."""
    cause, said, least = CORNERS[name]
    result = solve(with_conditions(two_levers(cause), said), "bab", 60.0)
    if least is None:
        assert result.status is Status.INFEASIBLE
    else:
        assert result.status is Status.OPTIMAL, result.message
        assert result.cost == pytest.approx(least, rel=2e-6)


def test_a_corner_is_met_exactly_in_rational_arithmetic() -> None:
    """A point within rounding of the one that rows allow is moved onto it."""
    instance = with_conditions(two_levers(), CORNERS["one point"][1][2:])
    program = lower(instance).fix(frozenset({"x", "y"}))
    moved = list(onto_rows(program, {"x": 2.5 - 1e-9, "y": 1.5}))
    assert moved and all(one["x"] + one["y"] == 4.0 for one in moved)
    far = list(onto_rows(program, {"x": 2.9, "y": 2.9}))
    assert all(one["x"] + one["y"] > 5.0 for one in far)


def test_levers_that_must_be_acted_on_pay_for_it() -> None:
    """A lever that a condition asks to be acted on costs its fixed part though it stays where it is."""
    plain = two_levers(kind="l0")
    free, asked = solve(plain, "bab", 60.0), solve(with_conditions(plain, [{"acted": "x"}]), "bab", 60.0)
    assert (free.cost, asked.cost) == (1.0, 1.0)
    both = solve(with_conditions(plain, [{"acted": "x"}, {"acted": "y"}]), "bab", 60.0)
    assert both.cost == 2.0 and set(both.action or {}) == {"x", "y"}


def test_every_row_of_the_program_is_a_row_of_the_engine() -> None:
    """None is lost between the neutral program and the arrays: conditions and domains."""
    instance = with_conditions(two_levers(HALF), [total({"x": 1, "y": 1}, at_least=1, at_most=2)])
    made = Effects([instance], lower(instance))
    assert len(made.stated) == 2
    assert made.rows.shape[2] == 2 and made.rows[:, 0, :, 0].all()
    assert (made.holds == 0).all()


def test_a_row_cuts_levers_to_what_it_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """No point of the box that meets the row is lost; of most boxes something is cut."""
    over_box = linear_bounds.over_box
    monkeypatch.setattr(linear_bounds, "over_box", getattr(over_box, "py_func", over_box))
    monkeypatch.setattr(linear_bounds, "kink_of", lambda p, line, i: 0.0)
    cut_by_row = getattr(rows.cut_by_row, "py_func", rows.cut_by_row)
    rng, cuts = np.random.default_rng(3), 0
    for _ in range(300):
        lever, box = np.zeros(3, LEVER), np.zeros(3, INTERVAL)
        box["lo"], box["hi"] = np.sort(rng.normal(size=(2, 3)), axis=0)
        box["mode"] = rng.choice([0, 1, 1, 2], 3)
        rests = box["mode"] == 0
        box["lo"][rests], box["hi"][rests] = -abs(box["lo"][rests]), abs(box["hi"][rests])
        row = rng.normal(size=3) * (rng.random(3) < 0.8) * 10.0 ** rng.integers(-3, 3)
        points = box["lo"] + rng.random((200, 3)) * (box["hi"] - box["lo"])
        points[:, box["mode"] == 2] = 0.0
        const = -float(np.quantile(points @ row, 0.9))
        slacks = SimpleNamespace(up=1.0 + 2.0**-50, tiny=2.0**-900)
        p = SimpleNamespace(lever=lever, start=np.arange(4), slacks=slacks)
        allowed = np.ones(3, dtype=np.uint8)
        consts = SimpleNamespace(consts=np.array([const]))
        w = SimpleNamespace(rows=row[None], row=consts, box=box, allowed=allowed)
        before, inside = box.copy(), points[points @ row + const >= 0.0]
        cut_by_row(p, w, 0)
        acted = box["mode"] == 1
        assert (inside >= box["lo"])[:, acted].all()
        assert (inside <= box["hi"])[:, acted].all()
        assert (box[~acted] == before[~acted]).all()
        cuts += not (box == before).all()
    assert cuts > 100

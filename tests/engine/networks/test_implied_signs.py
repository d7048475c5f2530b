"""A sign that bounds imply becomes a row where the relaxed optimum contradicts it (``add_implied_sign``)."""

from __future__ import annotations

from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np

from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scm import independent
from milp_recourse.solvers.protocol import Options
from tests.helpers.processes import uncompiled


def the_worst_is_held() -> None:
    """Of signs that are implied, open to be held and contradicted, the one that is off the most."""
    from milp_recourse.engine.compiling import allocated
    from milp_recourse.engine.networks.splitting import add_implied_sign
    from milp_recourse.engine.networks.work import Units

    def held(*units: tuple[float, float, float, float]) -> list[float] | None:
        """SPLIT afterwards, given bounds, argument at the optimum and SPLIT; None where none is held."""
        unit = allocated(Units, layers=2, n=len(units), L=0)
        for j, (low, high, argument, split) in enumerate(units):
            unit.low[1, j], unit.high[1, j], unit.relaxed[1, j] = low, high, argument
            unit.size[1, j], unit.split[1, j] = 1.0, split
        problem = SimpleNamespace(widths=np.array([0, len(units)]))
        found = add_implied_sign(problem, SimpleNamespace(unit=unit))
        return unit.split[1].tolist() if found else None

    assert held((0.5, 2.0, -0.1, 0.0), (-3.0, 0.0, 0.4, 0.0), (0.0, 1.0, -0.2, 0.0)) == [0.0, 2.0, 0.0]
    assert held((0.5, 2.0, -0.1, 0.0), (-3.0, 0.0, 0.4, 2.0)) == [1.0, 2.0]  # held already
    assert held((-1.0, 2.0, -0.1, 0.0), (-1.0, 2.0, 0.4, 0.0)) is None  # nothing is implied
    assert held((0.5, 2.0, 0.7, 0.0), (-3.0, 0.0, -0.4, 0.0)) is None  # nothing is contradicted
    assert held((0.5, 2.0, -1e-15, 0.0)) is None  # no more than rounding


def whole(seed: int, kind: str) -> Instance:
    """Four levers of seven whole values each, two layers of six units; few points are accepted."""
    rng, names = np.random.default_rng(seed), [f"x{k}" for k in range(4)]
    layers = [
        (rng.normal(0.0, np.sqrt(2.0 / before), (after, before)), rng.normal(0.0, 0.3, after))
        for before, after in pairwise([4, 6, 6, 1])
    ]
    network = ReluNetwork.from_layers(layers)
    reached = network.evaluate(rng.integers(0, 7, (2000, 4)).astype(float))[:, 0]
    return Instance(
        tuple(Feature(name, "integer", True, (0.0, 6.0)) for name in names),
        independent(names),
        network,
        dict.fromkeys(names, 2.0),
        Preferences(tuple(names)),
        Cost.pure(kind, dict.fromkeys(names, 1.0)),
        Acceptance(float(np.quantile(reached, 0.97)), 1e-9),
    )


def whole_levers_agree_with_brute_force() -> None:
    """Where few whole points are accepted, the bound is the least cost of all of them."""
    from tests.helpers.engine_alone import solve_alone

    for seed, kind in ((185, "l1"), (205, "l2-squared")):
        instance = whole(seed, kind)
        points = np.array(list(product(range(7), repeat=4)), dtype=float)
        steps = np.abs(points - 2.0)
        costs = (steps if kind == "l1" else steps**2).sum(axis=1)
        accepted = instance.classifier.evaluate(points)[:, 0] >= instance.accept.threshold + 1e-9
        bound = solve_alone(instance, Options(time_limit=120.0)).lower_bound
        assert abs(bound - costs[accepted].min()) < 1e-5


def test_signs_that_bounds_imply_are_held() -> None:
    """By the functions themselves; run where nothing is compiled."""
    calls = "the_worst_is_held(); whole_levers_agree_with_brute_force()"
    uncompiled(f"from tests.engine.networks.test_implied_signs import *; {calls}")

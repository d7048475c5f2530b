"""The gap taken apart: levels in order, misses split without rest, each problem once."""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("zuko")

from milp_recourse.lab.gap.compared import compare
from milp_recourse.lab.gap.decompose import (
    EXACT,
    LEVELS,
    MISSED,
    PLAN,
    by_density,
    costs,
    missed,
    row_of,
    serves,
    write,
)
from milp_recourse.lab.icarma.checkpoint import read_recommender
from milp_recourse.lab.icarma.exact import Certified
from milp_recourse.lab.icarma.sampling import everyone
from milp_recourse.lab.icarma.shipped import shipped
from milp_recourse.problem.population import Population

HERE = 12


@pytest.fixture(scope="module")
def made(people, tmp_path_factory):
    """Twelve applicants, the shipped networks."""
    model = read_recommender(shipped("constant"))[0]
    return compare(people[:HERE], {"constant": model}, tmp_path_factory.mktemp("decompose"), PLAN, EXACT)


def test_each_level_is_bound_more_than_the_one_before(made) -> None:
    """Who is served at a level is served at those before, and no dearer; some are dearer than the optimum."""
    dearer = 0
    for one in made:
        for before, after in pairwise(LEVELS):
            who = serves(one)[after]
            assert serves(one)[before][who].all()
            cheap, dear = costs(one)[before][who], costs(one)[after][who]
            assert (cheap <= dear * (1 + 1e-5) + 1e-9).all(), (before, after)
            dearer += (dear > 1.01 * cheap).sum()
        assert not one.contradicted.any()
    assert dearer


def test_everybody_is_in_one_box(made) -> None:
    """Served, missed for one reason, or impossible."""
    for one in made:
        boxes = [one.served, one.optimum.impossible, *missed(one).values()]
        assert (np.sum(boxes, axis=0) == 1).all()
        assert tuple(missed(one)) == MISSED


def test_quarters_by_density_add_up(made, people) -> None:
    """Everybody is in one quarter, from less to more probable; the quarters' shares are the whole's."""
    density = people.template.scm.log_density(made[0].recommended.rows)
    for one in made:
        parts, whole = by_density(one, density), row_of(one)
        assert [part["quarter"] for part in parts] == [1, 2, 3, 4]
        assert [part["problems"] for part in parts] == [HERE / 4] * 4
        for before, after in pairwise(parts):
            assert before["log density from"] < before["log density to"] == after["log density from"]
        shared = [name for name in whole if name.startswith(("served", "missed", "impossible"))]
        assert len(shared) == 8
        for name in shared:
            assert np.mean([part[name] for part in parts]) == pytest.approx(whole[name])
        first = density <= np.sort(density)[HERE // 4 - 1]
        assert parts[0]["served, optimum"] == one.optimum.served[first].mean()


def test_misses_are_told_apart(made) -> None:
    """A recommendation made invalid, implausible or both moves to that box."""
    one = next(m for m in made if m.served.any())
    who = one.served
    broken = {"missed, only implausible": (True, False), "missed, only invalid": (False, True)}
    for name, (valid, plausible) in (broken | {"missed, both": (False, False)}).items():
        scored = replace(one.scored, sure=np.where(who, valid, one.scored.sure))
        scored = replace(scored, plausible=np.where(who, plausible, one.scored.plausible))
        assert missed(replace(one, recommended=replace(one.recommended, scored=scored)))[name][who].all()


def test_sides_bind_the_engine(people, tmp_path) -> None:
    """Optima go up or down as said, cost at least the free ones, and are kept apart from them on disk."""
    few = Population(people.template, people.factuals[:6], people.preferences[:6])
    levers = ("amount", "duration", "income", "savings")
    free, up = everyone(6), replace(everyone(6), sides=np.ones((6, 4), dtype=np.int8))
    certified = Certified(few, levers, tmp_path, 60.0)
    certified.solve([free, up])
    assert Certified(few, levers, tmp_path, 60.0).missing([free, up]) == []
    factual = np.array([[one[name] for name in levers] for one in few.factuals])
    raised, best = certified.of(up), certified.of(free)
    moved = np.nan_to_num(raised.action - factual)
    assert (moved >= 0).all()
    assert (np.nan_to_num(best.action - factual) < 0).any(), "or the sides would bind nothing"
    assert (raised.cost[raised.served] >= best.cost[raised.served] * (1 - 1e-6)).all()


def test_what_is_written(made, people, tmp_path) -> None:
    """A row per number of features, one per problem, and the figure."""
    pytest.importorskip("matplotlib")
    rows = write(made, people[:HERE], read_recommender(shipped("constant"))[0], tmp_path)
    assert [row["actionable"] for row in rows] == [4, 3, 2, 1]
    for row in rows:
        assert sum(row[name] for name in MISSED) + row["served, networks"] + row[
            "impossible"
        ] == pytest.approx(1)
        if row["both served"]:
            assert sum(row[f"share of the excess, {name}"] for name in LEVELS[1:]) == pytest.approx(1)
            assert row["cost, networks low"] <= row["cost, networks"] <= row["cost, networks high"]
    with gzip.open(tmp_path / "applicants.csv.gz", "rt") as file:
        people = list(csv.DictReader(file))
    assert len({(one["index"], one["can"]) for one in people}) == len(people) == 4 * HERE
    assert "<svg" in (tmp_path / "decomposition.svg").read_text()

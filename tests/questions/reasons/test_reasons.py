"""What suffices by itself, set by set, against enumeration: trees with labels, networks with causes."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import milp_recourse.questions.reasons as asked
from milp_recourse import Recourse
from milp_recourse.errors import BadInput
from milp_recourse.formats import read_instance
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.judge import judge
from milp_recourse.problem.conditions import AtMostActions
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Status
from milp_recourse.questions.reasons import Sufficient, reasons
from tests.helpers import brute_force, tree_samples
from tests.helpers.frame_tables import fitted
from tests.helpers.generators import Style, supported_instance
from tests.helpers.large import large

LOAN = read_instance(instances_path() / "loan" / "loan_007.json")


def masked(instance: Instance, levers: tuple[str, ...]) -> Instance:
    own = replace(instance.preferences, actionable=levers)
    return replace(instance, preferences=own, reference=None)


def complete(instance: Instance, found: list[Sufficient], most: int) -> None:
    """Every set once, cheapest first, every action on its set's levers and feasible."""
    levers = tuple(instance.levers)
    wanted = [s for k in range(1, most + 1) for s in combinations(levers, k)]
    assert sorted(one.levers for one in found) == sorted(wanted)
    costs = [one.result.cost for one in found if one.result.cost is not None]
    assert costs == sorted(costs) and [one.result.cost for one in found[: len(costs)]] == costs
    for one in found:
        assert one.result.status in (Status.OPTIMAL, Status.INFEASIBLE) and one.result.proof is not None
        if one.result.action is not None:
            assert set(one.result.action) <= set(one.levers)
            assert judge(instance, instance.numbers(one.result.action)).feasible


@pytest.mark.parametrize("seed", range(40))
def test_trees_with_labels_against_every_value(seed: int) -> None:
    """Each cost is the least over all values on both sides of every threshold, exactly, or there is none."""
    instance = tree_samples.random_tree_instance(seed, features=5)
    if seed % 4 == 0:
        instance = replace(instance, conditions=(*instance.conditions, AtMostActions(1)))
    found = reasons(instance, 3)
    complete(instance, found, 3)
    for one in found:
        least = tree_samples.brute_force(masked(instance, one.levers))
        if least is None:
            assert one.result.status is Status.INFEASIBLE
        else:
            assert one.result.cost is not None and one.result.lower_bound is not None
            assert one.result.lower_bound <= float(least) * (1 + 1e-12)
            assert one.result.cost - float(least) <= (one.result.tolerance or 0.0) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_networks_against_grids(seed: int) -> None:
    """No point of a grid that is zoomed in on is below a bound, and none is feasible where none should be."""
    instance = supported_instance(seed, Style(levers=3, depth=2, width=4))
    found = reasons(instance)
    complete(instance, found, 2)
    for one in found:
        tried = [brute_force.cheapest(instance, s) for k in (1, 2) for s in combinations(one.levers, k)]
        costs = [0.0] if judge(instance, {}).feasible else [best.cost for best in tried if best is not None]
        if one.result.status is Status.INFEASIBLE:
            assert not costs
        elif costs:
            assert (one.result.lower_bound or 0.0) <= min(costs) * (1 + 1e-9)


def test_larger_sets_settle_smaller_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is searched for again that follows from a set that holds more levers, and all agree with a
    search of their own."""
    searched: list[tuple[str, ...]] = []
    inner = asked.solve_together

    def spied(problems, *options):
        searched.extend(tuple(p.preferences.actionable) for p in problems)
        return inner(problems, *options)

    monkeypatch.setattr(asked, "solve_together", spied)
    found = reasons(LOAN, 2)
    complete(LOAN, found, 2)
    assert 0 < len(searched) < len(found)
    for one in found:
        [alone] = inner([masked(LOAN, one.levers)])
        assert alone.status is one.result.status
        if alone.cost is not None and one.result.cost is not None:
            assert abs(alone.cost - one.result.cost) <= 2 * (alone.tolerance or 0.0)


def test_a_time_limit_is_for_all_sets_together() -> None:
    """What stayed open has a bound and is listed between what works and what cannot."""
    found = reasons(large(1), 1, time_limit=0.05)
    ranks = [(one.result.cost is None, one.result.status is Status.INFEASIBLE) for one in found]
    assert ranks == sorted(ranks) and any(one.result.status is Status.LIMIT for one in found)


@pytest.mark.parametrize("most", [0, -1, 1.5, True, "2"])
def test_most_is_a_whole_number(most: object) -> None:
    with pytest.raises(BadInput, match="most"):
        reasons(LOAN, most)  # type: ignore[arg-type]


def test_the_table_of_a_person() -> None:
    """In the table's own columns; the values to say are accepted by the model when they are typed in."""
    model, X = fitted()
    refused = X[model.predict(X) == model.classes_[0]]
    answers = Recourse(model, X).certify(refused.head(3))
    for person in refused.index[:3]:
        table = answers.reasons(person)
        assert table["cost"].dropna().is_monotonic_increasing
        assert abs(table["cost"].iloc[0] - answers.table.loc[person, "cost"]) < 1e-6
        works = table[table["status"] == "optimal"]
        assert len(works) and (works["confirmed"]).all() and set(table["status"]) == {"optimal", "infeasible"}
        for levers, values in zip(works["levers"], works["values"], strict=True):
            row = refused.loc[[person]].copy()
            for key, value in values.items():
                assert key in levers
                row[key] = [value]
            assert model.predict(row)[0] == model.classes_[1]
        assert all(values == {} for values in table[table["status"] == "infeasible"]["values"])


def test_the_table_of_a_population_counts_the_tables_of_people() -> None:
    """Also where people can act on different columns; who is accepted or unreadable is not in it."""
    model, X = fitted()
    refused = X[model.predict(X) == model.classes_[0]].head(6)
    people = pd.concat([refused, X[model.predict(X) == model.classes_[1]].head(1)])
    own = [{"actionable": ["income", "purpose"]}, *[None] * 6]
    answers = Recourse(model, X).certify(people, own)
    table = answers.reasons_table()
    each = {person: answers.reasons(person) for person in refused.index}
    assert set(table.index) == {levers for one in each.values() for levers in one["levers"]}
    for levers, row in table.iterrows():
        mine = [one[one["levers"].map(lambda own, s=levers: own == s)] for one in each.values()]
        rows = pd.concat([one.assign(first=one.index <= 1) for one in mine])
        assert row["people"] == len(rows) and row["suffices"] == (rows["status"] == "optimal").sum()
        assert row["infeasible"] == (rows["status"] == "infeasible").sum()
        assert row["cheapest"] >= rows["first"].sum()
        assert np.isclose(row["median_cost"], rows["cost"].median(), equal_nan=True)
    assert table["suffices"].is_monotonic_decreasing and table.loc[[("income",)], "people"].iloc[0] == 6
    assert table.loc[[("age",)], "people"].iloc[0] == 5
    nobody = Recourse(model, X).certify(people.tail(1)).reasons_table()
    assert len(nobody) == 0 and list(nobody.columns) == list(table.columns)


def test_a_model_that_contradicts_is_not_called_proven() -> None:
    """Its own ``predict`` refuses everything."""
    model, X = fitted()
    refused = X[model.predict(X) == model.classes_[0]].head(1)

    def never(frame):
        return [model.classes_[0]] * len(frame)

    table = Recourse(model, X, predict=never).certify(refused).reasons(refused.index[0])
    assert not (table["status"] == "optimal").any() and not table["confirmed"].fillna(False).any()

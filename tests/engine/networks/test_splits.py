"""What is split on: levers of few whole values and labels, where many units are open."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from milp_recourse.engine.networks.propose import ready
from milp_recourse.formats import read_instance
from milp_recourse.problem.result import Status
from milp_recourse.questions.solve import solve as solved
from milp_recourse.solvers.protocol import Options
from tests.helpers.amounts import amounts
from tests.helpers.engine_alone import solve_alone
from tests.helpers.processes import uncompiled
from tests.helpers.wide import many_labels, wide
from tests.properties.run import case


@pytest.mark.parametrize("labels", [False, True])
def test_levers_of_few_values_are_split(labels: bool) -> None:
    """Signs alone leave most of these open after 20 000 nodes."""
    ready()
    for seed in range(4):
        found = solve_alone(wide(seed, labels), Options(time_limit=30))
        assert found.message is None
        assert found.nodes is not None
        assert found.nodes < 5000, seed


@pytest.mark.parametrize(
    "file", sorted(Path(__file__).parent.glob("shared_kinks/*.json")), ids=lambda f: f.stem
)
def test_boxes_do_not_shrink_around_a_shared_kink(file: Path) -> None:
    """Units whose kinks coincide stay open however narrow the box: their signs are split, not the levers.

    Splitting levers first, each of these took 180 000 nodes and more without an end.
    """
    result = solved(read_instance(file), "bab", 60.0)
    assert result.status in (Status.OPTIMAL, Status.INFEASIBLE)
    assert result.nodes is not None
    assert 0 < result.nodes < 5000


@pytest.mark.parametrize(
    "file", sorted(Path(__file__).parent.glob("on_an_edge/*.json")), ids=lambda f: f.stem
)
def test_a_point_on_an_edge_is_judged_and_not_looked_for_by_halving(file: Path) -> None:
    """What rows leave has no room for rounding: such a point is judged exactly, also where levers are open.

    An equality met at rest and a knot of a percentile cost took 200 000 nodes and more, or had no end.
    """
    result = solved(read_instance(file), "bab", 60.0)
    assert result.status in (Status.OPTIMAL, Status.INFEASIBLE)
    assert result.nodes is not None
    assert 0 < result.nodes < 5000


@pytest.mark.parametrize(
    ("name", "most", "cost"), [("chain-3012", 1000, 1.9535813227), ("pct-3010-min", 20_000, None)]
)
def test_what_is_split_is_what_keeps_a_node_open(name: str, most: int, cost: float | None) -> None:
    """Ends of a curve's argument cut the levers too: else only the argument's interval got smaller, and the
    ball, which is bounded over the box, ruled out nothing (1.5 million nodes). What a percentile cost loses
    is compared with the gap: compared with itself, where it vanishes, a knot was split on for ever."""
    result = solved(read_instance(Path(__file__).parent / "endless" / f"{name}.json"), "bab", 60.0)
    assert result.status is (Status.OPTIMAL if cost else Status.INFEASIBLE)
    assert result.nodes is not None
    assert result.nodes < most
    assert result.cost == (pytest.approx(cost, rel=2e-6) if cost else None)


@pytest.mark.parametrize("name", ["f32m0-7016", "f32edge-7005"])
def test_a_search_without_a_proof_ends(name: str) -> None:
    """Two leaves of one bound asked about their common point in turns, and what lay between
    neighbouring doubles of an action was split through all coordinates' doubles, many more."""
    result = solved(read_instance(Path(__file__).parent / "endless" / f"{name}.json"), "bab", 60.0)
    assert result.action
    assert result.nodes is not None
    assert result.nodes < 5000


@pytest.mark.parametrize("name", ["bigw-30089", "f32edge-20058", "f32big-8021"])
def test_a_search_is_not_led_on_by_points_of_no_worth(name: str) -> None:
    """A convex problem whose rows nothing meets by as much as is asked is given up; else its last point was
    far from the edge, and every leaf asked about another one (40 000 nodes). Where the deployed model refuses
    one action after the other, one inside the edge is looked for before the search goes on (28 000)."""
    result = solved(read_instance(Path(__file__).parent / "endless" / f"{name}.json"), "bab", 60.0)
    assert result.status is Status.OPTIMAL
    assert result.nodes is not None
    assert result.nodes < 1000


def test_levers_count_through_open_units() -> None:
    """Where an open unit is at rest at the relaxed optimum, levers behind it were taken for idle: two others
    were split to widths of 4e-8, without an end."""
    result = solved(read_instance(Path(__file__).parent / "endless" / "deep10-8028.json"), "bab", 60.0)
    assert result.status is Status.INFEASIBLE
    assert result.nodes is not None
    assert result.nodes < 5000


def test_few_levers_are_split_before_signs() -> None:
    """Under signs that settle most units, rows kept their rounding and boxes their size: 43 000 nodes."""
    result = solved(read_instance(Path(__file__).parent / "endless" / "chainwide-8118.json"), "bab", 60.0)
    assert result.status is Status.OPTIMAL
    assert result.nodes is not None
    assert result.nodes < 1000


def test_labels_compete_with_signs() -> None:
    """Labels were split only where nearly every unit was open, and the best action was one that no move of a
    single lever makes cheaper: more than 80 000 nodes without an end."""
    result = solved(many_labels(4), "bab", 60.0)
    assert result.status is Status.OPTIMAL
    assert result.cost == pytest.approx(5.0472550374, rel=2e-6)
    assert result.nodes is not None
    assert result.nodes < 40_000


@pytest.mark.parametrize("seed", [1, 33, 54, 55])
def test_signs_are_split_where_multipliers_are_next_to_nothing(seed: int) -> None:
    """The cheapest point of a box contradicts rows that hardly bind there. Amounts in whole numbers were
    split one unit of money at a time instead: 47 360 nodes of the search (seed 33), 55 720 (55), and 22 677
    of the proof (1), none of which needs a thousand."""
    result = solved(amounts(seed), certificates=True)
    assert result.status is Status.OPTIMAL
    assert result.nodes is not None
    assert result.nodes < 500
    (configuration,) = json.loads(gzip.decompress(result.evidence or b""))["configurations"]
    assert len(configuration["tree"]) < 6000


def test_a_random_problem_under_l0_ends() -> None:
    """It had no end (100 000 nodes) while nothing but the rows' multipliers said which unit is split."""
    result = solved(case(177), "bab", 60.0)
    assert result.status is Status.OPTIMAL
    assert result.nodes is not None
    assert result.nodes < 1000


def test_a_relaxed_optimum_on_the_threshold_leaves_signs_to_split() -> None:
    """A factual that misses the threshold by less than rounding takes contradicts no row beyond doubt. No
    unit counted, and an interval of a lever was split next to it, without an end (300 000 nodes)."""
    file = Path(__file__).parent / "endless" / "rests-on-threshold-8100005.json"
    result = solved(read_instance(file), "bab", 60.0)
    assert result.status is Status.OPTIMAL
    assert result.nodes is not None
    assert result.nodes < 100


def test_rows_that_count_alike_lose_as_much_as_the_gap() -> None:
    """Their losses were in units of the logit, those of levers in units of cost: 230 000 nodes without an
    end, where 2404 do."""
    result = solved(read_instance(Path(__file__).parent / "endless" / "units-8000078.json"), "bab", 60.0)
    assert result.status is Status.OPTIMAL
    assert result.nodes is not None
    assert result.nodes < 10_000


def check_halves() -> None:
    """Run where nothing is compiled."""
    from milp_recourse.engine.networks.splitting import _between

    def cut(
        low: float, high: float, down: float, square: float, grid: float = 0.0, knots: float = 0.0
    ) -> float:
        lever = SimpleNamespace(label=0.0, linear=1.0, square=square, down=down, grid=grid, knots=knots)
        w = SimpleNamespace(
            box=[SimpleNamespace(lo=low, hi=high, mode=1.0)], points=SimpleNamespace(relaxed=[0.0])
        )
        return _between(SimpleNamespace(lever=[lever]), w, 0)

    assert cut(-0.4, 0.8, 1.0, 0.0) == 0.4
    assert cut(-0.8, 0.4, 1.0, 0.0) == -0.4
    assert cut(-0.4, 0.8, 4.0, 0.0) == -0.2  # falls are dearer
    assert cut(-0.4, 0.8, 1.0, 1.0) == 0.25 * 0.4  # with squares: between the middle and the relaxed optimum
    assert cut(-0.4, 0.8, 1.0, 0.0, 0.01) == 0.4
    assert cut(-0.4, 0.8, 1.0, 0.0, 0.5) == 0.25 * 0.4  # few values
    assert cut(0.2, 0.8, 1.0, 0.0) == 0.8 - 0.8 * 0.6  # not around 0
    middle = cut(-0.8, 0.1, 1.0, 1.0)
    assert [cut(-0.8, 0.1, down, 0.0) for down in (1e-6, 0.0)] == [middle] * 2  # hardly around 0
    assert cut(-0.4, 0.8, 1.0, 0.0, knots=3.0) == 0.25 * 0.4


def test_a_proportional_cost_is_cut_half_way_to_its_dearer_end() -> None:
    """With 23 levers, to rule out costs below 0.56 took 251 nodes for 3509 (128 x 128 units); levers of few
    values took more."""
    uncompiled("from tests.engine.networks.test_splits import check_halves; check_halves()")

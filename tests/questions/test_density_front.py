"""Cost against density offset, beside every point solved by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from milp_recourse.errors import BadInput
from milp_recourse.judge import judge
from milp_recourse.problem.result import Status
from milp_recourse.questions.density_front import average, density_fronts, offsets_between
from milp_recourse.questions.solve import solve
from tests.helpers.generators import Style, supported_instance

OFFSETS = [-2.0, -0.5, -0.1, 0.0, 0.2, 1.0]


@pytest.mark.parametrize("seed", range(6))
def test_every_point_is_the_optimum_at_its_offset(seed: int) -> None:
    """As cheap as a search of its own, feasible at its offset, and never cheaper than the point before."""
    instance = supported_instance(seed, Style(levers=2, curves=False, gamma=False, plausible=1.0))
    [found] = density_fronts([instance], OFFSETS, "highs")
    assert found.complete
    assert [point.offset for point in found.points] == [None, *OFFSETS]
    last = 0.0
    for point in found.points:
        own = replace(instance.preferences, density_offset=point.offset)
        there = replace(instance, plausible=point.offset is not None, preferences=own)
        alone = solve(there, "highs")
        assert point.result.status is alone.status
        if alone.cost is None:
            last = float("inf")
            continue
        assert point.result.cost == pytest.approx(alone.cost, rel=3e-6, abs=1e-9)
        assert point.result.cost >= last * (1 - 3e-6) - 1e-9
        numbers = {
            n: float(instance.by_name[n].categories.index(v)) if instance.by_name[n].labelled else float(v)
            for n, v in point.result.action.items()
        }
        assert judge(there, numbers).feasible
        assert point.offset is None or point.gain >= point.offset - 1e-9
        last = point.result.cost


def test_averages_compare_the_same_people_at_every_offset() -> None:
    """Means never fall; the share of people with an action never rises."""
    style = Style(levers=2, curves=False, gamma=False, plausible=1.0, discrete=False)
    fronts = [density_fronts([supported_instance(s, style)], OFFSETS, "highs")[0] for s in range(8)]
    rows = average(fronts)
    shares = [row["share with an action"] for row in rows]
    assert shares == sorted(shares, reverse=True) and shares[0] > shares[-1]
    means = [row["mean cost of these"] for row in rows]
    assert all(mean is None for mean in means) or means == sorted(means)


def test_infeasible_stays_infeasible_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the first offset without an action nobody is asked again."""
    from milp_recourse.questions import density_front

    instance = supported_instance(1, Style(levers=2, curves=False, gamma=False, plausible=1.0))
    asked = []
    own = density_front.solve_together
    monkeypatch.setattr(
        density_front, "solve_together", lambda some, *how: asked.append(len(some)) or own(some, *how)
    )
    [found] = density_fronts([instance], [50.0, 60.0, 70.0], "highs")
    assert [p.result.status for p in found.points[1:]] == [Status.INFEASIBLE] * 3
    assert sum(asked) <= 2


@pytest.mark.parametrize("ends", [(1.0, 0.0, 5), (0.0, 1.0, 1), (float("nan"), 1.0, 5)])
def test_offsets_that_make_no_sense_are_refused(ends: tuple[float, float, int]) -> None:
    """In one line."""
    with pytest.raises(BadInput):
        offsets_between(*ends)

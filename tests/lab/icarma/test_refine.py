"""Refinement: the step's problem is solved exactly, and recommendations get cheaper and lose nobody."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("zuko")

from milp_recourse.errors import BadInput
from milp_recourse.lab.icarma.checkpoint import read_arrays, read_recommender, write_arrays, write_recommender
from milp_recourse.lab.icarma.exact import Certified
from milp_recourse.lab.icarma.icarma_model import Recommender
from milp_recourse.lab.icarma.predict import predict
from milp_recourse.lab.icarma.refine import Demands, cheapest, least_norm
from milp_recourse.lab.icarma.sampling import PreferenceSampler
from milp_recourse.lab.icarma.score import score
from milp_recourse.lab.icarma.shipped import shipped
from milp_recourse.lab.icarma.structural import StructuralModel
from milp_recourse.problem.instance import Preferences
from milp_recourse.problem.population import Population


def test_the_shortest_point_is_the_one() -> None:
    """The conditions of Karush, Kuhn and Tucker, which suffice as the problem is convex; 500 random ones."""
    generator = torch.Generator().manual_seed(0)
    slopes = torch.randn(500, 2, 4, generator=generator, dtype=torch.float64)
    least = torch.randn(500, 2, generator=generator, dtype=torch.float64)
    v, multipliers = least_norm(slopes, least)
    slack = torch.einsum("nik,nk->ni", slopes, v) - least
    assert (slack > -1e-9).all()
    assert torch.allclose(torch.einsum("ni,nik->nk", multipliers, slopes), v)
    assert ((multipliers * slack).abs() < 1e-8).all()
    assert len({tuple(one) for one in (multipliers > 0).tolist()}) == 4, "every case occurs"


@pytest.mark.parametrize(("high", "expected"), [(9.0, (1.0, 1.0)), (0.5, (1.5, 0.5))])
def test_it_finds_a_known_optimum(high: float, expected: tuple[float, float]) -> None:
    """x + y >= 2 within 2 of (2, 0): (1, 1); with y <= 1/2: (3/2, 1/2). From inside and from outside."""

    def gaps(u):
        return torch.stack((u.sum(dim=1) - 2, 4 - (u - torch.tensor([2.0, 0.0])).square().sum(dim=1)), dim=1)

    start = torch.tensor([[2.0, 0.4], [-3.0, -3.0], [0.0, 0.0]], dtype=torch.float64)
    found, cost = cheapest(
        gaps, start, torch.full_like(start, -9.0), torch.tensor([[9.0, high]]).double(), 30
    )
    assert (gaps(found) >= 0).all()
    assert torch.allclose(found, torch.tensor(expected).double(), atol=4e-3)
    assert torch.allclose(cost, found.square().sum(dim=1))


def test_nothing_is_made_up_where_demands_contradict_each_other() -> None:
    """x >= 1 and x <= -1: no point is called good."""

    def gaps(u):
        return torch.cat((u - 1, -1 - u), dim=1)

    far = torch.full((1, 1), 9.0, dtype=torch.float64)
    assert cheapest(gaps, far / 9, -far, far, 10)[1].isinf().all()


@pytest.fixture(scope="module")
def both(task):
    """The shipped networks on the true equations, as they are and refined."""
    plain = read_recommender(shipped("rank"))[0]
    flow = StructuralModel.of_rows(task.template.scm, task.train)
    made = []
    for steps in (0, 10):
        settings = replace(plain.settings, steps=steps)
        made.append(
            Recommender(flow, task.levers, task.bounds, settings, Demands.of(task) if steps else None)
        )
        made[-1].load(plain.state())
    return made


def test_it_costs_less_and_loses_nobody(both, people, tmp_path) -> None:
    """80 people, random masks and weights, against certified optima."""
    some = Population(replace(people.template, plausible=True), people.factuals[:80], people.preferences[:80])
    wishes = PreferenceSampler().draw(80, np.random.default_rng(4))
    certified = Certified(some, both[0].levers, tmp_path, 60.0)
    certified.solve([wishes])
    exact = certified.of(wishes)
    scored = [
        score(some.template, m, some.rows, wishes, m.recommend(some.rows, wishes)[0], both[0].flow)
        for m in both
    ]
    before, after = (one.serves(plausible=True) for one in scored)
    assert after[before].all()
    assert (scored[1].cost <= scored[0].cost + 1e-9)[before].all()
    assert not exact.contradicted_by(after, scored[1].cost).any()
    assert after.sum() > before.sum()
    assert after.sum() >= exact.served.sum() - 4
    assert np.median((scored[1].cost / exact.cost)[after]) < 1.05


def test_masks_ranges_and_nobody(both, people) -> None:
    """Values stay inside ranges; nothing to act on and no applicants are no error."""
    frame = pd.DataFrame(list(people.factuals[:40]))
    given = Preferences(("amount", "income"), {"income": 3.0}, {"income": (0.0, 0.5), "amount": (9.0, 7.0)})
    table = predict(both[1], frame, given)
    assert table[["action_duration", "action_savings", "action_amount"]].isna().all().all()
    assert table["action_income"].between(0.0, 0.5).all()
    assert predict(both[1], frame, Preferences(())).filter(like="action_").isna().all().all()
    assert len(predict(both[1], frame[:0], [])) == 0


def test_a_checkpoint_keeps_what_is_demanded(both, people, tmp_path) -> None:
    """Read again, it recommends the same; without the demands it is damaged."""
    path, wishes = tmp_path / "m.npz", PreferenceSampler().draw(30, np.random.default_rng(1))
    write_recommender(both[1], path, {})
    rows = people.rows[:30]
    again = read_recommender(path)[0].recommend(rows, wishes)[0]
    assert np.array_equal(again, both[1].recommend(rows, wishes)[0], equal_nan=True)
    arrays, about = read_arrays(path)
    del about["demands"]
    write_arrays(path, arrays, json.loads(json.dumps(about)))
    with pytest.raises(BadInput, match="damaged"):
        read_recommender(path)

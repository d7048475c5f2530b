"""Learning from certified optima: what is asked of the engine, whose optimum is whose, that it teaches."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("zuko")

from milp_recourse.errors import BadInput
from milp_recourse.lab.icarma import losses
from milp_recourse.lab.icarma.checkpoint import read_arrays, write_arrays
from milp_recourse.lab.icarma.settings import Settings
from milp_recourse.lab.icarma.train import Trainer, train
from milp_recourse.lab.icarma.training_optima import Optima, certify_optima
from milp_recourse.questions.solve import solve

MARGINS = (0.3, 0.4)
"""In logits and nats."""

TINY = Settings(mask_hidden=(8,), action_hidden=(16,), epochs=2, batch=16, profile="linear", seed=3)


@pytest.fixture(scope="module")
def few(task):
    """Thirty rows."""
    return replace(task, train=task.train[:30], validation=task.validation[:20])


@pytest.fixture(scope="module")
def tight(few, tmp_path_factory) -> Optima:
    """Their optima with margins, under weights."""
    asked = replace(TINY, margin=MARGINS[0] / few.spread, density_margin=MARGINS[1])
    return certify_optima(few, asked, tmp_path_factory.mktemp("tight"))


def test_distance_counts_known_optima_only() -> None:
    """((1 - 3) / 2)^2 + ((5 - 4) / 1)^2 = 2, none for the second row; d/d value = 2 (x - x*) / s^2."""
    values = torch.tensor([[1.0, 5.0], [9.0, 9.0]], requires_grad=True)
    known = torch.tensor([True, False])
    apart = losses.distance(values, torch.tensor([[3.0, 4.0], [0.0, 0.0]]), known, torch.tensor([2.0, 1.0]))
    assert apart.tolist() == [2.0, 0.0]
    apart.sum().backward()
    assert values.grad.tolist() == [[-1.0, 2.0], [0.0, 0.0]]


def test_the_density_margin_moves_the_hinge() -> None:
    """Equation 15 with m = 0.5: log p falls by 0.25, so 0.75 is lacking; it rises by 0.5: nothing is."""
    hinge = losses.implausibility(torch.tensor([1.0, 1.0]), torch.tensor([0.75, 1.5]), 0.5)
    assert hinge.tolist() == [0.75, 0.0]


def test_they_are_the_optima_of_the_tightened_problem(few, tight) -> None:
    """Accepted and plausible with both margins on the true equations; the same cost as asking one by one."""
    names, template = [f.name for f in few.template.features], few.template
    asked = replace(
        template,
        plausible=True,
        density_offset=MARGINS[1],
        accept=replace(template.accept, margin=template.accept.margin + MARGINS[0]),
    )
    served = 0
    for k, (r, wishes) in product(range(9), enumerate(tight.wishes[:2])):
        own = wishes[k : k + 1].preferences(few.levers)[0]
        factual = dict(zip(names, few.train[k].tolist(), strict=True))
        result = solve(replace(asked, factual=factual, preferences=own))
        has = not np.isnan(tight.values[r, k]).any()
        assert (result.status.value == "optimal") is (not tight.impossible[r, k]) is has
        if not has:
            continue
        served += 1
        after = [result.counterfactual[name] for name in few.levers]
        assert tight.values[r, k] == pytest.approx(after, abs=1e-4)
        row = few.train[k].copy()
        row[few.columns] = tight.values[r, k]
        gain = template.scm.log_density(row[None]) - template.scm.log_density(few.train[k][None])
        assert gain[0] >= MARGINS[1] - 1e-9
        assert few.network.evaluate(row[None])[0, 0] >= MARGINS[0]
    assert served > 6


def test_networks_come_nearer_to_optima_they_imitate(few, tight, small_flow) -> None:
    """Forty epochs on thirty rows, with and without imitation."""
    apart = []
    for weight in (0.0, 20.0):
        settings = replace(TINY, epochs=40, imitation=weight, learning_rate=1e-2)
        trainer = train(few, small_flow, settings, optima=tight)
        actions, _ = trainer.model.recommend(few.train, tight.wishes[0])
        after = few.template.scm.counterfactual(few.train, actions)[:, few.columns]
        target = tight.values[0]
        known = ~np.isnan(target).any(axis=1)
        apart.append((((after - target)[known] / few.scale) ** 2).sum(axis=1).mean())
    assert apart[1] < 0.7 * apart[0]


def test_rows_without_recourse_are_left_out(few, tight, small_flow) -> None:
    """Gradients do not depend on what is proven impossible, if its weight is 0; they do otherwise."""
    hopeless = replace(tight, impossible=np.ones_like(tight.impossible))
    before = Trainer(few, small_flow, replace(TINY, impossible=0.0), optima=hopeless)
    start = {k: v.clone() for k, v in before.model.state().items()}
    before.step()
    assert all(torch.equal(v, start[k]) for k, v in before.model.state().items())
    some = Trainer(few, small_flow, replace(TINY, impossible=0.0), optima=tight)
    some.step()
    assert not all(torch.equal(v, start[k]) for k, v in some.model.state().items())


def test_learning_needs_optima_of_these_rows(few, tight, small_flow) -> None:
    """Neither is made up."""
    with pytest.raises(BadInput, match="optima: got none"):
        Trainer(few, small_flow, replace(TINY, imitation=1.0))
    with pytest.raises(BadInput, match="optima: got 30"):
        Trainer(replace(few, train=few.train[:9]), small_flow, replace(TINY, imitation=1.0), optima=tight)
    with pytest.raises(BadInput, match="see preferences"):
        replace(TINY, imitation=1.0, individual=False)
    with pytest.raises(BadInput, match="density_margin"):
        replace(TINY, density_margin=-0.1)


def test_a_run_from_before_these_settings_goes_on(few, small_flow, tmp_path) -> None:
    """Their defaults are what was done then; a run with another margin does not go on."""
    train(few, small_flow, replace(TINY, epochs=1), tmp_path)
    arrays, about = read_arrays(tmp_path / "training.npz")
    about["settings"] |= {"epochs": 2}
    for name in ("density_margin", "imitation", "impossible"):
        del about["settings"][name]
    write_arrays(tmp_path / "training.npz", arrays, json.loads(json.dumps(about)))
    assert train(few, small_flow, TINY, tmp_path).epoch == 2
    with pytest.raises(BadInput, match="another run"):
        train(few, small_flow, replace(TINY, density_margin=0.1), tmp_path)

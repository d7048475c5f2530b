"""An SCM with gradients answers as the SCM itself, and networks can be trained through it."""

from __future__ import annotations

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("zuko")

from milp_recourse.cli import main
from milp_recourse.errors import BadInput
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.lab.icarma.checkpoint import read_recommender, write_recommender
from milp_recourse.lab.icarma.flow import CausalFlow
from milp_recourse.lab.icarma.sampling import PreferenceSampler, everyone
from milp_recourse.lab.icarma.settings import Settings
from milp_recourse.lab.icarma.structural import StructuralModel
from milp_recourse.lab.icarma.train import train
from milp_recourse.problem.expression import NetworkOutput, Relu, Square, Variable
from milp_recourse.problem.loan import FEATURES, loan
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.noise import Bernoulli, Normal
from milp_recourse.problem.scm import Mechanism, StructuralCausalModel

LOAN = loan()
ROWS = LOAN.sample(300, np.random.default_rng(0))


def every_form() -> StructuralCausalModel:
    """Networks, ReLUs and squares in one model."""
    network = ReluNetwork.from_layers([([[1.0, -2.0], [0.5, 1.0]], [0.1, -0.2]), ([[1.0, -1.0]], [0.3])])
    x, y = Variable("x"), Variable("y")
    return StructuralCausalModel(
        ("x", "y", "z"),
        {
            "x": Mechanism(noise=Normal(2.0)),
            "y": Mechanism(0.5 * Square(x) - Relu(x - 1.0), noise=Normal(0.5)),
            "z": Mechanism(NetworkOutput(network, (x, y)) * 2.0, noise=Normal(1.5)),
        },
    )


@pytest.mark.parametrize("scm", [LOAN, every_form()], ids=["loan", "every form"])
def test_counterfactuals_are_the_models(scm: StructuralCausalModel) -> None:
    """Any features acted on: intervene gives what the SCM's own arithmetic gives."""
    rng = np.random.default_rng(1)
    rows = scm.sample(200, rng)
    model = StructuralModel.of_rows(scm, rows)
    acted = rng.random(rows.shape) < 0.4
    values = rng.permuted(rows, axis=0)
    expected = scm.counterfactual(rows, np.where(acted, values, np.nan))
    tensors = [torch.as_tensor(a, dtype=torch.float64) for a in (rows, acted, values)]
    for z in (None, model.abduct(tensors[0])):
        assert model.intervene(*tensors, z).numpy() == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("scm", [LOAN, every_form()], ids=["loan", "every form"])
def test_shifted_latents_are_shifted(scm: StructuralCausalModel) -> None:
    """What a shift makes has the shifted latents; without one, rows stay as they are."""
    rows = scm.sample(100, np.random.default_rng(3))
    model, x = StructuralModel.of_rows(scm, rows), torch.as_tensor(rows)
    shift = torch.zeros_like(x)
    assert model.shifted(x, shift).equal(x)
    shift[:, -2:] = 0.7
    moved = model.shifted(x, shift)
    assert model.abduct(moved).numpy() == pytest.approx((model.abduct(x) + shift).numpy(), abs=1e-7)


def test_density_is_the_models_but_for_bernoulli_terms() -> None:
    """Loan's gender contributes log 1/2, which the structural model leaves out."""
    model = StructuralModel.of_rows(LOAN, ROWS)
    assert model.log_densities(ROWS) == pytest.approx(LOAN.log_density(ROWS) - np.log(0.5))
    outside = ROWS[:1].copy()
    outside[0, FEATURES.index("age")] = -40.0
    assert model.log_densities(outside)[0] == -np.inf


def test_latents_are_standard() -> None:
    """Mean about 0 and standard deviation about 1, whatever the noise."""
    z = StructuralModel.of_rows(LOAN, ROWS).abduct(torch.as_tensor(ROWS)).numpy()
    assert np.abs(z.mean(axis=0)).max() < 0.25
    assert np.abs(z.std(axis=0) - 1).max() < 0.25


def test_models_that_cannot_serve_are_refused() -> None:
    """No noise, or an effect before its cause."""
    silent = StructuralCausalModel(("x",), {})
    with pytest.raises(BadInput, match="no noise for x"):
        StructuralModel.of_rows(silent, [[0.0], [1.0]])
    swapped = StructuralCausalModel(
        ("y", "x"),
        {"x": Mechanism(noise=Bernoulli(0.5)), "y": Mechanism(Variable("x"), noise=Normal(1.0))},
    )
    with pytest.raises(BadInput, match="causes before effects"):
        StructuralModel.of_rows(swapped, [[0.0, 1.0], [1.0, 0.0]])


def test_networks_train_through_equations_and_are_read_back(task, tmp_path) -> None:
    """Some epochs lower the loss; the checkpoint says the same afterwards, equations included."""
    settings = Settings(epochs=6, profile="constant", learning_rate=5e-3)
    trainer = train(task, StructuralModel.of_rows(LOAN, ROWS), settings)
    losses = [one["loss"] for one in trainer.history]
    assert min(losses[1:]) < losses[0]
    write_recommender(trainer.model, tmp_path / "r.npz", {})
    again, _ = read_recommender(tmp_path / "r.npz")
    rows = task.validation[:20]
    first, _ = trainer.model.recommend(rows, everyone(20))
    second, _ = again.recommend(rows, everyone(20))
    assert np.array_equal(first, second, equal_nan=True)
    assert isinstance(again.flow, StructuralModel)
    assert again.flow.scm.edges == LOAN.edges


def test_a_spline_flow_inverts_and_intervenes() -> None:
    """Counterfactuals keep the latents of what is not acted on; densities integrate to one."""
    torch.manual_seed(5)
    flow = CausalFlow(("a", "b"), [[], ["a"]], hidden=(8,), shape="spline")
    rows = np.random.default_rng(2).normal(1.0, 2.0, (50, 2))
    flow.standardise_by(rows)
    action = np.full_like(rows, np.nan)
    action[:, 0] = rows[::-1, 0]
    after = flow.counterfactual(rows, action)
    assert (after[:, 0] == rows[::-1, 0]).all()
    before, then = (flow.abduct(torch.as_tensor(r)).detach().numpy() for r in (rows, after))
    assert then[:, 1] == pytest.approx(before[:, 1], abs=1e-6)
    grid = np.linspace(-30.0, 30.0, 4001)
    density = np.exp(flow.log_densities(np.column_stack([np.full_like(grid, 1.3), grid])))
    first = flow.column_log_density(torch.tensor([[1.3, 0.0]], dtype=torch.float64))[0, 0]
    assert np.trapezoid(density, grid) == pytest.approx(float(first.detach().exp()), rel=1e-3)
    assert CausalFlow(**flow.settings).shape == "spline"
    drawn = flow.sample(4000, torch.Generator().manual_seed(0))
    z = flow.abduct(torch.as_tensor(drawn)).detach().numpy()
    assert np.abs(z.mean(axis=0)).max() < 0.1
    assert np.abs(z.std(axis=0) - 1).max() < 0.1


def test_any_population_can_be_trained_on(tmp_path) -> None:
    """The shipped synthetic people, one lever fewer: three features, equations instead of a flow."""
    source = instances_path() / "gmsc"
    content = json.loads((source / "population.json").read_text(encoding="utf-8"))
    for feature in content["features"]:
        if feature["name"] == "real_estate_loans":
            feature["actionable"] = False
    levers = ["income", "credit_lines", "utilization"]
    content["preferences"] = {"actionable": levers}
    del content["cost"]["scale"]["real_estate_loans"]
    for name in ("classifier.json", "applicants.csv"):
        (tmp_path / name).write_bytes((source / name).read_bytes())
    (tmp_path / "population.json").write_text(json.dumps(content), encoding="utf-8")
    out = tmp_path / "out"
    arguments = ["icarma", "train", "--population", str(tmp_path / "population.json"), "--out", str(out)]
    assert main([*arguments, "--epochs", "2", "--threads", "1", "--device", "cpu"]) == 0
    model, notes = read_recommender(out / "recommender.npz")
    assert model.levers == tuple(levers)
    assert notes["epochs"] == 2
    assert not (out / "flow.npz").exists()
    with pytest.raises(BadInput, match="table 4"):
        PreferenceSampler(levers=3, distribution="causal")
    wishes = PreferenceSampler(levers=3, profile="linear").draw(500, np.random.default_rng(0))
    assert wishes.actionable.shape == (500, 3)
    assert set(wishes.actionable.sum(axis=1)) == {1, 2, 3}

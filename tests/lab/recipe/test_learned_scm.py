"""Causal models learned from rows: the equations found, and recourse certified through them."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("zuko")

from milp_recourse.certificates import instance_digest
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.formats import instance_from_dict, instance_to_dict, write_instance
from milp_recourse.lab.icarma.relu_fit import ReluTraining, fit_relu
from milp_recourse.lab.icarma.structural import StructuralModel
from milp_recourse.lab.recipe.learned_scm import fit_scm
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Status
from milp_recourse.problem.scm import Link
from milp_recourse.questions.solve import solve
from verify.__main__ import examine

NAMES = ("a", "b", "c")
PARENTS = {"a": (), "b": ("a",), "c": ("a", "b")}
QUICK = ReluTraining((4,), epochs=60, batch=256, learning_rate=2e-2, decay=True, best=True)


def true_rows(size: int, seed: int) -> np.ndarray:
    """b bends at a = 0, c falls with b; noise of sd 1, 0.5 and 0.2, in units far from 1."""
    rng = np.random.default_rng(seed)
    a = rng.normal(0.0, 1.0, size)
    b = np.maximum(a, 0.0) * 2 + rng.normal(0.0, 0.5, size)
    c = 0.5 * a - b + rng.normal(0.0, 0.2, size)
    return np.column_stack([1000 * a + 5000, b, 10 * c])


@pytest.fixture(scope="module")
def scm():
    return fit_scm(NAMES, PARENTS, true_rows(4000, 0), true_rows(1000, 1), QUICK)


@pytest.fixture(scope="module")
def linked():
    """The same rows; b, a lever, has a link, and the noise of c, which nobody acts on, is a mixture."""
    rows = true_rows(4000, 0), true_rows(1000, 1)
    return fit_scm(NAMES, PARENTS, *rows, QUICK, links={"b": Link("sigmoid", -6.0, 20.0)}, mixed=["c"])


def test_equations_and_noise_are_found(scm) -> None:
    """Residuals as small as the noise, and equations near the true ones where rows are."""
    a = np.linspace(4000.0, 6500.0, 26)
    b = scm.mechanisms["b"].equation.evaluate({"a": a})
    assert b == pytest.approx(2 * np.maximum((a - 5000) / 1000, 0.0), abs=0.12)
    sds = [scm.mechanisms[f].noise.sd for f in NAMES]
    assert sds == pytest.approx([1000.0, 0.5, 2.0], rel=0.05)
    assert scm.edges == (("a", "b"), ("a", "c"), ("b", "c"))


def test_columns_add_up_to_the_density(scm) -> None:
    """The terms per feature are the model's log density, and beat features taken for independent."""
    rows = true_rows(500, 2)
    terms = np.stack(scm.log_densities(rows), axis=-1)
    assert terms.sum(axis=1) == pytest.approx(scm.log_density(rows))
    sd = rows.std(axis=0)
    alone = -0.5 * np.square((rows - rows.mean(axis=0)) / sd) - np.log(sd * np.sqrt(2 * np.pi))
    assert (terms.mean(axis=0) > alone.mean(axis=0) - 0.01).all()
    assert terms.mean(axis=0)[2] > alone.mean(axis=0)[2] + 0.5


def test_costlier_defaults_are_refused_more_often() -> None:
    """Weights of rows move the decision; the network takes raw units, rounded to float32."""
    rng = np.random.default_rng(4)
    x = rng.normal(50.0, 10.0, (3000, 1))
    y = (rng.random(3000) < 1 / (1 + np.exp(-(x[:, 0] - 40) / 5))).astype(float)
    settings = ReluTraining((4,), epochs=20, learning_rate=1e-2)
    shares = []
    for weight in (1.0, 8.0):
        costs = np.where(y == 0, weight, 1.0)
        network = fit_relu((x, y), (x, y), settings, 0, "logistic", costs, "float32")
        assert network.dtype == "float32"
        shares.append((network.evaluate(x)[:, 0] < 0).mean())
    assert shares[0] < 0.25 < shares[1] - 0.1


def applicant(scm, seed: int) -> Instance:
    """A refused row of the model, two levers of which one moves the other and both move the third."""
    rng = np.random.default_rng(seed)
    row = scm.sample(1, rng)[0]
    sd = np.array([1000.0, 1.3, 8.0])
    layers = [
        (rng.normal(0, 1, (6, 3)) / sd, rng.normal(0, 1, 6) - 5.0 * (rng.normal(0, 1, 6) > 3)),
        (rng.normal(0, 1, (1, 6)), np.zeros(1)),
    ]
    layers[0] = (layers[0][0], layers[0][1] - layers[0][0] @ np.array([5000.0, 0.8, -8.0]))
    network = ReluNetwork.from_layers(layers)
    logit = float(network.evaluate(row[None])[0, 0])
    bounds = [(2000.0, 9000.0), (-2.0, 8.0), None]
    features = tuple(Feature(name, actionable=k < 2, bounds=bounds[k]) for k, name in enumerate(NAMES))
    return Instance(
        features=features,
        scm=scm,
        classifier=network,
        factual=dict(zip(NAMES, row.tolist(), strict=True)),
        preferences=Preferences(("a", "b")),
        cost=Cost.pure("l2-squared", {"a": 1000.0, "b": 1.3}),
        accept=Acceptance(threshold=logit + 0.3),
        plausible=seed % 2 == 0,
    )


CASES = [*(("scm", seed) for seed in range(4)), ("linked", 0), ("linked", 4)]


@pytest.mark.parametrize(("model", "seed"), CASES)
def test_back_ends_agree_and_the_checker_accepts(
    request: pytest.FixtureRequest, model: str, seed: int, tmp_path: Path
) -> None:
    """Through learned ReLU equations: bab and highs meet, and the certificate verifies."""
    scm = request.getfixturevalue(model)
    instance = applicant(scm, seed)
    one, other = solve(instance, "bab", certificates=True), solve(instance, "highs")
    assert one.status in (Status.OPTIMAL, Status.INFEASIBLE)
    assert one.status == other.status
    if one.cost is not None:
        assert one.cost == pytest.approx(other.cost, rel=1e-5, abs=1e-9)
    write_instance(instance, tmp_path / "instance.json")
    (tmp_path / "certificate.json.gz").write_bytes(one.evidence)
    outcome = examine(tmp_path / "certificate.json.gz", tmp_path / "instance.json", 600.0)
    assert outcome.claim is not None, outcome.line
    assert instance_from_dict(instance_to_dict(instance)).scm.edges == scm.edges


def test_a_mixture_is_its_density_and_draws(linked) -> None:
    """It integrates to 1, its draws have its moments, and the module in torch weighs it alike."""
    noise = linked.mechanisms["c"].noise
    u = np.linspace(noise.mean - 12 * noise.sd, noise.mean + 12 * noise.sd, 40_001)
    density, width = np.exp(noise.log_density(u)), u[1] - u[0]
    assert density.sum() * width == pytest.approx(1.0, abs=1e-6)
    assert (u * density).sum() * width == pytest.approx(noise.mean, abs=1e-4)
    drawn = noise.sample(20_000, np.random.default_rng(0))
    assert (drawn.mean(), drawn.std()) == pytest.approx((noise.mean, noise.sd), abs=0.1)
    rows = true_rows(50, 3)
    assert StructuralModel.of_rows(linked, rows).log_densities(rows) == pytest.approx(
        linked.log_density(rows)
    )


def test_a_mixture_of_a_lever_is_refused_and_its_lists_are_checked(linked, tmp_path: Path) -> None:
    """In one line, by the package and by the checker, where plausibility would have to weigh it."""
    plain = applicant(linked, 0)
    levers = tuple(replace(f, actionable=f.name != "a", bounds=(-50.0, 50.0)) for f in plain.features)
    cost = Cost.pure("l2-squared", {"b": 1.3, "c": 8.0})
    instance = replace(plain, features=levers, preferences=Preferences(("b", "c")), cost=cost)
    with pytest.raises(Unsupported, match="mixture noise, and can be acted on"):
        solve(instance, "bab")
    proof = solve(replace(instance, plausible=False), "bab", certificates=True).evidence
    content = json.loads(gzip.decompress(proof))
    write_instance(instance, tmp_path / "instance.json")
    content["instance_sha256"] = instance_digest(instance)
    (tmp_path / "certificate.json").write_text(json.dumps(content))
    outcome = examine(tmp_path / "certificate.json", tmp_path / "instance.json", 60.0)
    assert outcome.claim is None and "no mixture" in outcome.line
    content = instance_to_dict(instance)
    content["scm"]["mechanisms"]["c"]["noise"]["sds"].pop()
    with pytest.raises(BadInput, match=r"c\.noise: got 8 weights, 8 means, 7 sds"):
        instance_from_dict(content)

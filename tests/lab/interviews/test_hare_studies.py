"""HARE's experiments: base recourses against their definitions, wishes, tournaments and tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from milp_recourse.lab.interviews import hare_bases, hare_causes, hare_codes, hare_tables
from milp_recourse.lab.interviews.hare_people import Crowd, wishes
from milp_recourse.lab.interviews.hare_tables import BASE, HARE, KEPT, MULTI, Plan
from milp_recourse.lab.interviews.random_problems import random_problem
from milp_recourse.preferences import Interview
from milp_recourse.preferences.hare import growing_spheres, wachter
from milp_recourse.preferences.lever_space import LeverSpace


def line(people: int = 5, **how: object) -> Crowd:
    """Accepted are points whose first two coordinates sum to more than 1; the third cannot be changed."""
    start = np.random.default_rng(1).uniform(0, 0.3, size=(people, 1, 3))
    layers = ((np.array([[1.0], [1.0], [0.0]]), np.array([-1.0])),)
    options = {
        "layers": layers,
        "boxed": False,
        "features": np.array(["a", "b", "c"]),
        "free": np.array([1.0, 1.0, 0.0]),
    }
    return Crowd(start, **{**options, **how})  # type: ignore[arg-type]


def rows(count: int = 60) -> np.ndarray:
    """Random rows in the unit cube."""
    return np.random.default_rng(2).random((count, 3))


def test_wachter_finds_the_nearest_for_everybody_as_for_one() -> None:
    """On a line the least l1 distance is 1 - a - b."""
    crowd = line()
    found = wachter(crowd)
    assert found is not None
    least = 1 - crowd.start[:, 0, :2].sum(axis=1)
    assert np.abs(found - crowd.start).sum(axis=(1, 2)) == pytest.approx(least, abs=0.05)
    one = wachter(crowd.only([2]))
    assert one == pytest.approx(found[2:3], abs=1e-9)


def test_growing_spheres_of_one_person() -> None:
    """Accepted, what cannot change does not, and not further than a shell beyond the nearest."""
    crowd = line()
    found, start = growing_spheres(crowd.only([0]), np.random.default_rng(0)), crowd.start[0, 0]
    assert found is not None and crowd.score(found) > 0 and found[2] == start[2]
    assert np.linalg.norm(found - start) < (1 - start[:2].sum()) * 2**0.5 + 0.1


def test_face_ends_at_the_shortest_path() -> None:
    """Against all paths by Floyd and Warshall, on the mutual graph of three nearest neighbours."""
    crowd, seen = line(2), rows(20)
    accepted = crowd.score(seen) > 0
    nodes = np.concatenate([crowd.start[:, 0], seen])
    far = np.linalg.norm(nodes[:, None] - nodes, axis=-1)
    near = far.argsort(axis=1)[:, 1:4]
    length = np.full(far.shape, np.inf)
    for k, others in enumerate(near):
        length[k, others] = length[others, k] = far[k, others]
    for k in range(len(nodes)):
        length = np.minimum(length, length[:, [k]] + length[[k]])
    least = np.where(accepted, length[:2, 2:], np.inf)
    assert np.isfinite(least).any(axis=1).all()
    assert (hare_bases.face(crowd, seen, accepted, 3)[:, 0] == seen[least.argmin(axis=1)]).all()
    refused = np.zeros(len(seen), dtype=bool)
    assert np.isnan(hare_bases.face(crowd, seen, refused, 3)).all()


def test_cchvae_is_the_nearest_of_the_first_shell() -> None:
    """With a decoder that repeats its code, shells are in the space itself; what stays conditions it."""
    crowd = line()
    model = hare_codes.autoencoder(rows(), crowd.free, epochs=1)
    assert model.decoder[0].in_features == 6 + 1

    class Repeats:
        def code(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([x[:, :2], torch.zeros(len(x), 2)], dim=1)

        def decode(self, z: torch.Tensor, fixed: torch.Tensor) -> torch.Tensor:
            return torch.cat([z, fixed + 9], dim=-1)

    found = hare_codes.cchvae(crowd, Repeats(), np.random.default_rng(0))  # type: ignore[arg-type]
    least = (1 - crowd.start[:, 0, :2].sum(axis=1)) / 2**0.5
    far = np.linalg.norm(found - crowd.start, axis=-1)[:, 0]
    assert (crowd.score(found) > 0).all() and (found[..., 2] == crowd.start[..., 2]).all()
    assert (far >= least).all() and (np.ceil(least * 10) <= np.ceil(far * 10)).all()
    assert (far < least + 0.2).all()


def test_clue_lowers_its_own_objective() -> None:
    """Entropy is that of the definition, and less at the end than at the decoded start."""
    said = torch.tensor([-3.0, 0.0, 2.0])
    p = torch.sigmoid(said)
    known = -(p * p.log() + (1 - p) * (1 - p).log())
    assert hare_codes.entropy(said).tolist() == pytest.approx(known.tolist(), abs=1e-6)
    torch.manual_seed(0)
    crowd, model = line(), hare_codes.autoencoder(rows(), epochs=3)

    def objective(points: torch.Tensor) -> torch.Tensor:
        away = points - torch.tensor(crowd.start[:, 0])
        return hare_codes.entropy(hare_codes.logits(crowd, points)) + 0.1 * away.abs().sum(dim=1)

    begin = model.decode(model.code(torch.tensor(crowd.start[:, 0], dtype=torch.float32))[:, :6])
    end = torch.tensor(hare_codes.clue(crowd, model, steps=60)[:, 0], dtype=torch.float32)
    assert (objective(end) < objective(begin)).all()


def test_cruds_moves_only_the_code_of_the_label() -> None:
    """What it finds is accepted, and is the decoded row of the person's own z with some w."""
    torch.manual_seed(0)
    crowd, seen = line(), rows(400)
    model = hare_codes.autoencoder(seen, labels=crowd.score(seen) > 0, epochs=20)
    found = hare_codes.cruds(crowd, model, steps=100)
    assert (crowd.score(found) > 0).all()
    z = model.code(torch.tensor(crowd.start[:, 0], dtype=torch.float32))[:, :6]
    wanted = torch.tensor(found[:, 0], dtype=torch.float32)
    codes = torch.cartesian_prod(*[torch.linspace(-15, 15, 301)] * 2)
    for own, row in zip(z, wanted, strict=True):
        off = ((model.decode(own.expand(len(codes), -1), codes) - row) ** 2).sum(dim=1)
        assert off.min().item() < 1e-3 < off[len(codes) // 2].item()


def test_wishes_are_on_the_boundary_at_the_radius() -> None:
    """Within the sphere's bisection, and only where people can act."""
    crowd = line()
    found = wishes(crowd, 1.0, "boundary", np.random.default_rng(0))
    assert crowd.score(found) == pytest.approx(0, abs=1e-9) and (crowd.score(found) > 0).all()
    assert np.linalg.norm(found - crowd.start, axis=-1) == pytest.approx(1)
    assert (found[..., 2] == crowd.start[..., 2]).all()
    inside = wishes(line(boxed=True), 1.0, "ray", np.random.default_rng(0))
    assert ((inside >= 0) & (inside <= 1)).all()


def test_the_gradient_of_a_crowd() -> None:
    """Central differences, with a hidden layer, and 0 where nobody can act."""
    rng = np.random.default_rng(0)
    layers = ((rng.normal(size=(3, 4)), rng.normal(size=4)), (rng.normal(size=(4, 1)), rng.normal(size=1)))
    crowd, points = line(layers=layers), rng.normal(size=(5, 2, 3))
    step = 1e-6 * np.eye(3)
    ahead, behind = (crowd.score(points[..., None, :] + s * step) for s in (1, -1))
    assert crowd.gradient(points) == pytest.approx((ahead - behind) / 2e-6 * crowd.free, abs=1e-5)


def test_tournaments_come_nearer_and_exact_candidates_nearest() -> None:
    """Base > HARE > Multi-HARE with the winner kept; with as many questions exact candidates are better."""
    crowd = line(12)
    goals = wishes(crowd, 1.0, "boundary", np.random.default_rng(0))
    begin = wachter(crowd)
    assert begin is not None
    far = {BASE: begin, "exact": hare_tables.exact_tournament(crowd.only(range(3)), goals[:3], 5, 0)}
    for plan in (Plan(HARE), Plan(KEPT, 30, 5), Plan(MULTI, 30, 5)):
        far[plan.method] = hare_tables.tournament(crowd, goals, begin, plan, np.random.default_rng(1))
        assert (crowd.score(far[plan.method]) > 0).all()
    off = {name: np.linalg.norm(end - goals[: len(end)], axis=-1).mean() for name, end in far.items()}
    assert off[BASE] > off[HARE] > off[KEPT] > off["exact"] and off[MULTI] > off[KEPT]


def test_the_nearest_recourse_is_certified() -> None:
    """On a line its distance is known."""
    crowd = line(1)
    point = hare_tables.nearest(hare_tables.problem(crowd, 0), crowd.start[0, 0])
    assert point is not None
    least = (1 - crowd.start[0, 0, :2].sum()) / 2**0.5
    assert np.linalg.norm(point - crowd.start[0, 0]) == pytest.approx(least, abs=1e-4)


def test_measures() -> None:
    """At the wish both distances are 0; redundant is what can be reset alone."""
    crowd = line(1)
    goals = crowd.start + np.array([1.2, 0.9, 0.5])
    row = hare_tables.measures(crowd, goals, goals, ("c",))
    assert row["gtp"] == 0 and row["gtd"] == pytest.approx(0)
    redundant = sum(crowd.score(goals - np.eye(3)[k] * (1.2, 0.9, 0.5)[k])[0, 0] > 0 for k in range(3))
    assert (row["violations"], row["sparsity"], row["redundancy"]) == (1, 3, redundant)
    aside = crowd.start + np.array([0.9, -1.2, 0.0])
    level = goals * [1, 1, 0] + crowd.start * [0, 0, 1]
    assert hare_tables.measures(crowd, aside, level, ())["gtd"] == pytest.approx(1)


def test_tables_are_summarised_and_orders_checked(tmp_path: Path) -> None:
    """Means and deviations beside the published ones, orders that hold and that do not, and a figure."""
    made = []
    for plan, gtp in zip(hare_tables.MAIN, (1.0, 0.8, 0.9, 0.6), strict=True):
        cell = {"data": "adult", "model": "network", "base": "face", "scale": "far", "method": plan.method}
        cell |= {"budget": plan.budget, "rounds": plan.rounds, "people": 150}
        made += [{**cell, "seed": s, **dict.fromkeys(hare_tables.MEASURES, gtp + s)} for s in (0, 1)]
    table = hare_tables.summary(made)
    assert [row["gtp"] for row in table] == [1.5, 1.3, 1.4, 1.1] and table[0]["gtp_sd"] == pytest.approx(
        0.5**0.5
    )
    assert [row["gtp_published"] for row in table] == [1.06, 0.77, 0.56, 0.56]
    assert table[0]["violations_published"] == 2.01
    assert hare_tables.orders(table, KEPT) == ([f"adult, network, face: {m}" for m in ("gtp", "gtd")], [])
    assert hare_tables.orders(table, MULTI)[0] == []
    assert hare_tables.draw(table, tmp_path / "hare.png").is_file()


def test_a_wish_inside_the_package_is_reachable() -> None:
    """It is accepted, and inside the bounds."""
    space = LeverSpace(random_problem(3, 0))
    goal = hare_causes.wish(space, np.random.default_rng(0))
    assert goal is not None and space.score(goal[None])[0] > 0
    assert (space.inside(goal[None]) == goal).all()


def test_exact_candidates_of_the_package_come_nearest_to_the_wish() -> None:
    """With as many questions, less than half as far from it as HARE, on average."""
    far: dict[str, list[float]] = {"exact-hare": [], "hare": []}
    for seed in (300, 301, 302):
        instance = random_problem(4, seed)
        space = LeverSpace(instance)
        goal = hare_causes.wish(space, np.random.default_rng([seed, 1]))
        assert goal is not None
        for method, own in far.items():
            interview = Interview(instance, None, method, 30, seed)  # type: ignore[arg-type]
            chosen = hare_causes.answered(interview, space, goal).action
            own.append(float(np.linalg.norm(space.at(instance.numbers(chosen or {})) - goal)))
    assert np.mean(far["exact-hare"]) < 0.5 * np.mean(far["hare"])

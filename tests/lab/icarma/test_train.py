"""Training: it learns, it resumes exactly, what it writes can be read, and CARMA is its special case."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("zuko")

from milp_recourse.errors import BadInput
from milp_recourse.lab.icarma.checkpoint import read_recommender, write_recommender
from milp_recourse.lab.icarma.icarma_model import Recommender
from milp_recourse.lab.icarma.sampling import PreferenceSampler, everyone
from milp_recourse.lab.icarma.score import score
from milp_recourse.lab.icarma.settings import AS_RELEASED, BEST, Settings
from milp_recourse.lab.icarma.train import Trainer, Wanted, train

TINY = Settings(
    mask_hidden=(8,), action_hidden=(8,), epochs=3, batch=64, profile="mixed", seed=7, learning_rate=1e-2
)
from tests.helpers.masks import mask_check, outside_masks


@pytest.fixture(scope="module")
def small_task(task):
    """Few rows."""
    return replace(task, train=task.train[:500], validation=task.validation[:300])


@pytest.fixture(scope="module")
def learned(task, small_flow):
    """A small pair trained for a quarter of a minute."""
    settings = Settings(mask_hidden=(16,), action_hidden=(32, 32), epochs=12, seed=1, batch=64)
    return train(
        replace(task, train=task.train[:3000], validation=task.validation[:600]), small_flow, settings
    )


def test_it_learns(learned, people, task) -> None:
    """Random masks, true equations: 0.85 are accepted, 0.4 more than untrained, 0.3 more than at random.

    Measured: 0.92 trained, 0.00 untrained, 0.41 for uniform actions within the bounds; their mean
    cost where accepted is 0.16 trained, 0.52 at random.
    """
    rows = people[:800].rows
    wishes = PreferenceSampler("rank", "constant").draw(800, np.random.default_rng(3))
    untrained = Recommender(learned.model.flow, task.levers, task.bounds, learned.settings)
    chance = np.full(rows.shape, np.nan)
    drawn = np.random.default_rng(4).uniform(*task.bounds, (800, 4))
    chance[:, task.columns] = np.where(wishes.actionable, drawn, np.nan)
    actions = [learned.model.recommend(rows, wishes)[0], untrained.recommend(rows, wishes)[0], chance]
    trained, idle, lucky = (score(people.template, learned.model, rows, wishes, a) for a in actions)
    assert trained.valid_deployed.mean() > 0.85
    assert trained.valid_deployed.mean() > idle.valid_deployed.mean() + 0.4
    assert trained.valid_deployed.mean() > lucky.valid_deployed.mean() + 0.3
    assert trained.plain_cost[trained.valid].mean() < 0.5 * lucky.plain_cost[lucky.valid].mean()


def test_masks_hold(learned) -> None:
    """5000 predictions on rows near and far: none outside the individual mask or the bounds."""
    assert mask_check(learned.model, 5000, seed=2) == 0


def test_a_broken_mask_would_be_seen(learned, people) -> None:
    """The check counts a network that ignores masks."""
    rows = people[:50].rows
    wishes = PreferenceSampler("rank", "constant", actionable=1).draw(50, np.random.default_rng(0))
    action, _ = learned.model.recommend(rows, everyone(50))

    class Careless:
        bounds, columns = learned.model.bounds, learned.model.columns

        @staticmethod
        def recommend(*_: object) -> tuple[np.ndarray, None]:
            return action, None

    assert outside_masks(Careless(), rows, wishes) > 40


def test_preferences_move_recommendations(learned, people) -> None:
    """A dear feature is changed less often, or less far, than the same feature when it is easy."""
    rows = people[:400].rows
    easy, dear = everyone(400), everyone(400)
    dear.weights[:, 2] = 7.0
    moves = []
    for wishes in (easy, dear):
        action = learned.model.recommend(rows, wishes)[0]
        moves.append(np.abs(np.nan_to_num(action[:, 5] - rows[:, 5])).mean())
    assert moves[1] < 0.9 * moves[0]


@pytest.mark.parametrize("choices", [{}, AS_RELEASED], ids=["plain", "paper"])
def test_an_interrupted_run_ends_like_an_uninterrupted_one(small_task, small_flow, tmp_path, choices) -> None:
    """Bit for bit: weights, history, best epoch, lambda."""
    settings = replace(TINY, **choices)
    whole = train(small_task, small_flow, settings, tmp_path / "whole", every=1)
    first = Trainer(small_task, small_flow, settings)
    first.step()
    first.save(tmp_path / "cut" / "training.npz")
    again = train(small_task, small_flow, settings, tmp_path / "cut", every=1)
    assert repr(again.history) == repr(whole.history)  # a cost of nobody is nan, which equals nothing
    assert again.multiplier == whole.multiplier
    assert len(again.history) == TINY.epochs
    assert again.best_epoch == whole.best_epoch
    for name, value in whole.model.state().items():
        assert torch.equal(value, again.model.state()[name]), name


def test_another_runs_checkpoint_is_refused(small_task, small_flow, tmp_path) -> None:
    """Other settings, another flow, no checkpoint at all."""
    trainer = Trainer(small_task, small_flow, TINY)
    trainer.save(tmp_path / "training.npz")
    with pytest.raises(BadInput, match="same options"):
        Trainer(small_task, small_flow, replace(TINY, seed=8)).resume(tmp_path / "training.npz")
    with pytest.raises(BadInput, match="trained networks"):
        read_recommender(tmp_path / "training.npz")
    (tmp_path / "text.npz").write_text("no")
    with pytest.raises(BadInput, match="not a checkpoint"):
        read_recommender(tmp_path / "text.npz")
    with pytest.raises(BadInput, match="no such file"):
        read_recommender(tmp_path / "none.npz")


def test_a_pickle_is_not_read(tmp_path) -> None:
    """Reading a checkpoint runs nothing: object arrays are refused."""
    np.savez(tmp_path / "evil.npz", about=np.array([{"format": "x"}], dtype=object))
    with pytest.raises(BadInput, match="not a checkpoint"):
        read_recommender(tmp_path / "evil.npz")


def test_written_networks_recommend_the_same(learned, people, tmp_path) -> None:
    """After a round trip through the file, with the notes."""
    write_recommender(learned.model, tmp_path / "r.npz", {"why": "test"})
    model, notes = read_recommender(tmp_path / "r.npz")
    rows = people[:40].rows
    wishes = PreferenceSampler().draw(40, np.random.default_rng(0))
    assert notes == {"why": "test"}
    before, after = (m.recommend(rows, wishes)[0] for m in (learned.model, model))
    assert np.array_equal(before, after, equal_nan=True)
    assert model.settings == learned.model.settings


def test_carma_sees_no_preferences(small_task, small_flow) -> None:
    """The special case: the networks' context is the latent alone, priors are one half, weights one."""
    trainer = Trainer(small_task, small_flow, replace(TINY, individual=False))
    z = trainer.train.z
    can = torch.ones(len(z), 4, dtype=torch.bool)
    assert trainer.model.context(z, can, can.double()) is z
    assert trainer.held.actionable.all()
    assert (trainer.held.weights == 1).all()
    assert (trainer.held.priors == 0.5).all()
    assert "loss" in trainer.step()


def test_actions_need_not_see_preferences(small_task, small_flow) -> None:
    """With conditioning ``mask`` preferences change which features are acted on, and nothing else."""
    model = Trainer(small_task, small_flow, replace(TINY, conditioning="mask")).model
    rows = torch.as_tensor(small_task.train)
    z, can = small_flow.abduct(rows), torch.ones(len(rows), 4, dtype=torch.bool)
    low, high = (model.propose(rows, z, can, height * can.double()) for height in (0.0, 1.0))
    assert not torch.equal(low.logits, high.logits)
    same = (low.acted == high.acted).all(dim=1)
    assert same.any()
    assert torch.equal(low.values[same], high.values[same])


def test_the_loss_is_its_published_terms(small_task, small_flow) -> None:
    """Weights of equation 6: 1.1 cost, 1.5 divergence, 0.225 plausibility, 0.1 feasibility, ours lambda."""
    trainer = Trainer(small_task, small_flow, TINY)
    people, wanted = (
        trainer.train,
        Wanted.of(PreferenceSampler().draw(500, np.random.default_rng(0)), Settings(), torch.device("cpu")),
    )
    loss = trainer.loss(people, wanted, torch.Generator().manual_seed(1)).item()
    proposed = trainer.model.propose(
        people.rows, people.z, wanted.actionable, wanted.height, torch.Generator().manual_seed(1)
    )
    mean = {k: v.mean().item() for k, v in trainer.terms(people, wanted, proposed).items()}
    expected = 1.1 * mean["cost"] + 1.5 * mean["divergence"] + 0.225 * mean["plausibility"]
    expected += 0.1 * mean["feasibility"] + trainer.settings.validity * mean["validity"]
    assert loss == pytest.approx(expected)
    assert all(mean[name] > 0 for name in ("cost", "divergence", "validity", "plausibility"))


def test_terms_are_about_the_counterfactual(small_task, small_flow) -> None:
    """A mask of nothing: no cost, the factual's logit in the hinge, no plausibility lost."""
    trainer = Trainer(small_task, small_flow, TINY)
    wanted = Wanted.of(everyone(500), trainer.settings, torch.device("cpu"))
    wanted = replace(wanted, actionable=torch.zeros_like(wanted.actionable))
    proposed = trainer.model.propose(trainer.train.rows, trainer.train.z, wanted.actionable, wanted.height)
    terms = trainer.terms(trainer.train, wanted, proposed)
    for name in ("cost", "divergence", "plausibility", "feasibility"):
        assert terms[name].abs().max().item() == 0, name
    logit = small_task.network.evaluate(small_task.train)[:, 0]
    expected = 0.013 - logit / small_task.spread
    assert terms["validity"].detach().numpy() == pytest.approx(expected)


def test_published_hyperparameters() -> None:
    """Appendix C.2.4, ranks and scores."""
    rank, scores = Settings.published("rank"), Settings.published("score")
    assert (rank.mask_hidden, rank.action_hidden, rank.batch, rank.epochs) == (
        (32, 32),
        (32, 32, 32),
        128,
        450,
    )
    assert (rank.learning_rate, rank.margin, rank.temperature) == (0.005, 0.013, 0.36)
    assert (rank.cost, rank.plausibility, rank.feasibility, rank.divergence) == (1.1, 0.225, 0.1, 1.5)
    assert (scores.action_hidden, scores.epochs, scores.learning_rate) == ((32, 32), 900, 0.001)
    assert (scores.margin, scores.temperature, scores.cost, scores.divergence) == (0.004, 0.49, 1.3, 0.9)
    assert (scores.plausibility, scores.feasibility) == (0.125, 0.1)
    assert Settings.of_json(scores.as_json()) == scores


def test_recipes_are_the_published_numbers_with_named_choices() -> None:
    """``plain`` changes none of them, ``paper`` only what the paper leaves open."""
    plain, paper, best = (Settings.of_recipe(name, "rank") for name in ("plain", "paper", "best"))
    assert plain == Settings.published("rank")
    assert paper == replace(plain, **AS_RELEASED)
    assert best == replace(plain, **BEST)
    published = ("mask_hidden", "action_hidden", "batch", "epochs", "learning_rate", "margin", "temperature")
    published += ("cost", "plausibility", "feasibility", "divergence")
    assert not set(AS_RELEASED) & set(published)
    with pytest.raises(BadInput, match="plain, paper, best"):
        Settings.of_recipe("other", "rank")
    with pytest.raises(BadInput, match="logit, probability"):
        replace(plain, hinge="score")


def test_damped_dual_ascent_by_hand(small_task, small_flow) -> None:
    """The loss holds (lambda - 10 v) v, then lambda grows by v; the hinge is on 2 p - 1."""
    trainer = Trainer(small_task, small_flow, replace(TINY, dual=True, hinge="probability"))
    trainer.multiplier = 2.0
    drawn = PreferenceSampler().draw(500, np.random.default_rng(0))
    people, wanted = trainer.train, Wanted.of(drawn, trainer.settings, torch.device("cpu"))
    loss = trainer.loss(people, wanted, torch.Generator().manual_seed(1)).item()
    proposed = trainer.model.propose(
        people.rows, people.z, wanted.actionable, wanted.height, torch.Generator().manual_seed(1)
    )
    logit = small_task.network.evaluate(proposed.after.detach().numpy())[:, 0]
    hinge = np.maximum(0, TINY.margin - (2 / (1 + np.exp(-logit)) - 1)).mean()
    mean = {k: v.mean().item() for k, v in trainer.terms(people, wanted, proposed).items()}
    assert mean["validity"] == pytest.approx(hinge)
    expected = sum(getattr(TINY, k) * v for k, v in mean.items() if k != "validity")
    assert loss == pytest.approx(expected + (2.0 - 10 * hinge) * hinge)
    assert trainer.multiplier == pytest.approx(2.0 + hinge)


def test_the_last_epoch_is_kept_where_it_is_asked_for(small_task, small_flow) -> None:
    """Whatever the validation says."""
    trainer = train(small_task, small_flow, replace(TINY, keep="last"))
    assert trainer.best_epoch == TINY.epochs
    assert all(torch.equal(v, trainer.best[k]) for k, v in trainer.model.state().items())


def test_latent_actions_are_served_like_others(small_task, small_flow, people) -> None:
    """What the networks say as shifts of latents comes out as values inside the mask, and as said."""
    model = Trainer(small_task, small_flow, replace(TINY, **AS_RELEASED)).model
    rows = people[:30].rows
    wishes = PreferenceSampler().draw(30, np.random.default_rng(0))
    action, _ = model.recommend(rows, wishes, within_bounds=False)
    x = torch.as_tensor(rows)
    can, height = (torch.as_tensor(a) for a in (wishes.actionable, wishes.height))
    with torch.no_grad():
        proposed = model.propose(x, model.flow.abduct(x), can, height)
    acted = ~np.isnan(action[:, model.columns])
    assert (acted == (proposed.acted.numpy() > 0)).all()
    assert not (acted & ~wishes.actionable).any()
    assert model.flow.counterfactual(rows, action) == pytest.approx(proposed.after.numpy(), abs=1e-8)

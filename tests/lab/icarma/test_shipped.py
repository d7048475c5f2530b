"""The checkpoint that comes with the package, and the commands that use it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("zuko")

from milp_recourse.cli import main
from milp_recourse.errors import BadInput
from milp_recourse.formats import read_population
from milp_recourse.formats.instances_path import instances_path, population_file
from milp_recourse.lab.icarma.checkpoint import read_recommender
from milp_recourse.lab.icarma.fit_flow import loan_flow_rows
from milp_recourse.lab.icarma.predict import predict
from milp_recourse.lab.icarma.sampling import PreferenceSampler
from milp_recourse.lab.icarma.score import score
from milp_recourse.lab.icarma.shipped import FOLDER, shipped
from milp_recourse.problem.instance import Preferences
from milp_recourse.problem.loan import FEATURES, loan
from tests.helpers.masks import mask_check


def test_small_enough() -> None:
    """Every shipped checkpoint is below 1 MB."""
    files = list(FOLDER.glob("*.npz"))
    assert files
    assert all(f.stat().st_size < 1_000_000 for f in files)


def test_its_flow_is_within_a_tenth_of_a_nat(model) -> None:
    """Held-out log density of age to savings given gender, against the true SCM's."""
    test = loan_flow_rows(0)[2]
    true = loan().log_density(test) - np.log(0.5)
    assert 0 < np.mean(true - model.flow.log_densities(test)) < 0.1


def test_its_interventions_are_the_true_models(model) -> None:
    """Several features at once: asked values exactly, the rest within 4% of an sd (root mean square)."""
    test = loan_flow_rows(3, (1, 1, 2000))[2]
    rng = np.random.default_rng(1)
    action = np.full(test.shape, np.nan)
    for i in (3, 4, 5, 6):
        chosen = rng.random(len(test)) < 0.5
        action[chosen, i] = test[chosen, i] + rng.normal(size=chosen.sum()) * test[:, i].std()
    got, expected = model.flow.counterfactual(test, action), loan().counterfactual(test, action)
    acted = ~np.isnan(action)
    assert (got[acted] == action[acted]).all()
    assert (got[:, :3] == test[:, :3]).all()
    assert (np.sqrt(np.mean((got - expected) ** 2, axis=0)) < 0.04 * test.std(axis=0)).all()


def test_each_population_has_its_own_networks(people) -> None:
    """By the classifier: loan-sharp's for it, loan-smooth's for every other and where nothing is said."""
    sharp = read_population(population_file("loan-sharp"))
    assert [shipped("constant", t).name for t in (sharp.template, people.template, None)] == [
        "loan_sharp_constant.npz",
        "loan_smooth_constant.npz",
        "loan_smooth_constant.npz",
    ]
    names = [shipped("score", one.template).name for one in (sharp, people)]
    assert names == ["loan_sharp_rank.npz", "loan_smooth_score.npz"]
    assert read_recommender(shipped("score"))[0].settings.elicitation == "score"
    for one in (sharp, people):
        for kind in ("constant", "rank", "score"):
            model, _ = read_recommender(shipped(kind, one.template))
            bounds = [one.template.by_name[name].action_bounds for name in model.levers]
            assert (np.array(bounds) == model.bounds.numpy().T).all(), "trained for another population"


def test_it_recommends_what_the_deployed_model_accepts(model, people) -> None:
    """All four actionable: at least 95 of 100 refused test applicants."""
    rows = people[:600].rows
    wishes = PreferenceSampler("rank", "constant", hard=False).draw(600, np.random.default_rng(0))
    scored = score(people.template, model, rows, wishes, model.recommend(rows, wishes)[0])
    assert scored.valid_deployed.mean() >= 0.95


def test_masks_hold(model) -> None:
    """20000 predictions."""
    assert mask_check(model, 20_000) == 0


def test_predict_takes_a_frame_in_any_order(model, people) -> None:
    """Columns by name, index kept, ranges and masks respected, counterfactuals the flow's."""
    frame = pd.DataFrame(list(people.factuals[:30]))
    shuffled = frame[list(reversed(frame.columns))].assign(note="x")
    shuffled.index = pd.Index([f"p{i}" for i in range(30)])
    given = Preferences(("amount", "income"), ranges={"income": (0.0, 0.5), "amount": (9.0, 7.0)})
    table = predict(model, shuffled, given)
    assert list(table.index) == list(shuffled.index)
    assert table[["action_duration", "action_savings"]].isna().all().all()
    assert table["action_amount"].isna().all(), "an empty range leaves nothing to do with that feature"
    assert table["action_income"].between(0.0, 0.5).all()
    assert (table["counterfactual_income"] == table["action_income"]).all()
    assert (table["counterfactual_amount"] == shuffled["amount"]).all()
    assert table.equals(predict(model, frame, [given] * 30).set_index(table.index))


def test_bad_frames_are_named(model, people) -> None:
    """A missing column, a word, unknown features, too few preferences."""
    frame = pd.DataFrame(list(people.factuals[:3]))
    everything = Preferences(model.levers)
    with pytest.raises(BadInput, match="no column age"):
        predict(model, frame.drop(columns="age"), everything)
    with pytest.raises(BadInput, match="row 1: income: got much"):
        predict(model, frame.assign(income=[1.0, "much", 2.0]), everything)
    with pytest.raises(BadInput, match="age"):
        predict(model, frame, Preferences(("age",)))
    with pytest.raises(BadInput, match="one per applicant"):
        predict(model, frame, [everything])


def test_nobody_and_nothing_to_do(model, people) -> None:
    """No applicants: an empty table; no actionable features: no action."""
    frame = pd.DataFrame(list(people.factuals[:2]))
    assert len(predict(model, frame[:0], [])) == 0
    assert predict(model, frame, Preferences(())).filter(like="action_").isna().all().all()


def test_the_command_predict(tmp_path, capsys) -> None:
    """A population and a .csv of the same applicants give the same recommendations."""
    loan_folder = instances_path() / "loan_smooth"
    for source, name in ((loan_folder / "population.json", "a"), (loan_folder / "refused.csv", "b")):
        assert main(["icarma", "predict", str(source), "--out", str(tmp_path / f"{name}.csv")]) == 0
    assert "2457 recommendations by the networks for constant preferences" in capsys.readouterr().out
    first = pd.read_csv(tmp_path / "a.csv")
    assert first.equals(pd.read_csv(tmp_path / "b.csv"))
    assert set(FEATURES) == {c.removeprefix("counterfactual_") for c in first if c.startswith("counter")}


def test_bad_input_is_one_line(tmp_path, capsys) -> None:
    """Exit code 2, nothing written."""
    csv = instances_path() / "loan" / "refused.csv"
    out = ["--out", str(tmp_path / "x.csv")]
    for arguments in (
        ["icarma", "predict", str(csv), *out, "--actionable", "age"],
        ["icarma", "predict", str(tmp_path / "none.csv"), *out],
        ["icarma", "predict", str(csv), *out, "--checkpoint", str(csv)],
        ["icarma", "train", "--out", str(tmp_path / "t"), "--elicitation", "vote"],
        ["icarma", "train", "--out", str(tmp_path / "t"), "--recipe", "worst"],
        ["icarma", "decompose", "--out", str(tmp_path / "d"), "--population", "loan-rough"],
        ["lab", "reproduce", "table1", "--out", str(tmp_path / "r"), "--networks", str(tmp_path)],
        ["icarma", "gap", "--tables", "4", "--out", str(tmp_path / "g")],
    ):
        assert main(arguments) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1, said
    assert list(tmp_path.iterdir()) == []


def _small(monkeypatch, sizes) -> None:
    """A flow of 300 rows, and so many rows to train on, to choose by and to test."""
    from milp_recourse.lab.icarma import runs, task

    monkeypatch.setattr(runs, "FLOW_SIZES", (300, 50, 1))
    monkeypatch.setattr(task, "RELEASED_SIZES", sizes)


def test_train_on_optima(tmp_path, monkeypatch) -> None:
    """By command: optima of the train rows are certified once, and their margins are the networks' own."""
    _small(monkeypatch, (60, 40, 1))
    arguments = ["icarma", "train", "--out", str(tmp_path), "--epochs", "1", "--flow-epochs", "1"]
    arguments += ["--threads", "1", "--device", "cpu", "--profile", "constant", "--imitation", "3"]
    arguments += ["--margin", "0.05", "--density-margin", "0.2", "--recipe", "refined"]
    assert main(arguments) == 0
    model, _ = read_recommender(tmp_path / "recommender.npz")
    settings = model.settings
    assert (settings.imitation, settings.margin, settings.density_margin) == (3.0, 0.05, 0.2)
    assert settings.steps > 0
    assert model.demands.least == 2.0**-11, "the certified problem's margin"
    (kept,) = (tmp_path / "optima").glob("plausible_*.npz")
    before = kept.stat().st_mtime_ns
    assert main(arguments) == 0
    assert kept.stat().st_mtime_ns == before


def test_train_and_go_on(tmp_path, capsys, monkeypatch) -> None:
    """One small run by command: networks are written, and the same command has nothing left to do."""
    _small(monkeypatch, (600, 200, 1))
    arguments = ["icarma", "train", "--out", str(tmp_path), "--epochs", "2", "--flow-epochs", "1"]
    assert main([*arguments, "--seeds", "2", "--threads", "1", "--device", "cpu"]) == 0
    said = capsys.readouterr().out
    assert "seed 1000" in said and "seed 2000" in said
    model, notes = read_recommender(tmp_path / "recommender.npz")
    losses = pd.read_csv(tmp_path / "seeds.csv").set_index("seed")["loss"]
    assert notes["validation"]["seed"] == losses.idxmin() == model.settings.seed
    before = (tmp_path / "flow.npz").stat().st_mtime_ns
    assert main([*arguments, "--seeds", "2", "--threads", "1", "--device", "cpu"]) == 0
    assert capsys.readouterr().out == said
    assert (tmp_path / "flow.npz").stat().st_mtime_ns == before


def test_the_outside_method_is_what_evaluate_takes(people) -> None:
    """Asked like anybody's method, it gives the recommendations of the constant-weight networks."""
    from milp_recourse.evaluation.methods import ask, load
    from milp_recourse.problem.population import Population

    few = Population(people.template, people.factuals[:20], people.preferences[:20])
    asked = ask(load("milp_recourse.lab.icarma.outside:recommend"), few)
    frame = pd.DataFrame(list(few.factuals))
    table = predict(read_recommender(shipped("constant"))[0], frame, few.preferences)
    for k, action in enumerate(asked):
        row = table.iloc[k].filter(like="action_").dropna()
        assert action == {name.removeprefix("action_"): value for name, value in row.items()}
    dear = few.preferences[0].actionable
    weighed = Population(few.template, few.factuals, tuple([Preferences(dear, {"income": 7.0})] * 20))
    assert ask(load("milp_recourse.lab.icarma.outside:recommend"), weighed) != asked

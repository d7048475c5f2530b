"""A search, by optuna, for the settings that the iCARMA paper does not publish.

A trial trains one pair of networks for all profiles of weights, and compares its numbers on the *validation*
rows with those that the paper prints for its test rows. Only then are ten seeds trained with the settings
found, and test rows measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.storages.journal import JournalFileBackend

from milp_recourse.lab.gap.paper_settings import SETTINGS, Setting, draw
from milp_recourse.lab.icarma.flow import CausalFlow
from milp_recourse.lab.icarma.runs import train_seeds
from milp_recourse.lab.icarma.sampling import Elicitation
from milp_recourse.lab.icarma.settings import SEEDS, Settings
from milp_recourse.lab.icarma.structural import StructuralModel
from milp_recourse.lab.icarma.task import Task
from milp_recourse.lab.icarma.train import Applicants, Trainer, Wanted
from milp_recourse.lab.means import mean, sd
from milp_recourse.lab.run_table import write_table
from milp_recourse.lab.studies.amortised import PLAUSIBILITY_WITHIN, VALIDITY_WITHIN

SEED, PREFERENCES, CHECKED_EVERY = 500, 1, 10
"""Of the networks and of the preferences on validation rows (no row of a table has either); in epochs."""

TABLE = {"rank": 2, "score": 3}

WIDTHS: dict[str, dict[str, Any]] = {
    "published": {},
    "64": {"mask_hidden": (64, 64), "action_hidden": (64, 64, 64)},
    "128": {"mask_hidden": (64, 64), "action_hidden": (128, 128, 128)},
}


def suggested(trial: optuna.Trial) -> dict[str, Any]:
    """The settings of a trial."""
    numbers = {
        "learning_rate": (5e-4, 1e-2, True),
        "temperature": (0.2, 1.0, False),
        "margin": (3e-3, 5e-2, True),
        "cost": (0.3, 3.0, True),
        "plausibility": (0.03, 1.0, True),
        "divergence": (0.03, 3.0, True),
        "prior_high": (0.5, 0.95, False),
        "prior_low": (0.02, 0.5, False),
    }
    found: dict[str, Any] = {k: trial.suggest_float(k, a, b, log=log) for k, (a, b, log) in numbers.items()}
    for name, known in (("prior_shape", ("weights", "exchanged")), ("conditioning", ("both", "mask"))):
        found[name] = trial.suggest_categorical(name, known)
    return found | WIDTHS[trial.suggest_categorical("width", tuple(WIDTHS))]


def search(
    task: Task,
    flow: CausalFlow | StructuralModel,
    elicitation: Elicitation,
    folder: Path,
    trials: int,
    epochs: int,
    advance: Callable[[str], None] = lambda _: None,
) -> optuna.Study:
    """Run trials until there are ``trials`` of them in FOLDER/search.log, and write FOLDER/search.csv.

    A trial is pruned if its distance is above the median of the other trials' after as many epochs.
    The first trial has the published settings; a trial that was interrupted does not count.

    Returns
    -------
    optuna.Study
        Its value is the mean over the printed rows of the larger of two distances, of validity in units of
        0.03 and of plausibility in units of 0.05: 1 or less if the rows are near.
    """
    folder.mkdir(parents=True, exist_ok=True)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    backend = JournalFileBackend(str(folder / "search.log"))
    study = optuna.create_study(
        storage=optuna.storages.JournalStorage(backend),
        study_name=f"{elicitation}, {epochs} epochs, {task.network.digest.hex()[:12]}",
        sampler=optuna.samplers.TPESampler(seed=SEED, n_startup_trials=8, multivariate=True),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5),
        load_if_exists=True,
    )
    rows = [one for one in SETTINGS if one.table == TABLE[elicitation]]
    if not study.trials:
        usual = Settings.of_recipe("plain", elicitation)
        given = {k: getattr(usual, k) for k in optuna_names() if k != "width"}
        study.enqueue_trial(given | {"width": "published"})

    def objective(trial: optuna.Trial) -> float:
        settings = Settings.of_recipe("plain", elicitation, seed=SEED, epochs=epochs, **suggested(trial))
        trainer = Trainer(task, flow, settings)
        while trainer.epoch < epochs:
            trainer.step()
            advance(f"trial {trial.number}")
            if trainer.epoch % CHECKED_EVERY == 0 and trainer.epoch < epochs:
                trial.report(apart(trial, trainer), trainer.epoch)
                if trial.should_prune():
                    raise optuna.TrialPruned
        trainer.model.load(trainer.best)
        return apart(trial, trainer)

    def apart(trial: optuna.Trial, trainer: Trainer) -> float:
        found = {one: measured(trainer, trainer.validation, one, PREFERENCES) for one in rows}
        for one, numbers in found.items():
            trial.set_user_attr(one.label, numbers)
        return sum(distance(*pair) for pair in found.items()) / len(rows)

    def keep(study: optuna.Study, _: Any = None) -> None:
        write_table(folder / "search.csv", [_row(t) for t in study.trials if t.state.is_finished()])

    left = trials - sum(trial.state.is_finished() for trial in study.trials)
    study.optimize(objective, n_trials=max(0, left), callbacks=[keep])
    keep(study)
    return study


def optuna_names() -> list[str]:
    """The names of a trial's parameters."""
    known = {k: v for k, v in Settings().as_json().items() if isinstance(v, int | float | str)}
    trial = optuna.trial.FixedTrial(known | {"width": "published"})
    suggested(trial)  # type: ignore[arg-type]
    return list(trial.params)


def seeds(
    task: Task,
    flow: CausalFlow | StructuralModel,
    trial: optuna.trial.FrozenTrial,
    elicitation: Elicitation,
    epochs: int,
    test: Any,
    folder: Path,
    advance: Callable[[str], None] = lambda _: None,
) -> list[dict[str, Any]]:
    """Train ten seeds with a trial's settings, and write FOLDER/rows.csv: their numbers on test rows.

    ``near`` is whether the means over the seeds are within 0.03 in validity and 0.05 in plausibility of the
    printed row; ``best`` is the seed with the least validation loss, which is what the paper prints.
    """
    chosen = suggested(optuna.trial.FixedTrial(trial.params))  # type: ignore[arg-type]
    settings = Settings.of_recipe("plain", elicitation, epochs=epochs, **chosen)
    trained = train_seeds(task, settings, SEEDS, folder / "networks", 0, "cpu", advance, flow, None)
    losses = [one["loss"] for one in trained]
    trainers = []
    for seed in SEEDS:
        trainers.append(Trainer(task, flow, replace(settings, seed=seed)))
        trainers[-1].resume(folder / "networks" / f"seed_{seed}" / "training.npz")
        trainers[-1].model.load(trainers[-1].best)
    people, made = trainers[0].applicants(test), []
    for setting in (one for one in SETTINGS if one.cell.elicitation == elicitation):
        found = [measured(trainer, people, setting, 0) for trainer in trainers]
        row: dict[str, Any] = {"table": setting.table, "setting": setting.label, "seeds": len(found)}
        for key in found[0]:
            each = np.array([one[key] for one in found])
            row |= {
                key: mean(each),
                f"{key} sd": sd(each),
                f"{key} best": each[losses.index(min(losses))],
            }
        printed = setting.icarma
        row |= {"printed validity": printed.validity, "printed plausibility": printed.plausibility}
        row |= {"printed cost": printed.cost_mean, "printed hap": printed.hap}
        best = {key: row[f"{key} best"] for key in found[0]}
        row |= {"near": distance(setting, row) <= 1, "best near": distance(setting, best) <= 1}
        made.append(row)
    write_table(folder / "rows.csv", made)
    return made


def measured(trainer: Trainer, people: Applicants, setting: Setting, seed: int) -> dict[str, float]:
    """The networks' numbers for preferences of this seed, measured as in the paper: by the flow, uncut."""
    wishes = draw(setting, len(people.rows), seed)
    wanted = Wanted.of(wishes, trainer.settings, trainer.device)
    wanted = replace(wanted, weights=wanted.actionable.double())  # costs are printed with weights 1
    terms, valid, plausible, acted = trainer.measure(people, wanted)
    cost = terms["cost"]
    return {
        "validity": float(valid.double().mean()),
        "plausibility": float(plausible.double().mean()),
        "served": float((valid & plausible).double().mean()),
        "cost": float(cost[valid].mean()) if bool(valid.any()) else float("nan"),
        "hap": float(((acted.cpu().numpy() > 0) & wishes.least).any(axis=1).mean()),
    }


def distance(setting: Setting, numbers: dict[str, float]) -> float:
    """How far a row is from the printed one; 1 is the border of what is called near."""
    printed = setting.icarma
    apart = abs(numbers["validity"] - printed.validity) / VALIDITY_WITHIN
    return max(apart, abs(numbers["plausibility"] - printed.plausibility) / PLAUSIBILITY_WITHIN)


def _row(trial: optuna.trial.FrozenTrial) -> dict[str, Any]:
    """A trial's row: number, state, value, parameters, and the numbers of each row of the table."""
    row: dict[str, Any] = {"trial": trial.number, "state": trial.state.name.lower()}
    reached = trial.intermediate_values
    row["distance"] = reached[max(reached)] if trial.value is None and reached else trial.value
    row |= {name: trial.params.get(name) for name in optuna_names()}
    for setting in SETTINGS:
        if setting.table == 2:
            for key, value in trial.user_attrs.get(setting.label, {}).items():
                row[f"{setting.label} {key}"] = value
    return row

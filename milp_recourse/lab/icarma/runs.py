"""Training with several seeds, in a folder from which an interrupted run can be resumed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from milp_recourse.errors import BadInput
from milp_recourse.lab.icarma.checkpoint import (
    FORMAT,
    flow_content,
    flow_of,
    read_arrays,
    write_arrays,
    write_recommender,
)
from milp_recourse.lab.icarma.fit_flow import FLOW_SIZES, FlowTraining, fit_flow, loan_flow_rows
from milp_recourse.lab.icarma.flow import CausalFlow
from milp_recourse.lab.icarma.settings import Settings
from milp_recourse.lab.icarma.structural import StructuralModel
from milp_recourse.lab.icarma.task import Task
from milp_recourse.lab.icarma.train import train
from milp_recourse.lab.icarma.training_optima import Optima
from milp_recourse.lab.run_table import write_table

FLOW_SEED = 0


def train_seeds(
    task: Task,
    settings: Settings,
    seeds: Sequence[int],
    folder: Path,
    flow_epochs: int,
    device: str,
    advance: Callable[[str], None],
    through: CausalFlow | StructuralModel | None,
    optima: Optima | None,
) -> list[dict[str, Any]]:
    """Train every seed and keep the one with the least validation loss as DIR/recommender.npz.

    DIR/flow.npz is the flow that all seeds use. DIR/seed_<n>/ has each seed's training.npz, recommender.npz
    and history.csv, and DIR/seeds.csv has one row per seed. Work whose results are there is not repeated.

    Parameters
    ----------
    advance
        Called after every epoch of the flow or the networks, with a few words about it.
    through
        The flow, or a structural model in its place; None for Loan's flow, which is trained first.
    optima
        The optima of the train rows, if the settings imitate them.

    Returns
    -------
    list
        One row per seed: seed, best_epoch, loss, valid, plausible, cost, all of the best epoch.
    """
    flow = through or loan_flow(task, folder / "flow.npz", flow_epochs, device, advance)
    rows = []
    for seed in seeds:
        own, place = replace(settings, seed=seed), folder / f"seed_{seed}"

        def report(numbers: Mapping[str, Any], seed: int = seed) -> None:
            advance(f"seed {seed}: loss {numbers['loss']:.3f}, valid {numbers['valid']:.2f}")

        trainer = train(task, flow, own, place, device, report, optima=optima)
        best = trainer.history[trainer.best_epoch - 1]
        row: dict[str, Any] = {"seed": seed, "best_epoch": trainer.best_epoch}
        row |= {k: best[k] for k in ("loss", "valid", "plausible", "cost")}
        write_recommender(
            trainer.model, place / "recommender.npz", {"validation": row, "epochs": trainer.epoch}
        )
        write_table(place / "history.csv", trainer.history)
        rows.append(row)
        if row["loss"] == min(r["loss"] for r in rows):
            write_recommender(
                trainer.model, folder / "recommender.npz", {"validation": row, "epochs": trainer.epoch}
            )
    write_table(folder / "seeds.csv", rows)
    return rows


def loan_flow(task: Task, path: Path, epochs: int, device: str, advance: Callable[[str], None]) -> CausalFlow:
    """The flow in a file; if there is no file, a flow is trained and written to it.

    Raises
    ------
    BadInput
        The file's flow was trained with other settings.
    """
    settings = {"epochs": epochs, "sizes": list(FLOW_SIZES)}
    if path.exists():
        arrays, about = read_arrays(path)
        if about.get("training") != settings:
            raise BadInput(
                str(path), json.dumps(about.get("training")), f"{json.dumps(settings)}, or a new folder"
            )
        return flow_of(arrays, about["flow"]).to(device)
    rows, validation, _ = loan_flow_rows(FLOW_SEED, FLOW_SIZES)
    torch.manual_seed(FLOW_SEED)
    flow = CausalFlow.of_scm(task.template.scm, ("gender",)).to(device)
    fit_flow(flow, rows, validation, FLOW_SEED, FlowTraining(epochs=epochs), lambda: advance("flow"))
    arrays, content = flow_content(flow)
    write_arrays(path, arrays, {"format": FORMAT, "kind": "flow", "flow": content, "training": settings})
    return flow

"""The classifier, causal models and flow of ``gmsc``: trained once, then read from their folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from milp_recourse.formats import read_population
from milp_recourse.formats.strict_json import read_json, write_json
from milp_recourse.lab.icarma.checkpoint import FORMAT, flow_content, flow_of, read_arrays, write_arrays
from milp_recourse.lab.icarma.fit_flow import FlowTraining, fit_flow
from milp_recourse.lab.icarma.flow import CausalFlow
from milp_recourse.lab.recipe.gmsc import (
    CHOSEN,
    DECISION,
    FORMS,
    WEIGHTS,
    fit_equations,
    lever_bounds,
    measures,
    population,
    refused,
    train_decision,
)
from milp_recourse.lab.recipe.gmsc_data import FEATURES, PARENTS, GmscData, dequantised
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.population import Population
from milp_recourse.problem.scm import StructuralCausalModel

FLOW = FlowTraining(hidden=(32, 32), batch=1024, epochs=30)
"""The paper's neural spline flow has 32 units and ELU (appendix C.3.2); batch and epochs are chosen here."""


def steps(forms: Sequence[str]) -> int:
    """How often ``advance`` is called if everything has to be trained."""
    return len(WEIGHTS) * DECISION.epochs + len(forms) * len(FEATURES) + FLOW.epochs


@dataclass(frozen=True)
class Learned:
    """The learned models, and the refused test rows as a population.

    Attributes
    ----------
    people
        The population; its template has the classifier, and the causal model :data:`CHOSEN`.
    scms
        The causal models, by their names in :data:`FORMS`.
    flow
        The neural spline flow, to compare with.
    report
        The numbers measured in training.
    """

    people: Population
    scms: dict[str, StructuralCausalModel]
    flow: CausalFlow
    report: dict[str, Any]

    @property
    def network(self) -> ReluNetwork:
        """The deployed classifier."""
        network = self.people.template.classifier
        assert isinstance(network, ReluNetwork)
        return network

    @property
    def scm(self) -> StructuralCausalModel:
        """The causal model in the certified problems."""
        return self.people.template.scm


def learned(
    data: GmscData,
    folder: Path,
    seed: int,
    forms: Sequence[str] = tuple(FORMS),
    advance: Callable[[], None] = lambda: None,
    say: Callable[[str], None] = lambda _: None,
) -> Learned:
    """Read the models of a folder, or train them and write them there, each once it is trained.

    The folder's ``applicants.csv`` has rows of the owner's file, so the folder must not be published.
    """
    report_file, flow_file = folder / "report.json", folder / "flow.npz"
    say(f"trains a classifier for each of {len(WEIGHTS)} weights of a default")
    network, attempts = train_decision(data, seed, folder, advance)
    say(f"fits equations: {'; '.join(forms)}")
    scms, densities = fit_equations(data, seed, folder, forms, advance)
    say(f"trains the flow, {FLOW.epochs} epochs")
    if not flow_file.exists():
        _write_flow(data, flow_file, seed, advance)
    if not report_file.exists():
        margin = population(
            folder,
            "gmsc",
            "Give Me Some Credit: the refused test rows, a causal model learned along all 19 edges.",
            refused(network, data.test.rows),
            network,
            scms[CHOSEN],
            lever_bounds(data.train.rows),
            seed,
        )
        report = {
            "seed": seed,
            "attempts": attempts,
            "classifier": measures(network, data),
            "margin": margin,
            "test_log_density_by_units": densities,
        }
        write_json(report, report_file)
    arrays, about = read_arrays(flow_file)
    flow = flow_of(arrays, about["flow"])
    return Learned(read_population(folder / "population.json"), scms, flow, read_json(report_file))


def _write_flow(data: GmscData, path: Path, seed: int, advance: Callable[[], None]) -> None:
    import torch

    train, validation = (
        dequantised(part.rows, seed + k) for k, part in enumerate((data.train, data.validation))
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        flow = CausalFlow(FEATURES, [PARENTS[f] for f in FEATURES], (), FLOW.hidden, "spline")
    fit_flow(flow, train, validation, seed, FLOW, advance)
    arrays, content = flow_content(flow)
    write_arrays(path, arrays, {"format": FORMAT, "kind": "flow", "flow": content})

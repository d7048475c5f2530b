"""The smoke instances: each answer is attained, and nothing on a dense grid beats it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from milp_recourse.formats import read_instance
from milp_recourse.formats.instances_path import instance_files
from milp_recourse.judge import judge
from milp_recourse.problem.instance import Instance
from milp_recourse.solvers.grid import GridBackend
from milp_recourse.solvers.protocol import Options

FILES = instance_files("smoke")
ACTIONS: dict[str, dict[str, float | str] | None] = json.loads(
    (Path(__file__).parent / "smoke_actions.json").read_text(encoding="utf-8")
)
"""Per instance an action that attains the reference cost, up to rounding inward; None where there is none."""


def by_index(instance: Instance, action: dict[str, float | str]) -> dict[str, float]:
    """Labels replaced by their indices."""
    return {
        name: float(instance.by_name[name].categories.index(v)) if isinstance(v, str) else float(v)
        for name, v in action.items()
    }


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_every_file_says_what_it_shows(file: Path) -> None:
    """Its name, a description that derives the answer, and an action where there is one."""
    instance = read_instance(file)
    assert instance.name == file.stem
    assert len(json.loads(file.read_text(encoding="utf-8"))["description"]) > 30
    assert (ACTIONS[file.stem] is None) == (instance.reference.status == "infeasible")


@pytest.mark.parametrize("name", [name for name, action in ACTIONS.items() if action is not None])
def test_the_reference_cost_is_attained(name: str) -> None:
    """The kept action is feasible exactly and as deployed, at the reference cost."""
    instance = read_instance(next(file for file in FILES if file.stem == name))
    judgement = judge(instance, by_index(instance, ACTIONS[name] or {}))
    assert judgement.feasible, judgement.faults
    assert float(judgement.cost) == pytest.approx(instance.reference.cost, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_a_dense_grid_finds_nothing_cheaper(file: Path) -> None:
    """No grid point beats the reference, and none is feasible where the reference says infeasible."""
    instance = read_instance(file)
    bins = {0: 1, 1: 2001, 2: 301, 3: 61}.get(len(instance.levers), 25)
    proposal = GridBackend(bins).solve(instance, Options())
    if proposal.action is None:
        return
    assert instance.reference.status == "optimal"
    assert float(judge(instance, proposal.action).cost) >= instance.reference.cost * (1 - 1e-12)


def test_every_answer_type_and_rule_is_there() -> None:
    """Infeasible and optimal, each cost measure, each kind, each SCM, trees and networks."""
    contents = [json.loads(file.read_text(encoding="utf-8")) for file in FILES]
    kinds = {f["kind"] for c in contents for f in c["features"]}
    assert kinds == {"continuous", "integer", "binary", "ordinal", "categorical"}
    assert {c["cost"]["kind"] for c in contents} == {"l2-squared", "l1", "linf", "l0", "mixture"}
    assert {c["scm"]["name"] for c in contents} >= {"independent", "explicit", "loan"}
    assert {c["reference"]["status"] for c in contents} == {"optimal", "infeasible"}
    assert {c["classifier"]["kind"] for c in contents} == {"relu-network", "tree-ensemble"}

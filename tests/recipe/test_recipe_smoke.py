"""The smoke instances: each answer is attained, and nothing on a dense grid beats it."""

from __future__ import annotations

from pathlib import Path

import pytest

from milp_recourse.backends.grid import GridBackend
from milp_recourse.backends.protocol import Options
from milp_recourse.formats import read_instance
from milp_recourse.instance import Instance
from milp_recourse.instances_path import instances_path
from milp_recourse.judge import judge
from milp_recourse.recipe.files import dump
from milp_recourse.recipe.smoke import Smoke
from milp_recourse.recipe.smoke_cases import all_cases

CASES = all_cases()
FOLDER = instances_path() / "smoke"


def by_index(instance: Instance, action: dict[str, float | str]) -> dict[str, float]:
    """Labels replaced by their indices."""
    return {
        name: float(instance.feature(name).categories.index(v)) if isinstance(v, str) else float(v)
        for name, v in action.items()
    }


def test_names_are_unique_and_say_what_is_shown() -> None:
    """Every case has a name of its own and a description."""
    assert len({case.name for case in CASES}) == len(CASES)
    assert all(len(case.content["description"]) > 30 for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_the_shipped_file_is_what_the_script_writes(case: Smoke) -> None:
    """instances/smoke is reproducible byte for byte."""
    assert (FOLDER / f"{case.name}.json").read_text(encoding="utf-8") == dump(case.content)


def test_no_other_file_is_shipped() -> None:
    """The folder holds the cases and nothing else."""
    assert {path.stem for path in FOLDER.iterdir()} == {case.name for case in CASES}


@pytest.mark.parametrize("case", [c for c in CASES if c.action is not None], ids=lambda c: c.name)
def test_the_reference_cost_is_attained(case: Smoke) -> None:
    """The case's own action is feasible exactly and as deployed, at the reference cost."""
    instance = read_instance(FOLDER / f"{case.name}.json")
    judgement = judge(instance, by_index(instance, dict(case.action or {})))
    assert judgement.feasible, judgement.faults
    assert float(judgement.cost) == pytest.approx(instance.reference.cost, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_dense_grid_finds_nothing_cheaper(case: Smoke) -> None:
    """No grid point beats the reference, and none is feasible where the reference says infeasible."""
    instance = read_instance(FOLDER / f"{case.name}.json")
    bins = {0: 1, 1: 2001, 2: 301, 3: 61}.get(len(instance.levers), 25)
    proposal = GridBackend(bins).solve(instance, Options())
    if proposal.action is None:
        return
    assert instance.reference.status == "optimal"
    assert float(judge(instance, proposal.action).cost) >= instance.reference.cost * (1 - 1e-12)


def test_every_answer_type_and_rule_is_there() -> None:
    """Infeasible and optimal, each cost measure, each kind, each SCM, trees and networks."""
    contents = [case.content for case in CASES]
    kinds = {f["kind"] for c in contents for f in c["features"]}
    assert kinds == {"continuous", "integer", "binary", "ordinal", "categorical"}
    assert {c["cost"]["kind"] for c in contents} == {"l2-squared", "l1", "linf", "l0", "mixture"}
    assert {c["scm"]["name"] for c in contents} >= {"independent", "explicit", "loan"}
    assert {c["reference"]["status"] for c in contents} == {"optimal", "infeasible"}
    assert {c["classifier"]["kind"] for c in contents} == {"relu-network", "tree-ensemble"}


def test_writing_them_gives_readable_files(tmp_path: Path) -> None:
    """`recipe smoke` writes one valid file per case."""
    from milp_recourse.recipe.smoke import write_smoke

    names = write_smoke(tmp_path)
    assert {read_instance(tmp_path / f"{name}.json").name for name in names} == set(names)

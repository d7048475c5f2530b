"""References need two agreeing back ends; the index says who they were and notices every change."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.formats.instances_path import instance_files_in, instances_path
from milp_recourse.formats.strict_json import read_json, write_json
from milp_recourse.lab.recipe.index import checksum_faults, read_index, refreshed, write_index
from milp_recourse.lab.recipe.recipe_commands import app
from milp_recourse.lab.recipe.references import agree, compare_with_grid, fill_references
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result, Status

run = CliRunner().invoke


def optimal(cost: float) -> Result:
    """A proven result of a made-up action."""
    fields = {"action": {}, "accepted_exact": True, "accepted_deployed": True, "proof": "solver"}
    return Result(Status.OPTIMAL, cost, cost, seconds=0.5, **fields)


INFEASIBLE = Result(Status.INFEASIBLE, proof="solver")
STOPPED = Result(Status.LIMIT, None, 0.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two instances, one with a reference by hand (9) and one without."""
    for name, reference in (("known", True), ("unknown", False)):
        content = read_json(instances_path() / "smoke" / "boundary.json") | {
            "name": name,
            "features": [{"name": "income", "kind": "continuous", "actionable": True, "bounds": [0, 12]}],
            "cost": {"kind": "l2-squared", "scale": {"income": 1}},
            "reference": {"status": "optimal", "cost": 9, "lower_bound": 9},
        }
        if not reference:
            del content["reference"]
        write_json(content, tmp_path / "some" / f"{name}.json")
    return tmp_path


def answering(**costs: Result):
    """A solver that answers per back end."""

    def solver(instance: Instance, backend: str, time_limit: float | None) -> Result:
        return costs[backend]

    return solver


def test_agreeing_back_ends_fill_the_reference_and_the_index(folder: Path) -> None:
    """The first back end's numbers enter the file; the index names both, and by hand stays by hand."""
    complaints = fill_references(folder, "a", "b", solver=answering(a=optimal(9.0), b=optimal(9.000001)))
    assert complaints == []
    content = read_json(folder / "some/unknown.json")
    assert content["reference"] == {"status": "optimal", "cost": 9.0, "lower_bound": 9.0}
    rows = read_index(folder)
    assert [rows["some/unknown.json"][k] for k in ("found_by", "confirmed_by", "cost")] == ["a", "b", "9.0"]
    known = rows["some/known.json"]
    assert [known[k] for k in ("found_by", "confirmed_by")] == ["by hand", "a; b"]
    assert checksum_faults(folder) == []


def test_what_is_confirmed_is_not_solved_again(folder: Path) -> None:
    """A second run has nothing to do unless forced."""
    seen: list[int] = []
    solver = answering(a=optimal(9.0), b=optimal(9.0))
    for force in (False, False, True):
        fill_references(folder, "a", "b", force=force, solver=solver, on_start=seen.append)
    assert seen == [2, 0, 2]


@pytest.mark.parametrize("second", [optimal(9.1), INFEASIBLE, STOPPED], ids=["cost", "infeasible", "limit"])
def test_disagreement_leaves_the_file_as_it_was(folder: Path, second: Result) -> None:
    """No reference is written and the complaint names both answers."""
    before = (folder / "some/unknown.json").read_bytes()
    complaints = fill_references(folder, "a", "b", solver=answering(a=optimal(9.0), b=second))
    assert len(complaints) == 2
    assert complaints[1].startswith("some/unknown.json: a says optimal 9.0")
    assert (folder / "some/unknown.json").read_bytes() == before
    assert read_index(folder)["some/unknown.json"]["status"] == ""


def test_an_answer_by_hand_is_never_overwritten(folder: Path) -> None:
    """Two back ends that agree on something else are reported."""
    before = (folder / "some/known.json").read_bytes()
    complaints = fill_references(folder, "a", "b", solver=answering(a=optimal(8.0), b=optimal(8.0)))
    assert [c.split(":")[0] for c in complaints] == ["some/known.json"]
    assert (folder / "some/known.json").read_bytes() == before


def test_an_answer_by_hand_stands_where_no_back_end_can_check_it(folder: Path) -> None:
    """Unsupported is a complaint only for files that have no answer yet."""

    def solver(instance: Instance, backend: str, time_limit: float | None) -> Result:
        raise Unsupported("trees")

    complaints = fill_references(folder, "a", "b", solver=solver)
    assert [c.split(":")[0] for c in complaints] == ["some/unknown.json"]
    assert read_index(folder)["some/known.json"]["confirmed_by"] == ""


def test_only_proofs_agree() -> None:
    """Both infeasible, or both optimal at the same cost to 1e-6; a limit agrees with nothing."""
    assert agree(INFEASIBLE, INFEASIBLE)
    assert agree(optimal(1.0), optimal(1.0 + 5e-7))
    assert not agree(optimal(1.0), optimal(1.0 + 5e-6))
    assert not agree(optimal(1.0), INFEASIBLE)
    assert not agree(STOPPED, STOPPED)


def test_the_grid_comparison_counts_what_the_grid_misses(folder: Path) -> None:
    """With the bins of bounds 0..12 the grid hits 3 exactly; a reference above it is a violation."""
    expected: list[int] = []
    counted: list[int] = []
    comparison = compare_with_grid(folder, expected.append, lambda: counted.append(1))
    assert expected == [2] and len(counted) == 2  # the file without a reference too: the bar reaches its end
    assert comparison["violations"] == []
    (group,) = comparison["groups"]
    assert (group["instances"], group["grid_found"], group["missed_share"]) == (1, 1, 0.0)
    assert group["median_cost_ratio"] == pytest.approx(1.0)
    path = folder / "some/known.json"
    write_json(read_json(path) | {"reference": {"status": "optimal", "cost": 9.5, "lower_bound": 9.5}}, path)
    assert len(compare_with_grid(folder)["violations"]) == 1


def test_checksums_notice_a_changed_a_missing_and_an_unlisted_file(folder: Path) -> None:
    """`recipe checksums --check` exits 4 and names each, and 0 once all is as listed."""
    write_index(folder, refreshed(folder, {}))
    assert run(app, ["checksums", str(folder), "--check"]).exit_code == 0
    known, unknown = folder / "some/known.json", folder / "some/unknown.json"
    known.write_text(known.read_text() + "\n")
    unknown.rename(folder / "some/renamed.json")
    result = run(app, ["checksums", str(folder), "--check"])
    assert result.exit_code == 4
    assert len(checksum_faults(folder)) == 3
    for word in ("sha256 is", "missing", "not listed"):
        assert word in result.output
    assert run(app, ["checksums", str(folder)]).exit_code == 0
    assert checksum_faults(folder) == []


def test_the_command_solves_confirms_compares_and_reports(folder: Path) -> None:
    """`recipe references` with a real back end fills the file and writes both tables."""
    result = run(app, ["references", str(folder), "--backend", "highs", "--confirm", "highs"])
    assert result.exit_code == 0, result.output
    assert read_json(folder / "some/unknown.json")["reference"]["cost"] == pytest.approx(9.0)
    assert (folder / "grid_comparison.json").exists()
    assert len(instance_files_in(folder)) == 2
    assert checksum_faults(folder) == []


def test_two_sets_of_settings_are_refused(tmp_path: Path) -> None:
    """The latter was taken without a word."""
    with pytest.raises(BadInput, match="--smooth: got also --printed"):
        run(app, ["loan", "--smooth", "--printed", "--out", str(tmp_path)], catch_exceptions=False)

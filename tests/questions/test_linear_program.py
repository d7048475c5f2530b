"""The program of ``export --linear`` has no squares, and its optimum is as near as it says."""

from __future__ import annotations

import math
from itertools import islice
from pathlib import Path

import pytest

from milp_recourse import read_instance
from milp_recourse.cli.app import main
from milp_recourse.errors import Unsupported
from milp_recourse.formats import instance_from_dict
from milp_recourse.problem.instance import Instance
from milp_recourse.questions import linear_program as module
from milp_recourse.questions.linear_program import LinearProgram, export_linear, files, linear_program
from tests.helpers.generators import supported_instance
from tests.helpers.tree_samples import random_tree_instance, with_missing
from tests.properties.linear_programs import (
    agrees,
    by_each,
    by_highs,
    by_scip,
    ensembles,
    on_steps,
    unit_of,
)

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
CASES = ("plausible_ball", "plausible_relu", "mixture", "square_equation", "sigmoid_link", "categorical")

REFUSED = (
    "no action can be taken: there is no program to write",
    "a tree splits on what follows from causes only up to rounding: no error can be proven",
)


def written(name: str, path: Path, **options: float) -> LinearProgram:
    return export_linear(read_instance(INSTANCES / f"{name}.json"), path, **options)


@pytest.mark.parametrize("suffix", ["lp", "mps"])
@pytest.mark.parametrize("name", [*(f"smoke/{one}" for one in CASES), "loan/loan_150"])
def test_highs_reads_it_and_finds_an_optimum_within_the_error(name: str, suffix: str, tmp_path: Path) -> None:
    made = written(name, path := tmp_path / f"p.{suffix}")
    assert made.error is not None and made.error <= 0.01 * (made.best or 0.0)
    assert agrees(made, by_highs(path, 60.0), unit_of(path)) is True


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("share", [0.5, 1e-2])
def test_random_programs_with_coarse_pieces_are_within_their_errors(
    share: float, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Causes, curves, conditions, labels, densities."""
    monkeypatch.setattr(module, "SHARES", (share,))
    made = export_linear(supported_instance(seed), path := tmp_path / "p.lp", time_limit=20.0)
    assert agrees(made, by_highs(path, 20.0), unit_of(path)) is not False


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize(
    "case",
    [
        *islice(ensembles(), 14),
        *((f"stepped {k}", on_steps(k)) for k in range(4)),
        *((f"short curves {k}", supported_instance(k)) for k in (15, 24)),
    ],
)
def test_trees_and_steps(case: tuple[str, Instance], each: bool, tmp_path: Path) -> None:
    """As certified: cells of float32, ties of scores, sums of which one suffices, steps of tenths, lists; and
    parts of curves that are 1e-6 of their distance from 0."""
    try:
        made = export_linear(case[1], path := tmp_path / "p.lp", time_limit=20.0, each=each)
    except Unsupported as refused:
        assert str(refused) in REFUSED
        return
    assert made.error is not None
    assert agrees(made, by_each(made, path, 20.0), unit_of(files(made, path)[0])) is True


@pytest.mark.parametrize("name", ["loan/loan_150", "smoke/categorical"])
def test_a_file_per_configuration_says_what_is_acted_on(name: str, tmp_path: Path) -> None:
    """The least of the files' optima is the problem's; those that are proven too dear are left out."""
    made = export_linear(read_instance(INSTANCES / f"{name}.json"), path := tmp_path / "p.mps", each=True)
    written = files(made, path)
    assert sorted(tmp_path.iterdir()) == written
    for file, acted in zip(written, made.mips, strict=True):
        assert f"* Acted on: {', '.join(acted or ())}; see the other files, too." in file.read_text()
    assert agrees(made, by_each(made, path, 60.0), unit_of(written[0])) is True


def test_the_error_is_there_and_smaller_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """With pieces as long as a curve the optimum is far off; what is stated says so."""
    curved = read_instance(INSTANCES / "smoke/square_equation.json")
    fine = linear_program(curved, error=1e-2)
    monkeypatch.setattr(module, "SHARES", (1.0,))
    coarse = linear_program(curved)
    assert coarse.best == fine.best and coarse.error is not None and fine.error is not None
    assert fine.error <= 1e-2 < coarse.error


def test_a_product_with_a_fixed_factor_is_as_far_off_as_the_sum_that_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Coarse pieces of two sigmoids, a thousand times which a condition asks for."""
    monkeypatch.setattr(module, "SHARES", (0.5,))
    start = 1 / (1 + math.exp(4.0))
    link = {"kind": "sigmoid", "offset": 0.0, "scale": 1.0}
    sums = {"sum": {"e1": 1000.0, "e2": 1000.0}}
    products = {"sum": {}, "products": [[1.0, "a", "e1"], [1.0, "a", "e2"]]}
    stated = []
    for said in (sums, products):
        lever = {"kind": "continuous", "actionable": True, "bounds": [-5, 5]}
        features = [lever | {"name": n} for n in ("i", "s")]
        features += [{"name": n, "kind": "continuous", "actionable": False} for n in ("e1", "e2", "a")]
        mechanisms = {
            e: {"equation": {"product": [8.0, k]}, "link": link} for e, k in (("e1", "i"), ("e2", "s"))
        }
        problem = {
            "format": "milp-recourse/instance-1",
            "features": features,
            "scm": {"name": "explicit", "mechanisms": mechanisms},
            "classifier": {
                "kind": "relu-network",
                "dtype": "float64",
                "layers": [{"weight": [[0.0] * 5], "bias": [1.0]}],
            },
            "factual": {"i": -0.5, "s": -0.5, "e1": start, "e2": start, "a": 1000.0},
            "preferences": {
                "actionable": ["i", "s"],
                "conditions": [said | {"of": "counterfactual", "at_least": 900.0}],
            },
            "cost": {"kind": "l1", "scale": {"i": 1, "s": 1.3}},
            "plausibility": None,
        }
        made = export_linear(instance_from_dict(problem), path := tmp_path / "p.lp", time_limit=20.0)
        assert agrees(made, by_highs(path, 20.0), unit_of(path)) is True
        stated.append(made.error)
    assert stated[0] == pytest.approx(stated[1])


def test_missing_values_are_refused(tmp_path: Path) -> None:
    """In one line, whether a tree splits on them or not; nothing is written."""
    drawn = (with_missing(seed, random_tree_instance(seed)) for seed in range(9))
    gone = next(one for one in drawn if one.missing)
    with pytest.raises(Unsupported, match="is missing: missing values are not written"):
        export_linear(gone, tmp_path / "p.lp")
    assert not list(tmp_path.iterdir())


def test_what_is_infeasible_stays_so(tmp_path: Path) -> None:
    made = written("smoke/infeasible_plausible", path := tmp_path / "p.lp")
    assert (made.best, made.error) == (None, 0.0)
    assert by_highs(path, 20.0)[0] == by_scip(path, 20.0)[0] == "infeasible"


def test_the_header_names_problem_optimum_and_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command prints the same sentences; without squares, and with the problem's hash."""
    problem, path = INSTANCES / "smoke/plausible_ball.json", tmp_path / "p.lp"
    assert main(["export", str(problem), "--linear", "--error", "0.001", "--out", str(path)]) == 0
    text, said = path.read_text(), capsys.readouterr().out
    lines = [line.removeprefix("\\ ") for line in text.splitlines() if line.startswith("\\")]
    assert "[" not in text.split("Minimize")[1] and "^2" not in text
    assert any(line.startswith("Problem (instance_sha256): ") for line in lines)
    [stated] = [line for line in lines if "differs from it by at most" in line]
    assert stated in said and any("at least 9.99" in line for line in lines)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (["--error", "0.1"], "--error: got 0.1; allowed: only with --linear"),
        (["--linear", "--error", "0"], "--error: got 0.0; allowed: a number above 0"),
        (["--each"], "--each: got given; allowed: only with --linear"),
    ],
)
def test_an_error_is_above_0_and_of_a_linear_program(
    more: list[str], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = str(INSTANCES / "smoke/hold.json")
    assert main(["export", problem, "--out", str(tmp_path / "p.lp"), *more]) == 2
    assert line in capsys.readouterr().err and not list(tmp_path.iterdir())

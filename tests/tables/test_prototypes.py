"""Prototypes: rows far from each other that stand for all rows near which a counterfactual may lie."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from milp_recourse.cli.app import app
from milp_recourse.errors import BadInput
from milp_recourse.formats import read_instance
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.formats.strict_json import read_json, write_json
from milp_recourse.problem.conditions import Condition
from milp_recourse.tables.from_data import near_rows, prototypes

SMOKE = instances_path() / "smoke" / "mask.json"
ROWS = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [9.0, 0.0], [1.0, 500.0]])


def near(rows: np.ndarray, names: tuple[str, ...], count: int | None) -> Condition:
    """Near some of the rows of income and savings."""
    return near_rows(read_instance(SMOKE), rows, 0.1, {"income": 1.0, "savings": 1.0}, names, count)


def test_each_is_the_farthest_from_those_before() -> None:
    """From the row nearest to the median, in scales."""
    assert prototypes(ROWS, [1.0, 100.0], 3).tolist() == [[1.0, 0.0], [9.0, 0.0], [1.0, 500.0]]


def test_only_columns_that_are_compared_count() -> None:
    """500 of savings makes no row of incomes farther, and a missing value there leaves none out."""
    wanted = near(np.array([[1.0, 0.0], [9.0, 0.0]]), ("income",), None)
    assert near(ROWS, ("income",), 2) == wanted
    assert near(np.c_[ROWS[:, 0], [0.0, 0.0, 0.0, np.nan, 500.0]], ("income",), 2) == wanted


def test_rows_with_a_missing_value_are_left_out() -> None:
    """They have no distance; the others are chosen as if these were not there."""
    missing = np.array([[np.nan, 2.0], [5.0, np.nan]])
    assert near(np.r_[missing, ROWS], (), 3) == near(ROWS, (), 3)
    for count in (2, None):
        with pytest.raises(BadInput, match="got 0 rows"):
            near(missing, (), count)


@pytest.mark.parametrize("count", ["0", "nan", "2.5", "-1"])
def test_a_number_of_prototypes_is_whole(count: str, tmp_path: Path) -> None:
    """``prepare --plausibility near:R:N`` refuses another in one line."""
    assert prepared(tmp_path, "near:0.1:1").exit_code == 0
    refused = prepared(tmp_path, f"near:0.1:{count}").exception
    assert isinstance(refused, BadInput) and "1 or more" in str(refused)


def test_a_domain_of_the_file_does_not_replace_that_of_the_data(tmp_path: Path) -> None:
    """Both hold for ``prepare --plausibility domain``; the data's was dropped for features that have one."""
    prepared(tmp_path, "domain", (-1.0, 8.5))
    assert read_json(tmp_path / "x.json")["features"][0]["domain"] == [0.0, 8.5]
    refused = prepared(tmp_path, "domain", (20.0, 30.0)).exception
    assert isinstance(refused, BadInput) and str(refused).startswith("features.income.domain: got (20, 30)")


def prepared(folder: Path, plausibility: str, domain: tuple[float, float] | None = None) -> Result:
    """``prepare`` run on two people, with a domain of income."""
    content = read_json(SMOKE)
    factual = content.pop("factual")
    content |= {"format": "milp-recourse/population-1", "factuals": [factual, {"income": 9, "savings": 9}]}
    content.pop("reference")
    if domain is not None:
        content["features"][0]["domain"] = list(domain)
    write_json(content, folder / "people.json")
    given = [str(folder / "people.json"), "--out", str(folder / "x.json"), "--plausibility", plausibility]
    return CliRunner().invoke(app, ["prepare", *given])

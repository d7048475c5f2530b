"""The three data sets of docs/dataframes.md: every action confirmed by the model on the raw row.

``python -m tests.docs.test_dataframes FOLDER`` runs the page as it is, 200 people each, and prints what
docs/results/dataframes/README.md records.
"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("MILP_RECOURSE_DATA", ROOT.parent / "shared" / "data"))
FILES = {"german": "german.data", "adult": "adult.zip", "gmsc": "gmsc-cs-training.csv.zip"}
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(name: str, people: int) -> dict[str, Any]:
    """The names that a block of the page leaves behind, run for so many people."""
    blocks = dict(zip(FILES, BLOCK.findall((ROOT / "docs" / "dataframes.md").read_text()), strict=True))
    os.environ["MILP_RECOURSE_DATA"] = str(DATA)
    found: dict[str, Any] = {}
    exec(blocks[name].replace(".head(200)", f".head({people})"), found)
    return found


def check(found: dict[str, Any]) -> None:
    """The model accepts every counterfactual as a raw row, and nine in ten people have an action."""
    answers, model, people = found["answers"], found["model"], found["people"]
    acted = answers.table["cost"].notna().to_numpy()
    wanted = found["recourse"]._word.wants
    after = np.array([wanted(label) for label in model.predict(answers.counterfactuals)])
    before = np.array([wanted(label) for label in model.predict(people)])
    assert after[acted].all() and not before.any()
    assert answers.table["confirmed"][acted].all()
    assert acted.mean() >= 0.9


@pytest.mark.parametrize("name", FILES)
@pytest.mark.filterwarnings("ignore")  # the models' own: convergence, pandas in their libraries
def test_a_block_of_the_page(name: str) -> None:
    if not (DATA / FILES[name]).is_file():
        pytest.skip(f"no {FILES[name]} in {DATA}: MILP_RECOURSE_DATA names the folder with the owners' files")
    if name == "gmsc":
        pytest.importorskip("xgboost", reason="the block trains XGBoost")
    check(run(name, 12))


if __name__ == "__main__":
    DATA = Path(sys.argv[1])
    for one in FILES:
        print(f"## {one}\n\n```text", flush=True)
        begun = time.perf_counter()
        check(run(one, 200))
        print(f"```\n\n{time.perf_counter() - begun:.0f} s in all, training included.\n", flush=True)

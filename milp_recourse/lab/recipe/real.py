"""Real applicants: Adult, COMPAS, German credit and Give Me Some Credit, from the files their owners publish.

Nothing of the data is shipped: the caller says where the files lie. A random forest is trained on four
fifths of the rows; the first refused rows of the last fifth are the applicants. What a person can act on is a
choice, made here as the recourse literature makes it and listed in :data:`SETS`; bounds are the data's.

References
----------
Adult: Becker and Kohavi (1996), https://doi.org/10.24432/C5XW20; German credit: Hofmann (1994),
https://doi.org/10.24432/C5NC77; COMPAS: Larson et al. (2016), ProPublica; Give Me Some Credit: Kaggle (2011).
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from milp_recourse.errors import BadInput
from milp_recourse.lab.recipe.files import sha256, write_json
from milp_recourse.readers import read_sklearn_trees, to_json


@dataclass(frozen=True)
class Column:
    """How a column enters: its kind, whether a person can act on it, and in which direction only."""

    kind: str
    actionable: bool = False
    monotone: str | None = None


NUMBER, WHOLE, LABEL = Column("continuous"), Column("integer"), Column("categorical")


@dataclass(frozen=True)
class DataSet:
    """A published table.

    Attributes
    ----------
    file
        Its name in the folder.
    read
        From the file to rows and whether each has the outcome people want.
    columns
        What the model reads, in order.
    """

    file: str
    read: Callable[[Path], tuple[pd.DataFrame, pd.Series]]
    columns: Mapping[str, Column]


def _from_zip(path: Path, member: str, **how: Any) -> pd.DataFrame:
    with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
        return pd.read_csv(stream, **how)


ADULT = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "country", "income"),
)
GERMAN = (
    *("checking", "duration", "history", "purpose", "amount", "savings", "employment", "rate", "status"),
    *("guarantors", "residence", "property", "age", "plans", "housing", "credits", "job", "liable"),
    *("telephone", "foreign", "label"),
)
LATE = (
    "NumberOfTime30-59DaysPastDueNotWorse",
    "NumberOfTimes90DaysLate",
    "NumberOfTime60-89DaysPastDueNotWorse",
)


def _adult(path: Path) -> tuple[pd.DataFrame, pd.Series]:
    rows = _from_zip(path, "adult.data", names=list(ADULT), skipinitialspace=True, na_values="?").dropna()
    return rows, rows["income"] == ">50K"


def _compas(path: Path) -> tuple[pd.DataFrame, pd.Series]:
    rows = _from_zip(path, "compas-scores-two-years.csv")
    return rows, rows["two_year_recid"] == 0


def _german(path: Path) -> tuple[pd.DataFrame, pd.Series]:
    rows = pd.read_csv(path, sep=" ", names=list(GERMAN))
    return rows, rows["label"] == 1


def _gmsc(path: Path) -> tuple[pd.DataFrame, pd.Series]:
    rows = clean_gmsc(_from_zip(path, "cs-training.csv", index_col=0))
    return rows, rows["SeriousDlqin2yrs"] == 0


def clean_gmsc(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows without gaps; three caps; lateness counts above 90 are codes and become 18 (as in PEAR)."""
    rows = rows.dropna()
    caps = {"DebtRatio": 1.0, "MonthlyIncome": 17000.0, "RevolvingUtilizationOfUnsecuredLines": 1.0}
    for name, cap in caps.items():
        rows[name] = rows[name].clip(upper=cap)
    for name in LATE:
        rows[name] = rows[name].where(rows[name] <= 90, 18)
    return rows


SETS: Mapping[str, DataSet] = {
    "adult": DataSet(
        "adult.zip",
        _adult,
        {
            "age": WHOLE,
            "workclass": Column("categorical", True),
            "education-num": Column("integer", True, "increase"),
            "marital-status": LABEL,
            "occupation": Column("categorical", True),
            "race": LABEL,
            "sex": LABEL,
            "capital-gain": Column("integer", True, "increase"),
            "capital-loss": Column("integer", True),
            "hours-per-week": Column("integer", True),
        },
    ),
    "compas": DataSet(
        "compas.zip",
        _compas,
        {
            "sex": LABEL,
            "age": WHOLE,
            "race": LABEL,
            "juv_fel_count": WHOLE,
            "juv_misd_count": WHOLE,
            "priors_count": Column("integer", True, "decrease"),
            "c_charge_degree": Column("categorical", True),
        },
    ),
    "german": DataSet(
        "german.data",
        _german,
        {
            "checking": Column("categorical", True),
            "duration": Column("integer", True),
            "history": LABEL,
            "purpose": LABEL,
            "amount": Column("integer", True),
            "savings": Column("categorical", True),
            "employment": Column("categorical", True),
            "rate": Column("integer", True),
            "guarantors": Column("categorical", True),
            "property": LABEL,
            "age": WHOLE,
            "plans": Column("categorical", True),
            "housing": Column("categorical", True),
            "credits": WHOLE,
            "job": LABEL,
        },
    ),
    "gmsc": DataSet(
        "gmsc-cs-training.csv.zip",
        _gmsc,
        {
            "RevolvingUtilizationOfUnsecuredLines": Column("continuous", True),
            "age": WHOLE,
            "DebtRatio": Column("continuous", True),
            "MonthlyIncome": Column("integer", True, "increase"),
            "NumberOfOpenCreditLinesAndLoans": Column("integer", True),
            LATE[1]: Column("integer", True, "decrease"),
            "NumberRealEstateLoansOrLines": Column("integer", True),
            LATE[0]: Column("integer", True, "decrease"),
            LATE[2]: Column("integer", True, "decrease"),
            "NumberOfDependents": WHOLE,
        },
    ),
}


def write_real(
    name: str, data: Path, folder: Path, applicants: int = 20, trees: int = 20, depth: int = 5, seed: int = 0
) -> dict[str, Any]:
    """Train a forest on a published table and write refused applicants as a population; returns the report.

    Parameters
    ----------
    data
        Folder with the owner's file.
    folder
        Gets ``forest.json`` and ``population.json``.

    Raises
    ------
    BadInput
        Unknown set, or its file is not there.
    """
    from sklearn.ensemble import RandomForestClassifier

    if name not in SETS:
        raise BadInput("NAME", name, ", ".join(SETS))
    chosen = SETS[name]
    path = data / chosen.file
    if not path.is_file():
        raise BadInput("--data", f"{data}, without {chosen.file}", f"a folder that holds {chosen.file}")
    rows, wanted = chosen.read(path)
    order = np.random.default_rng(seed).permutation(len(rows))
    rows, labels = rows.iloc[order].reset_index(drop=True), wanted.to_numpy(dtype=int)[order]
    features = [_feature(name, column, rows[name]) for name, column in chosen.columns.items()]
    inputs = np.column_stack([_inputs(feature, rows[feature["name"]]) for feature in features])
    cut = int(0.8 * len(inputs))
    model = RandomForestClassifier(trees, max_depth=depth, random_state=seed).fit(inputs[:cut], labels[:cut])
    write_json(folder / "forest.json", to_json(read_sklearn_trees(model)))
    entry = {"path": "forest.json", "sha256": sha256(folder / "forest.json")}
    refused = rows.iloc[cut:][model.predict(inputs[cut:]) == 0]
    acted = [feature["name"] for feature in features if feature["actionable"]]
    chosen_rows = refused.head(applicants)
    write_json(
        folder / "population.json",
        {
            "format": "milp-recourse/population-1",
            "name": name,
            "features": features,
            "scm": {"name": "independent"},
            "classifier": entry,
            "factuals": [
                {f["name"]: _value(f, value[f["name"]]) for f in features}
                for value in chosen_rows.to_dict("records")
            ],
            "preferences": {"actionable": acted},
            "cost": {"kind": "l1", "scale": {f["name"]: _span(f) for f in features if f["actionable"]}},
            "plausibility": None,
            "accept": {"above": 0.5},
        },
    )
    return {
        "set": name,
        "rows": len(rows),
        "columns": int(inputs.shape[1]),
        "test_accuracy": float(model.score(inputs[cut:], labels[cut:])),
        "refused_test_rows": len(refused),
        "applicants": len(chosen_rows),
    }


def _feature(name: str, column: Column, values: pd.Series) -> dict[str, Any]:
    said: dict[str, Any] = {"name": name, "kind": column.kind, "actionable": column.actionable}
    if column.kind == "categorical":
        return said | {"categories": sorted(values.unique().tolist())}
    return said | {
        "bounds": [float(values.min()), float(values.max())],
        "monotone": column.monotone,
    }


def _inputs(feature: Mapping[str, Any], values: pd.Series) -> np.ndarray:
    if feature["kind"] != "categorical":
        return values.to_numpy(dtype=np.float64)[:, None]
    return np.column_stack([(values == label).to_numpy(dtype=np.float64) for label in feature["categories"]])


def _value(feature: Mapping[str, Any], value: Any) -> Any:
    if feature["kind"] == "categorical":
        return str(value)
    return int(value) if feature["kind"] == "integer" else float(value)


def _span(feature: Mapping[str, Any]) -> float:
    if feature["kind"] == "categorical":
        return 1.0
    low, high = feature["bounds"]
    return float(high - low)

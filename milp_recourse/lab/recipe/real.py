"""Real applicants: Adult, COMPAS, German credit and Give Me Some Credit, from the files their owners publish.

The data are not shipped: the caller says where the files are. A random forest is trained on four fifths of
the rows; the first refused rows of the last fifth are the applicants. Which columns a person can act on is
listed in ``real_columns.csv``, as the recourse literature has it; bounds are the extremes of the data.

References
----------
Adult: Becker and Kohavi (1996), https://doi.org/10.24432/C5XW20; German credit: Hofmann (1994),
https://doi.org/10.24432/C5NC77; COMPAS: Larson et al. (2016), ProPublica; Give Me Some Credit: Kaggle (2011).
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milp_recourse.errors import BadInput
from milp_recourse.formats.strict_json import write_json
from milp_recourse.formats.write import population_to_dict
from milp_recourse.lab.known import known
from milp_recourse.lab.recipe.files import write_model
from milp_recourse.lab.run_table import read_rows
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.features import Feature, Kind, Monotone
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.population import Population
from milp_recourse.problem.scm import StructuralCausalModel, independent
from milp_recourse.readers import read_sklearn_trees


@dataclass(frozen=True)
class Column:
    """A column's kind, whether a person can act on it, and the only direction of a change (None: both)."""

    kind: Kind
    actionable: bool = False
    monotone: Monotone | None = None


@dataclass(frozen=True)
class DataSet:
    """A published table.

    Attributes
    ----------
    file
        The name of its file.
    read
        Reads the file; returns the rows, and for each whether it has the outcome that people want.
    columns
        The columns that the model reads, in order.
    """

    file: str
    read: Callable[[Path], tuple[pd.DataFrame, pd.Series]]
    columns: Mapping[str, Column]


def from_zip(path: Path, member: str, **how: Any) -> pd.DataFrame:
    """A table in an archive, read as pandas is told."""
    with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
        table: pd.DataFrame = pd.read_csv(stream, **how)
        return table


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
    rows = from_zip(path, "adult.data", names=list(ADULT), skipinitialspace=True, na_values="?").dropna()
    return rows, rows["income"] == ">50K"


def _compas(path: Path) -> tuple[pd.DataFrame, pd.Series]:
    rows = from_zip(path, "compas-scores-two-years.csv")
    return rows, rows["two_year_recid"] == 0


def _german(path: Path) -> tuple[pd.DataFrame, pd.Series]:
    rows = pd.read_csv(path, sep=" ", names=list(GERMAN))
    return rows, rows["label"] == 1


def _gmsc(path: Path) -> tuple[pd.DataFrame, pd.Series]:
    rows = clean_gmsc(from_zip(path, "cs-training.csv", index_col=0))
    return rows, rows["SeriousDlqin2yrs"] == 0


def clean_gmsc(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows without missing values, prepared as PEAR (De Toni et al. 2023) does: three columns are
    capped, and counts of late payments above 90, which are codes, become 18.
    """
    rows = rows.dropna()
    caps = {"DebtRatio": 1.0, "MonthlyIncome": 17000.0, "RevolvingUtilizationOfUnsecuredLines": 1.0}
    for name, cap in caps.items():
        rows[name] = rows[name].clip(upper=cap)
    for name in LATE:
        rows[name] = rows[name].where(rows[name] <= 90, 18)
    return rows


def _columns(name: str) -> dict[str, Column]:
    """The columns of a data set, from ``real_columns.csv``."""
    rows = read_rows(Path(__file__).with_name("real_columns.csv"))
    return {
        row["column"]: Column(row["kind"], row["actionable"] == "yes", row["monotone"] or None)
        for row in rows
        if row["set"] == name
    }


SETS: Mapping[str, DataSet] = {
    "adult": DataSet("adult.zip", _adult, _columns("adult")),
    "compas": DataSet("compas.zip", _compas, _columns("compas")),
    "german": DataSet("german.data", _german, _columns("german")),
    "gmsc": DataSet("gmsc-cs-training.csv.zip", _gmsc, _columns("gmsc")),
}


@dataclass(frozen=True)
class Table:
    """A data set as arrays.

    ``values`` are the factual values as numbers, in the order of ``features``; ``labels`` are 1 for the
    outcome that people want.
    """

    name: str
    features: tuple[Feature, ...]
    values: NDArray[np.float64]
    labels: NDArray[np.int64]

    @cached_property
    def inputs(self) -> NDArray[np.float64]:
        """The model's inputs: the values, with categorical features one-hot encoded."""
        parts = []
        for k, feature in enumerate(self.features):
            column = self.values[:, k]
            lookup = feature.lookup
            parts.append(column[:, None] if lookup is None else lookup[column.astype(np.int64)])
        return np.concatenate(parts, axis=1)

    @property
    def levers(self) -> list[Feature]:
        """The features that a person can act on."""
        return [f for f in self.features if f.actionable]

    def problem(
        self,
        row: int,
        cost: str,
        scm: StructuralCausalModel,
        classifier: ReluNetwork | TreeEnsemble,
        accept: Acceptance,
        name: str,
    ) -> Instance:
        """The problem of one row: changing a label costs 1, changing a number its share of the range."""
        scale = {f.name: (f.bounds[1] - f.bounds[0]) or 1.0 if f.bounds else 1.0 for f in self.levers}
        return Instance(
            self.features,
            scm,
            classifier,
            dict(zip((f.name for f in self.features), self.values[row].tolist(), strict=True)),
            Preferences(tuple(f.name for f in self.levers)),
            Cost.pure(cost, scale),
            accept,
            name=name,
        )


def read_set(name: str, data: Path | None, seed: int, option: str) -> Table:
    """One of :data:`SETS`, rows in random order.

    Parameters
    ----------
    data
        The folder with the owner's file.
    option
        The option or argument that named the set, for the error message.

    Raises
    ------
    BadInput
        The set is unknown, or its file is not in the folder.
    """
    chosen = SETS[known(option, name, SETS)]
    frame, wanted = chosen.read(file_in(data, chosen.file))
    return table_of(name, frame, wanted, chosen.columns, seed)


def file_in(data: Path | None, name: str) -> Path:
    """A file in the folder with the owners' files; BadInput where there is none."""
    if data is None or not (data / name).is_file():
        raise BadInput("--data", f"{data}, without {name}", f"a folder that holds {name}")
    return data / name


def table_of(
    name: str, frame: pd.DataFrame, wanted: pd.Series, columns: Mapping[str, Column], seed: int
) -> Table:
    """Rows in random order; ``wanted`` says which have the outcome that people want."""
    order = np.random.default_rng(seed).permutation(len(frame))
    features, values = [], []
    for column, how in columns.items():
        read = frame[column].to_numpy()[order]
        if how.kind == "categorical":
            labels, read = np.unique(read.astype(str), return_inverse=True)
            names = tuple(labels.tolist())
            features.append(Feature(column, how.kind, how.actionable, categories=names, encoding="one-hot"))
        else:
            feature = numeric(column, how.kind, read.astype(np.float64), how.actionable)
            features.append(replace(feature, monotone=how.monotone))
        values.append(read.astype(np.float64))
    return Table(name, tuple(features), np.column_stack(values), wanted.to_numpy(dtype=np.int64)[order])


def numeric(name: str, kind: Kind, values: NDArray[np.float64], actionable: bool = True) -> Feature:
    """A numeric feature whose bounds are the extremes of a column's values."""
    return Feature(name, kind, actionable, (float(values.min()), float(values.max())))


def write_real(
    name: str, data: Path, folder: Path, applicants: int = 20, trees: int = 20, depth: int = 5, seed: int = 0
) -> dict[str, Any]:
    """Train a forest on a published table and write refused applicants as a population; return a report.

    Parameters
    ----------
    data
        The folder with the owner's file.
    folder
        ``forest.json`` and ``population.json`` are written there.

    Raises
    ------
    BadInput
        The set is unknown, or its file is not in the folder.
    """
    from sklearn.ensemble import RandomForestClassifier

    table = read_set(name, data, seed, "NAME")
    inputs, labels, names = table.inputs, table.labels, [f.name for f in table.features]
    cut = int(0.8 * len(inputs))
    model = RandomForestClassifier(trees, max_depth=depth, random_state=seed).fit(inputs[:cut], labels[:cut])
    forest = read_sklearn_trees(model)
    refused = cut + np.flatnonzero(model.predict(inputs[cut:]) == 0)
    accept = Acceptance(0.5, 0.0, strict=True)
    chosen = [
        table.problem(row, "l1", independent(names), forest, accept, name) for row in refused[:applicants]
    ]
    entry = write_model(forest, folder / "forest.json")
    people = Population(chosen[0], [one.factual for one in chosen], tuple(one.preferences for one in chosen))
    content = population_to_dict(people)
    write_json(content | {"classifier": entry}, folder / "population.json")
    return {
        "set": name,
        "rows": len(inputs),
        "columns": int(inputs.shape[1]),
        "test_accuracy": float(model.score(inputs[cut:], labels[cut:])),
        "refused_test_rows": len(refused),
        "applicants": len(chosen),
    }

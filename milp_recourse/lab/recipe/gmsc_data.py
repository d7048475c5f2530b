"""Give Me Some Credit as the iCARMA paper uses it: rows, causal graph, splits.

The file belongs to its owner and is not shipped; the caller says where it is. Preprocessing and causal graph
are those of PEAR (De Toni et al. 2023,
https://github.com/unitn-sml/pear-personalized-algorithmic-recourse), which the paper follows in appendix
C.3: rows with missing values are dropped, three columns are capped, and codes above 90 in the counts of late
payments become 18; nothing is resampled, and no logarithms are taken. The paper scales columns to [0, 1];
here the cost has the ranges as scales instead.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milp_recourse.errors import BadInput
from milp_recourse.lab.recipe.loan_rows import Split
from milp_recourse.lab.recipe.real import clean_gmsc, from_zip

LABEL = "SeriousDlqin2yrs"

COLUMNS: Mapping[str, str] = {
    "age": "age",
    "dependents": "NumberOfDependents",
    "income": "MonthlyIncome",
    "credit_lines": "NumberOfOpenCreditLinesAndLoans",
    "real_estate_loans": "NumberRealEstateLoansOrLines",
    "utilization": "RevolvingUtilizationOfUnsecuredLines",
    "debt_ratio": "DebtRatio",
    "late_30": "NumberOfTime30-59DaysPastDueNotWorse",
    "late_60": "NumberOfTime60-89DaysPastDueNotWorse",
    "late_90": "NumberOfTimes90DaysLate",
}
"""For each feature, in causal order, the name of its column in the owner's file."""

FEATURES = tuple(COLUMNS)

LATE = ("late_30", "late_60", "late_90")

PARENTS: Mapping[str, tuple[str, ...]] = {
    "age": (),
    "dependents": ("age",),
    "income": ("age",),
    "credit_lines": ("age", "income"),
    "real_estate_loans": ("age", "income"),
    "utilization": ("income",),
    "debt_ratio": ("age", "credit_lines", "real_estate_loans"),
    **dict.fromkeys(LATE, ("credit_lines", "real_estate_loans", "utilization")),
}
"""The causal graph: PEAR's 19 edges (the paper, figure 6)."""

LEVERS = ("income", "credit_lines", "real_estate_loans", "utilization")
"""Globally actionable (the paper, section 5.2), in the order of the features."""

COUNTS = ("age", "dependents", "credit_lines", "real_estate_loans", *LATE)
"""Columns of whole numbers, which :func:`dequantised` adds noise to."""

SHARES = (0.5, 0.25, 0.25)
"""Of train, validation and test (the paper, appendix C.3)."""


@dataclass(frozen=True)
class GmscData:
    """The three splits. Label 1 means that the person did not default."""

    train: Split
    validation: Split
    test: Split


def read_gmsc(path: Path, seed: int = 0) -> GmscData:
    """Read, clean and split the owner's file.

    Parameters
    ----------
    path
        ``cs-training.csv``, or a .zip that holds it.
    seed
        Of the split.

    Raises
    ------
    BadInput
        There is no such file, or it has not the owner's columns.
    """
    if not path.is_file():
        raise BadInput(
            "DATA", str(path), "the file cs-training.csv of Give Me Some Credit, or a .zip with it"
        )
    try:
        if path.suffix == ".zip":
            table = from_zip(path, "cs-training.csv", index_col=0)
        else:
            table = pd.read_csv(path, index_col=0)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise BadInput(
            str(path), " ".join(str(error).split()), "cs-training.csv, or a .zip with it"
        ) from None
    missing = [name for name in (LABEL, *COLUMNS.values()) if name not in table.columns]
    if missing:
        raise BadInput(str(path), f"no column {missing[0]}", ", ".join((LABEL, *COLUMNS.values())))
    return split(clean_gmsc(table), seed)


def split(table: pd.DataFrame, seed: int) -> GmscData:
    """Cleaned rows in random order, divided by :data:`SHARES`."""
    order = np.random.default_rng(seed).permutation(len(table))
    rows = table[list(COLUMNS.values())].to_numpy(dtype=np.float64)[order]
    labels = (table[LABEL].to_numpy() == 0).astype(np.int64)[order]
    first, second = (round(float(share) * len(rows)) for share in np.cumsum(SHARES)[:2])
    parts = (slice(0, first), slice(first, second), slice(second, None))
    return GmscData(*(Split(rows[part], labels[part]) for part in parts))


def dequantised(rows: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Add uniform noise from -1/2 to 1/2 to the counts, so that they have a density.

    Without it a flow could make its likelihood arbitrarily large at whole numbers. The mean log density of
    the rows with noise is a lower bound of the log probability of the counts (Theis et al. 2016, arXiv
    1511.01844).
    """
    noise = np.random.default_rng([seed, 11]).uniform(-0.5, 0.5, rows.shape)
    return rows + noise * np.isin(FEATURES, COUNTS)

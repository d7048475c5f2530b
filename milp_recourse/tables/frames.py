"""Tables of other libraries, and rows as dictionaries, as pandas DataFrames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from milp_recourse.errors import Unsupported
from milp_recourse.tables.verdict import Predict


def is_polars(table: Any) -> bool:
    """Whether a table is a DataFrame of polars."""
    return type(table).__module__.split(".")[0] == "polars" and hasattr(table, "to_pandas")


def as_frame(table: Any) -> Any:
    """A DataFrame of polars, a Series as one row, or a dictionary as one row, as a DataFrame of pandas.

    Anything else is returned as it is.

    Raises
    ------
    Unsupported
        polars needs pyarrow for it, which is not installed.
    """
    if is_polars(table):
        try:
            return table.to_pandas()
        except ImportError as error:
            raise Unsupported(f"a table of polars needs pyarrow: pip install pyarrow ({error})") from error
    if isinstance(table, pd.Series):
        return table.to_frame().T.infer_objects()
    if isinstance(table, Mapping) and table and not any(isinstance(v, list | tuple) for v in table.values()):
        return pd.DataFrame([dict(table)])
    return table


def asked_with(table: Any, predict: Predict | None) -> Predict | None:
    """A function of rows like the table's, as a function of pandas' DataFrames."""
    if predict is None or not is_polars(table):
        return predict
    import polars

    def converted(frame: pd.DataFrame) -> Any:
        return predict(polars.from_pandas(frame))

    return converted

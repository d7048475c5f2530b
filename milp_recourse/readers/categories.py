"""The codes of labels in columns that XGBoost or LightGBM itself treats as categories.

Both libraries keep the categories of the DataFrame that a model was fitted on. When predicting they match the
categories of another DataFrame with these by label. So the codes follow from the fit, whatever the order of
the categories in X.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence, Set
from functools import cache
from itertools import pairwise
from typing import Any

from milp_recourse.readers.classes import plain
from milp_recourse.readers.from_xgboost import is_xgboost
from milp_recourse.readers.places import Codes
from milp_recourse.readers.refusal import listed, not_fitted, refuse

_REMEDY = "the categories of the fit: X['{0}'] = X['{0}'].astype(pd.CategoricalDtype(labels of the fit))"


def native_labels(model: Any, split: Set[int], names: Sequence[object], X: Any) -> dict[int, Codes]:
    """Labels and codes of the columns that the model itself treats as categories; nan is one of the labels.

    In a column of pandas' category type the code of a label is its position among the categories of the fit.
    In another column on which the trees split by sets of values, the code is the value, a whole number.

    Parameters
    ----------
    model
        A fitted XGBoost or LightGBM model.
    split
        The columns on which the trees split by sets of values.
    names
        X's columns in the model's order.
    X
        The DataFrame that the model was fitted on.

    Returns
    -------
    dict
        Position in ``names`` -> labels and codes.

    Raises
    ------
    Unsupported
        X's category columns are not those of the fit, or hold labels that the library refuses or confuses.
    """
    frame = X[list(names)]
    own = _of_xgboost(model, frame) if is_xgboost(model) else _of_lightgbm(model, frame)
    found: dict[int, Codes] = {}
    for raw in range(len(names)):
        if raw in own:
            found[raw] = [*own[raw], (math.nan, math.nan)]
        elif raw in split:
            values = sorted(frame.iloc[:, raw].dropna().unique())
            found[raw] = [*((plain(value), float(value)) for value in values), (math.nan, math.nan)]
    return found


def has_own_categories(model: Any) -> bool:
    """Whether the model was fitted on category columns of a DataFrame."""
    return bool(_stored_by_xgboost(model)) if is_xgboost(model) else bool(_stored_by_lightgbm(model))


def _stored_by_lightgbm(model: Any) -> list[list[object]] | None:
    """The categories that LightGBM keeps of each category column, in column order; None if it keeps none."""
    stored: list[list[object]] | None = getattr(getattr(model, "booster_", model), "pandas_categorical", None)
    return stored


def _of_lightgbm(model: Any, frame: Any) -> dict[int, Codes]:
    """Labels and codes of the category columns, by column. LightGBM treats labels unknown to the fit as
    missing."""
    in_frame = _category_columns(frame)
    stored = _stored_by_lightgbm(model)
    if stored is None:  # predict uses the order of the DataFrame's categories
        return {raw: _in_order(labels) for raw, labels in in_frame.items()}
    if len(stored) != len(in_frame):
        raise refuse(
            "X",
            f"{len(in_frame)} category columns",
            f"{len(stored)}, as at the fit: X.astype({{...: 'category'}})",
        )
    found = {}
    for (raw, labels), known in zip(in_frame.items(), stored, strict=True):
        others = [label for label in labels if label not in known]
        found[raw] = [*_in_order(known), *((plain(label), math.nan) for label in others)]
    return found


def _stored_by_xgboost(model: Any) -> dict[int, dict[str, Any]]:
    """The categories that XGBoost keeps, by column; empty before version 3.1, or without categories."""
    try:
        booster = model.get_booster() if hasattr(model, "get_booster") else model
    except Exception as error:
        raise not_fitted("model") from error
    content = json.loads(bytes(booster.save_raw("json")))
    stored = content["learner"]["gradient_booster"].get("model", {}).get("cats", {}).get("enc", [])
    return {k: one for k, one in enumerate(stored) if one["values"]}


def _of_xgboost(model: Any, frame: Any) -> dict[int, Codes]:
    """Labels and codes of the category columns, by column. XGBoost refuses a category that was not in the
    fit, even one that no row has."""
    in_frame = _category_columns(frame)
    stored = _stored_by_xgboost(model)
    if not stored:  # the codes are positions among the DataFrame's categories
        return {raw: _in_order(labels) for raw, labels in in_frame.items()}
    found = {}
    for raw, name in enumerate(frame.columns):
        if (raw in stored) != (raw in in_frame):
            got = "a category column" if raw in in_frame else f"{frame.dtypes.iloc[raw]} values"
            fitted = "pandas categories" if raw in stored else "numbers"
            raise refuse(f"X column {name!r}", got, f"{fitted}, as at the fit")
        if raw in in_frame:
            found[raw] = _xgboost_codes(in_frame[raw], stored[raw], name)
    return found


def _xgboost_codes(labels: Sequence[object], stored: Mapping[str, Any], name: object) -> Codes:
    """The codes of a column's categories, from those that XGBoost stored at the fit."""
    where = f"X column {name!r}"
    numeric = "offsets" not in stored
    if numeric != all(isinstance(label, int) for label in labels):
        kind = "whole numbers" if numeric else "text"
        raise refuse(where, f"the categories {listed(labels)}", f"{kind}, as at the fit")
    if numeric:
        known: list[object] = [int(value) for value in stored["values"]]
    else:
        stored_texts = _cut(bytes(value & 0xFF for value in stored["values"]), stored["offsets"])
        texts = [str(label) for label in labels]
        by_bytes = _cuts_texts_by_bytes()
        if ([text.encode() for text in texts] if by_bytes else _cut_short(texts)) == stored_texts:
            return _in_order(labels)
        if not by_bytes and not (all(map(str.isascii, texts)) and all(map(bytes.isascii, stored_texts))):
            got = f"labels beyond ASCII in another order than at the fit: {listed(labels)}"
            raise refuse(where, got, _REMEDY.format(name))
        known = [text.decode(errors="replace") for text in stored_texts]
    strange = [label for label in labels if label not in known]
    if strange:
        got = f"the category {strange[0]!r}, which the model was not fitted on"
        raise refuse(where, got, f"{listed(known)}: remove the others from the column's categories")
    return _in_order(known)


@cache
def _cuts_texts_by_bytes() -> bool:
    """Whether the installed XGBoost splits the text in which it stores all labels by numbers of bytes.

    Versions up to 3.2 split it by numbers of characters. Labels beyond ASCII are then cut wrongly, and depend
    on the order of the categories.
    """
    import pandas as pd
    import xgboost

    label = pd.DataFrame({"label": pd.Categorical(["é", "a"])})
    data = xgboost.DMatrix(label, label=[0, 1], enable_categorical=True, nthread=1)
    (stored,) = _stored_by_xgboost(xgboost.train({"nthread": 1}, data, num_boost_round=1)).values()
    end: int = stored["offsets"][-1]
    return end == len("éa".encode())


def _cut_short(texts: Sequence[str]) -> list[bytes]:
    """Labels as XGBoost 3.2 stores them: joined in UTF-8, then split by their numbers of characters."""
    offsets = [0]
    for text in texts:
        offsets.append(offsets[-1] + len(text))
    return _cut("".join(texts).encode(), offsets)


def _cut(text: bytes, offsets: Sequence[int]) -> list[bytes]:
    return [text[start:end] for start, end in pairwise(offsets)]


def _category_columns(frame: Any) -> dict[int, list[object]]:
    """Labels of every column of pandas' category type, in the column's order."""
    import pandas as pd

    return {
        raw: [plain(label) for label in dtype.categories]
        for raw, dtype in enumerate(frame.dtypes)
        if isinstance(dtype, pd.CategoricalDtype)
    }


def _in_order(labels: Sequence[object]) -> Codes:
    return [(plain(label), float(k)) for k, label in enumerate(labels)]

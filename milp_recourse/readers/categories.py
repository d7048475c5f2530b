"""Columns that XGBoost or LightGBM itself takes as categories: each label's code in the fitted model.

Both keep the categories of the DataFrame they were fitted on and, when they predict, translate another
DataFrame's into them by label. So the codes are the model's, whatever order X has its categories in.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from milp_recourse.readers.classes import plain
from milp_recourse.readers.from_xgboost import is_xgboost
from milp_recourse.readers.refusal import listed, refuse
from milp_recourse.readers.tree_parts import Judged

Codes = list[tuple[object, float]]
"""Each label with its code; nan is the code of what the model takes as missing."""

_REMEDY = "the categories of the fit: X['{0}'] = X['{0}'].astype(pd.CategoricalDtype(labels of the fit))"


def native_labels(model: Any, judged: Judged, names: Sequence[object], X: Any) -> dict[int, Codes]:
    """Labels and codes of the columns that the model itself takes as categories, missing being a label too.

    A column of pandas' category type enters as the position among the categories of the fit; another one that
    the trees split on by sets as the whole number it is.

    Parameters
    ----------
    model
        A fitted XGBoost or LightGBM model.
    judged
        Its trees.
    names
        X's columns in the model's order.
    X
        A DataFrame.

    Raises
    ------
    Unsupported
        X's category columns are not the model's, or hold what the model itself refuses or mixes up.
    """
    frame = X[list(names)]
    own = _of_xgboost(model, frame) if is_xgboost(model) else _of_lightgbm(model, frame)
    whole = {int(judged.ensemble.trees[t].feature[node]) for t, node in judged.splits}
    found: dict[int, Codes] = {}
    for raw in range(len(names)):
        if raw in own:
            found[raw] = [*own[raw], (math.nan, math.nan)]
        elif raw in whole:
            values = sorted(frame.iloc[:, raw].dropna().unique())
            found[raw] = [*((plain(value), float(value)) for value in values), (math.nan, math.nan)]
    return found


def has_own_categories(model: Any) -> bool:
    """Whether the model was fitted on category columns of a DataFrame."""
    return bool(_stored_by_xgboost(model)) if is_xgboost(model) else bool(_stored_by_lightgbm(model))


# -- LightGBM --------------------------------------------------------------------------------


def _stored_by_lightgbm(model: Any) -> list[list[object]] | None:
    """The categories of each category column, in the order of these columns; None: it keeps none."""
    stored: list[list[object]] | None = getattr(model, "booster_", model).pandas_categorical
    return stored


def _of_lightgbm(model: Any, frame: Any) -> dict[int, Codes]:
    """Labels and codes of the category columns, by column. A label that the fit did not have is missing to
    LightGBM."""
    mine = _category_columns(frame)
    stored = _stored_by_lightgbm(model)
    if stored is None:  # predict takes the DataFrame's own
        return {raw: _in_order(labels) for raw, labels in mine.items()}
    if len(stored) != len(mine):
        raise refuse(
            "X",
            f"{len(mine)} category columns",
            f"{len(stored)}, as at the fit: X.astype({{...: 'category'}})",
        )
    found = {}
    for (raw, labels), known in zip(mine.items(), stored, strict=True):
        others = [label for label in labels if label not in known]
        found[raw] = [*_in_order(known), *((plain(label), math.nan) for label in others)]
    return found


# -- XGBoost ---------------------------------------------------------------------------------


def _stored_by_xgboost(model: Any) -> dict[int, dict[str, Any]]:
    """By column, what XGBoost keeps of its categories; empty before version 3.1, or without categories."""
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    content = json.loads(bytes(booster.save_raw("json")))
    kept = content["learner"]["gradient_booster"].get("model", {}).get("cats", {}).get("enc", [])
    return {k: one for k, one in enumerate(kept) if one["values"]}


def _of_xgboost(model: Any, frame: Any) -> dict[int, Codes]:
    """Labels and codes of the category columns, by column. XGBoost refuses a category that the fit did not
    have, even one that no row holds."""
    mine = _category_columns(frame)
    stored = _stored_by_xgboost(model)
    if not stored:  # the codes are the DataFrame's own
        return {raw: _in_order(labels) for raw, labels in mine.items()}
    found = {}
    for raw, name in enumerate(frame.columns):
        if (raw in stored) != (raw in mine):
            got = "a category column" if raw in mine else f"{frame.dtypes.iloc[raw]} values"
            fitted = "pandas categories" if raw in stored else "numbers"
            raise refuse(f"X column {name!r}", got, f"{fitted}, as at the fit")
        if raw in mine:
            found[raw] = _xgboost_codes(mine[raw], stored[raw], name)
    return found


def _xgboost_codes(mine: Sequence[object], stored: Mapping[str, Any], name: object) -> Codes:
    where = f"X column {name!r}"
    numeric = "offsets" not in stored
    if numeric != all(isinstance(label, int) for label in mine):
        kind = "whole numbers" if numeric else "text"
        raise refuse(where, f"the categories {listed(mine)}", f"{kind}, as at the fit")
    if numeric:
        known: list[object] = [int(value) for value in stored["values"]]
    else:
        kept = _cut(bytes(value & 0xFF for value in stored["values"]), stored["offsets"])
        texts = [str(label) for label in mine]
        whole = _keeps_whole_texts()
        if ([text.encode() for text in texts] if whole else _cut_short(texts)) == kept:
            return _in_order(mine)
        if not whole and not (all(map(str.isascii, texts)) and all(map(bytes.isascii, kept))):
            got = f"labels beyond ASCII in another order than at the fit: {listed(mine)}"
            raise refuse(where, got, _REMEDY.format(name))
        known = [text.decode(errors="replace") for text in kept]
    strange = [label for label in mine if label not in known]
    if strange:
        got = f"the category {strange[0]!r}, which the model was not fitted on"
        raise refuse(where, got, f"{listed(known)}: remove the others from the column's categories")
    return _in_order(known)


@cache
def _keeps_whole_texts() -> bool:
    """Whether the installed XGBoost cuts its texts by bytes.

    3.2 and earlier cut them by characters, and find other labels beyond ASCII where the order is another one.
    """
    import pandas as pd
    import xgboost

    label = pd.DataFrame({"label": pd.Categorical(["é", "a"])})
    data = xgboost.DMatrix(label, label=[0, 1], enable_categorical=True, nthread=1)
    (kept,) = _stored_by_xgboost(xgboost.train({"nthread": 1}, data, num_boost_round=1)).values()
    return kept["offsets"][-1] == len("éa".encode())


def _cut_short(texts: Sequence[str]) -> list[bytes]:
    """Texts as XGBoost 3.2 keeps them: one after another in UTF-8, cut by their numbers of characters."""
    offsets = [0]
    for text in texts:
        offsets.append(offsets[-1] + len(text))
    return _cut("".join(texts).encode(), offsets)


def _cut(text: bytes, offsets: Sequence[int]) -> list[bytes]:
    return [text[start:end] for start, end in pairwise(offsets)]


# -- both ------------------------------------------------------------------------------------


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

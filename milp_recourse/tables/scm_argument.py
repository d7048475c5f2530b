"""The argument ``scm``: which columns a causal model names, and the model over the table's features."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from milp_recourse.errors import BadInput
from milp_recourse.formats.schema_scm import ScmModel
from milp_recourse.formats.scm_json import build_scm
from milp_recourse.formats.validate import validate
from milp_recourse.problem.scm import StructuralCausalModel, independent
from milp_recourse.tables.columns import TableColumn, known_name


def causal_model(scm: Any, columns: Sequence[TableColumn]) -> StructuralCausalModel:
    """The causal model over the features; None means that no feature causes another.

    Raises
    ------
    BadInput
        The JSON form breaks the format.
    """
    features = [c.feature for c in columns]
    names = [f.name for f in features]
    if scm is None:
        return independent(names)
    if isinstance(scm, StructuralCausalModel):
        if scm.features == tuple(names):
            return scm
        return StructuralCausalModel(names, {f: scm.mechanisms[f] for f in scm.features}, "explicit")
    return build_scm(validate(ScmModel, scm, "scm"), features)


def cause_columns(scm: Any, X: pd.DataFrame) -> list[Hashable]:
    """The columns of X that a causal model names, as causes or effects.

    Raises
    ------
    BadInput
        ``scm`` is no causal model, or has a feature that is no column of X.
    """
    names = {str(c): c for c in X.columns}
    if scm is None:
        return []
    if isinstance(scm, StructuralCausalModel):
        for feature in scm.features:
            known_name("scm", feature, X.columns)
        return [names[f] for f in scm.features]
    if not isinstance(scm, Mapping):
        raise BadInput("scm", type(scm).__name__, "None, a StructuralCausalModel or its JSON form")
    return [names[n] for n in names if n in set(_strings(scm.get("mechanisms")))]


def _strings(value: Any) -> list[str]:
    """Every string in a JSON value, keys included."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [s for k, v in value.items() for s in (str(k), *_strings(v))]
    return [s for v in value for s in _strings(v)] if isinstance(value, list | tuple) else []

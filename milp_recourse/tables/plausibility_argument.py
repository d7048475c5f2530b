"""``plausibility`` of :class:`~milp_recourse.tables.recourse.Recourse`, and what follows from it.

Also ``scm``: which columns a causal model names, and the model over the table's features.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milp_recourse.errors import BadInput, is_number
from milp_recourse.formats.schema_scm import StatedScm
from milp_recourse.formats.stated import Known, validate
from milp_recourse.problem.conditions import Condition
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.scm import StructuralCausalModel, independent
from milp_recourse.tables.columns import TableColumn, bounds_of, got_repr, known_name, scale_of
from milp_recourse.tables.from_data import (
    accepted_rows,
    in_both,
    log_densities,
    near_rows,
    own_offsets,
    quantile_level,
)
from milp_recourse.tables.people_rows import Rows, read_rows

DENSITY, DOMAIN, NEAR = "scm-density", "domain", "near-data"
ALLOWED = (
    f'None, "{DENSITY}", "{DOMAIN}", {{"kind": "{DENSITY}", "at_least": "factual", a log density or '
    f'{{"quantile": q}}, "offset": o}}, or {{"kind": "{NEAR}", "within": r, "rows": DataFrame, '
    f'"prototypes": n, "features": [columns]}}'
)
_KEYS = {
    DENSITY: {"at_least", "offset"},
    DOMAIN: set[str](),
    NEAR: {"within", "rows", "prototypes", "features"},
}


@dataclass(frozen=True)
class Plausibility:
    """The plausibility that the caller asks for.

    Attributes
    ----------
    kind
        ``scm-density``, ``domain``, ``near-data``, or None.
    level, quantile
        For ``scm-density``, the least log density: a number, or a quantile of X's log densities. If both are
        None, it is the factual's.
    offset
        Added to the least log density, in nats.
    within, rows, prototypes, features
        For ``near-data``: the distance in ranges of X's columns, the rows (None for X), how many prototypes
        of them are taken (None for all rows), and the columns compared (None for those that actions can
        move).
    """

    kind: str | None = None
    level: float | None = None
    quantile: float | None = None
    offset: float = 0.0
    within: float = 0.0
    rows: pd.DataFrame | None = None
    prototypes: int | None = None
    features: tuple[Hashable, ...] | None = None

    @staticmethod
    def of(given: object) -> Plausibility:
        """Read the argument.

        Raises
        ------
        BadInput
            It has none of the allowed forms, or a number in it is out of range.
        """
        options = {"kind": given} if isinstance(given, str) else given
        if options is None:
            return Plausibility()
        kind = options.get("kind") if isinstance(options, Mapping) else None
        if not isinstance(options, Mapping) or kind not in _KEYS or set(options) - {"kind", *_KEYS[kind]}:
            raise BadInput("plausibility", got_repr(given), ALLOWED)
        if kind == DENSITY:
            return _density(options)
        return _near(options) if kind == NEAR else Plausibility(DOMAIN)

    @property
    def is_density(self) -> bool:
        """Whether the argument asks for a density."""
        return self.kind == DENSITY

    def domain_of(self, column: TableColumn, X: pd.DataFrame) -> tuple[float, float] | None:
        """Where a feature must end: its own domain and, for ``domain``, a number's range in X.

        Raises
        ------
        BadInput
            No number is in both.
        """
        feature = column.feature
        if self.kind != DOMAIN or feature.categories is not None:
            return feature.domain
        held = bounds_of(X[column.key], feature.kind)
        return in_both(feature.domain, held, f"domain.{column.key}")

    def condition(
        self,
        problem: Instance,
        columns: Sequence[TableColumn],
        X: pd.DataFrame,
        accepts: Callable[[pd.DataFrame], NDArray[np.bool_]] | None,
    ) -> tuple[Condition, ...]:
        """For ``near-data``, the condition that the counterfactual lies near some accepted row; else nothing.

        Parameters
        ----------
        accepts
            Which rows the model's own ``predict`` accepts; None if it has none, and the model as it was read
            decides.

        Raises
        ------
        BadInput
            The model accepts none of the rows, their columns are not those of X, or a feature is unknown.
        """
        if self.kind != NEAR:
            return ()
        given = X if self.rows is None else self.rows
        rows = read_rows(given, columns, X.columns)
        if accepts is not None:
            rows = read_rows(rows.frame[accepts(rows.frame)], columns, X.columns)
        known = _numbers(rows) if accepts is not None else accepted_rows(problem, _numbers(rows))
        if not len(known):
            raise BadInput(
                "plausibility.rows", "rows of which the model accepts none", "some that it accepts"
            )
        scale = {c.name: scale_of(X[c.key], c.feature, "range") for c in columns}
        names = {c.key: c.name for c in columns}
        for key in self.features or ():
            if key not in names:
                raise BadInput(
                    "plausibility.features", got_repr(key), "columns that the model reads, or causes"
                )
        chosen = [names[key] for key in self.features or ()]
        return (near_rows(problem, known, self.within, scale, chosen, self.prototypes),)

    def offsets(
        self,
        problem: Instance,
        columns: Sequence[TableColumn],
        X: pd.DataFrame,
        rows: Rows,
        own: Sequence[Preferences],
    ) -> tuple[Rows, list[Preferences]]:
        """The rows and preferences with everybody's own offset, where a level or quantile is asked for.

        A person whose row has density zero gets a fault.
        """
        level = self.level
        if self.quantile is not None:
            level = quantile_level(problem, _numbers(read_rows(X, columns, X.columns)), self.quantile)
        assert level is not None
        with np.errstate(all="ignore"):
            gaps = level + self.offset - log_densities(problem, rows.values)
        preferences, faults = own_offsets(own, gaps.tolist(), rows.faults, "plausibility")
        return replace(rows, faults=faults), preferences


def _density(options: Mapping[str, Any]) -> Plausibility:
    at_least, offset = options.get("at_least", "factual"), options.get("offset", 0.0)
    if not is_number(offset):
        raise BadInput("plausibility.offset", got_repr(offset), "a finite number of nats")
    if isinstance(at_least, Mapping) and set(at_least) == {"quantile"}:
        share = at_least["quantile"]
        if not is_number(share) or not 0 <= share <= 1:
            raise BadInput("plausibility.at_least.quantile", got_repr(share), "a number from 0 to 1")
        return Plausibility(DENSITY, quantile=float(share), offset=float(offset))
    if is_number(at_least):
        return Plausibility(DENSITY, level=float(at_least), offset=float(offset))
    if at_least != "factual":
        raise BadInput("plausibility.at_least", got_repr(at_least), '"factual", a number or {"quantile": q}')
    return Plausibility(DENSITY, offset=float(offset))


def _near(options: Mapping[str, Any]) -> Plausibility:
    within, rows, count = options.get("within"), options.get("rows"), options.get("prototypes")
    features = options.get("features")
    if not is_number(within) or within <= 0:
        raise BadInput("plausibility.within", got_repr(within), "a number above 0, in ranges of X")
    if rows is not None and not isinstance(rows, pd.DataFrame):
        raise BadInput("plausibility.rows", type(rows).__name__, "a DataFrame with X's columns")
    if count is not None and not (isinstance(count, int) and count >= 1):
        raise BadInput("plausibility.prototypes", got_repr(count), "a whole number, 1 or more")
    if features is not None and (isinstance(features, str) or not isinstance(features, Sequence)):
        raise BadInput("plausibility.features", got_repr(features), "a list of columns")
    chosen = None if features is None else tuple(features)
    return Plausibility(NEAR, within=float(within), rows=rows, prototypes=count, features=chosen)


def _numbers(rows: Rows) -> NDArray[np.float64]:
    """The numbers of the rows that can be read."""
    return rows.values[[k for k in range(len(rows)) if k not in rows.faults]]


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
    return validate(StatedScm, scm, "scm", Known(features))


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

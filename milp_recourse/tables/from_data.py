r"""Scales, distribution functions and plausibility computed from data, before a problem is solved.

The numbers computed here are part of the problem: they are written into its file, and proofs are about them.

* A level of the density (absolute, or a quantile of people's log densities) becomes every applicant's own
  offset: the double nearest to level - log p(x), computed in float64.
* "Near data" becomes a condition: for some row z_j every value after the action is within r scales,
  :math:`\bigvee_j \bigwedge_i |x'_i - z_{ji}| \le r s_i`, and labels are equal. The Euclidean distance would
  need squares, which conditions do not have.

References
----------
Wachter et al. (2018), https://arxiv.org/abs/1711.00399 (median absolute deviations); Ustun et al. (2019),
https://doi.org/10.1145/3287560.3287566 (percentile and log-percentile shifts); Karimi et al. (2022), sections
3.1 and 3.3.1, https://doi.org/10.1145/3527848; Gonzalez (1985),
https://doi.org/10.1016/0304-3975(85)90224-5 (farthest-first traversal)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import BadInput
from milp_recourse.judge import judged_together
from milp_recourse.judge.as_printed import nobody
from milp_recourse.problem.conditions import All, LabelIn, Sum
from milp_recourse.problem.conditions import Any as AnyOf_
from milp_recourse.problem.decimals import as_written, written_above, written_below
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance, Preferences, check_density
from milp_recourse.problem.population import Population

if TYPE_CHECKING:
    from milp_recourse.problem.conditions import Condition

Array = NDArray[np.float64]

MOST_ROWS = 2000
"""The largest number of rows in a "near data" condition. Each is written into the file, and is a case."""


def log_densities(instance: Instance, rows: Array) -> Array:
    """log p(x) of rows (n, features) under the causal model, float64.

    Raises
    ------
    BadInput
        The causal model states no noise for some feature.
    """
    check_density(instance.scm)
    return instance.scm.log_density(np.asarray(rows, dtype=np.float64))


def at_level(population: Population, level: float) -> Population:
    """The population in which every counterfactual must have a log density of at least ``level``.

    Raises
    ------
    BadInput
        The causal model has no density, or the level is not finite.
    """
    if not math.isfinite(level):
        raise BadInput("plausibility", level, "a finite log density")
    offsets = level - log_densities(population.template, population.rows)
    return with_offsets(population, offsets.tolist())


def quantile_level(instance: Instance, rows: Array, q: float) -> float:
    """The q-quantile of the log densities of rows, without rows of density zero.

    Raises
    ------
    BadInput
        The causal model has no density, or all rows have density zero.
    """
    known = log_densities(instance, rows)
    known = known[np.isfinite(known)]
    if not len(known):
        raise BadInput(
            "plausibility", "rows without a density", "at least one row that the causal model explains"
        )
    return float(np.quantile(known, q, method="inverted_cdf"))


def with_offsets(population: Population, offsets: Sequence[float]) -> Population:
    """The population with these density offsets; applicants whose offset is not finite become unreadable."""
    own, faults = own_offsets(population.preferences, offsets, population.unreadable, "factuals.{0}")
    model, factuals = population.template, population.factuals
    named = population.ids, population.margins
    return Population.of(model, factuals, own, faults, *named, plausible=True)


def own_offsets(
    preferences: Sequence[Preferences], offsets: Sequence[float], faults: Mapping[int, BadInput], where: str
) -> tuple[list[Preferences], dict[int, BadInput]]:
    """Everybody's preferences with their offset, and the errors, with one for each offset that is not finite.

    Parameters
    ----------
    where
        Path of a person for the error, with ``{0}`` in place of the index.
    """
    own, found = [], dict(faults)
    for k, (one, offset) in enumerate(zip(preferences, offsets, strict=True)):
        if not math.isfinite(offset) and k not in found:
            allowed = "values that the causal model gives a density to"
            found[k] = BadInput(where.format(k), "a density of 0", allowed)
        own.append(replace(one, density_offset=offset if math.isfinite(offset) else None))
    return own, found


def without_offsets(preferences: Preferences) -> Preferences:
    """One person's preferences without an offset of their own, so that the instance's applies."""
    return replace(preferences, density_offset=None)


def near_rows(
    instance: Instance,
    rows: Array,
    within: float,
    scale: Mapping[str, float],
    names: Sequence[str] = (),
    count: int | None = None,
) -> Condition:
    """The condition that the counterfactual lies within ``within`` scales of some row.

    Distances are computed from the numbers as they are written: 29 is within 0.29 scales of 100. Rows with a
    missing value among the compared features are left out.

    Parameters
    ----------
    rows
        Feature rows (n, features), labels by index.
    within
        r above 0.
    scale
        s_i of every numeric and ordinal feature that is compared.
    names
        The features compared; () for those that actions can move.
    count
        How many :func:`prototypes` stand for the rows; None for all rows.

    Raises
    ------
    BadInput
        There are no rows or too many different ones, ``within`` is not above 0, or a feature is unknown.
    """
    for name in names:
        if name not in instance.by_name:
            raise BadInput("plausibility.features", name, ", ".join(instance.by_name))
    if not (math.isfinite(within) and within > 0):
        raise BadInput("plausibility.within", within, "a number above 0, in scales")
    movable = instance.scm.descendants({f.name for f in instance.features if f.actionable})
    compared = [f for f in instance.features if (f.name in names if names else f.name in movable)]
    columns = [k for k, f in enumerate(instance.features) if f in compared]
    known = np.asarray(rows, dtype=np.float64)[:, columns]
    known = known[~np.isnan(known).any(axis=1)]
    if count is not None and known.size:
        known = prototypes(known, [scale.get(f.name, 1.0) for f in compared], count)
    distinct = np.unique(known, axis=0)
    if not 1 <= len(distinct) <= MOST_ROWS:
        allowed = f"1 to {MOST_ROWS} different rows: take prototypes of more"
        raise BadInput("plausibility.rows", f"{len(distinct)} rows", allowed)
    parts = tuple(
        All(
            tuple(
                _near(f, value, as_written(within) * as_written(scale.get(f.name, 1.0)))
                for f, value in zip(compared, row, strict=True)
            )
        )
        for row in distinct.tolist()
    )
    return parts[0] if len(parts) == 1 else AnyOf_(parts)


def prototypes(rows: Array, scale: Sequence[float], count: int) -> Array:
    """At most ``count`` of the rows, each the farthest from those chosen before it.

    This is farthest-first traversal from the row nearest to the median. The largest distance (in scales) of a
    row from its nearest prototype is at most twice the least that any ``count`` rows have.

    Parameters
    ----------
    rows
        At least one row, (n, k), with no missing value: the features that are compared, and no others.
    scale
        Positive, (k,).
    """
    scaled = rows / np.asarray(scale, dtype=np.float64)
    first = int(np.abs(scaled - np.median(scaled, axis=0)).max(axis=1).argmin())
    chosen, far = [first], np.abs(scaled - scaled[first]).max(axis=1)
    while len(chosen) < min(count, len(scaled)) and far.max() > 0:
        chosen.append(int(far.argmax()))
        far = np.minimum(far, np.abs(scaled - scaled[chosen[-1]]).max(axis=1))
    return rows[chosen]


def accepted_rows(instance: Instance, rows: Array) -> Array:
    """The rows that the classifier accepts, exactly and as deployed, whoever they are."""
    names = [f.name for f in instance.features]
    people = [nobody(instance, dict(zip(names, row, strict=True))) for row in rows.tolist()]
    found = judged_together([(one, {}) for one in people])
    return rows[[one.accepted_exact and one.accepted_deployed for one in found]]


def _near(feature: Feature, value: float, reach: Fraction) -> Condition:
    if feature.kind == "categorical":
        return LabelIn(feature.name, "counterfactual", (int(value),))
    here = as_written(value)
    ends = written_above(here - reach), written_below(here + reach)
    return Sum(((feature.name, 1.0),), "counterfactual", *ends)


def known_rows(population: Population) -> Array:
    """The rows of the applicants who could be read, (n, features)."""
    return np.delete(population.rows, list(population.unreadable), axis=0)


def data_ranges(instance: Instance, rows: Array) -> dict[str, tuple[float, float]]:
    """The least and largest value of every numeric feature."""
    return {
        f.name: (float(np.nanmin(rows[:, k])), float(np.nanmax(rows[:, k])))
        for k, f in enumerate(instance.features)
        if not f.labelled
    }


def in_both(domain: tuple[float, float] | None, held: tuple[float, float], path: str) -> tuple[float, float]:
    """A feature's domain without the values that lie outside what data hold.

    Raises
    ------
    BadInput
        Nothing is left of it.
    """
    low, high = held
    if domain is None:
        return held
    if domain[0] > high or domain[1] < low:
        allowed = f"some values from {low:g} to {high:g}, where plausibility keeps the feature"
        raise BadInput(path, f"({domain[0]:g}, {domain[1]:g})", allowed)
    return max(low, domain[0]), min(high, domain[1])


def data_scales(instance: Instance, rows: Array, rule: str, every: bool = False) -> dict[str, float]:
    """s_i of the globally actionable features, or of all with ``every``, from rows (n, features).

    Rules are those of :func:`milp_recourse.tables.columns.scale_of`.
    """
    import pandas as pd

    from milp_recourse.tables.columns import scale_of

    return {
        f.name: scale_of(pd.Series(np.asarray(rows)[:, k], name=f.name), f, rule)
        for k, f in enumerate(instance.features)
        if f.actionable or every
    }


def data_knots(instance: Instance, rows: Array, logarithm: bool) -> dict[str, Any]:
    """The knots of Q, or with ``logarithm`` of -log(1 - Q), of every actionable feature with an order."""
    import pandas as pd

    from milp_recourse.tables.columns import knots_of, log_knots

    found = {}
    for k, f in enumerate(instance.features):
        if f.actionable and f.kind != "categorical":
            plain = replace(f, categories=None) if f.categories is not None else f
            knots = knots_of(pd.Series(np.asarray(rows)[:, k], name=f.name), plain)
            found[f.name] = log_knots(knots, len(rows)) if logarithm else knots
    return found

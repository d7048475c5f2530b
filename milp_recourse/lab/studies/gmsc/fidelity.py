r"""How far the learned causal model is from the flow and from held-out rows.

Densities are those of test rows with noise on the counts, per feature given its causes. Interventions are
compared on test rows: the mean of a feature after :math:`do(X_i := v)` by both models, and by the rows
themselves, adjusted for the causes of :math:`X_i`,

.. math:: E[Y \mid do(X_i := v)] = \sum_c P(c)\, E[Y \mid X_i \approx v, c]

over cells c of the causes' values. This is right if the graph is right, whatever the equations are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from milp_recourse.lab.arrays import FloatArray
from milp_recourse.lab.icarma.flow import CausalFlow
from milp_recourse.lab.recipe.gmsc_data import FEATURES, LEVERS, PARENTS, GmscData, dequantised
from milp_recourse.problem.scm import StructuralCausalModel

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Each lever is set to these quantiles of its values in the train rows."""

CELLS = 5
"""The number of cells per cause in the adjustment. A row counts as set to a value if its lever has the
value, or a rank (a share of the rows, ties in the middle) within 0.05 of the value's. Cells without such rows
are left out."""

SAMPLED = 20_000
"""Rows drawn from each model, to compare with as many test rows."""


@dataclass(frozen=True)
class Fidelity:
    """The tables as lists of rows, and the samples for the plots.

    Attributes
    ----------
    densities
        Mean log density of the test rows per model and feature, and of all features together (``all``), with
        its standard error; ``no causes`` is a model of independent normal features.
    interventions
        Means after an intervention, in standard deviations from the factual mean, with the number of rows
        that the adjusted mean is computed from.
    samples
        Sampled rows by model; under ``data``, test rows.
    """

    densities: list[dict[str, Any]]
    interventions: list[dict[str, Any]]
    samples: Mapping[str, FloatArray]


def fidelity(
    data: GmscData, scms: Mapping[str, StructuralCausalModel], chosen: str, flow: CausalFlow, seed: int
) -> Fidelity:
    """Compare the causal models with each other and with test rows; no recourse is computed.

    Parameters
    ----------
    scms
        Learned models by name.
    chosen
        The model for which samples and interventions are compared.
    """
    import torch

    scm = scms[chosen]
    test = dequantised(data.test.rows, seed + 2)
    with torch.no_grad():
        of_flow = flow.column_log_density(torch.as_tensor(test)).numpy()
    by_model = {"spline flow": of_flow}
    by_model |= {f"SCM, {name}": np.stack(one.log_densities(test), axis=-1) for name, one in scms.items()}
    by_model["no causes"] = _without_causes(dequantised(data.train.rows, seed), test)
    densities = [
        {"model": name, "feature": f, "log_density": float(mean), "standard_error": float(error)}
        for name, terms in by_model.items()
        for f, mean, error in zip(
            (*FEATURES, "all"), *_with_errors(np.column_stack([terms, terms.sum(axis=1)])), strict=True
        )
    ]
    size = min(SAMPLED, len(test))
    samples = {
        "data": test[:size],
        "spline flow": flow.sample(size, torch.Generator().manual_seed(seed)),
        f"SCM, {chosen}": scm.sample(size, np.random.default_rng([seed, 21])),
    }
    return Fidelity(densities, _interventions(data, scm, flow), samples)


def _without_causes(train: FloatArray, test: FloatArray) -> FloatArray:
    """Log densities of the test rows under independent normal features, a baseline, shape (n, d)."""
    mean, sd = train.mean(axis=0), train.std(axis=0)
    terms: FloatArray = -0.5 * np.square((test - mean) / sd) - np.log(sd * np.sqrt(2 * np.pi))
    return terms


def _with_errors(terms: FloatArray) -> tuple[FloatArray, FloatArray]:
    return terms.mean(axis=0), terms.std(axis=0, ddof=1) / np.sqrt(len(terms))


def followers(lever: str) -> tuple[str, ...]:
    """The features downstream of a lever, in causal order."""
    reached = {lever}
    for f in FEATURES:
        if reached & set(PARENTS[f]):
            reached.add(f)
    return tuple(f for f in FEATURES if f in reached and f != lever)


def _interventions(data: GmscData, scm: StructuralCausalModel, flow: CausalFlow) -> list[dict[str, Any]]:
    test, train = data.test.rows, data.train.rows
    mean, sd = test.mean(axis=0), test.std(axis=0)
    rows = []
    for lever in LEVERS:
        column = FEATURES.index(lever)
        for level in LEVELS:
            value = float(np.quantile(train[:, column], level))
            action = np.full(test.shape, np.nan)
            action[:, column] = value
            means = [model.counterfactual(test, action).mean(axis=0) for model in (scm, flow)]
            adjusted, used = _adjusted(test, column, value)
            for f in followers(lever):
                k = FEATURES.index(f)
                of_scm, of_flow, of_rows = ((m[k] - mean[k]) / sd[k] for m in (*means, adjusted))
                rows.append(
                    {
                        "lever": lever,
                        "quantile": level,
                        "value": value,
                        "feature": f,
                        "scm": float(of_scm),
                        "flow": float(of_flow),
                        "adjusted": float(of_rows),
                        "adjusted_rows": used,
                    }
                )
    return rows


def _adjusted(rows: FloatArray, column: int, value: float) -> tuple[FloatArray, int]:
    """Means of all features after setting one, adjusted; and the number of rows with about that value."""
    near_rank = np.abs(_ranks(rows[:, column]) - _rank_of(rows[:, column], value)) <= 0.05
    near = near_rank | (rows[:, column] == value)
    cells = np.zeros(len(rows), dtype=np.int64)
    for cause in PARENTS[FEATURES[column]]:
        ranks = _ranks(rows[:, FEATURES.index(cause)])
        cells = cells * CELLS + np.minimum((ranks * CELLS).astype(np.int64), CELLS - 1)
    total, weight = np.zeros(rows.shape[1]), 0.0
    for cell in np.unique(cells):
        mine = cells == cell
        if (mine & near).any():
            total += mine.mean() * rows[mine & near].mean(axis=0)
            weight += mine.mean()
    return total / weight, int(near.sum())


def _ranks(values: FloatArray) -> FloatArray:
    """Mid-ranks between 0 and 1."""
    from scipy.stats import rankdata

    ranks: FloatArray = (rankdata(values) - 0.5) / len(values)
    return ranks


def _rank_of(values: FloatArray, value: float) -> float:
    return float(((values < value).mean() + (values <= value).mean()) / 2)

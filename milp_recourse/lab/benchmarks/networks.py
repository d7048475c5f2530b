r"""Networks as lenders train them: published tables, every column a lever, refused applicants.

``gmsc:graph`` is Give Me Some Credit inside the causal graph of PEAR with linear equations fitted by least
squares and normal noise; all columns are continuous there, because causes move them, and age is no lever.

References
----------
De Toni et al. (2023), https://openreview.net/forum?id=8sg9RbHjMM (PEAR: preprocessing and graph of GMSC)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.domain.expression import Constant, Expression, Variable
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.domain.scm import Link, Mechanism, StructuralCausalModel, independent
from milp_recourse.errors import BadInput
from milp_recourse.instance import Acceptance, Instance
from milp_recourse.lab.benchmarks.ensembles import read_table
from milp_recourse.lab.recipe.gmsc_data import COLUMNS, PARENTS
from milp_recourse.lab.recipe.real import Table
from milp_recourse.readers import read_sklearn, standardised

GRAPH = ":graph"
"""What a data set's name ends with where its columns cause each other."""

MARGIN = 1e-9
"""Logit; covers the rounding of the deployed float64 network."""


@dataclass(frozen=True)
class Network:
    """A trained network with its refused applicants.

    Attributes
    ----------
    name
        Data set and widths, as ``gmsc/32x32``, or ``gmsc/32x32+graph`` with causes.
    refused
        Rows of the last fifth that the network refuses.
    """

    name: str
    classifier: ReluNetwork
    table: Table
    scm: StructuralCausalModel
    refused: NDArray[np.int64]

    def instance(self, row: int, cost: str) -> Instance:
        """One row's problem; a change of a label costs 1, any other its share of the column's range."""
        accept = Acceptance(0.0, MARGIN)
        return self.table.problem(row, cost, self.scm, self.classifier, accept, f"{self.name}/{row}")


def parsed(widths: str) -> tuple[int, ...]:
    """Units of the hidden layers, from text like ``32x32``."""
    parts = widths.split("x")
    if not all(part.isdigit() and int(part) for part in parts):
        raise BadInput("--networks", widths, "units of the hidden layers, as 32x32")
    return tuple(int(part) for part in parts)


def fit(name: str, widths: str, data: Path | None, seed: int = 0) -> Network:
    """Train scikit-learn's MLPClassifier on four fifths of a table, at most 20000 rows, classes in balance.

    Raises
    ------
    BadInput
        Unknown table, or its file is not in the folder.
    """
    from sklearn.neural_network import MLPClassifier

    units = parsed(widths)
    table = read_table(name.removesuffix(GRAPH), data, seed)
    if name.endswith(GRAPH):
        table = _in_graph(table)
    inputs, labels = table.inputs, table.labels
    cut = int(0.8 * len(inputs))
    rng = np.random.default_rng(seed)
    few = min(int((labels[:cut] == k).sum()) for k in (0, 1))
    each = min(few, 10000)
    train = rng.permutation(
        np.concatenate([rng.permutation(np.flatnonzero(labels[:cut] == k))[:each] for k in (0, 1)])
    )
    mean, sd = inputs[train].mean(axis=0), inputs[train].std(axis=0)
    sd = np.where(sd > 0, sd, 1.0)
    model = MLPClassifier(units, max_iter=60, random_state=seed, early_stopping=True)
    model.fit((inputs[train] - mean) / sd, labels[train])
    network = standardised(read_sklearn(model), mean, sd)
    refused = cut + np.flatnonzero(network.evaluate(inputs[cut:])[:, 0] < 0)
    scm = linear_scm(table) if name.endswith(GRAPH) else independent([f.name for f in table.features])
    shown = f"{table.name}/{widths}{'+graph' if name.endswith(GRAPH) else ''}"
    return Network(shown, network, table, scm, refused)


def linear_scm(table: Table) -> StructuralCausalModel:
    r"""x_j = sum_k b_k x_k + u_j over PEAR's graph, by least squares; roots stay as they are."""
    names = [f.name for f in table.features]
    mechanisms: dict[str, Mechanism] = {}
    for ours, causes in PARENTS.items():
        if not causes:
            continue
        name, parents = COLUMNS[ours], [COLUMNS[cause] for cause in causes]
        columns = table.values[:, [names.index(p) for p in parents]]
        design = np.column_stack([columns, np.ones(len(columns))])
        found, *_ = np.linalg.lstsq(design, table.values[:, names.index(name)], rcond=None)
        equation: Expression = Constant(float(found[-1]))
        for slope, parent in zip(found[:-1].tolist(), parents, strict=True):
            equation = equation + slope * Variable(parent)
        mechanisms[name] = Mechanism(equation, Link(), None)
    return StructuralCausalModel(tuple(names), mechanisms)


def _in_graph(table: Table) -> Table:
    if table.name != "gmsc":
        raise BadInput("--sets", table.name + GRAPH, "gmsc" + GRAPH)
    features: list[Any] = [replace(f, kind="continuous", actionable=f.name != "age") for f in table.features]
    return replace(table, features=tuple(features))

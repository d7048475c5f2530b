"""A structural causal model learned from rows and a causal graph, in a form that can be certified exactly.

Every feature with causes obeys :math:`x_i = g_i(f_i(x_{pa(i)}) + u_i)` with a small ReLU network
:math:`f_i`, fitted by least squares, noise :math:`u_i`, and a link :math:`g_i`: the identity, or a sigmoid
for features that have ends and are skewed. Noise is normal, which plausibility can weigh exactly, or a
mixture of normals for features that nobody acts on: their noise stays, so that its density cancels, and a
better one changes no recourse. Without links counterfactuals are piecewise linear in an action, and
plausibility is a ball. If the scale of the noise depended on the causes, the residual of a feature that is
acted on would have to be divided by the value of a ReLU network.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from milp_recourse.lab.arrays import FloatArray
from milp_recourse.lab.icarma.relu_fit import ReluTraining, fit_relu
from milp_recourse.problem.expression import Constant, Expression, NetworkOutput, Variable
from milp_recourse.problem.noise import Mixture, Normal
from milp_recourse.problem.scm import Link, Mechanism, StructuralCausalModel, unlinked

PARTS = 8
"""Normals in a mixture."""


def equation_training(units: int) -> ReluTraining:
    """Settings for an equation: one hidden layer of ``units`` ReLUs; the best of 30 epochs by validation."""
    return ReluTraining((units,), epochs=30, batch=2048, learning_rate=1e-2, decay=True, best=True)


def fit_scm(
    features: Sequence[str],
    parents: Mapping[str, Sequence[str]],
    train: FloatArray,
    validation: FloatArray,
    training: ReluTraining,
    seed: int = 0,
    on_equation: Callable[[str], None] = lambda _: None,
    links: Mapping[str, Link] | None = None,
    mixed: Collection[str] = (),
) -> StructuralCausalModel:
    """Fit one equation per feature.

    Parameters
    ----------
    features, parents
        Columns of the rows, and the direct causes of each.
    train, validation
        Raw units, shape (n, d). Noise is fitted to the residuals on train: normal by their root mean square.
    on_equation
        Called with a feature's name once its equation is fitted.
    links
        Sigmoid links by feature; all values must be inside. Squares are those before the link.
    mixed
        Features whose noise is a mixture of :data:`PARTS` normals.
    """
    columns = {name: k for k, name in enumerate(features)}
    mechanisms = {}
    for name in features:
        causes = [columns[p] for p in parents[name]]
        link = (links or {}).get(name, Link())
        target, held = (unlinked(rows[:, columns[name]], link) for rows in (train, validation))
        equation: Expression = Constant(float(target.mean()))
        residual = target - target.mean()
        if causes:
            network = fit_relu(
                (train[:, causes], target),
                (validation[:, causes], held),
                training,
                seed,
                "squared",
            )
            equation = NetworkOutput(network, tuple(Variable(p) for p in parents[name]))
            residual = target - network.evaluate(train[:, causes])[:, 0]
        noise = _mixture(residual, seed) if name in mixed else Normal(float(np.sqrt(np.mean(residual**2))))
        mechanisms[name] = Mechanism(equation, link, noise)
        on_equation(name)
    return StructuralCausalModel(features, mechanisms)


def _mixture(residual: FloatArray, seed: int) -> Mixture:
    """A mixture of :data:`PARTS` normals, fitted by expectation maximisation."""
    from sklearn.mixture import GaussianMixture

    unit = residual.std()
    model = GaussianMixture(PARTS, reg_covar=1e-5, tol=1e-4, max_iter=300, random_state=seed)
    model.fit(residual[:, None] / unit)
    sds = np.sqrt(model.covariances_[:, 0, 0])
    numbers = (model.weights_, unit * model.means_[:, 0], unit * sds)
    return Mixture(*(tuple(map(float, column)) for column in numbers))

r"""A structural causal model learned from rows and a causal graph, in a form that can be certified exactly.

Every feature with causes obeys :math:`x_i = f_i(x_{pa(i)}) + u_i` with a small ReLU network :math:`f_i`
and normal :math:`u_i`, fitted by least squares, which is maximum likelihood for such noise. Because noise is
additive, counterfactuals are piecewise linear in an action, and plausibility is a ball. If the scale of the
noise depended on the causes, the residual of a feature that is acted on would have to be divided by the value
of a ReLU network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from milp_recourse.lab.icarma.relu_fit import ReluTraining, fit_relu
from milp_recourse.problem.expression import Constant, NetworkOutput, Variable
from milp_recourse.problem.noise import Normal
from milp_recourse.problem.scm import Mechanism, StructuralCausalModel

FloatArray = NDArray[np.float64]


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
) -> StructuralCausalModel:
    """Fit one equation per feature.

    Parameters
    ----------
    features, parents
        Columns of the rows, and the direct causes of each.
    train, validation
        Raw units, shape (n, d). The noise's standard deviation is the residual's root mean square on train.
    on_equation
        Called with a feature's name once its equation is fitted.
    """
    columns = {name: k for k, name in enumerate(features)}
    mechanisms = {}
    for name in features:
        causes = [columns[p] for p in parents[name]]
        target = train[:, columns[name]]
        if causes:
            network = fit_relu(
                (train[:, causes], target),
                (validation[:, causes], validation[:, columns[name]]),
                training,
                seed,
                "squared",
            )
            equation = NetworkOutput(network, tuple(Variable(p) for p in parents[name]))
            residual = target - network.evaluate(train[:, causes])[:, 0]
            mechanisms[name] = Mechanism(equation, noise=Normal(float(np.sqrt(np.mean(residual**2)))))
        else:
            mechanisms[name] = Mechanism(Constant(float(target.mean())), noise=Normal(float(target.std())))
        on_equation(name)
    return StructuralCausalModel(features, mechanisms)


def column_log_densities(scm: StructuralCausalModel, rows: FloatArray) -> FloatArray:
    """The log density of each feature given its causes, shape (n, d); the model must have identity links."""
    noise = scm.abduct(rows)
    terms = [scm.mechanisms[f].noise.log_density(noise[:, k]) for k, f in enumerate(scm.features)]  # type: ignore[union-attr]
    return np.stack(terms, axis=-1)

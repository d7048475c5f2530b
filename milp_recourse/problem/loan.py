"""The semi-synthetic Loan model (Karimi et al. 2020; Majumdar and Valera 2024).

``loan`` states the equations of the data that the CARMA authors released. ``loan-as-printed``
states what the iCARMA paper's appendix C.2.1 prints: amount with the other sign and without
"1 +", and standard deviation 0.5 for the noise of savings. Coefficients are doubles: 0.1 means
the double nearest to one tenth, here as in an instance file.
"""

from __future__ import annotations

from functools import cache

from milp_recourse.problem.expression import Constant, Expression, Relu, Sigmoid, Variable
from milp_recourse.problem.noise import Bernoulli, Gamma, Normal
from milp_recourse.problem.scm import Link, Mechanism, StructuralCausalModel

FEATURES = ("gender", "age", "education", "amount", "duration", "income", "savings")

_G, _A, _E, _L, _D, _I, _S = (Variable(name) for name in FEATURES)


def _model(name: str, amount: Expression, savings_sd: float) -> StructuralCausalModel:
    return StructuralCausalModel(
        FEATURES,
        {
            "gender": Mechanism(noise=Bernoulli(0.5)),
            "age": Mechanism(equation=Constant(-35.0), noise=Gamma(10.0, 3.5)),
            "education": Mechanism(
                equation=-1 + 0.5 * _G + Sigmoid(0.1 * _A),
                link=Link("sigmoid", offset=-0.5),
                noise=Normal(0.5),
            ),
            "amount": Mechanism(equation=amount, noise=Normal(2.0)),
            "duration": Mechanism(equation=-1 + 0.1 * _A + 2 * (1 - _G) + _L, noise=Normal(3.0)),
            "income": Mechanism(equation=-4 + 0.1 * (_A + 35) + 2 * _G + _G * _E, noise=Normal(2.0)),
            "savings": Mechanism(equation=-4 + 1.5 * Relu(_I), noise=Normal(savings_sd)),
        },
        name=name,
    )


@cache
def loan() -> StructuralCausalModel:
    """The Loan SCM of the released data."""
    return _model("loan", 1 + 0.01 * ((_A - 5) * (5 - _A)) + (1 - _G), savings_sd=5.0)


@cache
def loan_as_printed() -> StructuralCausalModel:
    """The Loan SCM as the iCARMA paper prints it (its misprints included)."""
    return _model("loan-as-printed", 0.01 * ((_A - 5) * (_A - 5)) + (1 - _G), savings_sd=0.5)

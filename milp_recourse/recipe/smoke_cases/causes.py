"""What follows from an action: structural equations, the Loan model, plausibility."""

from __future__ import annotations

import math
from fractions import Fraction

from milp_recourse.recipe.smoke import Smoke, explicit, linear, network, normal, number, smoke


def cases() -> list[Smoke]:
    """The cases of this group."""
    return [*_plausibility(), *_equations(), *_loan()]


def _plausibility() -> list[Smoke]:
    income, savings = number("income", (-10, 10)), number("savings", (-10, 10))
    return [
        smoke(
            "infeasible_plausible",
            """income ~ N(0, 1) is 1, so a plausible value lies in -1..1, and logit = income - 2 accepts
            none of them. Without plausibility the cost would be 1.""",
            features=[income],
            scm=explicit(income=normal()),
            classifier=linear([1], -2),
            factual={"income": 1},
            plausible=True,
            cost=None,
        ),
        smoke(
            "plausible_ball",
            """Independent standard normal income and savings at (0, 5): plausible means income^2 +
            savings^2 <= 25. logit = income - 3 asks for income 3, which forces savings down to 4: 9 +
            1 = 10. Threshold and ball meet exactly in (3, 4).""",
            features=[income, savings],
            scm=explicit(income=normal(), savings=normal()),
            classifier=linear([1, 0], -3),
            factual={"income": 0, "savings": 5},
            plausible=True,
            cost=10,
            action={"income": 3, "savings": 4},
        ),
        smoke(
            "plausible_residual",
            """income ~ N(0, sd 4) and savings = 2 max(0, income) + N(0, 1), at (4, 8): the residual r of
            savings is 0. Plausible means income^2 / 16 + r^2 <= 1 (r counts when savings is acted on,
            else it stays 0), and there savings = 2 income + r is at most sqrt(65) = 8.06: logit =
            savings - 10 is out of reach.""",
            features=[income, number("savings", (0, 20))],
            scm=explicit(
                income=normal(sd=4),
                savings=normal({"product": [2, {"relu": "income"}]}),
            ),
            classifier=linear([0, 1], -10),
            factual={"income": 4, "savings": 8},
            plausible=True,
            cost=None,
        ),
        smoke(
            "plausible_relu",
            """income ~ N(0, 1) and savings = 2 max(0, income) + N(0, 1), at (3, 2): residual r = -4,
            energy 9 + 16 = 25. logit = savings - 11. With both acted on, income y needs y^2 + (11 - 2
            y)^2 <= 25, which holds for 4 <= y <= 4.8; so income 4 and savings 11 (r = 3): cost 1 + 81
            = 82. Income alone may not leave -3..3, savings alone not -4..4 around 6.""",
            features=[income, number("savings", (0, 20))],
            scm=explicit(income=normal(), savings=normal({"product": [2, {"relu": "income"}]})),
            classifier=linear([0, 1], -11),
            factual={"income": 3, "savings": 2},
            plausible=True,
            cost=82,
            action={"income": 4, "savings": 11},
        ),
    ]


def _equations() -> list[Smoke]:
    income = number("income", (-5, 5))
    log_three = math.log(3)
    rounded_up = math.nextafter(log_three, 2) + 1e-12
    return [
        smoke(
            "relu_equation",
            """savings = 1.5 max(0, income) + noise. From income -2 nothing happens up to 0; logit =
            savings - 3 asks for income 2: cost 16.""",
            features=[income, number("savings")],
            scm=explicit(savings={"equation": {"product": [1.5, {"relu": "income"}]}}),
            classifier=linear([0, 1], -3),
            factual={"income": -2, "savings": 0},
            cost=16,
            action={"income": 2},
        ),
        smoke(
            "square_equation",
            """strain = -income^2 + noise is 0 at income 3, so the noise is 9. logit = strain - 8 asks
            for income^2 <= 1: income 1, cost 4.""",
            features=[income, number("strain")],
            scm=explicit(strain={"equation": {"product": [-1, {"square": "income"}]}}),
            classifier=linear([0, 1], -8),
            factual={"income": 3, "strain": 0},
            cost=4,
            action={"income": 1},
        ),
        smoke(
            "sigmoid_equation",
            """trust = sigmoid(income) + noise is 0.5 at income 0, so the noise is 0. logit = trust -
            0.75 asks for sigmoid(income) >= 3/4, income >= ln 3: cost (ln 3)^2 = 1.2069...""",
            features=[income, number("trust")],
            scm=explicit(trust={"equation": {"sigmoid": "income"}}),
            classifier=linear([0, 1], -0.75),
            factual={"income": 0, "trust": 0.5},
            cost=log_three**2,
            action={"income": rounded_up},
        ),
        smoke(
            "sigmoid_link",
            """education = -0.5 + sigmoid(income + noise), as in the Loan model; at income 0 and
            education 0 the noise is 0. logit = education - 0.25 asks for income >= ln 3: cost (ln
            3)^2.""",
            features=[income, number("education")],
            scm=explicit(
                education={"equation": "income", "link": {"kind": "sigmoid", "offset": -0.5, "scale": 1}}
            ),
            classifier=linear([0, 1], -0.25),
            factual={"income": 0, "education": 0},
            cost=log_three**2,
            action={"income": rounded_up},
        ),
        smoke(
            "network_equation",
            """savings = N(income) + noise with the tent N(x) = max(0, x) - 2 max(0, x - 1), 1 at x = 1
            and -1 at x = 3; so at income 3 and savings 0 the noise is 1. logit = savings - 1.5 asks
            for N >= 0.5, income in 0.5..1.5: from 3 to 1.5, cost 2.25.""",
            features=[income, number("savings")],
            scm=explicit(
                savings={
                    "equation": {
                        "network": {
                            "layers": [
                                {"weight": [[1], [1]], "bias": [0, -1]},
                                {"weight": [[1, -2]], "bias": [0]},
                            ]
                        },
                        "inputs": ["income"],
                    }
                }
            ),
            classifier=linear([0, 1], -1.5),
            factual={"income": 3, "savings": 0},
            cost=2.25,
            action={"income": 1.5},
        ),
        smoke(
            "shared_cause",
            """Two children of one cause with opposite effects, each of which can be held. wealth =
            income + noise helps, debt = 2 income + noise hurts: logit = wealth - debt - 1 at (0, 0,
            0). Raising income by t gives t - 2t - 1 < 0; holding debt at 0 gives t - 1: cost 1.
            Lowering income by t gives t - 1 too (wealth falls by t, debt by 2 t) and holding wealth 2
            t - 1: t = 1/2, cost 1/4. Setting wealth or debt outright is not possible (both may only
            be set to 0).""",
            features=[income, number("wealth", (0, 0)), number("debt", (0, 0))],
            scm=explicit(wealth={"equation": "income"}, debt={"equation": {"product": [2, "income"]}}),
            classifier=linear([0, 1, -1], -1),
            factual={"income": 0, "wealth": 0, "debt": 0},
            cost=0.25,
            action={"income": -0.5, "wealth": 0},
        ),
    ]


def _loan() -> list[Smoke]:
    def features(*acted: tuple[str, tuple[float, float]]) -> list[dict]:
        names = ("gender", "age", "education", "amount", "duration", "income", "savings")
        bounds = dict(acted)
        return [number(n, bounds.get(n), kind="binary" if n == "gender" else "continuous") for n in names]

    factual = {"gender": 1, "age": 0, "education": 0, "amount": 1, "duration": 2, "income": 1, "savings": 0}
    wide = (-10.0, 10.0)
    four = [(n, wide) for n in ("amount", "duration", "income", "savings")]
    optimum = {"amount": float(Fraction(17, 41)) - 1e-12, "income": float(Fraction(71, 41)) + 1e-12}
    return [
        smoke(
            "loan_two_units",
            """Loan model, two hidden units: logit = max(0, income + savings) - max(0, amount + duration)
            - 1, -3 at the factual. Raising income by t lifts savings by 1.5 t; lowering amount by l
            lowers duration by l: 2.5 t + 2 l = 3 with least t^2 + l^2 = 9 / (2.5^2 + 2^2) = 36/41.
            Acting on savings as well (t + s + 2 l = 3, cost 3/2), on duration as well (2.5 t + l + d
            = 3, 9/8.25) or on all four (9/4) is dearer.""",
            features=features(*four),
            scm={"name": "loan"},
            classifier=network(([[0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0, 0]], [0, 0]), ([[1, -1]], [-1])),
            factual=factual,
            cost=float(Fraction(36, 41)),
            action=optimum,
        ),
        smoke(
            "loan_negative_income",
            """Loan model, logit = savings - 3 through one hidden unit, income at -1: the first unit of
            income does not reach savings. Income alone: 1.5 * income = 3, from -1 to 2, cost 9 / 4
            (scale 2). savings alone costs 9. Acting on savings cuts income's effect, so the two never
            mix: 2.25.""",
            features=features(("income", wide), ("savings", wide)),
            scm={"name": "loan"},
            classifier=network(([[0, 0, 0, 0, 0, 0, 1]], [0]), ([[1]], [-3])),
            factual=factual | {"income": -1},
            scale={"income": 2},
            cost=2.25,
            action={"income": 2},
        ),
        smoke(
            "loan_education",
            """Education acted on (its sigmoid link plays no part then): with gender 1, income rises with
            education one to one and savings by 1.5 of that. logit = income + savings - 1.625 =
            -0.625: education by 0.625 / 2.5 = 0.25, cost 0.0625.""",
            features=features(("education", (-0.45, 0.45))),
            scm={"name": "loan"},
            classifier=linear([0, 0, 0, 0, 0, 1, 1], -1.625),
            factual=factual,
            cost=0.0625,
            action={"education": 0.25},
        ),
    ]

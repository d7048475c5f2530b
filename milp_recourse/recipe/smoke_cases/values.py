"""What values and costs mean: kinds of features, cost measures, thresholds, floats."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from milp_recourse.recipe.smoke import Smoke, labels, linear, network, number, smoke

TENTH = float(np.float32(0.1))
SEVEN_TENTHS = float(np.float32(0.7))


def cases() -> list[Smoke]:
    """The cases of this group."""
    return [*_kinds(), *_costs(), *_numbers()]


def _kinds() -> list[Smoke]:
    steps = ("none", "school", "bachelor", "master")
    housing = labels("housing", "categorical", ("rent", "own", "free"))
    return [
        smoke(
            "integer",
            """jobs is a whole number between 0.5 and 8.5: logit = jobs - 4.5, so 5 is the least accepted
            value, cost (5 - 2)^2 = 9; its continuous relaxation would say 6.25.""",
            features=[number("jobs", (0.5, 8.5), kind="integer")],
            classifier=linear([1], -4.5),
            factual={"jobs": 2},
            cost=9,
            action={"jobs": 5},
        ),
        smoke(
            "integer_empty_range",
            """The applicant allows jobs between 2.2 and 2.8, where there is no whole number: nothing can
            be done with jobs, and without it the factual is refused.""",
            features=[number("jobs", (0, 9), kind="integer")],
            classifier=linear([1], -2.5),
            factual={"jobs": 2},
            ranges={"jobs": [2.2, 2.8]},
            cost=None,
        ),
        smoke(
            "binary",
            """insured is 0 or 1: logit = 2 insured + savings - 1.5. Insuring alone costs 1; savings
            alone 1.5^2 = 2.25.""",
            features=[number("insured", (0, 1), kind="binary"), number("savings", (0, 5))],
            classifier=linear([2, 1], -1.5),
            factual={"insured": 0, "savings": 0},
            cost=1,
            action={"insured": 1},
        ),
        smoke(
            "ordinal_code",
            """education enters as its index: logit = index - 1.5, so bachelor (2) is the first accepted
            step. From none (0) the difference of indices is 2: cost (2/2)^2 = 1.""",
            features=[labels("education", "ordinal", steps)],
            classifier=linear([1], -1.5),
            factual={"education": "none"},
            scale={"education": 2},
            cost=1,
            action={"education": "bachelor"},
        ),
        smoke(
            "ordinal_one_hot",
            """education enters one-hot with logits -1, -1, -0.5, 1: only master is accepted. From school
            the difference of indices is 2, so l1 costs 2 (the encoding does not change the cost).""",
            features=[labels("education", "ordinal", steps, "one-hot")],
            classifier=linear([-1, -1, -0.5, 1], 0),
            factual={"education": "school"},
            measure="l1",
            cost=2,
            action={"education": "master"},
        ),
        smoke(
            "categorical",
            """logit = income + 1.5 [own] + 0.5 [free] - 1.5. Changing housing counts as delta 1 whatever
            the label: with weight 2, own costs 2; free and income 1 cost 3; income 1.5 alone 2.25.""",
            features=[number("income", (0, 5)), housing],
            classifier=linear([1, 0, 1.5, 0.5], -1.5),
            factual={"income": 0, "housing": "rent"},
            weights={"housing": 2},
            cost=2,
            action={"housing": "own"},
        ),
        smoke(
            "monotone",
            """logit = |savings| - 2 (two hidden units). From -1 the nearest accepted value is -2 at cost
            1, but savings may only increase: 2 at cost 9.""",
            features=[number("savings", (-5, 5), monotone="increase")],
            classifier=network(([[1], [-1]], [0, 0]), ([[1, 1]], [-2])),
            factual={"savings": -1},
            cost=9,
            action={"savings": 2},
        ),
    ]


def _costs() -> list[Smoke]:
    pair = [number("income", (0, 10)), number("savings", (0, 10))]
    origin = {"income": 0, "savings": 0}
    return [
        smoke(
            "l1",
            """logit = income + 2 savings - 4. A unit of logit costs 1 by income and 3/2 by savings
            (weight 3): income 4 alone, cost 4.""",
            features=pair,
            classifier=linear([1, 2], -4),
            factual=origin,
            weights={"savings": 3},
            measure="l1",
            cost=4,
            action={"income": 4},
        ),
        smoke(
            "linf",
            """logit = income + 2 savings - 6. The larger of the two changes is least when they are
            equal: 3 t = 6, cost 2.""",
            features=pair,
            classifier=linear([1, 2], -6),
            factual=origin,
            measure="linf",
            cost=2,
            action={"income": 2, "savings": 2},
        ),
        smoke(
            "l0",
            """logit = income + savings - 3, income at most 2. income (weight 1) alone is not enough;
            savings (weight 3) alone is: cost 3; both would cost 4.""",
            features=[number("income", (0, 2)), number("savings", (0, 10))],
            classifier=linear([1, 1], -3),
            factual=origin,
            weights={"income": 1, "savings": 3},
            measure="l0",
            cost=3,
            action={"savings": 3},
        ),
        smoke(
            "mixture",
            """0.5 l0 + l1 + l2-squared + 2 linf with logit = income + savings - 2. Income alone by 2:
            0.5 + 2 + 4 + 4 = 10.5; both by 1: 1 + 2 + 2 + 2 = 7, the least by symmetry and convexity.""",
            features=pair,
            classifier=linear([1, 1], -2),
            factual=origin,
            measure={"l0": 0.5, "l1": 1, "l2-squared": 1, "linf": 2},
            cost=7,
            action={"income": 1, "savings": 1},
        ),
        smoke(
            "weights",
            """logit = income + savings - 5 with weights 1 and 4: least of t^2 + 4 (5 - t)^2 is at t = 4:
            16 + 4 = 20.""",
            features=pair,
            classifier=linear([1, 1], -5),
            factual=origin,
            weights={"income": 1, "savings": 4},
            cost=20,
            action={"income": 4, "savings": 1},
        ),
    ]


def _numbers() -> list[Smoke]:
    margin = 2.0**-10
    exact = (Fraction(SEVEN_TENTHS) + Fraction(margin)) / Fraction(TENTH)
    inside = math.nextafter(float(exact), math.inf)
    edge = Fraction(1, 2) + Fraction(1, 2**25)
    stump = {"feature": [0, -2, -2], "threshold": [0.5, -2, -2], "left": [1, -1, -1], "right": [2, -1, -1]}
    return [
        smoke(
            "threshold",
            "at_least moves the threshold: logit = income - 3 must reach 0.5, so income 3.5, cost 12.25.",
            features=[number("income", (0, 10))],
            classifier=linear([1], -3),
            factual={"income": 0},
            accept={"at_least": 0.5},
            cost=12.25,
            action={"income": 3.5},
        ),
        smoke(
            "float32_margin",
            """A float32 network, logit = w income - b with w and b the float32 values nearest 0.1 and
            0.7. The margin 2^-10 is part of the problem: income = (b + 2^-10) / w, cost its square.
            On the other side of the margin the float32 model cannot disagree.""",
            features=[number("income", (0, 10))],
            classifier=linear([TENTH], -SEVEN_TENTHS, dtype="float32"),
            factual={"income": 0},
            accept={"at_least": 0, "margin": margin},
            cost=float(exact**2),
            action={"income": inside},
        ),
        smoke(
            "tree_float32",
            """One split at 0.5, compared in float32. The doubles up to 0.5 + 2^-25 round to 0.5 in
            float32 and are refused (the tie rounds to even), the next one is accepted. The infimum of
            the cost is (0.5 + 2^-25)^2, not attained.""",
            features=[number("income", (0, 10))],
            classifier={
                "kind": "tree-ensemble",
                "dtype": "float32",
                "trees": [stump | {"value": [0.5, 0, 1]}],
            },
            factual={"income": 0},
            accept={"above": 0.5},
            cost=float(edge**2),
            action={"income": math.nextafter(float(edge), 1)},
        ),
        smoke(
            "two_trees",
            """Two stumps, on income and savings, with leaf values 0.25 and 0.75: the score is their mean
            and must lie above 0.5, so one stump is not enough (exactly 0.5). Both features must
            exceed 0.5: infimum 2 (0.5 + 2^-25)^2.""",
            features=[number("income", (0, 10)), number("savings", (0, 10))],
            classifier={
                "kind": "tree-ensemble",
                "dtype": "float32",
                "trees": [
                    stump | {"value": [0.5, 0.25, 0.75]},
                    stump | {"feature": [1, -2, -2], "value": [0.5, 0.25, 0.75]},
                ],
            },
            factual={"income": 0, "savings": 0},
            accept={"above": 0.5},
            cost=float(2 * edge**2),
            action={f: math.nextafter(float(edge), 1) for f in ("income", "savings")},
        ),
    ]

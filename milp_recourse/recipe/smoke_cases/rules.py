"""What may be done: bounds, masks, ranges, domains, holding."""

from __future__ import annotations

from milp_recourse.recipe.smoke import Smoke, explicit, linear, network, number, smoke


def cases() -> list[Smoke]:
    """The cases of this group."""
    return [*_feasibility(), *_holding(), *_domains(), *_wishes()]


def _feasibility() -> list[Smoke]:
    income = number("income", (0, 10))
    return [
        smoke(
            "boundary",
            """The optimum lies exactly on the threshold. logit = income - 3 and income = 0: income must
            rise by 3, cost (3/2)^2 = 2.25.""",
            features=[income],
            classifier=linear([1], -3),
            factual={"income": 0},
            scale={"income": 2},
            cost=2.25,
            action={"income": 3},
        ),
        smoke(
            "already_accepted",
            "logit = income - 3 = 2 at the factual: accepted as it is, so the answer is no action at cost 0.",
            features=[income],
            classifier=linear([1], -3),
            factual={"income": 5},
            cost=0,
            action={},
        ),
        smoke(
            "infeasible_bounds",
            "logit = income - 3 but actions may set income to at most 2: no action is accepted.",
            features=[number("income", (0, 2))],
            classifier=linear([1], -3),
            factual={"income": 0},
            cost=None,
        ),
        smoke(
            "nothing_actionable",
            "The applicant's mask is empty and the factual is refused: infeasible without any search.",
            features=[income],
            classifier=linear([1], -3),
            factual={"income": 0},
            actionable=[],
            cost=None,
        ),
        smoke(
            "two_valleys",
            """A network that is not concave: logit = 1 - min(|income - 2|, |income - 8|) * 2, so
            1.5..2.5 and 7.5..8.5 are accepted. From 6 the nearest accepted value is 7.5, cost 2.25.
            (Hidden units r(t) = max(0, income - t) at 2, 5, 8 and max(0, 2 - income) build the two
            roofs.)""",
            features=[income],
            classifier=network(([[1], [1], [1], [-1]], [-2, -5, -8, 2]), ([[-2, 4, -4, -2]], [1])),
            factual={"income": 6},
            cost=2.25,
            action={"income": 7.5},
        ),
    ]


def _holding() -> list[Smoke]:
    def chain(name: str, text: str, bounds: tuple[float, float], **rest: object) -> Smoke:
        return smoke(
            name,
            text,
            features=[number("amount", (-10, 10)), number("duration", bounds)],
            scm=explicit(duration={"equation": "amount"}),
            classifier=linear([2, -1], -1),
            factual={"amount": 0, "duration": 1},
            **rest,  # type: ignore[arg-type]
        )

    return [
        chain(
            "hold",
            """Holding a feature at its factual value is an action, costs nothing, and pays. duration =
            amount + noise, logit = 2 amount - duration - 1. Raising amount by t drags duration along:
            logit = t - 2, so t = 2 and cost 4. Holding duration at 1: logit = 2 t - 2, so t = 1 and
            cost 1. duration may not be set below 1, so nothing is cheaper. A grid of values rarely
            contains the factual one.""",
            (1, 10),
            cost=1,
            action={"amount": 1, "duration": 1},
        ),
        chain(
            "hold_not_allowed",
            """As `hold`, but actions may set duration only to 2 or more, so its factual value 1 may not
            be held. Setting it to d >= 2 needs amount (d + 1)/2: cost (d + 1)^2/4 + (d - 1)^2/4,
            least at d = 2: 2.5. Not acting on duration is allowed but costs 4.""",
            (2, 10),
            scale={"duration": 2},
            cost=2.5,
            action={"amount": 1.5, "duration": 2},
        ),
        chain(
            "hold_costs_under_l0",
            """As `hold`, counted by l0: every acted feature costs its weight (amount 1, duration 2),
            held ones included. amount alone works (t = 2), so cost 1; holding duration would make it
            3.""",
            (1, 10),
            measure="l0",
            weights={"amount": 1, "duration": 2},
            cost=1,
            action={"amount": 2},
        ),
        smoke(
            "factual_outside_bounds",
            """amount = 12 lies outside what an action may set (0..10). It need not be acted on: logit =
            amount + savings - 15, so savings rises by 3, cost 9. Acting on amount would cost at least
            4 and ask for savings 5.""",
            features=[number("amount", (0, 10)), number("savings", (0, 10))],
            classifier=linear([1, 1], -15),
            factual={"amount": 12, "savings": 0},
            cost=9,
            action={"savings": 3},
        ),
    ]


def _domains() -> list[Smoke]:
    return [
        smoke(
            "outside_domain_must_act",
            """The classifier accepts (logit = amount - 5 = 7), but the counterfactual's amount must lie
            in 0..10 and is 12: it must be set to 10, cost 4.""",
            features=[number("amount", (0, 20), domain=(0, 10))],
            classifier=linear([1], -5),
            factual={"amount": 12},
            cost=4,
            action={"amount": 10},
        ),
        smoke(
            "domain_downstream_infeasible",
            """duration = amount + noise follows amount but may not leave 0..5, and nobody acts on it:
            amount can rise by 1 at most, logit = amount - 3 needs 3.""",
            features=[number("amount", (0, 10)), number("duration", domain=(0, 5))],
            scm=explicit(duration={"equation": "amount"}),
            classifier=linear([1, 0], -3),
            factual={"amount": 0, "duration": 4},
            cost=None,
        ),
        smoke(
            "domain_downstream_hold",
            """As `domain_downstream_infeasible`, but duration may be acted on: holding it at 4 keeps it
            inside its domain for nothing, and amount rises by 3: cost 9.""",
            features=[number("amount", (0, 10)), number("duration", (0, 10), domain=(0, 5))],
            scm=explicit(duration={"equation": "amount"}),
            classifier=linear([1, 0], -3),
            factual={"amount": 0, "duration": 4},
            cost=9,
            action={"amount": 3, "duration": 4},
        ),
    ]


def _wishes() -> list[Smoke]:
    pair = [number("income", (0, 10)), number("savings", (0, 10))]
    origin = {"income": 0, "savings": 0}
    return [
        smoke(
            "range_binds",
            """logit = income + savings - 5; the applicant's income may not exceed 2, so savings must
            reach 3: 4 + 9 = 13 (12.5 without the range).""",
            features=pair,
            classifier=linear([1, 1], -5),
            factual=origin,
            ranges={"income": [0, 2]},
            cost=13,
            action={"income": 2, "savings": 3},
        ),
        smoke(
            "range_misses_bounds",
            """The applicant's range for income (20..30) misses its bounds (0..10), which just leaves
            nothing to do with income: savings must reach 5 alone, cost 25.""",
            features=pair,
            classifier=linear([1, 1], -5),
            factual=origin,
            ranges={"income": [20, 30]},
            cost=25,
            action={"savings": 5},
        ),
        smoke(
            "mask",
            "As `weights` without weights, but income is not the applicant's to change: savings 5, cost 25.",
            features=pair,
            classifier=linear([1, 1], -5),
            factual=origin,
            actionable=["savings"],
            cost=25,
            action={"savings": 5},
        ),
    ]

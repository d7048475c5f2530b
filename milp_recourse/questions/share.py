r"""Sharing the cost of recourse between people and an institution.

Under an :class:`~milp_recourse.questions.offers.Offer` a person has an ordinary problem, with a proven least
cost :math:`c_i(o)`; no offer has price 0. Person i's front are the points :math:`(q_o, c_i(o))`. Offers are
chosen, one or none for each person, such that as many people as possible are served and, among such choices,

.. math:: \sum_i c_i(o_i) + w\, q_{o_i} \quad\text{is least,}\quad \text{with}\quad \sum_i q_{o_i} \le B,

by a dynamic program over the money spent, in exact arithmetic. The same program with the points' lower
bounds in place of their costs proves how much better any choice could be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from milp_recourse.errors import BadInput, Unsupported, is_number
from milp_recourse.formats import read_any
from milp_recourse.formats.schema_answers import PointModel, ShareModel
from milp_recourse.formats.stated import document
from milp_recourse.problem.decimals import as_written
from milp_recourse.problem.enclosure import round_down, round_up
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.offers import Offer, read_offers
from milp_recourse.questions.solve import as_population, check_options, solve_together

MOST_STATES = 1_000_000
"""The most amounts of money that are kept apart."""

LARGEST = 1e100
"""The largest budget, weight and cost that can be asked for."""

Way = tuple[Fraction, Fraction]
"""What serving a person in one way costs the institution, and its part of the objective."""

State = tuple[int, int, Any]
"""The amount spent, the total, and what was chosen, last first."""


class Choice(NamedTuple):
    """One of a person's ways in whole numbers; ``k`` is None for not being served."""

    price: int
    value: int
    k: int | None

    def at(self, rate: int) -> tuple[int, int]:
        """What it is worth where money has a price, and then the cheaper for the institution first."""
        return self.value + rate * self.price, self.price


@dataclass(frozen=True)
class Point:
    """One person's answer under one offer."""

    offer: Offer
    result: Result

    @property
    def open(self) -> bool:
        """Whether it is neither proven optimal nor infeasible."""
        return self.result.status not in (Status.OPTIMAL, Status.INFEASIBLE)


@dataclass(frozen=True)
class Shared:
    """Who is helped by which offer.

    Attributes
    ----------
    offers
        By price; the first is no offer.
    fronts
        Index -> points by price, for everybody who could be read. Offers that cost no less than one under
        which the person needs no action are not asked about.
    chosen
        Index -> position in the person's front; None where nothing was found for the person.
    budget, weight, most_cost
        As asked.
    served_at_most
        No choice serves more people.
    objective, lower_bound
        People's costs and ``weight`` times what is spent; no choice that serves as many people has a smaller
        objective than ``lower_bound``, which is None if more people might be served.
    """

    offers: tuple[Offer, ...]
    fronts: Mapping[int, tuple[Point, ...]]
    chosen: Mapping[int, int | None]
    budget: float | None
    weight: float
    most_cost: float | None
    served_at_most: int
    objective: float
    lower_bound: float | None

    @property
    def taken(self) -> list[Point]:
        """The points of those who are served."""
        return [self.fronts[i][k] for i, k in self.chosen.items() if k is not None]

    @property
    def proven(self) -> bool:
        """Whether every point is, and so the choice: nothing is better by more than the points' own gaps."""
        return not any(point.open for front in self.fronts.values() for point in front)

    @property
    def spent(self) -> Fraction:
        """What the chosen offers cost the institution."""
        return sum((point.offer.price for point in self.taken), Fraction(0))

    def to_dict(self) -> dict[str, Any]:
        """As a ``share-1`` document."""
        people = []
        for i, front in self.fronts.items():
            points = [
                document(PointModel, one.result, offer=one.offer.name, price=float(one.offer.price))
                for one in front
            ]
            people.append({"index": i, "points": points, "chosen": self.chosen[i]})
        return document(
            ShareModel,
            self,
            served=len(self.taken),
            spent=float(self.spent),
            cost=math.fsum(point.result.cost or 0.0 for point in self.taken),
            people=people,
        )


def share(
    people: Instance | Population | Mapping[str, Any] | str | Path,
    offers: Sequence[Mapping[str, Any] | Offer] | Mapping[str, Any] | str | Path,
    budget: float | None = None,
    weight: float | None = None,
    most_cost: float | None = None,
    backend: str | None = None,
    time_limit: float | None = None,
    advance: Callable[[], object] | None = None,
) -> Shared:
    """The cheapest joint plans, of each person by themselves or within a budget for all.

    Parameters
    ----------
    people
        An instance or a population, the path of its file, or the JSON value of a population.
    offers
        An ``offers-1`` document, its file, the list in it, or what :func:`read_offers` has read; every person
        gets one or none.
    budget
        What all offers together may cost; None: anything.
    weight
        What a unit of the offers' prices counts beside a unit of people's costs; None: 1 without a budget,
        and 0 with one.
    most_cost
        What a person can bear: who would have to pay more is not served. None: anything.
    backend
        Name of a back end; None takes the default.
    time_limit
        Wall seconds for each point of each person; None for no limit.
    advance
        Called once per offer, when everybody's answer under it is known.

    Raises
    ------
    BadInput
        The people or the offers break their format, or a number is negative.
    Unsupported
        As for :func:`milp_recourse.questions.solve.solve`; or the prices have no common unit, so that more
        than :data:`MOST_STATES` sums of them would have to be kept.
    BackendUnavailable
        As for :func:`milp_recourse.questions.solve.solve`.
    """
    check_options(time_limit)
    for name, number in (("budget", budget), ("weight", weight), ("most_cost", most_cost)):
        if number is not None and not (is_number(number) and 0 <= number <= LARGEST):
            raise BadInput(name, repr(number), f"a number from 0 to {LARGEST:g}")
    population = everybody(people)
    listed = read_offers(offers, population.template)
    weight = (1.0 if budget is None else 0.0) if weight is None else weight
    return chosen_offers(
        listed, _fronts(population, listed, backend, time_limit, advance), budget, weight, most_cost
    )


def chosen_offers(
    offers: Sequence[Offer],
    fronts: Mapping[int, tuple[Point, ...]],
    budget: float | None,
    weight: float,
    most_cost: float | None,
) -> Shared:
    """The best choice of points, and the bound that the points' own bounds prove."""
    found = _best(fronts, "cost", budget, weight, most_cost)
    bound = _best(fronts, "lower_bound", budget, weight, most_cost)
    served, at_most = (sum(k is not None for k in one[1]) for one in (found, bound))
    return Shared(
        tuple(offers),
        fronts,
        dict(zip(fronts, found[1], strict=True)),
        budget,
        weight,
        most_cost,
        at_most,
        round_up(found[0]),
        round_down(bound[0]) if served == at_most else None,
    )


def everybody(given: Instance | Population | Mapping[str, Any] | str | Path) -> Population:
    """The population given; of an instance one of one person."""
    problem = read_any(given) if isinstance(given, str | Path) else given
    if isinstance(problem, Instance):
        return Population.of(problem, [problem.factual], [problem.preferences], {})
    return as_population(problem)


def _fronts(
    people: Population,
    offers: Sequence[Offer],
    backend: str | None,
    time_limit: float | None,
    advance: Callable[[], object] | None,
) -> dict[int, tuple[Point, ...]]:
    """Everybody's points, by price."""
    points: dict[int, list[Point]] = {k: [] for k in range(len(people)) if k not in people.unreadable}
    for offer in offers:
        asked: dict[int, Instance] = {}
        for k, front in points.items():
            settled = any(point.result.status is Status.OPTIMAL and not point.result.cost for point in front)
            one = None if settled else offer.applied(people[k])
            if one is not None:
                asked[k] = one
        found = solve_together(list(asked.values()), backend, time_limit)
        for k, result in zip(asked, found, strict=True):
            points[k].append(Point(offer, result))
        if advance is not None:
            advance()
    return {k: tuple(front) for k, front in points.items()}


def _best(
    fronts: Mapping[int, Sequence[Point]],
    by: str,
    budget: float | None,
    weight: float,
    most_cost: float | None,
) -> tuple[Fraction, list[int | None]]:
    """The least objective, and each person's position in their front; ``by`` cost or lower bound."""
    ways: list[dict[int, Way]] = []
    for front in fronts.values():
        own: dict[int, Way] = {}
        for k, point in enumerate(front):
            value = getattr(point.result, by)
            if by == "lower_bound" and point.open:
                value = value or 0.0
            if value is not None and (most_cost is None or value <= most_cost):
                price = point.offer.price
                own[k] = price, Fraction(value) + as_written(weight) * price
        ways.append(own)
    if budget is not None:
        return selection(ways, as_written(budget))
    chosen = [min(own, key=lambda k: (own[k][1], k)) if own else None for own in ways]
    total = (own[k][1] for own, k in zip(ways, chosen, strict=True) if k is not None)
    return sum(total, Fraction(0)), chosen


def selection(ways: Sequence[Mapping[int, Way]], budget: Fraction) -> tuple[Fraction, list[int | None]]:
    """One way or none for each person: as many as possible, then of the least total, within the budget.

    All numbers become whole ones, and serving a person is worth more than all parts of the objective. The
    Lagrangian relaxation has a price for money, :math:`r`; it gives a first choice and a lower bound of what
    is still to come. States of the program whose bound exceeds the best choice known are dropped, and those
    that spend more than another for no smaller total.

    Raises
    ------
    Unsupported
        More than :data:`MOST_STATES` states are left.
    """
    every = [way for own in ways for way in own.values()]
    money = math.lcm(budget.denominator, *(price.denominator for price, _ in every))
    unit = math.lcm(*(value.denominator for _, value in every))
    most = int(budget * money)
    worth = 1 + sum(max((int(value * unit) for _, value in own.values()), default=0) for own in ways)
    people = [
        [
            Choice(0, 0, None),
            *(Choice(int(price * money), int(c * unit) - worth, k) for k, (price, c) in own.items()),
        ]
        for own in ways
    ]
    known, rate = _first(people, most, 2 * worth)
    lowest = [min(one.at(rate)[0] for one in own) for own in people]
    room = sum(one.value for one in known) - (sum(lowest) - rate * most)
    states: list[State] = [(0, 0, None)]
    spare = room  # what states may lose, beside the money that they leave
    for own, least_of_all in zip(people, lowest, strict=True):
        near = [one for one in own if one.at(rate)[0] - least_of_all <= room]
        spare += least_of_all
        grown: list[State] = []
        for spent, total, how in states:
            for one in near:
                after, sums = spent + one.price, total + one.value
                if after <= most and sums + rate * after <= spare:
                    grown.append((after, sums, (one.k, how)))
        grown.sort(key=lambda state: state[:2])
        states, least = [], 1
        for state in grown:
            if state[1] < least:
                least = state[1]
                states.append(state)
        if len(states) > MOST_STATES:
            raise Unsupported(
                f"the offers' prices have more than {MOST_STATES} different sums within the budget; "
                "give prices that are multiples of one unit"
            )
    _, _, how = states[-1]
    chosen: list[int | None] = []
    while how is not None:
        k, how = how
        chosen.append(k)
    chosen.reverse()
    parts = (own[k][1] for own, k in zip(ways, chosen, strict=True) if k is not None)
    return sum(parts, Fraction(0)), chosen


def _first(people: Sequence[Sequence[Choice]], most: int, rate: int) -> tuple[list[Choice], int]:
    """A choice within the budget, and the price of money that leads to it; ``rate`` is one that is too high.

    At a rate everybody has what is cheapest to both sides; the least whole rate that keeps to the budget is
    taken, and what is left is spent where it helps most.
    """
    low, high = -1, rate
    while high - low > 1:
        middle = (low + high) // 2
        spent = sum(min(own, key=lambda one: one.at(middle)).price for own in people)
        low, high = (low, middle) if spent <= most else (middle, high)
    found = [min(own, key=lambda one: one.at(high)) for own in people]
    over = most - sum(one.price for one in found)
    while True:
        gains = [
            (one.value - found[i].value, i, one)
            for i, own in enumerate(people)
            for one in own
            if one.price - found[i].price <= over
        ]
        gain, i, one = min(gains, key=lambda gained: gained[:2])
        if gain >= 0:
            break
        over, found[i] = over - one.price + found[i].price, one
    return found, high

"""What each question says about one person, compared with what that person could do.

Every check yields a line per false sentence. Where all actions are known, costs have to be theirs; where some
are, no bound may be above the cost of one, and nothing that one of them does may be impossible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import Pipeline

from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.alternatives import alternatives
from milp_recourse.questions.density_front import density_fronts
from milp_recourse.solvers.ask import FIRST
from milp_recourse.tables.answers import Answers
from tests.helpers.every_action import Everything, Mask
from tests.helpers.plain_conditions import Numbers
from tests.properties.agreement import count_verdict, verdict_of

LIMIT = 20.0
"""Seconds per question."""

NEAR = 3e-6
"""Costs are proven to a relative gap of 1e-6; those that differ by less than this are not told apart."""

Some = Callable[[Everything], Mask]
"""Which actions are meant."""


@dataclass(frozen=True)
class Case:
    """One person, all or many of their actions, and what was answered."""

    every: Everything
    instance: Instance
    answers: Answers
    at: int
    rng: np.random.Generator

    @property
    def person(self) -> str:
        """Their name."""
        return str(self.answers.rows.frame.index[self.at])

    @property
    def backend(self) -> str | None:
        """Who was asked."""
        return self.answers.options["backend"]


Check = Callable[[Case, Counter[str]], Iterator[str]]


def same(one: float | None, other: float | None) -> bool:
    """Whether two costs are the same up to the gap; None: there is none."""
    if one is None or other is None:
        return one is other
    return abs(one - other) <= NEAR * max(one, other) + 1e-10


def above(bound: float | None, least: float | None) -> bool:
    """Whether a lower bound is above a cost, by more than the rounding of the cost."""
    return bound is not None and least is not None and bound > least * (1 + 1e-12) + 1e-14


def contradicted(
    every: Everything, cost: float | None, bound: float | None, least: float | None
) -> str | None:
    """How the cheapest action known contradicts a cost that is called the least (None: there is none)."""
    if cost is None and least is not None:
        return f"impossible, but one costs {least}"
    open_ = cost is not None and bound is not None and not same(cost, bound)  # for want of time
    if every.whole and not open_ and not same(cost, least):
        return f"at {cost}, but {least}"
    if above(bound, least):
        return f"no action costs less than {bound}, but one costs {least}"
    return None


def answer(case: Case, result: Result, some: Some, what: str = "") -> Iterator[str]:
    """A result against the actions that are possible."""
    every = case.every
    least = every.least(some(every))
    if result.status is Status.LIMIT:
        if above(result.lower_bound, least):
            yield f"{what}no action costs less than {result.lower_bound}, but one costs {least}"
    else:
        false = contradicted(every, result.cost, result.lower_bound, least)
        if false is not None:
            yield f"{what}{result.status.value} {false}"
    if result.action is not None:
        one = every.only(case.instance.numbers(result.action))
        if not some(one)[0]:
            broken = [id for id, mask in one.broken.items() if mask[0]]
            yield f"{what}{dict(result.action)} breaks {broken}, is accepted: {one.accepted[0]}"
        elif not same(result.cost, float(one.cost[0])):
            yield f"{what}{dict(result.action)} costs {one.cost[0]}, not {result.cost}"


def check_certify(case: Case, counts: Counter[str]) -> Iterator[str]:
    """Status, cost, bound, ``confirmed`` and the counterfactual row."""
    result = case.answers.results[case.at]
    assert result is not None
    counts[result.status.value] += 1
    yield from answer(case, result, Everything.possible)
    if result.action is None or result.status is Status.LIMIT:
        return
    one = case.every.only(case.instance.numbers(result.action))
    row = case.answers.counterfactuals.iloc[case.at]
    for column in one.columns:
        here, there = column.code(row[column.key]), one.after[0, one.names.index(column.name)]
        if not np.isnan(here) and abs(here - there) > 1e-9:
            yield f"{column.name} is {here} after the action, not {there}"
    counts["confirmed"] += bool(case.answers.confirmed[case.at])
    if not case.answers.confirmed[case.at]:
        yield "not confirmed"


def check_asked(case: Case, counts: Counter[str]) -> Iterator[str]:
    """As :func:`check_certify`; and how many rows were asked, against a search that knows the optimal cost.

    It would have to ask all the different rows that allowed actions lead to and that cost no more, or all
    there are.
    """
    yield from check_certify(case, counts)
    every, result = case.every, case.answers.results[case.at]
    counts[every.lender.final] += 1
    if result is None or result.nodes is None or result.status is Status.LIMIT:
        return
    if result.proof != "asked":
        yield f"proven as {result.proof}"
    welcome = replace(every)  # conditions are looked at where the model accepts
    welcome.__dict__["accepted"] = np.ones(len(every.after), dtype=bool)
    needed = welcome.possible()
    if result.cost is not None:
        needed &= every.cost <= result.cost * (1 + 1e-9) + 1e-12
    rows = len(np.unique(every.after[needed], axis=0))
    counts["rows asked"] += result.nodes
    counts["rows that cost no more"] += rows
    if result.nodes > 1.2 * rows + FIRST + 3:
        yield f"{result.nodes} rows asked, where {rows} cost no more"


def check_certificate(case: Case, counts: Counter[str]) -> Iterator[str]:
    """The checker's verdict, and that what it verifies is so."""
    line, lines = verdict_of(case.instance, LIMIT), list[str]()
    count_verdict(line, counts, lines)
    yield from lines
    least = case.every.least(case.every.possible())
    if line.startswith("VERIFIED infeasible") and least is not None:
        yield f"{line}, but one costs {least}"
    if line.startswith("VERIFIED optimal"):
        said = dict(part.split("=") for part in line.split() if "=" in part)
        false = contradicted(case.every, float(said["cost"]), float(said["lower_bound"]), least)
        if false is not None:
            yield f"{line}: {false}"


def check_why(case: Case, counts: Counter[str]) -> Iterator[str]:
    """Minimal sets, prices, least widenings."""
    every, found = case.every, case.answers.why(case.person, LIMIT)
    ids = list(every.broken)
    if found["restrictions"] != ids:
        yield f"restrictions {found['restrictions']}, but {ids}"
        return
    counts[found["status"]] += 1
    counts["complete"] += found["complete"]
    if found["status"] == "limit":
        return
    false = contradicted(every, found["cost"], found["lower_bound"], every.least(every.possible()))
    if false is not None:
        yield f"as it stands {false}"
    if found["status"] == "infeasible":
        yield from check_minimal(case, found, counts)
        yield from check_widenings(case, found, counts)
    for id, cost in found["prices"].items():
        counts["prices"] += 1
        false = contradicted(every, cost, found["price_bounds"][id], every.least(every.possible([id])))
        if false is not None:
            yield f"without {id}: {false}"
    if found["status"] == "optimal" and found["complete"] and list(found["prices"]) != ids:
        yield f"prices of {list(found['prices'])}"


def check_minimal(case: Case, found: Mapping[str, Any], counts: Counter[str]) -> Iterator[str]:
    """The minimal sets are those restrictions that some accepted action breaks, without larger ones."""
    every, ids = case.every, list(case.every.broken)
    bits = np.zeros(len(every.accepted), dtype=np.int64)
    for k, id in enumerate(ids):
        bits |= every.broken[id].astype(np.int64) << k
    listed = {sum(1 << ids.index(id) for id in one["lift"]) for one in found["minimal"]}
    counts["sets"] += len(listed)
    for broken in set(bits[every.possible(ids)].tolist()):
        names = [id for k, id in enumerate(ids) if broken >> k & 1]
        if any(broken & one == broken and broken != one for one in listed):
            yield f"less than a minimal set suffices: {names}, {[one['lift'] for one in found['minimal']]}"
        if found["complete"] and not any(broken & one == one for one in listed):
            yield f"lifting {names} suffices, which no minimal set is part of"
    for one in found["minimal"]:
        least = every.least(every.possible(one["lift"]))
        false = contradicted(every, one["cost"], one["lower_bound"], least)
        if false is not None:
            yield f"without {one['lift']}: {false}"


def check_widenings(case: Case, found: Mapping[str, Any], counts: Counter[str]) -> Iterator[str]:
    """The least widenings of each end of restrictions that suffice by themselves."""
    every, expected = case.every, set()
    known = {(one["id"], one["end"]): one for one in found["smallest"]}
    counts["widenings"] += len(known)
    for id in every.broken:
        for end in ends_of(every, id):
            possible = np.flatnonzero(every.possible([id]))
            there = [(v, k) for k in possible if (v := end.value(every, int(k))) is not None]
            if not there:
                continue
            expected.add((id, end.name))
            one = known.get((id, end.name))
            if one is None:
                continue
            best = max(there)[0] if end.name == "low" else min(there)[0]
            to = Fraction(one["to"])
            over = best - to if end.name == "low" else to - best
            if (
                Fraction(one["from"]) != end.start
                or over > end.width / 10**6
                or (every.whole and over < -end.width / 10**9)
            ):
                yield f"{id} {end.name} from {one['from']} to {one['to']}, but to {float(best)}"
            within = [k for v, k in there if (v >= to if end.name == "low" else v <= to)]
            least = min((float(every.cost[k]) for k in within), default=None)
            false = contradicted(every, one["cost"], one["lower_bound"], least)
            if false is not None:
                yield f"{id} {end.name} at {one['to']}: {false}"
    if (found["complete"] and expected - set(known)) or (every.whole and set(known) - expected):
        yield f"widenings of {sorted(known)}, but {sorted(expected)}"


@dataclass(frozen=True)
class End:
    """An end of a restriction that can be moved.

    Attributes
    ----------
    value
        For an action that is possible if the end is moved far enough, to where it must be; None if that does
        not help, or is not needed.
    width
        What a tolerance is a part of.
    """

    name: str
    start: Fraction
    value: Callable[[Everything, int], Fraction | None]
    width: Fraction


def ends_of(every: Everything, id: str) -> Iterator[End]:
    """The ends of a range, a domain or a condition that is a sum with one bound."""
    kind, _, name = id.partition(":")
    if kind in ("range", "domain"):
        limits = every.ranges[name] if kind == "range" else every.domain(every.by_name[name])
        assert limits is not None
        low, high = map(Fraction, limits)
        if name in every.levers:
            least, most = every.limits(name)
        else:
            reached = every.after[:, every.names.index(name)]
            reached = reached[~np.isnan(reached)]
            if not len(reached):  # missing whatever is done: no end of its domain is in anybody's way
                return
            least, most = float(reached.min()), float(reached.max())
        at = every.levers.index(name) if kind == "range" else every.names.index(name)

        def own(some: Everything, k: int) -> Fraction:
            return Fraction(float((some.settings if kind == "range" else some.after)[k, at]))

        width = Fraction(most) - Fraction(least)
        yield End("low", low, lambda some, k: v if (v := own(some, k)) < low else None, width)
        yield End("high", high, lambda some, k: v if (v := own(some, k)) > high else None, width)
    condition = every.condition(id) if kind == "condition" else None
    if condition is None or not {"feature", "sum"} & set(condition) or "in" in condition:
        return
    given = [end for end in ("at_least", "at_most") if end in condition]
    if len(given) == 2:
        return
    features = {c.name: c.feature for c in every.columns}
    terms, of = condition.get("sum") or {condition["feature"]: 1}, condition["of"]
    bound = condition[given[0]]
    start = Fraction(features[next(iter(terms))].number(bound) if isinstance(bound, str) else bound)
    width = Fraction(0)
    for n, c in terms.items():
        if n in every.levers:
            least, most = every.limits(n)
            unit = abs(Fraction(every.x[n])) if of == "relative-change" else Fraction(1)
            width += abs(Fraction(c)) * (Fraction(most) - Fraction(least)) / unit

    def total(some: Everything, k: int) -> Fraction | None:
        after = dict(zip(some.names, some.after[k].tolist(), strict=True))
        numbers = Numbers(features, some.x, after, ())
        value = sum((Fraction(c) * numbers.value(n, of) for n, c in terms.items()), Fraction(0))
        beyond = value < start if given == ["at_least"] else value > start
        return value if beyond else None

    yield End("low" if given == ["at_least"] else "high", start, total, width or Fraction(10**9))


def check_front(case: Case, counts: Counter[str]) -> Iterator[str]:
    """Cost against the number of actions."""
    every, some = case.every, case.every.possible()
    found = case.answers.front(case.person, LIMIT)
    if len(found) and (found["status"] != "optimal").any():
        counts["open"] += 1
        return
    counts["points"] += len(found)
    before = None
    for most in range(len(every.levers) + 1):
        here = found[found.index <= most]
        stated = float(here["cost"].min()) if len(here) else None
        bound = float(here["lower_bound"].min()) if len(here) else None
        false = contradicted(every, stated, bound, every.least(some & (every.count <= most)))
        if false is not None:
            yield f"with {most} actions: {false}"
        if most in found.index and len(found.loc[most, "acted"]) > most:
            yield f"with {most} actions on {found.loc[most, 'acted']}"
        if most in found.index and before is not None and same(before, stated):
            yield f"the point of {most} actions is as cheap with fewer"
        before = stated


def check_leaves(case: Case, counts: Counter[str]) -> Iterator[str]:
    """One recourse per accepting leaf, of a single tree."""
    every, model = case.every, case.every.lender.model
    while isinstance(model, FixedThresholdClassifier | FrozenEstimator):
        model = model.estimator
    found = alternatives(case.instance, 1000, "leaf")
    known = np.flatnonzero(every.possible())
    rows = every.rows.iloc[known if len(known) else [0]][list(every.lender.X.columns)]
    model = getattr(model, "best_estimator_", model)
    if isinstance(model, Pipeline):
        rows, model = model[:-1].transform(rows), model[-1]
    counts["leaves"] += len(found)
    least: dict[int, float] = {}
    for k, leaf in zip(known, model.apply(rows), strict=False):
        least[int(leaf)] = min(least.get(int(leaf), np.inf), float(every.cost[k]))
    stated, best = sorted(one.cost for one in found), sorted(least.values())
    if len(stated) != len(best) or not all(same(a, b) for a, b in zip(stated, best, strict=True)):
        yield f"leaves at {stated}, but {best}"


def check_density_front(case: Case, counts: Counter[str]) -> Iterator[str]:
    """Cost against the density offset."""
    every = case.every
    offsets = sorted({float(np.round(v, 2)) for v in case.rng.uniform(-6, 2, 5)} | {0.0})
    [found] = density_fronts([case.instance], offsets, case.backend, LIMIT)
    here = float(every.only({}).density[0])
    for point in found.points:

        def some(all_of_them: Everything, offset: float | None = point.offset) -> Mask:
            free = all_of_them.possible(["plausibility"])
            if offset is None:
                return free
            return free & (all_of_them.density >= here + offset - (all_of_them.slack or 1e-9))

        if point.offset and (np.abs(every.density - here - point.offset) < 1e-9).any():
            continue  # too close to call
        counts[point.result.status.value] += 1
        yield from answer(case, point.result, some, f"offset {point.offset}: ")
        if point.result.action is not None:
            gain = every.only(case.instance.numbers(point.result.action)).density[0] - here
            if abs((point.gain or 0.0) - gain) > 1e-7:
                yield f"offset {point.offset}: gains {point.gain}, not {gain}"

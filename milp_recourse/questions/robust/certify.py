"""Certificates of robust answers: an action's outcomes, and the lower bound (section 12 of the document).

The proof about the outcomes is that of the problem to reach a refused one
(:mod:`milp_recourse.questions.robust.outcomes`). The lower bound of a network is that of the problem with the
scenarios that the search collected. That of trees follows the search: in each configuration the box of
actions is cut as the ways out of refused boxes demand. Where none is taken, the refused box itself closes the
leaf; what is left of a case that was not split is proven by prices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from milp_recourse.certificates import certificates_for, instance_digest, why_none
from milp_recourse.certificates.causal_tree_proof import causal_configurations
from milp_recourse.certificates.conditions import Case as Conditional
from milp_recourse.certificates.engine_proofs import no_action
from milp_recourse.certificates.ensemble_proof import PriceProofs, ensemble_configurations
from milp_recourse.certificates.limits import MOST_NODES, fits, not_idle
from milp_recourse.engine.forests.axes import separable
from milp_recourse.engine.forests.parts import each_part
from milp_recourse.problem.conditions import Condition, LabelIn, Not, Sum
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.options import Clock
from milp_recourse.problem.result import Result
from milp_recourse.problem.scenario import Scenario
from milp_recourse.program.presolve import without_conditions
from milp_recourse.questions.robust.certain_search import Evidence
from milp_recourse.questions.robust.outcomes import outcomes_of
from milp_recourse.questions.robust.refused import Case
from milp_recourse.questions.robust.uncertainty import Uncertainty

Ranges = dict[str, tuple[float, float]]
Piece = tuple[tuple[float, float], bool]
"""A part of a lever's interval, and whether an action there takes a way out."""


def why_no_certificate(instance: Instance, uncertainty: Uncertainty, result: Result) -> str | None:
    """Why no certificate can be had for a robust answer, or None."""
    outcomes = uncertainty.of_outcomes and instance.levers and result.action != {}
    of_trees = isinstance(instance.classifier, TreeEnsemble)
    if outcomes and of_trees and not separable(without_conditions(instance)):
        return "none are written for trees inside a causal model or with plausibility yet"
    return why_none(instance, result)


def certain_certificate(
    given: Instance,
    instance: Instance,
    uncertainty: Uncertainty,
    result: Result,
    evidence: Evidence,
    clock: Clock,
) -> dict[str, Any] | None:
    """The certificate of a robust answer as JSON values; None where no proof was found.

    Parameters
    ----------
    given, instance
        The problem as it was given, to which the certificate belongs, and with the highest threshold.
    evidence
        What the lower bound rests on: the root of the search over refused boxes, or the scenarios.
    """
    result = replace(result, rests_on=None)  # beside ``withstands``, all conditions count
    scenarios = [] if isinstance(evidence, Case) or not evidence else [Scenario(), *evidence]
    if isinstance(evidence, Case):
        own = partial(_BoxProofs, evidence, uncertainty, instance)
        boxes = partial(ensemble_configurations, proofs=own)
        [found] = certificates_for([instance], [result], clock.left(), ensemble=boxes)
    else:
        several = replace(instance, scenarios=tuple(evidence))
        sets = partial(ensemble_configurations, priced=False)
        [found] = certificates_for([several], [result], clock.left(), ensemble=sets)
    if found is None:
        return None
    for one in found["configurations"] if scenarios else ():
        one["scenarios"] = list(range(len(scenarios)))
    proof: dict[str, Any] | None = None
    outcomes = outcomes_of(instance, instance.numbers(result.action or {}), uncertainty)
    if outcomes.refusal is not None:
        proof = none_refused(outcomes.refusal, outcomes.every() is not None, clock)
        if proof is None:
            return None
    withstands = {
        **uncertainty.to_dict(),
        "scenarios": [{"missed": dict(one.missed), "noise": dict(one.noise)} for one in scenarios],
        "outcomes": proof,
    }
    return {**found, "instance_sha256": instance_digest(given), "withstands": withstands}


def none_refused(refusing: Instance, listed: bool, clock: Clock) -> dict[str, Any] | None:
    """The proof that nothing is feasible in a problem of
    :func:`~milp_recourse.questions.robust.outcomes.to_refuse` where every lever is acted on; or None.

    Parameters
    ----------
    listed
        Whether a network may be proven value by value, where all levers take few whole numbers.
    """
    acted, found = tuple(refusing.levers), dict[str, Any]()
    if isinstance(refusing.classifier, TreeEnsemble):
        free = replace(refusing, demands=(), cost=Cost.pure("l0", {}))  # an outcome costs nothing
        if separable(free):
            proofs = (PriceProofs(part, acted, None, clock) for part in each_part(free))
            cases = [proof.of(Conditional(), MOST_NODES) for proof in proofs]
        else:
            configured = causal_configurations(free, math.inf, clock, [acted])
            cases = [None if configured is None else {"tree": configured[0]["tree"]}]
        if None in cases:
            return None
        found = {"cases": cases} if len(cases) > 1 else cases[0] or {}
    else:
        assert isinstance(refusing.classifier, ReluNetwork)
        tree = no_action(replace(refusing, demands=()), acted, clock)
        if tree is None and listed:
            leaf = ["d", "0" * refusing.classifier.head.hidden, [{"g": 1.0}]]
            tree = list(_one_by_one(list(refusing.levers.values()), leaf))
        if tree is None:
            return None
        found = {"tree": tree}
    return found if fits(refusing, {"configurations": [{"acted": acted, **found}]}) else None


def _one_by_one(box: list[tuple[float, float]], leaf: list[Any]) -> Iterator[list[Any]]:
    """Nodes that split a box of whole numbers into its points, each with the same leaf."""
    wide = next((i for i, (low, high) in enumerate(box) if low < high), None)
    if wide is None:
        yield leaf
        return
    low, high = box[wide]
    yield ["s", wide, low]
    for ends in ((low, low), (low + 1, high)):
        yield from _one_by_one([*box[:wide], ends, *box[wide + 1 :]], leaf)


class _BoxProofs(PriceProofs):
    """The proofs of one configuration of trees, made like
    :class:`~milp_recourse.certificates.ensemble_proof.PriceProofs`.

    Parameters
    ----------
    root, whole
        The root of the search over refused boxes, and the problem that it searched: with conditions and all
        parts of the ensemble.
    """

    def __init__(
        self,
        root: Case,
        uncertainty: Uncertainty,
        whole: Instance,
        instance: Instance,
        acted: tuple[str, ...],
        bound: float | None,
        clock: Clock,
    ) -> None:
        super().__init__(instance, acted, bound, clock)
        assert isinstance(whole.classifier, TreeEnsemble)
        self.root, self.missed, self.forest = root, uncertainty.missed, whole.classifier
        self.idle = set(acted) - set(not_idle(whole))
        self.column, count = dict[str, int](), 0
        for feature in instance.features:
            self.column[feature.name], count = count, count + len(feature.columns)

    def prove(self, ranges: Ranges, demanded: bool, most_nodes: int) -> bool:
        """Append the nodes that prove the box of these ranges; returns whether there is a proof."""
        waiting: list[list[Any] | tuple[Case, int, Ranges]] = [(self.root, 0, ranges)]
        while waiting:
            item = waiting.pop()
            if isinstance(item, list):
                self.nodes.append(item)
                continue
            case, k, ranges = item
            if case.box is None:
                if not super().prove(ranges, demanded, most_nodes):
                    return False
            elif k == len(case.parts):
                self.nodes.append(["x", self._reached(case, ranges)])
            else:
                waiting += reversed(list(self._cut_by(case, k, ranges)))
            if len(self.nodes) > most_nodes or self.clock.over:
                return False
        return True

    def _cut_by(self, case: Case, k: int, ranges: Ranges) -> Iterator[list[Any] | tuple[Case, int, Ranges]]:
        """Cut ranges into those where an action takes way out number k, and the others."""
        way, part = case.parts[k]
        name, pieces = self._pieces(way, ranges)
        for here, (ends, taken) in enumerate(pieces):
            if here < len(pieces) - 1:
                yield ["s", self.acted.index(name), ends[1]]
            inside = {**ranges, name: ends} if name in ranges else ranges
            yield (part, 0, inside) if taken else (case, k + 1, inside)

    def _pieces(self, way: Condition, ranges: Ranges) -> tuple[str, list[Piece]]:
        """The feature that a way out is about, and the pieces that it cuts the feature's range into."""
        match way:
            case Not(acted):
                name = acted.feature  # type: ignore[union-attr]
                if name not in ranges:
                    return name, [((0.0, 0.0), True)]
                x = self.instance.factual[name]
                taken = [(x, x)] if name in self.idle else []
            case LabelIn(name, _, labels):
                taken = [(float(k), float(k)) for k in labels]
            case Sum(((name, _),), _, low, high):
                taken = [(-math.inf if low is None else low, math.inf if high is None else high)]
        if name not in ranges:
            x = self.instance.factual[name]
            return name, [((x, x), any(low <= x <= high for low, high in taken))]
        return name, self._cut_at(name, ranges[name], taken)

    def _cut_at(
        self, name: str, ends: tuple[float, float], taken: Sequence[tuple[float, float]]
    ) -> list[Piece]:
        """The pieces of a range, ascending, of which those inside some intervals take a way out."""
        whole = self.instance.by_name[name].integral
        after = (lambda v: v + 1.0) if whole else (lambda v: math.nextafter(v, math.inf))
        before = (lambda v: v - 1.0) if whole else (lambda v: math.nextafter(v, -math.inf))
        start, last = ends
        found: list[Piece] = []
        for least, most in sorted(taken):
            low, high = max(least, start), min(most, last)
            if whole:
                low, high = float(math.ceil(low)), float(math.floor(high))
            if low > high:
                continue
            if start < low:
                found.append(((start, before(low)), False))
            found.append(((low, high), True))
            start = after(high)
        return [*found, ((start, last), False)] if start <= last else found

    def _reached(self, case: Case, ranges: Ranges) -> dict[str, list[float]]:
        """The values in a case's refused box of those features that have to be missed to get there."""
        within = dict[str, list[float]]()
        assert case.box is not None
        for name in self.acted:
            if not self.missed.get(name):
                continue
            above, last = case.box.interval(self.forest, self.column[name])
            low, high = ranges[name]
            first = math.nextafter(above, math.inf)
            if self.instance.by_name[name].integral and math.isfinite(above):
                first = float(math.floor(above) + 1)
            if self.instance.by_name[name].integral and math.isfinite(last):
                last = float(math.floor(last))
            first, last = max(first, min(low, last)), min(last, max(high, first))
            if low < first or last < high:
                within[name] = [first, last]
        return within

"""Checks how much a given action can cost beyond the cheapest, under many weights at once (section 13)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from verify.fast.box import arithmetics
from verify.files.certificate import Certificate
from verify.files.instance import Source
from verify.files.shapes import anything, conform, index, not_negative, positive
from verify.kernel.certificate import check, check_action
from verify.kernel.checks import Rejected
from verify.kernel.problem import Problem
from verify.regret.cone import half_space, rays

FORMAT = "milp-recourse/regret-1"
ACTION = {str: anything}
COMPARED = {"left": ACTION, "right": ACTION, "more?": not_negative, "plus?": not_negative}
ORDERED = {"easier": str, "harder": str}
SHAPE = {
    "format": {FORMAT},
    "action": ACTION,
    "cost": not_negative,
    "most": not_negative,
    "least_weight": positive,
    "levers": [str],
    "answers": [anything],
    "cuts": [float],
    "bounds": [{"weights": {str: positive}, "certificate": anything}],
}


def check_regret(data: Any, source: Source, slow: bool) -> str:
    """Check a regret's file and return what it proves, in one line."""
    given = conform(data, SHAPE, "regret")
    if source.population:
        raise Rejected("regret: allowed: with an instance, not a population")
    own = source.preferences
    applicant, names = source.applicant(None), given["levers"]
    problem, least = applicant.problem, Fraction(given["least_weight"])
    if len(set(names)) < len(names) or set(problem.levers) - set(names) or not least < 1:
        raise Rejected(f"levers: allowed: each of {[*problem.levers]!r:.99} once; least_weight below 1")
    if not problem.levers or any(term.omega for term in problem.terms.values()):
        raise Rejected("cost: allowed: one that is linear in the weights of one lever or more")
    action = applicant.numbers(given["action"])
    check_action(problem, action, given["cost"])
    free = source.everyone.applicant(source.factuals[0], {"actionable": own["actionable"]})  # weights 1
    if wrong := set(names) - set(free.problem.levers):
        raise Rejected(f"levers: {min(wrong)[:40]!r} is none")

    def parts(shown: dict[str, Any]) -> list[Fraction]:
        if wrong := shown.keys() - set(names):
            raise Rejected(f"an action on {min(wrong)[:40]!r}; allowed: on levers")
        values = free.numbers(shown)
        return [_part(free.problem, f, values[f]) if f in values else Fraction(0) for f in names]

    halves = []
    for k, one in enumerate(given["answers"]):
        order = isinstance(one, dict) and "easier" in one
        answer = conform(one, ORDERED if order else COMPARED, f"answers.{k}")
        if order and not {*answer.values()} <= {*names}:
            raise Rejected(f"answers.{k}: allowed: levers")
        if order:
            easier, harder = answer["easier"], answer["harder"]
            halves.append(half_space([Fraction((f == easier) - (f == harder)) for f in names]))
            continue
        more, plus = 1 + Fraction(answer["more"] or 0), Fraction(answer["plus"] or 0) / len(names)
        pairs = zip(parts(answer["left"]), parts(answer["right"]), strict=True)
        halves.append(half_space([left - more * right - plus for left, right in pairs]))
    cuts = [halves[index(len(halves))(k, "cuts")] for k in given["cuts"]]
    proven = [_bound(one, f"bounds.{k}", source, names, own, slow) for k, one in enumerate(given["bounds"])]
    cost, power = parts(given["action"]), problem.power
    most = (1 + Fraction(given["most"])) ** power
    found = rays(len(names), least, cuts)
    if not found:
        raise Rejected("answers: they allow no weights")
    for weights in found:
        paid = sum(w * part for w, part in zip(weights, cost, strict=True))
        ratios = (
            (min(Fraction(v) / w for v, w in zip(weights, solved, strict=True)), b) for solved, b in proven
        )
        if paid and not any(paid <= most * ratio * bound for ratio, bound in ratios):
            raise Rejected("most: some weights that the answers allow have no bound that proves it")
    return (
        f"regret most={given['most']!r} under all weights that {len(halves)} comparisons allow, "
        f"{len(proven)} bounds"
    )


def _part(problem: Problem, name: str, value: Fraction) -> Fraction:
    """What setting a lever to a value costs at weight 1."""
    (cost, _), _ = problem.terms[name].ends(value, value)
    return cost + problem.fixed[name]


def _bound(
    given: Mapping[str, Any], where: str, source: Source, names: list[str], own: Mapping[str, Any], slow: bool
) -> tuple[list[Fraction], Fraction]:
    """The weights of a certificate in the order of the levers, and what every action costs at least."""
    weights = given["weights"]
    if weights.keys() != set(names):
        raise Rejected(f"{where}.weights: allowed: one for each of the levers")
    every = {**(own.get("weights") or {}), **weights}
    applicant = source.everyone.applicant(source.factuals[0], {**own, "weights": every})
    certificate = Certificate(given["certificate"])
    if certificate.withstood:  # a bound for certain actions only
        raise Rejected(f"{where}.certificate: withstands: allowed: claims about all feasible actions")
    if certificate.digest != applicant.digest or certificate.claim == "infeasible":
        raise Rejected(f"{where}.certificate: not of this instance with these weights, or of no cost")
    with certificate.reading.placed():
        action = applicant.numbers(certificate.action)
        check(certificate, action, applicant.problem, *([] if slow else [arithmetics]))
    bound = Fraction(certificate.lower_bound or 0) ** applicant.problem.power
    return [Fraction(weights[f]) for f in names], bound

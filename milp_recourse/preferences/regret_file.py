"""A proven regret as a file: the answers, and a certificate for each weights that it rests on.

What it says can be checked without this package: ``python -m verify REGRET INSTANCE`` (section 13 of
docs/certificate_spec_v2.md).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from milp_recourse.certificates import reason_for_none
from milp_recourse.errors import Unsupported
from milp_recourse.formats.schema_answers import RegretModel
from milp_recourse.formats.stated import document
from milp_recourse.preferences.cost_parts import cost_parts
from milp_recourse.preferences.known_optima import Optima, Optimum
from milp_recourse.preferences.learned import HalfSpace, Learned
from milp_recourse.preferences.regret import Regret, ratio_at, regret_of
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Result
from milp_recourse.questions.solve import solve


def regret_document(result: Result, regret: Regret, learned: Learned, optima: Optima) -> dict[str, Any]:
    """A ``regret-1`` document; its bound is that of the certificates, which can be a little weaker.

    Parameters
    ----------
    result
        The recommended action, with its cost under the problem's weights.
    optima
        Of the problem that the file is to be verified with.

    Raises
    ------
    Unsupported
        Nothing is proven, or there is no certificate for an optimum that the regret rests on.
    """
    instance = optima.instance
    parts = cost_parts(instance, instance.numbers(result.action or {}), optima.levers)
    bounds: dict[tuple[float, ...], tuple[Mapping[str, Any], Optimum]] = {}
    largest = Fraction(1)
    for ray, optimum in zip(regret.cone.rays, regret.rests_on, strict=True):
        if not any(parts):
            break
        if optimum is None:
            raise Unsupported("regret: nothing is proven under some weights that the answers allow")
        if optimum.weights not in bounds:
            bounds[optimum.weights] = _certified(optima.problem(optimum.weights), optimum)
        ratio = ratio_at(ray, parts, bounds[optimum.weights][1])
        if ratio is None:
            raise Unsupported("regret: a certificate proves no cost above 0")
        largest = max(largest, ratio)
    rows = learned.rows
    return document(
        RegretModel,
        result,
        action=dict(result.action or {}),
        most=regret_of(largest, instance),
        least_weight=learned.belief.least_weight,
        levers=list(optima.levers),
        answers=[_answer(half, instance) for half in learned.halves],
        cuts=[rows.index(cut) for cut in regret.cone.cuts],
        bounds=[
            {"weights": dict(zip(optima.levers, weights, strict=True)), "certificate": certificate}
            for weights, (certificate, _) in bounds.items()
        ],
    )


def _certified(problem: Instance, optimum: Optimum) -> tuple[Mapping[str, Any], Optimum]:
    """The certificate of an optimum, and the optimum with the bound that the certificate proves."""
    found = solve(problem, certificates=True)
    if found.evidence is None:
        raise Unsupported(f"regret: no certificate: {reason_for_none(problem, found)}")
    certificate = json.loads(gzip.decompress(found.evidence))
    return certificate, replace(optimum, result=replace(found, lower_bound=certificate["lower_bound"]))


def _answer(half: HalfSpace, instance: Instance) -> dict[str, Any]:
    """A half-space as the file has it."""
    left, right = half.shown
    if isinstance(left, str):
        return {"easier": left, "harder": right}
    actions = {
        side: {name: instance.by_name[name].show(value) for name, value in action.items()}
        for side, action in (("left", left), ("right", right))
    }
    return {**actions, "more": half.more, "plus": half.plus}

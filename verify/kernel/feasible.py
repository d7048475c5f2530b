"""Whether an action is feasible, in exact arithmetic (section 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from verify.kernel.box import Box
from verify.kernel.forms import Counterfactual, Form, add, constant
from verify.kernel.problem import Demand, Problem, Row
from verify.kernel.trees import accepts, float32, float64

CERTAIN = ((0, 0), (1, 1))


class Point:
    """What an action leads to. Sigmoids are enclosed; what that leaves open counts against the action."""

    def __init__(self, problem: Problem, action: Mapping[str, Fraction]) -> None:
        self.problem, self.action = problem, action
        self.moved = Counterfactual(problem, {f: constant(value) for f, value in action.items()})
        self.box = Box(self.moved)

    def why_not(self) -> str | None:
        """Why a permitted action is not feasible; None where it is."""
        moved, model, point = self.moved, self.problem.model, self.box
        missing = self.problem.missing - self.action.keys()
        seen = [None if f.name in missing else point.interval(moved.values[f.name]) for f in model.features]
        for f, ends in zip(model.features, seen, strict=True):
            if f.domain and ends and not f.domain[0] <= ends[0] <= ends[1] <= f.domain[1]:
                return f"{f.name} leaves its domain"
        if not self.meets(self.problem.demand(self.action)):
            return "a condition does not hold"
        tables = [f.table for f in model.features]
        if model.forests:
            accepted = accepts(model.forests, model.one_suffices, zip(tables, seen, strict=True), min)
        else:
            accepted = point.least(moved.logit) >= 0
        if not accepted:
            return "the classifier does not accept the counterfactual"
        if self.impossible():
            return "the counterfactual has density zero"
        energy = moved.energy
        most = sum(w * max(map(abs, point.interval(r))) ** 2 for w, r in energy.squares)
        return (
            "the counterfactual is less plausible than the factual"
            if point.interval(energy.rest)[1] + most > 0
            else None
        )

    def impossible(self) -> bool:
        """Whether a density is zero, or may be."""
        energy, point = self.moved.energy, self.box
        coins = any(point.interval(u) not in CERTAIN for u in energy.chances)
        return coins or any(point.least(form) <= 0 for form in energy.positive)

    def meets(self, demand: Demand) -> bool:
        """Whether the counterfactual surely meets a settled demand (section 11)."""
        if isinstance(demand, Row):
            return self.box.least(row_form(demand, self.moved.values)) >= 0
        return (all if demand.every else any)(map(self.meets, demand.parts))

    def deployed(self) -> bool:
        """Whether the classifier accepts as it computes: a network in its dtype, without the margin."""
        model = self.problem.model
        if model.layers is None:
            return True  # the score of trees is that already
        columns = [float64(sum(self.box.interval(form)) / 2) for form in self.moved.columns()]
        return computed(model.layers, columns, model.single) >= model.at_least


@lru_cache(1)
def impossible(problem: Problem) -> set[str]:
    """The levers that have density zero before the action: they may not even be held."""
    levers = problem.levers if problem.model.plausible else ()
    return {f for f in levers if Point(problem, {f: problem.factual[f]}).impossible()}


def row_form(row: Row, values: Mapping[str, Form]) -> Form:
    """How far a condition's sum is above what is demanded, as a form (section 11)."""
    form = constant(-row.least)
    for name, c in row.terms:
        add(form, values[name], c)
    return form


def computed(layers: Any, inputs: Sequence[float], single: bool) -> float:
    """The output in floats: every product and sum rounded, left to right, the bias last (section 4)."""
    rounded = float32 if single else float64
    values = list(map(rounded, inputs))
    for k, layer in enumerate(layers):
        if k:
            values = [0.0 if v <= 0 else v for v in values]  # what is not a number stays so
        sums = []
        for row, bias in zip(layer["weight"], layer["bias"], strict=True):
            partial = 0.0
            for w, v in zip(row, values, strict=True):
                partial = rounded(partial + rounded(w * v))
            sums.append(rounded(partial + bias))
        values = sums
    return values[0]

r"""The outcomes of an action, and the question whether one is refused, as a recourse problem.

In this problem the levers are the values of what is acted on, each within the interval in which its target
may be missed, and each uncertain noise, which becomes a root of the causal model, within its interval. The
classifier's logit or score is negated, so that to accept is to refuse. If the problem is proven infeasible,
the action is accepted in every outcome. A value is any real number of its interval. Trees see the nearest
double, so for them the ends are rounded to the nearest doubles; for networks they are rounded outward.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from milp_recourse.judge import model_inputs
from milp_recourse.problem.conditions import Switched
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.enclosure import round_down, round_up
from milp_recourse.problem.expression import Variable
from milp_recourse.problem.features import Feature
from milp_recourse.problem.forest import Combine, TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Classifier, Instance, Preferences
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.scenario import Scenario
from milp_recourse.problem.scm import StructuralCausalModel, independent
from milp_recourse.questions.robust.uncertainty import Uncertainty

Array = NDArray[np.float64]

MOST_LISTED = 512
"""Outcomes that are looked at one by one."""

_STARTS, _SWEEPS, _STEPS = 48, 6, 5  # of coordinate search: points, rounds, values per coordinate
_CLEAR = 1e-9  # by how much, relative to the threshold, the deployed negated network may fall short of it


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of an action.

    Attributes
    ----------
    action
        Feature -> target, labels by index.
    refusal
        The problem of finding an outcome that is refused; None if the action has only one outcome.
    noisy
        Feature with uncertain noise -> the feature of ``refusal`` that is added to it.
    """

    action: Mapping[str, float]
    refusal: Instance | None
    noisy: Mapping[str, str]

    def scenario(self, found: Mapping[str, float], uncertainty: Uncertainty) -> Scenario:
        """The scenario of an outcome that is given by the values of the levers of ``refusal``."""
        missed = {}
        for name, target in self.action.items():
            allowed = uncertainty.missed.get(name, 0.0)
            if allowed and name in found:
                by = float(Fraction(found[name]) - Fraction(target))
                missed[name] = min(max(by, -allowed), allowed)
        noise = {name: found[root] for name, root in self.noisy.items() if found.get(root)}
        return Scenario({n: e for n, e in missed.items() if e}, noise)

    def every(self) -> list[dict[str, float]] | None:
        """All outcomes, by the values of the levers of ``refusal``; None if they are many, or infinitely
        many."""
        problem, axes, count = self.refusal, dict[str, list[float]](), 1.0
        if problem is None:
            return [{}]
        for name, (low, high) in problem.levers.items():
            if low < high and not problem.by_name[name].integral:
                return None
            count *= high - low + 1
            if count > MOST_LISTED:
                return None
            axes[name] = np.arange(low, high + 1).tolist()
        return [dict(zip(axes, point, strict=True)) for point in product(*axes.values())]

    def least_logit(self, point: Mapping[str, float]) -> Fraction:
        """A network's logit in an outcome, in exact arithmetic; rounded down if a curve is involved."""
        problem = self.refusal
        assert problem is not None
        assert isinstance(problem.classifier, ReluNetwork)
        values = problem.scm.counterfactual_exact(problem.factual, point)
        return -problem.classifier.enclose(model_inputs(problem, values))[0].upper

    def worst(self, count: int, rng: np.random.Generator) -> list[tuple[float, dict[str, float]]]:
        """Outcomes of low logit or score, found by coordinate search in float64, the lowest first; no proof.

        Returns
        -------
        list
            At most ``count`` pairs of logit or score, and the values of the levers of ``refusal``.
        """
        problem = self.refusal
        if problem is None:
            return []
        levers = problem.levers
        low, high = (np.array(side) for side in zip(*levers.values(), strict=True))
        whole = np.array([problem.by_name[name].integral for name in levers])
        corners = rng.integers(0, 2, size=(_STARTS, len(low)))
        points = np.where(corners == 1, high, low)
        points[0], points[1] = low, high
        points[2] = np.where(whole, np.round((low + high) / 2), low + (high - low) / 2)
        depth = self._depths(points)
        for _ in range(_SWEEPS):
            before = depth.copy()
            for k in rng.permutation(len(low)):
                for share in np.linspace(0.0, 1.0, _STEPS):
                    value = low[k] + share * (high[k] - low[k])
                    tried = points.copy()
                    tried[:, k] = np.clip(np.round(value) if whole[k] else value, low[k], high[k])
                    at = self._depths(tried)
                    better = at > depth
                    points[better], depth[better] = tried[better], at[better]
            if np.all(depth <= before):
                break
        found: list[tuple[float, dict[str, float]]] = []
        seen: list[Array] = []
        for k in np.argsort(-depth, kind="stable"):
            if len(found) < count and not any(np.array_equal(points[k], other) for other in seen):
                seen.append(points[k])
                found.append((-float(depth[k]), dict(zip(levers, points[k].tolist(), strict=True))))
        return found

    def _depths(self, points: Array) -> Array:
        """The negated logits or scores at values of the levers of ``refusal``; -inf where they are nan."""
        problem = self.refusal
        assert problem is not None
        place = {f.name: k for k, f in enumerate(problem.features)}
        rows = np.full((len(points), len(problem.features)), np.nan)
        for j, name in enumerate(problem.levers):
            rows[:, place[name]] = points[:, j]
        with np.errstate(all="ignore"):
            after = problem.scm.counterfactual(problem.factual_row, rows)
            depth = problem.classifier.scores(problem.model_rows(after))
        return np.where(np.isnan(depth), -np.inf, depth)


def outcomes_of(instance: Instance, action: Mapping[str, float], uncertainty: Uncertainty) -> Outcomes:
    """The outcomes of an action under the given uncertainty."""
    scm = instance.scm
    moved = scm.descendants(set(action))
    noisy = {
        name: _unused(f"noise of {name}", scm.features)
        for name in (f.name for f in instance.features)
        if name in moved - set(action) and _differ(uncertainty.noise.get(name, (0.0, 0.0)))
    }
    levers = list(_targets(instance, action, uncertainty))
    if not noisy and not any(f.bounds and _differ(f.bounds) for f in levers):
        return Outcomes(action, None, {})
    levers += [Feature(root, actionable=True, bounds=uncertainty.noise[f]) for f, root in noisy.items()]
    return Outcomes(action, to_refuse(instance, action, levers, noisy), noisy)


def to_refuse(
    instance: Instance, action: Mapping[str, float], levers: Sequence[Feature], noisy: Mapping[str, str]
) -> Instance:
    """The problem to reach a refused counterfactual by acting on all of these levers, within their bounds.

    Domains, conditions and plausibility are no part of it. If no lever moves another feature, the action's
    values are the factual ones, so that not to act is to do what the action does.

    Parameters
    ----------
    action
        The features acted on, each with a value within its bounds.
    levers
        These features, and the noises that ``noisy`` names, as :attr:`Outcomes.noisy` does.
    """
    scm = instance.scm
    without_effects = scm.descendants(set(action)) == set(action)
    features = {
        f.name: replace(f, actionable=False, bounds=None, domain=None, monotone=None)
        for f in instance.features
    }
    features |= {f.name: f for f in levers}
    mechanisms = {
        f: replace(m, equation=m.equation + Variable(noisy[f])) if f in noisy else m
        for f, m in scm.mechanisms.items()
    }
    names = (*scm.features, *noisy.values())
    model = independent(names) if without_effects else StructuralCausalModel(names, mechanisms)
    actionable = tuple(f.name for f in features.values() if f.actionable)
    scale = {name: _size(features[name]) for name in actionable}
    classifier, accept = _refusing(instance.classifier, instance.accept, len(noisy))
    factual = dict(instance.factual) | dict.fromkeys(noisy.values(), 0.0)
    if without_effects:
        factual |= action
    return Instance(
        features=tuple(features.values()),
        scm=model,
        classifier=classifier,
        factual=factual,
        preferences=Preferences(actionable),
        cost=Cost.pure("l1", scale),
        accept=accept,
        demands=() if without_effects else tuple(Switched(name, True) for name in action),
    )


def _targets(instance: Instance, action: Mapping[str, float], uncertainty: Uncertainty) -> Iterator[Feature]:
    """The features acted on, as levers within the intervals of their outcomes."""
    outward = isinstance(instance.classifier, ReluNetwork)
    for name, target in action.items():
        by = Fraction(uncertainty.missed.get(name, 0.0))
        low, high = Fraction(target) - by, Fraction(target) + by
        ends = (round_down(low), round_up(high)) if outward else (float(low), float(high))
        yield replace(instance.by_name[name], actionable=True, bounds=ends, domain=None, monotone=None)


def _differ(ends: tuple[float, float]) -> bool:
    return ends[0] < ends[1]


def _refusing(model: Classifier, accept: Acceptance, more: int) -> tuple[Classifier, Acceptance]:
    """The classifier that accepts what this one refuses, with ``more`` further columns that it ignores."""
    if isinstance(model, ReluNetwork):
        padded = np.pad(model.weights[0], ((0, 0), (0, more)))
        weights = [padded, *model.weights[1:]]
        weights[-1], biases = -weights[-1], (*model.biases[:-1], -model.biases[-1])
        negated = replace(model, weights=tuple(weights), biases=biases, dtype="float64")
        return negated, _at_most(accept.needed)
    assert isinstance(model, TreeEnsemble)
    trees = tuple(replace(tree, value=-tree.value) for tree in model.trees)  # rounding is symmetric
    combine: Combine = "largest" if model.combine == "smallest" else "smallest"
    forest = replace(model, trees=trees, base=-model.base, inputs=model.inputs + more, combine=combine)
    return forest, Acceptance(-accept.above)


def _at_most(threshold: Fraction) -> Acceptance:
    """Acceptance of a negated logit of at least -threshold, or very slightly less.

    The deployed network may fall short of it by a little more, so that its rounding does not hide an outcome.
    """
    clear = _CLEAR * (1.0 + abs(float(threshold)))
    least = round_down(-threshold - Fraction(clear))
    while Fraction(least) + Fraction(clear) > -threshold:
        least = math.nextafter(least, -math.inf)
    return Acceptance(least, clear)


def _size(feature: Feature) -> float:
    """The cost's scale of a lever, the length of its interval. Only feasibility matters, so any would do."""
    low, high = feature.action_bounds
    return (high - low) or 1.0


def _unused(name: str, others: tuple[str, ...]) -> str:
    while name in others:
        name += "'"
    return name

r"""What an action can lead to, as a recourse problem: "how could it fail?".

Who misses the targets is somebody with levers of their own: each target within what it may be missed by, each
noise within its interval, as a root of the causal model. They look for an outcome that the classifier
*refuses*: with its logit or score negated, for one that is accepted. Proven infeasible, the action holds
whatever happens. Values of trees are doubles, so for them the ends of a target's interval are rounded inward.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from milp_recourse.domain.conditions import Switched
from milp_recourse.domain.cost import Cost
from milp_recourse.domain.enclosure import round_down, round_up
from milp_recourse.domain.expression import Variable
from milp_recourse.domain.features import Feature
from milp_recourse.domain.forest import Combine
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.domain.scenario import Scenario
from milp_recourse.domain.scm import StructuralCausalModel, independent
from milp_recourse.instance import Acceptance, Classifier, Instance, Preferences
from milp_recourse.robust.uncertainty import Uncertainty

Array = NDArray[np.float64]

_STARTS, _SWEEPS, _STEPS = 48, 6, 5
_CLEAR = 1e-9  # of the threshold's size: what the deployed check of the negated network is lenient by


@dataclass(frozen=True)
class Outcomes:
    """Everything that an action can lead to.

    Attributes
    ----------
    action
        Feature -> target, labels by index.
    refusal
        The problem of finding an outcome that is refused; None where there is nothing to be uncertain about.
    noisy
        Feature -> the root that its noise is moved by.
    """

    action: Mapping[str, float]
    refusal: Instance | None
    noisy: Mapping[str, str]

    def scenario(self, found: Mapping[str, float], uncertainty: Uncertainty) -> Scenario:
        """The scenario in which these levers of ``refusal`` are what they are."""
        missed = {}
        for name, target in self.action.items():
            allowed = uncertainty.missed.get(name, 0.0)
            if allowed and name in found:
                by = float(Fraction(found[name]) - Fraction(target))
                missed[name] = min(max(by, -allowed), allowed)
        noise = {name: found[root] for name, root in self.noisy.items() if found.get(root)}
        return Scenario({n: e for n, e in missed.items() if e}, noise)

    def worst(self, count: int, rng: np.random.Generator) -> list[tuple[float, dict[str, float]]]:
        """The lowest logits that a search in float64 finds, lowest first, each with its levers; no proof."""
        problem = self.refusal
        if problem is None:
            return []
        levers = problem.levers
        low, high = (np.array(side) for side in zip(*levers.values(), strict=True))
        whole = np.array([problem.feature(name).integral for name in levers])
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
        """The refusal problem's logits or scores, the classifier's negated, at values of its levers."""
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
    """What an action can lead to."""
    scm = instance.scm
    moved = scm.descendants(set(action))
    noisy = {
        name: _unused(f"noise of {name}", scm.features)
        for name, ends in uncertainty.noise.items()
        if name in moved and name not in action and ends[0] < ends[1]
    }
    away = [name for name in action if uncertainty.missed.get(name, 0.0) > 0]
    if not away and not noisy:
        return Outcomes(action, None, {})
    alone = moved == set(action)  # nothing but the targets moves: they can be the factual
    levers = list(_targets(instance, action, uncertainty, away if alone else list(action)))
    features = {
        f.name: replace(f, actionable=False, bounds=None, domain=None, monotone=None)
        for f in instance.features
    }
    features |= {f.name: f for f in levers}
    features |= {
        root: Feature(root, actionable=True, bounds=uncertainty.noise[name]) for name, root in noisy.items()
    }
    mechanisms = {
        f: replace(m, equation=m.equation + Variable(noisy[f])) if f in noisy else m
        for f, m in scm.mechanisms.items()
    }
    names = (*scm.features, *noisy.values())
    model = independent(names) if alone else StructuralCausalModel(names, mechanisms)
    actionable = tuple(f.name for f in features.values() if f.actionable)
    scale = {name: _size(features[name]) for name in actionable}
    classifier, accept = _refusing(instance.classifier, instance.accept, len(noisy))
    factual = dict(instance.factual) | (dict(action) if alone else {}) | dict.fromkeys(noisy.values(), 0.0)
    refusal = Instance(
        features=tuple(features.values()),
        scm=model,
        classifier=classifier,
        factual=factual,
        preferences=Preferences(actionable),
        cost=Cost.pure("l1", scale),
        accept=accept,
        demands=() if alone else tuple(Switched(name, True) for name in action),
    )
    return Outcomes(action, refusal, noisy)


def _targets(
    instance: Instance, action: Mapping[str, float], uncertainty: Uncertainty, names: list[str]
) -> Iterator[Feature]:
    """Targets as levers, the ends of a network's outward and of trees' inward."""
    outward = isinstance(instance.classifier, ReluNetwork)
    for name in names:
        feature, target = instance.feature(name), Fraction(action[name])
        by = Fraction(uncertainty.missed.get(name, 0.0))
        low, high = target - by, target + by
        ends = (round_down(low), round_up(high)) if outward else (round_up(low), round_down(high))
        yield replace(feature, actionable=True, bounds=ends, domain=None, monotone=None)


def _refusing(model: Classifier, accept: Acceptance, more: int) -> tuple[Classifier, Acceptance]:
    """The classifier that accepts what this one refuses; it does not read so many further columns."""
    if isinstance(model, ReluNetwork):
        padded = np.pad(model.weights[0], ((0, 0), (0, more)))
        weights = [padded, *model.weights[1:]]
        weights[-1], biases = -weights[-1], [*model.biases[:-1], -model.biases[-1]]
        negated = ReluNetwork.from_layers(list(zip(weights, biases, strict=True)), "float64")
        return negated, _at_most(Fraction(accept.threshold) + Fraction(accept.margin))
    trees = tuple(replace(tree, value=-tree.value) for tree in model.trees)  # rounding is symmetric
    combine: Combine = "largest" if model.combine == "smallest" else "smallest"
    forest = replace(model, trees=trees, base=-model.base, inputs=model.inputs + more, combine=combine)
    return forest, Acceptance(-accept.above)


def _at_most(threshold: Fraction) -> Acceptance:
    """That the negated logit is at least -threshold or very slightly less, deployed slightly less still."""
    clear = _CLEAR * (1.0 + abs(float(threshold)))
    least = round_down(-threshold - Fraction(clear))
    while Fraction(least) + Fraction(clear) > -threshold:
        least = math.nextafter(least, -math.inf)
    return Acceptance(least, clear)


def _size(feature: Feature) -> float:
    """The cost's scale: what of the interval it is does not matter, only whether an outcome exists."""
    assert feature.bounds is not None
    return (feature.bounds[1] - feature.bounds[0]) or 1.0


def _unused(name: str, others: tuple[str, ...]) -> str:
    while name in others:
        name += "'"
    return name

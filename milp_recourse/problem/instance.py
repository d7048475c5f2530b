"""Instances: complete, immutable statements of one applicant's problem."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, wraps
from typing import TypeVar, TypeVarTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import BadInput, dotted
from milp_recourse.problem.asked_model import AskedModel
from milp_recourse.problem.conditions import TRUE, Condition, Demand, all_of, meaning
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.enclosure import Enclosure, round_up
from milp_recourse.problem.features import Feature, input_columns, with_columns
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.lever_cost import LeverCost, exact_cost, gap_allowance, lever_costs
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import gap_tolerance
from milp_recourse.problem.scenario import Scenario
from milp_recourse.problem.scm import StructuralCausalModel

Classifier = ReluNetwork | TreeEnsemble | AskedModel

Part = TypeVar("Part")
More = TypeVarTuple("More")
Made = TypeVar("Made")


def kept_with(most: int = 1) -> Callable[[Callable[[Part, *More], Made]], Callable[[Part, *More], Made]]:
    """Keep what a function makes of a part of a problem, which applicants share, as long as the part lives.

    If the function raises, nothing is kept. What it makes must not hold the part.

    Parameters
    ----------
    most
        How many results are kept with a part, for different further arguments; before there are more, all of
        them are dropped.
    """

    def keeping(make: Callable[[Part, *More], Made]) -> Callable[[Part, *More], Made]:
        kept = WeakKeyDictionary[Part, dict[tuple[*More], Made]]()

        @wraps(make)
        def found(part: Part, *more: *More) -> Made:
            own = kept.setdefault(part, {})
            with suppress(KeyError):  # asked first, another thread could drop it before it is read
                return own[more]
            made = make(part, *more)
            if len(own) >= most:
                own.clear()
            own[more] = made
            return made

        return found

    return keeping


@dataclass(frozen=True)
class Acceptance:
    """When the classifier's answer counts as accepted.

    Networks: exactly, logit >= threshold + margin; deployed, logit >= threshold. The margin is
    part of the problem and covers what float rounding may take away. Trees: score > threshold
    (``strict``), or score >= threshold; with a margin, score >= threshold + margin. A model that is
    asked has the score 1 or 0, and ``Acceptance(0.5, strict=True)``.
    """

    threshold: float = 0.0
    margin: float = 0.0
    strict: bool = False

    @property
    def needed(self) -> Fraction:
        """What a network's logit must reach in exact arithmetic: threshold + margin."""
        return Fraction(self.threshold) + Fraction(self.margin)

    @property
    def refused(self) -> Fraction:
        """The logit below which a network refuses even if it is off by the margin: threshold - margin."""
        return Fraction(self.threshold) - Fraction(self.margin)

    @property
    def above(self) -> float:
        """The double above which trees accept a score.

        Scores are doubles, so ``score >= t`` holds exactly if the score is above the largest double below t.
        """
        if self.margin:
            return math.nextafter(round_up(self.needed), -math.inf)
        return self.threshold if self.strict else math.nextafter(self.threshold, -math.inf)


@dataclass(frozen=True)
class Preferences:
    """What one applicant can and would rather change (iCARMA paper, section 3.3).

    Parameters
    ----------
    actionable
        The features that this person can act on (the mask), in feature order; a subset of the globally
        actionable.
    weights
        w > 0 per feature; 1 where not named.
    ranges
        The applicant's own lowest and highest value, in the feature's unit.
    conditions
        Conditions of this applicant alone; all must hold, besides those of :attr:`Instance.conditions`.
    density_offset
        The applicant's own density offset in nats; None takes :attr:`Instance.density_offset`.
    """

    actionable: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    density_offset: float | None = None


@dataclass(frozen=True)
class Reference:
    """A known answer, for regression tests."""

    status: str
    cost: float | None = None
    lower_bound: float | None = None


@dataclass(frozen=True)
class Instance:
    """One applicant's recourse problem.

    Minimise ``cost`` over the actions on levers, such that the classifier accepts the counterfactual
    (:class:`Acceptance`), every feature with a domain ends inside it, all conditions hold and, if
    ``plausible``, the counterfactual is dense enough.

    Parameters
    ----------
    features, scm, classifier, accept, cost
        The model side, shared by a population. ``scm.features`` are the features' names.
    factual
        The applicant: a number per feature (labels as their index), nan where the value is missing.
    preferences
        The applicant's mask, weights and ranges.
    plausible
        Whether log p(x_cf) >= log p(x) + offset is demanded.
    conditions
        Conditions for every applicant; all must hold, and so must the applicant's own.
    density_offset
        By how much the log density must rise (below 0: by how much it may fall), in nats.
    demands
        Further demands on the counterfactual. No file has them. :func:`~milp_recourse.program.presolve.fold`
        sets what mask and domains cannot express of a case of the conditions;
        :mod:`milp_recourse.questions.robust.outcomes` sets that an action that moves other features is kept.
    scenarios
        Other ways in which the action may turn out. No file has them. A network must accept in each of them
        too; domains, conditions and plausibility are about the action as planned.

    Raises
    ------
    BadInput
        The causal model reads or moves labels or whole numbers in a way that is not allowed, see
        :func:`check_whole`; a value is missing (nan) that must be known, see :func:`check_missing`; a
        condition cannot be judged for this factual, see :func:`milp_recourse.problem.conditions.meaning`; or
        the cost is relative to a value that is 0.
    """

    features: tuple[Feature, ...]
    scm: StructuralCausalModel
    classifier: Classifier
    factual: Mapping[str, float]
    preferences: Preferences
    cost: Cost
    accept: Acceptance = Acceptance()
    plausible: bool = False
    name: str | None = None
    description: str | None = None
    reference: Reference | None = None
    conditions: tuple[Condition, ...] = ()
    demands: tuple[Demand, ...] = ()
    density_offset: float = 0.0
    scenarios: tuple[Scenario, ...] = ()

    def __post_init__(self) -> None:
        check_whole(self.features, self.scm)
        check_missing(self, self.missing)
        if self.factual:
            object.__setattr__(self, "cost", self.cost.of_applicant(self.factual))
            _ = self.demand

    @property
    def all_conditions(self) -> tuple[Condition, ...]:
        """Everybody's conditions, then the applicant's own; ``why`` calls them ``condition:0``,
        ``condition:1``, ... in this order."""
        return self.conditions + self.preferences.conditions

    @cached_property
    def demand(self) -> Demand:
        """What the conditions demand of this applicant's counterfactual: they all hold."""
        conditions = self.all_conditions
        if not conditions and not self.demands:
            return TRUE
        moving = set().union(*map(self.scm.descendants, ({name} for name in self.levers)))
        given = self.by_name, self.factual
        fixed = self.by_name.keys() - moving
        demands = [meaning(one, *given, f"condition {k}", fixed) for k, one in enumerate(conditions)]
        return all_of([*demands, *self.demands])

    @property
    def conditional(self) -> bool:
        """Whether there are conditions that demand something."""
        return bool(self.all_conditions) and self.demand != TRUE

    @cached_property
    def missing(self) -> frozenset[str]:
        """The features whose factual value is missing."""
        return frozenset(name for name, value in self.factual.items() if math.isnan(value))

    def by_amount(self, name: str) -> bool:
        """Whether a change of a feature has an amount: its values are no labels, and its own is known."""
        return self.by_name[name].kind != "categorical" and name not in self.missing

    def __repr__(self) -> str:
        """Name, number of features, levers, classifier, cost and number of conditions."""
        named = "" if self.name is None else f"{self.name!r}, "
        return (
            f"Instance({named}{len(self.features)} features, levers: {', '.join(self.levers) or 'none'}, "
            f"{self.classifier!r}, cost: {self.cost.kind}{', plausible' if self.plausible else ''}"
            f"{f', {len(self.all_conditions)} conditions' if self.all_conditions else ''})"
        )

    @cached_property
    def by_name(self) -> dict[str, Feature]:
        """The features by their names."""
        return {f.name: f for f in self.features}

    def numbers(self, action: Mapping[str, float | int | str]) -> dict[str, float]:
        """An action as results show it, each label replaced by its index."""
        return {name: self.by_name[name].number(value) for name, value in action.items()}

    def weight(self, name: str) -> float:
        """w of a feature; 1 unless the applicant said otherwise."""
        return self.preferences.weights.get(name, 1.0)

    @property
    def weights(self) -> dict[str, float]:
        """w of every individually actionable feature."""
        return {name: self.weight(name) for name in self.preferences.actionable}

    def squared(self) -> Instance:
        """The problem with cost l2-squared where the cost is l2, else the instance itself.

        Both costs have the same optimal actions; searches and proofs know only l2-squared.
        """
        return replace(self, cost=self.cost.squared()) if self.cost.is_root else self

    @property
    def offset(self) -> float:
        """By how much this applicant's log density must rise, in nats; 0 where plausibility is not asked."""
        if not self.plausible:
            return 0.0
        own = self.preferences.density_offset
        return self.density_offset if own is None else own

    def allowed(self, name: str) -> tuple[float, float] | None:
        """Lowest and highest value that an action on the feature may set; None if it may set none.

        The intersection of bounds, the applicant's range, domain and monotonicity (of a value that is
        not missing), both cut to the feature's :attr:`~milp_recourse.problem.features.Feature.lattice`.
        """
        f = self.by_name[name]
        low, high = f.action_bounds
        for interval in (self.preferences.ranges.get(name), f.domain):
            if interval is not None:
                low, high = max(low, interval[0]), min(high, interval[1])
        monotone = None if name in self.missing else f.monotone
        if monotone == "increase":
            low = max(low, self.factual[name])
        elif monotone == "decrease":
            high = min(high, self.factual[name])
        if f.lattice is not None:
            low, high = f.lattice.ceil(low), f.lattice.floor(high)
        return (low, high) if low <= high else None

    @cached_property
    def levers(self) -> dict[str, tuple[float, float]]:
        """The features the applicant can act on, with the values an action may take."""
        intervals = {name: self.allowed(name) for name in self.preferences.actionable}
        return {name: interval for name, interval in intervals.items() if interval is not None}

    @property
    def stepped(self) -> bool:
        """Whether actions set only steps, or listed values, of some lever."""
        return any(self.by_name[name].only is not None for name in self.levers)

    def may_set(self, name: str, value: float) -> bool:
        """Whether an action on the lever may set a value; a missing one (nan) it may not."""
        (low, high), lattice = self.levers[name], self.by_name[name].lattice
        return low <= value <= high and (lattice is None or value in lattice)

    def may_hold(self, name: str) -> bool:
        """Whether an action on the lever may set its factual value itself.

        It may not where that is missing, outside what is allowed, or no value of the feature's lattice.
        """
        return self.may_set(name, self.factual[name])

    @cached_property
    def lever_costs(self) -> dict[str, LeverCost]:
        """What changing each individually actionable feature costs the applicant."""
        own = self.preferences
        labels = {name: self.by_name[name].kind == "categorical" for name in own.actionable}
        return lever_costs(self.cost, labels, self.factual, own.weights)

    @cached_property
    def jump(self) -> str | None:
        """A lever whose cost jumps, so that no lines are below it; None if none does."""
        return next((name for name in self.levers if self.lever_costs[name].jumps), None)

    @property
    def leaves_open(self) -> bool:
        """Whether a change can be free: under l0 and linf, or where the distribution function Q is flat."""
        return any(self.lever_costs[name].flat for name in self.levers)

    def cost_of(self, action: Mapping[str, float]) -> Fraction:
        """The exact cost of an action on individually actionable features; a root is rounded up."""
        moves = ((self.lever_costs[name], value) for name, value in action.items())
        return exact_cost(moves, self.cost.is_root)

    def least_cost(self, box: Mapping[str, tuple[float, float]]) -> Fraction:
        """The cost of acting on the box's features, each as near to its factual value as the box allows."""
        return self.cost_of({name: self._nearest(name, low, high) for name, (low, high) in box.items()})

    def _nearest(self, name: str, low: float, high: float) -> float:
        """The value from low to high that is cheapest to set."""
        if name in self.missing:
            return low
        x, lattice = self.factual[name], self.by_name[name].lattice
        if lattice is not None and low < x < high and x not in lattice:
            return min(lattice.floor(x), lattice.ceil(x), key=self.lever_costs[name].size)
        return min(max(x, low), high)

    @cached_property
    def gap_allowance(self) -> float:
        """The cost of moving every lever by 1e-12 of its interval
        (:func:`milp_recourse.problem.lever_cost.gap_allowance`).

        A lever whose value is missing adds nothing: whatever it is set to costs the same.
        """
        moving = ((name, ends) for name, ends in self.levers.items() if name not in self.missing)
        return gap_allowance(((self.lever_costs[name], *ends) for name, ends in moving), self.cost.is_root)

    def gap_tolerance(self, cost: float) -> float:
        """The gap up to which a cost is optimal; see :func:`milp_recourse.problem.result.gap_tolerance`."""
        return gap_tolerance(cost, self.gap_allowance)

    def target_below(self, cost: float) -> float:
        """A lower bound that proves an action of this cost optimal, with half the allowed gap to spare."""
        return cost - 0.5 * self.gap_tolerance(cost)

    @property
    def factual_row(self) -> NDArray[np.float64]:
        """The factual as an array in feature order, shape (d,)."""
        return np.array([self.factual[f.name] for f in self.features])

    @property
    def exact_factual(self) -> dict[str, Enclosure]:
        """The factual's numbers exactly; missing values must not be asked for. Made anew once they differ."""
        kept: tuple[dict[str, float], dict[str, Enclosure]] | None = self.__dict__.get("_exact_factual")
        if kept is None or kept[0] != self.factual:
            numbers = {name: Enclosure.of(x) for name, x in self.factual.items() if not math.isnan(x)}
            kept = self.__dict__["_exact_factual"] = dict(self.factual), numbers
        return kept[1]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The classifier's input columns."""
        return input_columns(self.features)

    def model_rows(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Feature rows (..., d) as classifier input (..., columns).

        A label becomes the numbers that :attr:`Feature.lookup` has for it, if the classifier reads it by
        label. A missing value is nan in every column of its feature.
        """
        x = np.asarray(x, dtype=np.float64)
        if not any(f.by_label for f in self.features):
            return x
        parts = []
        for k, f in enumerate(self.features):
            value, lookup = x[..., k : k + 1], f.lookup if f.by_label else None
            if lookup is None:
                parts.append(value)
            else:
                known = (value >= 0) & (value < len(lookup)) & (value == np.floor(value))
                numbers = lookup[np.where(known, value, 0)[..., 0].astype(np.int64)]
                parts.append(np.where(np.isnan(value), np.nan, np.where(known, numbers, 0.0)))
        return np.concatenate(parts, axis=-1)


def under(instance: Instance, positions: Collection[int] | None) -> Instance:
    """The problem with some of its conditions alone (None: with all of them)."""
    conditions = instance.all_conditions
    if positions is None or len(positions) == len(conditions):
        return instance
    kept = tuple(conditions[k] for k in sorted(positions))
    own = replace(instance.preferences, conditions=())
    return replace(instance, conditions=kept, preferences=own, reference=None)


def demanding(instance: Instance, conditions: Sequence[Condition]) -> Instance:
    """The problem with further conditions added to the applicant's own; its reference is dropped."""
    if not conditions:
        return instance
    own = replace(instance.preferences, conditions=(*instance.preferences.conditions, *conditions))
    return replace(instance, preferences=own, reference=None)


def check_density(scm: StructuralCausalModel) -> None:
    """Check that the causal model has a density, without which plausibility cannot be demanded.

    Raises
    ------
    BadInput
        It states no noise for some feature.
    """
    silent = next((f for f, m in scm.mechanisms.items() if m.noise is None), None)
    if not scm.has_density and silent is not None:
        allowed = f"a causal model with noise for every feature: scm {scm.name} states none for {silent}"
        raise BadInput("plausibility", "scm-density", allowed)


def check_whole(features: Sequence[Feature], scm: StructuralCausalModel) -> None:
    """Check which features with labels or whole numbers the causal model reads and moves.

    The index of a label without an order means nothing, so no equation may read it. A label with an order may
    be a cause, by its index. No label is an effect, and no action on one feature moves another that is a
    whole number.

    Raises
    ------
    BadInput
        An equation reads a label without an order, or computes a label (also if nobody can act on its
        causes), or would change a whole number when somebody acts on another feature.
    """
    by_name = {f.name: f for f in features}
    for source, effect in scm.edges:
        path = f"scm.mechanisms.{effect}.equation"
        if by_name[source].kind == "categorical":
            raise BadInput(path, source, "no categorical feature as a cause")
        if by_name[effect].labelled:
            raise BadInput(path, f"a cause, {source}", f"none: {effect} is {by_name[effect].kind}")
    for k, f in enumerate(features):
        if f.integral and scm.parents(f.name):
            causes = (g.name for g in features if g.actionable and g is not f)
            cause = next((name for name in causes if f.name in scm.descendants({name})), None)
            if cause is not None:
                raise BadInput(
                    f"features.{k}.kind",
                    f.kind,
                    f"continuous, if fractions are meant: scm moves {f.name} when somebody acts on {cause}",
                )


def check_missing(instance: Instance, missing: Collection[str], path: str = "factual") -> None:
    """Check that only trees that have a rule for missing values read the features without a value.

    Parameters
    ----------
    instance
        The model side; its own factual does not matter.
    missing
        The features of the applicant at ``path`` that have no value.

    Raises
    ------
    BadInput
        The classifier is a network, or splits on the feature without a rule for missing values; or the causal
        model has equations, or plausibility is asked for.
    """
    for f, columns in with_columns(instance.features) if missing else ():
        reason = _why_not_missing(instance, columns) if f.name in missing else None
        if reason is not None:
            raise BadInput(dotted(path, f.name), "null", f"a value: {reason}")


def _why_not_missing(instance: Instance, columns: range) -> str | None:
    forest = instance.classifier
    if isinstance(forest, ReluNetwork):
        return "a network has no rule for missing values"
    if isinstance(forest, TreeEnsemble) and not forest.without_rule.isdisjoint(columns):
        return "a tree splits on it without missing_left, a rule for missing values"
    if instance.scm.edges:
        return "values are only left out where scm is independent"
    if instance.plausible:
        return "plausibility needs every value"
    return None


def check_abduction(problem: Instance, x: Mapping[str, float], path: str = "factual") -> None:
    """Check that values of features with a sigmoid link lie inside the link's range.

    Only features whose noise is needed are checked: an action can move one of their causes, or the density is
    asked for.

    Raises
    ------
    BadInput
        A value lies outside the range, so that no noise explains it.
    """
    scm = problem.scm
    bounded = {f: m.link for f, m in scm.mechanisms.items() if m.link.kind == "sigmoid"}
    if not bounded:
        return
    moved = scm.descendants({f.name for f in problem.features if f.actionable})
    for name, link in bounded.items():
        if scm.parents(name) & moved or (problem.plausible and name in moved):
            low, high = sorted((link.offset, link.offset + link.scale))
            if not low < x[name] < high:
                raise BadInput(dotted(path, name), x[name], f"a number strictly between {low} and {high}")


def check_person(problem: Instance, x: Mapping[str, float], path: str = "factual") -> None:
    """Check one applicant's numbers against the model: :func:`check_missing` and :func:`check_abduction`.

    Parameters
    ----------
    problem
        The model side; its own factual does not matter.
    """
    check_missing(problem, {name for name, value in x.items() if math.isnan(value)}, path)
    check_abduction(problem, x, path)

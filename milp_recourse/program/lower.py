"""Lowering an instance to the neutral program.

Under additive noise the counterfactual of a feature i that is not acted on is :math:`x'_i = x_i +
f_i(x'_{pa}) - f_i(x_{pa})`, since the abducted noise cancels. Equations of sums, products, ReLUs and squares
become forms and atoms exactly; the four Loan actions give affine forms and one ReLU.

Applicants whose programs differ in numbers only are lowered once, by the same functions: their Fractions
become :class:`~milp_recourse.program.forms.Rationals`. The structure of a program can depend on numbers: a
factual outside its bounds may not be held, a factual can be the coefficient of a product, and categories give
different atoms. Applicants who differ in that are separated and lowered again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import Unsupported
from milp_recourse.problem.conditions import TRUE, Demand, Factor, factors, unlabelled
from milp_recourse.problem.conditions import Row as ConditionRow
from milp_recourse.problem.derived_networks import CurvedNetwork, smallest_logit
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.noise import Bernoulli, Gamma, Noise, Normal
from milp_recourse.problem.scenario import Scenario
from milp_recourse.problem.scm import Link, Mechanism
from milp_recourse.program.demands import Span, reachable_demand, spans
from milp_recourse.program.forms import Action, Affine, Builder, Mixed, Switch, everyone
from milp_recourse.program.functions import EDGE, Function
from milp_recourse.program.neutral_program import Ball, CostTerm, Program, Row

T = TypeVar("T")

_FEW = 4
"""With fewer people per group on average, lowering together is not tried again."""


def lower(instance: Instance, costs: bool = True) -> Program:
    """The neutral program of an instance.

    Parameters
    ----------
    costs
        Whether it has cost terms; a caller that has costs of its own saves their time.

    Raises
    ------
    Unsupported
        Plausibility is asked of a mechanism that states no noise or of a factual with density zero, or
        :func:`check_edges` refuses.
    """
    check_edges(instance)
    return _lower(instance, instance.factual, instance.levers, instance.offset, costs)


def lower_together(instances: Sequence[Instance]) -> Program:
    """One program, without cost terms, of several applicants of one model with the same levers.

    Its numbers are arrays, or :class:`Rationals`, with one entry per applicant; with an applicant's entries
    it is the applicant's own program.

    Raises
    ------
    Mixed
        Their programs differ in more than constants, bounds and weights.
    """
    first = instances[0]
    if _has_edges(first) or first.scenarios:
        raise everyone(len(instances))
    table = np.array([[i.factual[f] for f in first.scm.features] for i in instances])
    limits = np.array([list(i.levers.values()) for i in instances])
    levers = {f: (limits[:, k, 0], limits[:, k, 1]) for k, f in enumerate(first.levers)}
    offsets = np.array([i.offset for i in instances])
    return _lower(first, dict(zip(first.scm.features, table.T, strict=True)), levers, offsets, False)


def together(
    instances: Sequence[Instance], make: Callable[[list[Instance], Program], T]
) -> Iterator[tuple[list[int], T]]:
    """Apply a function to every applicant's program, once for all who share the program.

    Parameters
    ----------
    make
        The function of applicants and their common program, which has no cost terms. If it raises
        :class:`Mixed`, the applicants are separated and lowered again.

    Yields
    ------
    tuple
        Positions of applicants in ``instances``, and the function's value for them.
    """
    waiting = of_one_model(instances)
    while waiting:
        people = waiting.pop(0)
        members = [instances[person] for person in people]
        try:
            program = lower(members[0], costs=False) if len(members) == 1 else lower_together(members)
            value = make(members, program)
        except Mixed as mixed:
            waiting[:0] = _parts(people, mixed.labels)
        else:
            yield people, value


def of_one_model(instances: Sequence[Instance]) -> list[list[int]]:
    """Group the positions of instances with one model, levers, threshold and plausibility.

    Factuals, weights, allowed values, margins and density offsets may differ within a group.

    Models are compared by identity: a population's applicants share their objects. An instance with
    conditions or scenarios is a group of its own, because its demands contain numbers of its factual.
    """
    groups: dict[object, list[int]] = {}
    for k, one in enumerate(instances):
        shared = (one.features, one.scm, one.classifier, one.cost)
        own_group = None if one.demand == TRUE and not one.scenarios else k
        rule = one.accept.threshold, one.accept.strict, one.plausible
        key = (*map(id, shared), *rule, tuple(one.levers), own_group)
        groups.setdefault(key, []).append(k)
    return list(groups.values())


def _parts(people: list[int], labels: NDArray[Any]) -> list[list[int]]:
    """Groups of people with equal labels; groups of one if the groups would be small."""
    parts: dict[Any, list[int]] = {}
    for person, label in zip(people, labels.tolist(), strict=True):
        parts.setdefault(label, []).append(person)
    if len(parts) * _FEW > len(people):
        return [[person] for person in people]
    return list(parts.values())


def _lower(
    instance: Instance,
    numbers: Mapping[str, Any],
    levers: Mapping[str, tuple[Any, Any]],
    offset: Any,
    costs: bool,
) -> Program:
    """The program of one or several applicants.

    Parameters
    ----------
    instance
        Any one of them, for what they have in common.
    numbers, levers, offset
        Factual values, ends of levers and density offset: doubles for one applicant, arrays with one entry
        per applicant for several.
    """
    build = Builder()
    scm = instance.scm
    factual = {f: Affine.of(numbers[f]) for f in scm.features}
    values: dict[str, Affine] = {}
    natural: dict[str, Affine] = {}
    terms, energies = [], []
    for f in scm.order:
        mechanism = scm.mechanisms[f]
        natural[f] = _natural(build, mechanism, factual[f], values, factual, f)
        if f not in levers:
            values[f] = natural[f]
        else:
            low, high = levers[f]
            feature = instance.by_name[f]
            action = build.add(Action(f, low, high, feature.integral, lattice=feature.lattice))
            values[f] = build.add(Switch(f, acted=action, natural=natural[f]))
            if costs:
                terms.append(_cost_term(build, instance, f, action))
        if instance.plausible:
            energies += _energy(build, instance, f, values, natural[f], factual)
    columns, names, classifier = _columns(build, instance, values), instance.columns, instance.classifier
    if isinstance(classifier, CurvedNetwork):
        classifier = classifier.head
        names = tuple(f"unit {k}" for k in range(1, 1 + len(columns)))
    own = names
    if instance.scenarios:
        assert isinstance(classifier, ReluNetwork)
        for k, scenario in enumerate(instance.scenarios, 1):
            columns += _columns(build, instance, _in_scenario(build, instance, scenario, factual, values))
            names += tuple(f"{name} in scenario {k}" for name in own)
        classifier = smallest_logit(classifier, 1 + len(instance.scenarios))
    rows = tuple(
        Row(f"domain_{f.name}", values[f.name], *f.domain) for f in instance.features if f.domain is not None
    )
    demand: Demand = TRUE
    followed, known = dict[Factor, Affine](), dict[ConditionRow, Span]()
    if instance.demand != TRUE:  # such an applicant is never lowered together with others
        plain, reach = unlabelled(instance.demand), reachable(instance)
        known = spans(plain, reach)
        demand = reachable_demand(plain, known)
        named = {of: [values[f] for f in factors(of)] for row in known for of, _ in row.terms}
        followed = {of: forms[0] if len(forms) == 1 else build.product(*forms) for of, forms in named.items()}
    program = Program(
        atoms=tuple(build.atoms),
        columns=tuple(columns),
        column_names=names,
        classifier=classifier,
        accept=instance.accept,
        rows=rows,
        ball=_ball(energies, offset) if instance.plausible else None,
        cost_terms=tuple(terms),
        free=not any(instance.lever_costs[f].prices.fixed for f in levers),
        factual={f: numbers[f] for f in levers},
        followed=followed,
        spans=known,
    )
    return program if demand == TRUE else program.demanding(demand)


def _columns(build: Builder, instance: Instance, values: Mapping[str, Affine]) -> list[Affine]:
    """The classifier's input columns as forms, given the forms of the features' values; of one with curves
    what enters the layers after these."""
    columns: list[Affine] = []
    for feature in instance.features:
        value, lookup = values[feature.name], feature.lookup if feature.by_label else None
        if lookup is None:
            columns.append(value)
            continue
        labels = [build.elementary("indicator", value, k) for k in range(len(lookup))]
        for numbers in np.ascontiguousarray(lookup.T):
            at = np.flatnonzero(numbers)
            terms = (labels[k].scaled(Fraction(c)) for k, c in zip(at, numbers[at].tolist(), strict=True))
            columns.append(sum(terms, Affine()))
    if isinstance(instance.classifier, CurvedNetwork):
        return _bent(build, instance.classifier, columns)
    return columns


def _bent(build: Builder, network: CurvedNetwork, columns: list[Affine]) -> list[Affine]:
    for layer, bends in network.front:
        columns = build.affine(layer.weights[0], layer.biases[0], columns)
        names = bends or ("relu",) * len(columns)
        columns = [
            z if name == "identity" else build.elementary(cast(Function, name), z)
            for z, name in zip(columns, names, strict=True)
        ]
    return columns


def _in_scenario(
    build: Builder,
    instance: Instance,
    scenario: Scenario,
    factual: dict[str, Affine],
    planned: Mapping[str, Affine],
) -> dict[str, Affine]:
    """The counterfactual in a scenario; features that it leaves as planned keep their forms."""
    scm, values = instance.scm, dict[str, Affine]()
    actions = {atom.feature: k for k, atom in enumerate(build.atoms) if isinstance(atom, Action)}
    for f in scm.order:
        missed, noise = scenario.missed.get(f, 0.0), scenario.noise.get(f, 0.0)
        upstream = [g for g in actions if g != f and f in scm.descendants({g})]
        as_planned = all(values[p] == planned[p] for p in scm.parents(f))
        if as_planned and not (missed and f in actions) and not (noise and upstream):
            values[f] = planned[f]
            continue
        more = Affine()
        for g in upstream if noise else ():  # the noise differs if any of them is acted on
            more = build.add(Switch(g, acted=Affine.of(noise), natural=more))
        natural = _natural(build, scm.mechanisms[f], factual[f], values, factual, f, more)
        if f in actions:
            acted = Affine.atom(actions[f]) + Affine.of(missed)
            natural = build.add(Switch(f, acted=acted, natural=natural))
        values[f] = natural
    return values


def _natural(
    build: Builder,
    mechanism: Mechanism,
    x: Affine,
    values: dict[str, Affine],
    factual: dict[str, Affine],
    name: str,
    more: Affine = Affine(),  # noqa: B008  # a value
) -> Affine:
    """The counterfactual value if the feature is not acted on and its noise is the abducted plus ``more``."""
    if all(values[p] == factual[p] for p in mechanism.equation.parents) and more == Affine():
        return x  # the equation cancels and needs no atoms
    shift = build.lower(mechanism.equation, values | {name: x}) - build.lower(mechanism.equation, factual)
    shift = shift + more
    if shift.is_constant and shift.constant == 0:
        return x
    if mechanism.link.kind == "identity":
        return x + shift
    return _linked(build, build.elementary("logit", _share(x, mechanism.link)) + shift, mechanism.link)


def _share(x: Affine, link: Link) -> Affine:
    """(x - offset) / scale: the value of the sigmoid in a link."""
    return (x - Affine.of(link.offset)).scaled(1 / Fraction(link.scale))


def _linked(build: Builder, z: Affine, link: Link) -> Affine:
    return Affine.of(link.offset) + build.elementary("sigmoid", z).scaled(link.scale)


def _cost_term(build: Builder, instance: Instance, name: str, action: Affine) -> CostTerm:
    """The term of a feature. A change is in the feature's unit where its size is in proportion to it, else in
    that of sizes."""
    cost = instance.lever_costs[name]
    if cost.label:
        delta = Affine.of(1) - build.elementary("indicator", action, int(cost.factual))
        return CostTerm(name, delta, 1 / cost.pieces[0].start, cost.prices, cost.length)
    first, *others = cost.within(*instance.levers[name])
    unit = 1 / first.rate if cost.even else Fraction(1)
    # falls are negative, so that the slope is a piece's rate on both sides
    delta = Affine.of(-first.start) + (action - Affine.of(first.near)).scaled(first.rate * unit)
    before = first.rate
    for piece in others:
        if piece.rate != before:
            bend = build.elementary("relu", action - Affine.of(piece.low))
            delta, before = delta + bend.scaled((piece.rate - before) * unit), piece.rate
    return CostTerm(name, delta, unit, cost.prices, cost.length)


def _farthest_logit(instance: Instance, name: str, ranges: dict[str, Enclosure]) -> float:
    """An upper bound, by interval arithmetic, on abs(logit((value - offset) / scale)) of a feature with a
    sigmoid link that is not acted on."""
    m = instance.scm.mechanisms[name]
    factual = {f: Enclosure.of(instance.factual[f]) for f in instance.scm.features}
    share = (factual[name] - Enclosure.of(m.link.offset)) / m.link.scale
    z = share.logit() + m.equation.enclose(ranges) - m.equation.enclose(factual)
    return float(max(abs(z.lower), abs(z.upper)))


def reachable(*instances: Instance) -> dict[str, Enclosure]:
    """An interval per feature that contains its value under every action of any of the applicants.

    The applicants must be of one model and have the same levers. A missing value counts as 0.
    """
    scm, single = instances[0].scm, len(instances) == 1
    factual = {f: _hull(0.0 if f in i.missing else i.factual[f] for i in instances) for f in scm.features}
    ranges: dict[str, Enclosure] = {}
    moved: set[str] = set()
    for f in scm.order:
        m, reach = scm.mechanisms[f], factual[f]
        if scm.parents(f) & moved:
            if m.link.kind == "identity":
                reach = reach + m.equation.enclose(ranges) - m.equation.enclose(factual)
            else:
                ends = Fraction(m.link.offset), Fraction(m.link.offset) + Fraction(m.link.scale)
                reach = Enclosure(min(ends), max(ends))
            moved.add(f)
        if f in instances[0].levers:
            allowed = _hull(end for i in instances for end in i.levers[f])
            reach = Enclosure(min(reach.lower, allowed.lower), max(reach.upper, allowed.upper))
            moved.add(f)
        if single and reach == factual[f]:
            moved.discard(f)
        ranges[f] = reach
    return ranges


def _hull(values: Iterable[float]) -> Enclosure:
    known = list(values)
    return Enclosure(Fraction(min(known)), Fraction(max(known)))


Energy = tuple[tuple[Fraction, Affine] | None, Affine]
"""A part of an energy: weight and form of a square, or None; and an affine form."""


def check_edges(instance: Instance) -> None:
    r"""Check that under plausible actions arguments of log and logit stay :data:`EDGE` inside their domain.

    Towards the end of its support the energy of a feature grows without bound: a gamma's by
    :math:`-(k-1) \log u`, a sigmoid-linked normal's by :math:`(|logit| - |f|)^2 / 2 sd^2 - |logit|`, which
    is nowhere below :math:`-|f| - sd^2 / 2`. If one feature's energy at the edge already exceeds what
    plausibility allows in total, no plausible action lies beyond the edge.

    Raises
    ------
    Unsupported
        The energy at the edge does not exceed that; the message names the feature.
    """
    if not _has_edges(instance):
        return
    scm = instance.scm
    reach = -math.log(EDGE)
    ranges = reachable(instance)
    noise = dict(zip(scm.features, scm.abduct(instance.factual_row), strict=True))
    budget = max(-instance.offset, 0.0)
    edges: dict[str, float] = {}
    falls: dict[str, float] = {}  # by how much the energy of a feature with a link can fall
    for f in scm.features:
        m, u = scm.mechanisms[f], float(noise[f])
        acted = f in instance.levers
        farthest = 0.0
        if m.link.kind == "sigmoid" and any(
            ranges[p] != Enclosure.of(instance.factual[p]) for p in scm.parents(f)
        ):
            farthest = _farthest_logit(instance, f, ranges)
            falls[f] = (reach if acted else farthest) + 2.0
            if farthest > reach - 0.1:
                raise Unsupported(
                    f"plausibility: what is upstream of {f!r} can push it to the end of its support, "
                    "where the program has no proven bounds"
                )
        if isinstance(m.noise, Bernoulli) and acted and 0 < m.noise.p < 1:
            budget += abs(math.log(m.noise.p / (1 - m.noise.p)))
        if isinstance(m.noise, Normal) and acted:
            budget += u**2 / (2 * m.noise.sd**2) if math.isfinite(u) else 0.0
            if m.link.kind == "sigmoid":
                equation = m.equation.enclose(ranges)
                drift = float(max(abs(equation.lower), abs(equation.upper)))
                falls[f] = max(farthest, drift + m.noise.sd**2 / 2) + 2.0
                edges[f] = (reach - drift) ** 2 / (2 * m.noise.sd**2) - reach if reach > drift else 0.0
        elif isinstance(m.noise, Gamma) and acted:
            k, theta = m.noise.shape, m.noise.scale
            mode = max(k - 1, 0.0) * theta
            least = mode / theta - (k - 1) * math.log(mode) if mode > 0 else 0.0
            budget += max(u / theta - (k - 1) * math.log(max(u, EDGE)) - least, 0.0)
            edges[f] = (k - 1) * reach - least
    for f, energy in edges.items():
        if energy <= budget + sum(fall for name, fall in falls.items() if name != f) + 10.0:
            raise Unsupported(
                f"plausibility: acting on {f!r} can approach the end of its support, "
                "where the program has no proven bounds"
            )


def _has_edges(instance: Instance) -> bool:
    """Whether plausibility is asked and an action can move a feature with a sigmoid link, or with gamma or
    Bernoulli noise, whose support has an end."""
    if not instance.plausible:
        return False
    scm = instance.scm
    curved = (scm.mechanisms[f] for f in scm.descendants(set(instance.levers)))
    return any(m.link.kind == "sigmoid" or isinstance(m.noise, Gamma | Bernoulli) for m in curved)


def _energy(
    build: Builder,
    instance: Instance,
    name: str,
    values: dict[str, Affine],
    natural: Affine,
    factual: dict[str, Affine],
) -> list[Energy]:
    """The energy of one feature less its factual energy, in parts (:data:`Energy`).

    See :mod:`milp_recourse.problem.scm`. Features that cannot move have no parts.
    """
    m, x, value = instance.scm.mechanisms[name], factual[name], values[name]
    acted = name in instance.levers
    if value == x or (not acted and m.link.kind == "identity"):
        return []
    result: list[Energy] = []
    if m.link.kind == "sigmoid":
        for before, after in (
            (_share(x, m.link), _share(value, m.link)),
            (Affine.of(1) - _share(x, m.link), Affine.of(1) - _share(value, m.link)),
        ):
            result.append((None, build.elementary("log", after) - build.elementary("log", before)))
    if not acted:
        return result
    before = build.lower(m.equation, factual)
    if m.link.kind == "identity":
        u = x - before
        residual = u + value - natural  # u where not acted, a - f(x'_pa) where acted
    else:
        u = build.elementary("logit", _share(x, m.link)) - before
        moved = build.elementary("logit", _share(value, m.link)) - build.lower(m.equation, values)
        residual = build.add(Switch(name, acted=moved, natural=u))
    noise = m.noise
    if u.is_constant and _impossible(noise, u.constant):
        raise Unsupported(f"plausibility: {name!r} has density zero before the action: there is no ratio")
    if isinstance(noise, Normal):
        weight = 1 / (2 * Fraction(noise.sd) ** 2)
        rest = (
            Affine.of(u.constant * u.constant * -weight)
            if u.is_constant
            else build.elementary("square", u).scaled(-weight)
        )
        result.append(((weight, residual), rest))
    elif isinstance(noise, Gamma):
        shape = Fraction(noise.shape) - 1
        logs = build.elementary("log", residual) - build.elementary("log", u)
        result.append((None, (residual - u).scaled(1 / Fraction(noise.scale)) - logs.scaled(shape)))
    elif isinstance(noise, Bernoulli):
        p = Fraction(noise.p)
        if p != Fraction(1, 2):
            chance = [r.scaled(2 * p - 1) + Affine.of(1 - p) for r in (residual, u)]
            result.append((None, build.elementary("log", chance[1]) - build.elementary("log", chance[0])))
    else:
        stated = "mixture noise, and can be acted on" if noise else "no noise"
        raise Unsupported(f"plausibility: the mechanism of {name!r} states {stated}")
    return result


def _impossible(noise: Noise | None, u: Fraction) -> bool:
    """Whether a noise surely has density zero at u."""
    if isinstance(noise, Bernoulli):
        return 1 - Fraction(noise.p) + (2 * Fraction(noise.p) - 1) * u <= 0
    return isinstance(noise, Gamma) and u <= 0


def _ball(energies: list[Energy], offset: Any) -> Ball:
    squares = tuple(square for square, _ in energies if square is not None)
    return Ball(squares, sum((rest for _, rest in energies), Affine.of(offset)))

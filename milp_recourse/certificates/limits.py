"""What a certificate has to cover, and may not exceed: the sets of levers that need a tree each (section 5 of
the document), and what a checker may refuse by its size alone (section 9), told before a proof begins."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

from milp_recourse.engine.forests.axes import separable
from milp_recourse.problem.asked_model import AskedModel
from milp_recourse.problem.conditions import TRUE, Demand, Row, factors, leaves, unlabelled
from milp_recourse.problem.derived_networks import smallest_logit
from milp_recourse.problem.expression import (
    Constant,
    Expression,
    NetworkOutput,
    Product,
    Relu,
    Sigmoid,
    Square,
    Variable,
)
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Classifier, Instance, kept_with
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.noise import Bernoulli, Gamma
from milp_recourse.problem.scm import StructuralCausalModel
from milp_recourse.program.demands import limited, told_apart
from milp_recourse.program.functions import EDGE
from milp_recourse.program.presolve import told_apart_by_scenarios, without_conditions

DEEPEST, MOST_LAYERS, LONGEST = 50, 100, 2**17
"""How deep an equation may be nested, layers of a network, and binary digits of an exact value."""

MOST_FEATURES, MOST_CELLS, MOST_WEIGHTS = 10_000, 4_000_000, 500_000
"""Features, numbers in the tables of labels, and weights of a network."""

LARGEST_FILE, MOST_ROOM = 64 * 2**20, 2_200_000
"""Bytes of a certificate, and how many numbers, lists and objects it may have (lists count twice, objects
four times)."""

INSTANCE = 8
"""How many times as large the instance may be."""

MOST_NODES = 300_000
"""An applicant whose proof needs more is given up: a checker need not read such a file."""

MOST_SECONDS = 60.0
"""Most seconds that a check may take by :func:`check_seconds`, on a quiet core."""

TOGETHER = 1000
"""From so many leaves on, a checker bounds those of all trees at once, if it finds numpy."""

MOST_LEVERS = 16
"""Most levers that have a different cost or effect when held than when not acted on.

A certificate has one tree for each set of such levers, so 16 of them already mean up to 65 536 trees.
"""

_DOUBLE = 128
"""Binary digits of ordinary doubles on either side of the point; for constants the true number counts."""

_LINE = 40
"""Binary digits that a node of an expression is counted to add: 32 for the slope of a line that replaces an
elementary function, a multiple of 2^-32; the other 8 are reserve, as for the carries of sums."""

Digits = tuple[int, int]
"""Binary digits before and behind the point."""


def by_prices(instance: Instance) -> bool:
    """Whether it is an ensemble that is proven by prices: its levers move nothing else, no plausibility is
    asked for, and no condition limits a sum of several of them."""
    if not isinstance(instance.classifier, TreeEnsemble):
        return False
    rows = (one for one in leaves(unlabelled(instance.demand)) if isinstance(one, Row))
    return separable(without_conditions(instance)) and not any(tied(row, instance.levers) for row in rows)


def tied(row: Row, levers: Collection[str]) -> bool:
    """Whether a row is about several of some levers."""
    return sum(f in levers for of, _ in row.terms for f in factors(of)) > 1


def counted(instance: Instance) -> tuple[int | None, Demand]:
    """How many levers may be acted on, None without a limit that proofs by prices count, and what else is
    demanded. In percentiles values may change at no cost, which those proofs do not count."""
    demand = unlabelled(instance.demand)
    free = any(not instance.lever_costs[f].measure.strict for f in instance.levers)  # Q may be flat
    return (None, demand) if free else limited(demand)


def not_idle(instance: Instance, priced: bool = False) -> list[str]:
    """Levers that are not idle: acting on them at their factual value is not allowed, or differs in cost or
    effect, in some scenario, from not acting on them.

    ``priced``: whether proofs are by prices, which themselves count how many values change.
    """
    levers, demand = list(instance.levers), instance.demand
    apart = {f for other in levers for f in instance.scm.descendants({other}) - {other}}
    if instance.scenarios:
        apart |= told_apart_by_scenarios(instance)
    if demand != TRUE:
        apart |= told_apart(counted(instance)[1] if priced else demand, levers)
    return [
        f for f in levers if instance.lever_costs[f].prices.fixed or f in apart or not instance.may_hold(f)
    ]


def acted_sets(instance: Instance, priced: bool = False) -> Iterator[tuple[str, ...]]:
    """Sets of levers that together stand for every set: every combination of those that are not idle, with
    all idle ones.

    Each set is in the order of the features, and not empty. With ``priced``, as in :func:`not_idle`, only
    sets that may be acted on are stood for; where there is room for one idle lever, each has its own set.
    """
    levers = [f.name for f in instance.features if f.name in instance.levers]
    others, most = not_idle(instance, priced), len(levers)
    if priced and (limit := counted(instance)[0]) is not None:
        most = limit
    idle = [f for f in levers if f not in others]
    for size in range(min(len(others), most) + 1):
        for chosen in combinations(others, size):
            for held in combinations(idle, most - size) if most - size <= 1 < len(idle) else [idle]:
                acted = tuple(f for f in levers if f in held or f in chosen)
                if acted:
                    yield acted


def beyond_limits(instance: Instance) -> str | None:
    """Which limit of the document an instance exceeds, or None."""
    if isinstance(instance.classifier, AskedModel):
        return "the model was asked, not read"
    for f in instance.features:
        if re.fullmatch("[0-9a-f]{16}", f.name):
            return f"the name {f.name!r}, 16 characters 0-9a-f, reads as a number in the digest: rename it"
    reason = too_large(instance)
    if reason is not None:
        return reason
    count = len(not_idle(instance, by_prices(instance))) if len(instance.levers) > MOST_LEVERS else 0
    if count > MOST_LEVERS:
        return (
            f"{count} levers can be acted on or not, at different cost or effect, and a certificate has a "
            f"tree for each set of such levers: at most {MOST_LEVERS} of them"
        )
    return None


def too_large(instance: Instance) -> str | None:
    """Which limit of the document an instance exceeds, or None."""
    labels = {f.name: len(f.categories or ()) for f in instance.features}
    tables = [f for f in instance.features if f.categories and f.encoding != "code"]
    cells = sum(labels[f.name] * len(f.columns) for f in tables)
    own = _too_many("features", len(labels), MOST_FEATURES)
    return (
        _too_deep(instance.scm)
        or _too_wide(instance.classifier)
        or own
        or _too_many("numbers in the tables of labels", cells, MOST_CELLS)
    )


@kept_with()
def _too_deep(scm: StructuralCausalModel) -> str | None:
    """Which limit a causal model exceeds by itself, or None."""
    equations = [m.equation for m in scm.mechanisms.values()]
    if max((equation.depth for equation in equations), default=0) > DEEPEST:
        return f"an equation is nested more than {DEEPEST} deep, which the certificate excludes"
    parts = (part for equation in equations for part in equation.walk())
    if any(_layered(part.network) for part in parts if isinstance(part, NetworkOutput)):
        return LAYERED
    known: dict[str, Digits] = {}
    for name in scm.order:
        found = _digits(scm.mechanisms[name].equation, known)
        known[name] = max(found[0], _DOUBLE), max(found[1], _DOUBLE)
        if sum(found) + found[1] > LONGEST:
            return f"exact values of {name!r} take too many digits for the certificate"
    return None


LAYERED = f"a network has more than {MOST_LAYERS} layers, which the certificate excludes"


def _layered(network: ReluNetwork) -> bool:
    return len(network.weights) > MOST_LAYERS


@kept_with()
def _too_wide(classifier: Classifier) -> str | None:
    """Which limit a classifier exceeds by itself, or None."""
    if isinstance(classifier, ReluNetwork):
        weights = sum(weight.size for weight in classifier.weights)
        return LAYERED if _layered(classifier) else _too_many("weights of a network", weights, MOST_WEIGHTS)
    assert isinstance(classifier, TreeEnsemble)
    # a node has five numbers in a file, six with a rule for missing values; a tree is lists and an object
    trees = [(len(tree.value), tree.missing_left is not None) for tree in classifier.trees]
    room = sum((5 + ruled) * nodes + 16 + 2 * ruled for nodes, ruled in trees)
    return _too_many("numbers in trees", room, INSTANCE * MOST_ROOM)


def _too_many(what: str, count: int, most: int) -> str | None:
    return f"{count} {what} are more than the {most} that a checker has to read" if count > most else None


def beyond_a_support(instance: Instance) -> str | None:
    """Why a lever can reach values at which nothing bounds its energy from below, or None.

    Near the end of a sigmoid link the Jacobian's logarithm falls without bound, and only the noise's square,
    a term of its own, outweighs it; a gamma density of shape below 1 is infinite at 0.
    """
    for name, (low, high) in instance.levers.items() if instance.plausible else ():
        m = instance.scm.mechanisms[name]
        if m.link.kind == "sigmoid":
            shares = [(end - m.link.offset) / m.link.scale for end in (low, high)]
            if not 2 * EDGE < min(shares) <= max(shares) < 1 - 2 * EDGE:
                return f"plausibility: an action on {name!r} can reach the end of its sigmoid link"
        if isinstance(m.noise, Gamma) and m.noise.shape < 1:
            return f"plausibility: {name!r} has gamma noise of a shape below 1, whose density has no bound"
        if isinstance(m.noise, Bernoulli) and not 0 < m.noise.p < 1:
            return f"plausibility: {name!r} has Bernoulli noise that never varies"
    return None


def fits(instance: Instance, certificate: dict[str, Any]) -> bool:
    """Whether a checker has to accept a certificate of this size (section 9), and can check what is proven
    without prices within :data:`MOST_SECONDS`. (Who makes a proof by prices knows how many leaves it has.)"""
    configurations = certificate["configurations"]
    parts = [(len(one["acted"]), part) for one in configurations for part in one.get("cases", [one])]
    seconds = (check_seconds(instance, n, part["tree"]) for n, part in parts if "prices" not in part)
    if sum(seconds) > MOST_SECONDS:
        return False
    plain = not any("prices" in one or "cases" in one for one in configurations)
    if plain and sum(len(one["tree"]) for one in configurations) < MOST_ROOM // 1000:
        return True
    text = json.dumps(certificate, separators=(",", ":"))
    room = text.count(",") + 2 * text.count("[") + 4 * text.count("{")
    return len(text) <= LARGEST_FILE and room <= MOST_ROOM


def check_seconds(
    instance: Instance,
    n: int,
    nodes: Iterable[Sequence[Any]],
    tables: Sequence[dict[str, Any]] = (),
    leaves: int = 0,
) -> float:
    """About how many seconds checking nodes takes where n features are acted on; mostly an overestimate.

    The numbers are measured (docs/results/certificates). A leaf takes 0.7 ms for the lines of each curve, and
    besides 0.25 ms if intervals close it. If duality closes it, these are 0.7 ms, 0.11 ms per lever, and
    30 ns for each of the multiplications that bound all neurons' arguments.

    For trees, a leaf takes 0.2 ms and 10 us per tree more. Where tables of prices are used, preparing for
    them takes 50 us for each of the trees' leaves that count, reading a table takes 4 ms and 3 us for each
    price, and using one takes 0.2 ms and 0.45 us for each of these leaves. From 1000 such leaves on, which
    numpy bounds all at once, these are 2 ms and 0.3 us, and 1 ms and 0.08 us.
    """
    kinds = Counter(node[0] for node in nodes)
    plain, more = _curves(instance.scm)
    classifier, lines, prices = instance.classifier, 0.7e-3 * (plain + more * instance.plausible), 0.0
    empty, dual = 0.25e-3 + lines, 0.7e-3 + 0.11e-3 * n + lines
    if isinstance(classifier, TreeEnsemble):
        empty, dual = (one + 0.2e-3 + 10e-6 * len(classifier.trees) for one in (empty, dual))
        used = sum(kinds[kind] for kind in "ptm")
        reading, using = (4e-3, 3e-6), (0.2e-3, 0.45e-6)
        if leaves >= TOGETHER:
            reading, using = (2e-3, 0.3e-6), (1e-3, 0.08e-6)
        prices = 50e-6 * leaves * bool(used) + (using[0] + using[1] * leaves) * used
        prices += sum(reading[0] + reading[1] * table["runs"].count(" ") for table in tables)
    else:
        assert isinstance(classifier, ReluNetwork)
        if instance.scenarios:
            classifier = smallest_logit(classifier, 1 + len(instance.scenarios))
        widths, through = [len(bias) for bias in classifier.biases[:-1]], 0
        columns = 1 + len(instance.columns) * (1 + len(instance.scenarios))
        for k, width in enumerate(widths):
            dual += 30e-9 * 2 * width * (through + columns * (widths[0] if k else 1))
            through += width * widths[k - 1] if k else 0
    return empty * kinds["e"] + dual * kinds["d"] + prices


@kept_with()
def _curves(scm: StructuralCausalModel) -> tuple[int, int]:
    """How many sigmoids and logarithms there are in equations and links, and how many more where plausibility
    is asked for: those of links and of noise."""
    found = more = 0
    for mechanism in scm.mechanisms.values():
        linked, gamma = mechanism.link.kind == "sigmoid", isinstance(mechanism.noise, Gamma)
        found += sum(isinstance(part, Sigmoid) for part in mechanism.equation.walk()) + linked
        more += 2 * linked + gamma
    return found, more


def _digits(expression: Expression, known: dict[str, Digits]) -> Digits:
    """About the most binary digits that an equation's exact value takes; ``known`` has its variables'."""
    if isinstance(expression, Constant):
        value = Fraction(expression.value)
        return value.numerator.bit_length(), value.denominator.bit_length()
    if isinstance(expression, Variable):
        return known[expression.name]
    inner = [_digits(child, known) for child in expression.children]
    most = max(before for before, _ in inner), max(behind for _, behind in inner)
    if isinstance(expression, Product):
        return sum(before for before, _ in inner) + _LINE, sum(behind for _, behind in inner) + _LINE
    if isinstance(expression, Square):
        return 2 * most[0] + _LINE, 2 * most[1] + _LINE
    if isinstance(expression, Sigmoid):
        return 1, _DOUBLE
    if isinstance(expression, NetworkOutput):
        layers = len(expression.network.weights)
        return most[0] + layers * _DOUBLE, most[1] + layers * (_DOUBLE + _LINE)
    return most[0] + _LINE, most[1] + (_LINE if isinstance(expression, Relu) else 0)

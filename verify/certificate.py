"""A whole certificate: claim, action, coverage of the subsets, trees (sections 1, 3, 4 and 5)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import inf, nextafter
from typing import Any

from verify.bounds import Interval
from verify.equations import Counterfactual, constant
from verify.instance import Instance, Source
from verify.leaf import closed, proven, split
from verify.network import computed
from verify.prices import Prices
from verify.problem import Cells, Problem, fixed, term, total
from verify.reading import Clock, Rejected, anything, conform, index, maybe, near, not_negative, refuse
from verify.trees import float32, float64, inputs

SHAPE = {
    "format": {"milp-recourse/certificate-1"},
    "claim": {"optimal", "infeasible", "bounds"},
    "instance_sha256": str,
    "index?": float,
    "action": maybe({str: anything}),
    "cost": maybe(not_negative),
    "lower_bound": maybe(not_negative),
    "configurations": [{"acted": [str], "tree": list, "prices?": list}],
}
RELATIVE_GAP, LEVER_GAP = Fraction(1e-6), Fraction(1e-12)
MOST_NODES, MOST_LEVERS = 1_000_000, 16


class Certificate:
    """What a file claims, its shape checked (section 1)."""

    def __init__(self, data: Any) -> None:
        given = conform(data, SHAPE, "certificate")
        self.claim, self.digest, self.index = given["claim"], given["instance_sha256"], given["index"]
        self.action, self.cost, self.lower_bound = (given[key] for key in ("action", "cost", "lower_bound"))
        for key in ("action", "cost", "lower_bound"):
            if (given[key] is None) != (self.claim == "infeasible"):
                refuse(key, given[key], "null where the claim is infeasible, and only there")
        self.configurations = given["configurations"]
        if sum(len(one["tree"]) for one in self.configurations) > MOST_NODES:
            raise Rejected(f"more than {MOST_NODES} nodes (section 8)")

    def says(self) -> str:
        """The claim in one line: about whom, and what to do."""
        whose = "" if self.index is None else f" index={self.index:.0f}"
        if self.claim == "infeasible":
            return self.claim + whose
        gap = float((Fraction(self.cost) - Fraction(self.lower_bound)) / (Fraction(self.cost) or 1))
        stated = f"cost={self.cost!r} lower_bound={self.lower_bound!r} relative_gap={gap:.2g}"
        return f"{self.claim} {stated}{whose} action={json.dumps(self.action)}"


def check(certificate: Certificate, source: Source, seconds: float) -> None:
    """Return if the certificate proves its claim about the instance; raise :class:`Rejected` if not."""
    instance = source.instance(certificate.index)
    if certificate.digest != instance.digest:
        raise Rejected("instance_sha256: the certificate belongs to another instance")
    with Clock.within(seconds):
        check_claim(certificate, instance)


def check_claim(certificate: Certificate, instance: Instance) -> None:
    """What a certificate claims about its instance is so (sections 3 to 7)."""
    bound = None
    if certificate.claim != "infeasible":
        bound, cost = Fraction(certificate.lower_bound), Fraction(certificate.cost)
        check_action(instance, certificate.action, cost)
        if bound > cost:
            raise Rejected("lower_bound: above the cost")
        if certificate.claim == "optimal" and cost - bound > RELATIVE_GAP * cost + allowance(instance):
            raise Rejected("claim: optimal, but the gap is open")
    if (bound is None or bound > 0) and not why_not(instance, {}):
        raise Rejected("claim: doing nothing is feasible and costs nothing")
    check_coverage(instance, [one["acted"] for one in certificate.configurations])
    for k, configuration in enumerate(certificate.configurations):
        problem = Problem(instance, configuration["acted"])
        target = problem.largest_cost() + 1 if bound is None else bound
        here, listed = f"configurations.{k}", configuration["prices"]
        prices = None if listed is None else Prices(problem, listed, here)
        check_tree(problem, configuration["tree"], target, here, prices)


def allowance(instance: Instance) -> Fraction:
    """The cost of moving every lever by 1e-12 of its interval, l0 left out (section 3)."""
    terms = {name: term(instance, name) for name in instance.levers}
    return total(
        terms[name].parts(terms[name].factual + LEVER_GAP * (high - low))
        for name, (low, high) in instance.levers.items()
        if not terms[name].label
    )


def check_action(instance: Instance, action: dict[str, Any], cost: Fraction) -> None:
    """The action is permitted, feasible, and costs what is stated (section 3)."""
    if not action.keys() <= instance.levers.keys():
        alien = min(action.keys() - instance.levers.keys())
        raise Rejected(f"action: {alien[:40]} is not for this applicant to act on")
    values = {
        f.name: f.value(action[f.name], f"action.{f.name}") for f in instance.features if f.name in action
    }
    for name, value in values.items():
        low, high = instance.levers[name]
        if not low <= value <= high:
            raise Rejected(f"action.{name}: outside [{float(low)}, {float(high)}]")
    reason = why_not(instance, values)
    if reason:
        raise Rejected(f"action: {reason}")
    if instance.model.network and not deployed(instance, values):
        raise Rejected("action: the network, computed in its dtype, does not accept (section 3)")
    exact = fixed(instance, list(values)) + total(term(instance, f).parts(v) for f, v in values.items())
    if not exact <= cost <= exact * (1 + Fraction(1, 2**52)):
        raise Rejected(f"cost: not the action's, {near(exact)}")


def why_not(instance: Instance, values: dict[str, Fraction]) -> str | None:
    """Why acting so is not feasible, in exact arithmetic; None where it is (section 3, 2 to 5)."""
    moved = Counterfactual(instance, {f: constant(value) for f, value in values.items()})
    missing = instance.missing - values.keys()
    for f in instance.features:
        if f.domain is not None and f.name not in missing:
            low, high = moved.range(moved.values[f.name])
            if not f.domain[0] <= low <= high <= f.domain[1]:
                return f"{f.name} leaves its domain"
    model = instance.model
    if model.network:
        accepted = model.network.least([moved.range(form) for form in moved.columns()]) >= 0
    else:
        found = [None if f.name in missing else moved.range(moved.values[f.name]) for f in instance.features]
        accepted = model.trees.accepts(inputs([f.table for f in instance.features], found))
    if not accepted:
        return "the classifier does not accept the counterfactual"
    squares, rest = moved.ball()
    if rest + sum(w * max(map(abs, moved.range(r))) ** 2 for w, r in squares) > 0:
        return "the counterfactual is less plausible than the factual"
    return None


def deployed(instance: Instance, values: dict[str, Fraction]) -> bool:
    """Whether the network accepts as it computes: in its dtype, without the margin (section 3, 4)."""
    classifier, accept = instance.model.content["classifier"], instance.model.content["accept"]
    moved = Counterfactual(instance, {f: constant(value) for f, value in values.items()})
    columns = [float64(sum(moved.range(form)) / 2) for form in moved.columns()]
    rounded = float32 if classifier["dtype"] == "float32" else float
    return computed(classifier["layers"], columns, rounded) >= accept["at_least"]


def check_coverage(instance: Instance, configurations: list[list[str]]) -> None:
    """Every non-empty set of levers is stood for by some set that is acted on (section 4).

    Levers that are idle in every configuration make no difference to which sets are stood for: a set of
    the others is, with any of them or none, if a configuration acts on it and on all of them.
    """
    levers = list(instance.levers)
    seen, idle = set(), []
    for k, acted in enumerate(configurations):
        Clock.look()
        if not acted or acted != [f for f in levers if f in acted]:
            raise Rejected(f"configurations.{k}.acted: not levers in the order of the features, or none")
        if tuple(acted) in seen:
            raise Rejected(f"configurations.{k}.acted: given before")
        seen.add(tuple(acted))
        idle.append(Problem(instance, acted).idle)
    always = set.intersection(*idle) if idle else set()
    levers = [f for f in levers if f not in always]
    if len(levers) > MOST_LEVERS:
        raise Rejected(f"more than {MOST_LEVERS} levers that are not idle throughout (section 8)")
    covered = bytearray(1 << len(levers))
    covered[0] = not always  # the empty set of all levers is checked by itself
    for acted, free_ in zip(configurations, idle, strict=True):
        Clock.look()
        whole = sum(1 << levers.index(f) for f in acted if f not in always)
        free = part = sum(1 << levers.index(f) for f in free_ - always)
        covered[whole] = 1
        while part:
            part = (part - 1) & free
            covered[whole - free + part] = 1
    missing = covered.find(0)
    if missing >= 0:
        names = [f for k, f in enumerate(levers) if missing >> k & 1] or sorted(always)
        raise Rejected(f"configurations: nothing stands for acting on exactly {', '.join(names)}")


class Walk:
    """The box, signs and cells at a node: one state, changed on the way down and back.

    What a node adds is undone before the next one that is not below it, so that a tree takes memory for its
    deepest path once, however deep.
    """

    def __init__(self, box: Sequence[Interval]) -> None:
        self.ends: dict[int, Interval] = dict(enumerate(box))
        self.signs: dict[tuple[int, int], int] = {}
        self.cells: Cells = {}
        self._undo: list[tuple[dict[Any, Any], Any, Any]] = []
        self._waiting: list[tuple[int, dict[Any, Any], Any, Any]] = [(0, {}, None, None)]

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def next(self) -> None:
        """Go to the next node in preorder."""
        depth, part, key, value = self._waiting.pop()
        while len(self._undo) > depth:
            changed, which, before = self._undo.pop()
            if before is None:
                del changed[which]
            else:
                changed[which] = before
        self._undo.append((part, key, part.get(key)))
        part[key] = value

    def fork(self, part: dict[Any, Any], key: Any, children: Iterable[Any]) -> None:
        """Two children, which differ in one entry of one part."""
        self._waiting += [(len(self._undo), part, key, value) for value in reversed(list(children))]


def check_tree(
    problem: Problem, nodes: list[Any], target: Fraction, where: str, prices: Prices | None
) -> None:
    """The tree's leaves cover the whole box, and each of them holds (section 5)."""
    walk = Walk(problem.box)
    widths = problem.network.widths if problem.network else []
    for k, node in enumerate(nodes):
        Clock.look()
        here = f"{where}.tree.{k}"
        if not walk:
            raise Rejected(f"{here}: the tree was complete before this node")
        walk.next()
        kind = conform(
            node[0] if conform(node, list, here) else None, {"a", "s", "n", "c", "e", "d", "p"}, here
        )
        if kind in ("a", "s"):
            _, i, at = conform(node, (str, index(len(problem.box)), float), here)
            (low, high), t = walk.ends[i], Fraction(at)
            if not low <= t < high or (kind == "a" and t == low):
                raise Rejected(f"{here}: splits at {at!r}, outside its box")
            walk.fork(walk.ends, i, split(problem, i, walk.ends[i], t, kind == "s"))
        elif kind == "n":
            _, layer, neuron = conform(node, (str, index(len(widths)), float), here)
            key = layer, index(widths[layer])(neuron, here)
            if key in walk.signs:
                raise Rejected(f"{here}: splits on a sign that is settled above")
            walk.fork(walk.signs, key, (-1, 1))
        elif kind == "c":
            _, f, at = conform(node, (str, problem.splittable, float), here)
            least, most = walk.cells.get(f, (-inf, inf))
            walk.fork(walk.cells, f, ((least, min(most, at)), (max(least, nextafter(at, inf)), most)))
        else:
            check_leaf(problem, walk, kind, node, target, here, prices)
    if walk:
        raise Rejected(f"{where}.tree: ends before all of the box is covered")


def check_leaf(
    problem: Problem, walk: Walk, kind: str, node: Any, target: Fraction, here: str, prices: Prices | None
) -> None:
    """A leaf of one of the three kinds holds (section 6)."""
    ends = list(walk.ends.values())
    if kind == "e":
        conform(node, (str,), here)
        if not closed(problem, ends, walk.cells, target):
            raise Rejected(f"{here}: an 'e' leaf that none of the rules closes")
    elif kind == "p":
        if prices is None:
            raise Rejected(f"{here}: a 'p' leaf in a configuration without prices")
        prices.close(node, ends, target, here)
    else:
        bound = proven(problem, ends, walk.signs, walk.cells, node, target, here)
        if bound is not None and bound < target:
            raise Rejected(f"{here}: proves a cost of {near(bound)} only, of {near(target)}")

"""A whole certificate: claim, action, coverage of the subsets, trees (sections 1, 3, 4 and 5)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from verify.bounds import Interval
from verify.equations import Counterfactual, constant
from verify.instance import Instance, Source
from verify.leaf import closed, proven, split
from verify.network import Signs
from verify.problem import Problem, fixed, term, total
from verify.reading import Clock, Rejected, a_list, a_number, a_word, an_index, an_object, refuse

FORMAT = "milp-recourse/certificate-1"
KEYS = ("format", "claim", "instance_sha256", "action", "cost", "lower_bound", "configurations")
GAP = Fraction(1e-6), Fraction(1e-9)
MOST_NODES, MOST_LEVERS = 1_000_000, 16


class Certificate:
    """What a file claims, its top level checked (section 1)."""

    def __init__(self, data: Any) -> None:
        an_object(data, "top level", KEYS, ("index",))
        a_word(data["format"], "format", (FORMAT,))
        self.claim = a_word(data["claim"], "claim", ("optimal", "infeasible", "bounds"))
        self.digest = a_word(data["instance_sha256"], "instance_sha256")
        self.index = a_number(data["index"], "index") if "index" in data else None
        self.action, self.cost, self.lower_bound = (data[key] for key in ("action", "cost", "lower_bound"))
        if self.claim == "infeasible":
            for key in ("action", "cost", "lower_bound"):
                if data[key] is not None:
                    refuse(key, data[key], "null where the claim is infeasible")
        else:
            a_number(self.cost, "cost", 0.0)
            a_number(self.lower_bound, "lower_bound", 0.0)
            if not isinstance(self.action, dict):
                refuse("action", self.action, "an object")
        self.configurations = a_list(data["configurations"], "configurations")

    def says(self) -> str:
        """The claim in one line."""
        if self.claim == "infeasible":
            return self.claim
        return f"{self.claim} cost={self.cost!r} lower_bound={self.lower_bound!r}"


def check(certificate: Certificate, source: Source, seconds: float) -> None:
    """Return if the certificate proves its claim about the instance; raise :class:`Rejected` if not."""
    clock = Clock(seconds)
    instance = source.instance(certificate.index)
    if certificate.digest != instance.digest:
        raise Rejected("instance_sha256: the certificate belongs to another instance")
    bound = None
    if certificate.claim != "infeasible":
        bound, cost = Fraction(certificate.lower_bound), Fraction(certificate.cost)
        check_action(instance, certificate.action, cost)
        if bound > cost:
            raise Rejected("lower_bound: above the cost")
        if certificate.claim == "optimal" and cost - bound > max(GAP[0] * cost, GAP[1]):
            raise Rejected("claim: optimal, but the gap is open")
    if (bound is None or bound > 0) and not why_not(instance, {}):
        raise Rejected("claim: doing nothing is feasible and costs nothing")
    acted = check_coverage(instance, certificate.configurations, clock)
    trees = [a_list(data["tree"], "tree") for data in certificate.configurations]
    if sum(map(len, trees)) > MOST_NODES:
        raise Rejected(f"more than {MOST_NODES} nodes (section 8)")
    for k, (names, tree) in enumerate(zip(acted, trees, strict=True)):
        problem = Problem(instance, names)
        target = problem.largest_cost() + 1 if bound is None else bound
        check_tree(problem, tree, target, f"configurations.{k}", clock)


def check_action(instance: Instance, action: dict[str, Any], cost: Fraction) -> None:
    """The action is permitted, feasible, and costs what is stated (section 3)."""
    values = {}
    for f in instance.features:
        if f.name not in action:
            continue
        if f.name not in instance.levers:
            raise Rejected(f"action: {f.name} is not for this applicant to act on")
        value, (low, high) = f.value(action[f.name], f"action.{f.name}"), instance.levers[f.name]
        if not low <= value <= high:
            raise Rejected(f"action.{f.name}: outside [{float(low)}, {float(high)}]")
        values[f.name] = value
    an_object(action, "action", values)
    reason = why_not(instance, values)
    if reason:
        raise Rejected(f"action: {reason}")
    exact = fixed(instance, list(values)) + total(term(instance, f).parts(v) for f, v in values.items())
    if not exact <= cost <= exact * (1 + Fraction(1, 2**52)):
        raise Rejected(f"cost: not the action's, {float(exact)!r}")


def why_not(instance: Instance, values: dict[str, Fraction]) -> str | None:
    """Why acting so is not feasible, in exact arithmetic; None where it is (section 3, 2 to 5)."""
    moved = Counterfactual(instance, {f: constant(value) for f, value in values.items()})
    for f in instance.features:
        if f.domain is not None:
            low, high = moved.range(moved.values[f.name])
            if not f.domain[0] <= low <= high <= f.domain[1]:
                return f"{f.name} leaves its domain"
    columns = [moved.range(form) for form in moved.columns()]
    model = instance.model
    accepted = model.network.least(columns) >= 0 if model.network else model.trees.accepts(columns)
    if not accepted:
        return "the classifier does not accept the counterfactual"
    squares, rest = moved.ball()
    if rest + sum(w * max(map(abs, moved.range(r))) ** 2 for w, r in squares) > 0:
        return "the counterfactual is less plausible than the factual"
    return None


def check_coverage(instance: Instance, configurations: list[Any], clock: Clock) -> list[list[str]]:
    """Every non-empty set of levers is stood for by some configuration (section 4); what each acts on."""
    levers = list(instance.levers)
    if len(levers) > MOST_LEVERS:
        raise Rejected(f"more than {MOST_LEVERS} levers (section 8)")
    covered, listed = bytearray(1 << len(levers)), []
    covered[0] = 1
    for k, data in enumerate(configurations):
        clock()
        where = f"configurations.{k}"
        an_object(data, where, ("acted", "tree"))
        acted = [a_word(f, f"{where}.acted", levers) for f in a_list(data["acted"], f"{where}.acted")]
        if not acted or acted != [f for f in levers if f in acted]:
            raise Rejected(f"{where}.acted: none, or not in the order of the features")
        if acted in listed:
            raise Rejected(f"{where}.acted: given before")
        listed.append(acted)
        idle = Problem(instance, acted).idle
        whole = sum(1 << levers.index(f) for f in acted)
        free = part = sum(1 << levers.index(f) for f in idle)
        while True:
            covered[whole - free + part] = 1
            if not part:
                break
            part = (part - 1) & free
    missing = covered.find(0)
    if missing >= 0:
        names = [f for k, f in enumerate(levers) if missing >> k & 1]
        raise Rejected(f"configurations: nothing stands for acting on exactly {', '.join(names)}")
    return listed


def check_tree(problem: Problem, nodes: list[Any], target: Fraction, where: str, clock: Clock) -> None:
    """The tree's leaves cover the whole box, and each of them holds (section 5)."""
    waiting: list[tuple[tuple[Interval, ...], Signs]] = [(tuple(problem.box), {})]
    widths = problem.network.widths if problem.network else []
    for k, node in enumerate(nodes):
        clock()
        here = f"{where}.tree.{k}"
        if not waiting:
            raise Rejected(f"{here}: the tree was complete before this node")
        ends, signs = waiting.pop()
        kind = a_word(a_list(node, here)[0] if node else None, here, ("a", "s", "n", "e", "d"))
        if kind in ("a", "s"):
            _, i, at = a_list(node, here, 3)
            i, t = an_index(i, here, len(ends)), Fraction(a_number(at, here))
            if not (ends[i][0] < t or (kind == "s" and ends[i][0] == t)) or not t < ends[i][1]:
                raise Rejected(f"{here}: splits at {at!r}, outside its box")
            first, second = split(problem, ends, i, t, kind == "s")
            waiting += (second, signs), (first, signs)
        elif kind == "n":
            _, layer, neuron = a_list(node, here, 3)
            layer = an_index(layer, here, len(widths))
            key = layer, an_index(neuron, here, widths[layer])
            if key in signs:
                raise Rejected(f"{here}: splits on a sign that is settled above")
            waiting += (ends, {**signs, key: 1}), (ends, {**signs, key: -1})
        elif kind == "e":
            a_list(node, here, 1)
            if not closed(problem, ends, target):
                raise Rejected(f"{here}: an 'e' leaf that none of the rules closes")
        else:
            bound = proven(problem, ends, signs, node, target, here, clock)
            if bound is not None and bound < target:
                raise Rejected(f"{here}: proves a cost of {float(bound)!r} only, of {float(target)!r}")
    if waiting:
        raise Rejected(f"{where}.tree: ends before all of the box is covered")

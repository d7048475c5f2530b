"""No point of a box escapes the checker's intervals, lines and bounds; the fast path's are the kernel's."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from itertools import product
from math import inf

import pytest

from tests.helpers.random_problems import evaluate
from verify.fast.box import Box, Floats
from verify.files.costs import PARTS
from verify.files.costs import term as make_term
from verify.files.instance import Source
from verify.kernel.box import highest
from verify.kernel.checks import Empty
from verify.kernel.curves import lines
from verify.kernel.forms import ONE, Configuration
from verify.kernel.leaf import Region, closed
from verify.kernel.leaf import proven as kernel_proven
from verify.kernel.prices import Exact

SEEDS = range(12)


def proven(*given):
    """What a leaf proves; infinite where its box holds nothing."""
    try:
        return kernel_proven(*given)
    except Empty:
        return inf


def is_closed(arithmetic, region):
    """Whether intervals show that a box holds nothing, whatever it costs."""
    try:
        return closed(arithmetic, region, Fraction(10**30))
    except Empty:
        return True


def agree(fast, exact):
    """Doubles prove what fractions do, less next to nothing; or an empty box looks as if it were not."""
    assert exact == inf or abs(fast - exact) <= Fraction(1, 2**36) * (1 + abs(exact))


def sub_box(problem, rng):
    """A random part of the whole box."""
    ends = []
    for (low, high), whole in zip(problem.box, problem.lattices, strict=True):
        a, b = sorted(low + (high - low) * Fraction(rng.randint(0, 64), 64) for _ in range(2))
        if whole:
            a, b = sorted(Fraction(rng.randint(int(low), int(high))) for _ in range(2))
        ends.append(rng.choice([(a, b), (a, b), (a, a)]))
    return ends


def point(ends, problem, rng):
    """A random point of a box, often at its ends."""
    return [
        rng.choice([low, high, Fraction(rng.randint(int(low), int(high))) if whole else (low + high) / 2,
                    low + (high - low) * Fraction(rng.randint(0, 8), 8) if not whole else low])
        for (low, high), whole in zip(ends, problem.lattices, strict=True)
    ]  # fmt: skip


class Truth:
    """What an action leads to, computed by the book from the instance's file."""

    def __init__(self, data, instance, action):
        x = dict(instance.factual)
        self.values = {}
        self.residuals = {}
        for f in "abcdefg":
            if f not in x:
                continue
            equation = data["scm"]["mechanisms"].get(f, {"equation": 0})["equation"]
            before, after = evaluate(equation, x), evaluate(equation, {**x, **self.values})
            self.values[f] = action.get(f, x[f] + after - before)
            self.residuals[f] = self.values[f] - after
            if f not in action:
                self.residuals[f] = x[f] - before
        noise = data["scm"]["mechanisms"]["a"]["noise"]["sd"]
        self.energy = sum(
            (self.residuals[f] ** 2 - (x[f] - evaluate(data["scm"]["mechanisms"][f]["equation"], x)) ** 2)
            / (2 * Fraction(noise) ** 2)
            for f in action
            if f in data["scm"]["mechanisms"]
        )
        z = []
        for f in data["features"]:
            value = self.values[f["name"]]
            default = "one-hot" if f["kind"] == "categorical" else "code"
            one_hot = f.get("encoding", default) == "one-hot" and "categories" in f
            z += [Fraction(value == k) for k in range(len(f["categories"]))] if one_hot else [value]
        self.arguments = []
        for layer in data["classifier"]["layers"]:
            if self.arguments:
                z = [max(v, Fraction(0)) for v in z]
            z = [
                sum((Fraction(w) * v for w, v in zip(row, z, strict=True)), Fraction(b))
                for row, b in zip(layer["weight"], layer["bias"], strict=True)
            ]
            self.arguments.append(z)
        self.flat = [argument for layer in self.arguments[:-1] for argument in layer]
        self.logit = z[0] - Fraction(data["accept"]["at_least"]) - Fraction(data["accept"]["margin"])
        self.cost = Fraction(0)
        largest = Fraction(0)
        kind = data["cost"]["kind"]
        part = {p: Fraction(data["cost"].get(p, 0.0) if kind == "mixture" else p == kind)
                for p in ("l0", "l1", "l2-squared", "linf")}  # fmt: skip
        for f, value in action.items():
            w, s = (Fraction(data[a][b][f]) for a, b in (("preferences", "weights"), ("cost", "scale")))
            step = (Fraction(value != x[f]) if f == "g" else abs(value - x[f])) / (s if kind != "l0" else 1)
            self.cost += w * (part["l0"] + part["l1"] * step + part["l2-squared"] * step**2)
            largest = max(largest, w * step)
        self.cost += part["linf"] * largest


@pytest.mark.parametrize("seed", SEEDS)
def test_every_point_is_inside(seed, problem_of):
    """Values, residuals and neurons' arguments lie in their intervals; a leaf's bound is below every point.

    For any multipliers, feasible or not: the bound is at most the cost less the multiples of the rows.
    """
    rng = random.Random(1000 + seed)
    data, instance = problem_of(seed)
    levers = list(instance.levers)
    for _ in range(2):
        acted = [f for f in levers if rng.random() < 0.6] or levers[:1]
        problem = Configuration(instance, acted)
        ends = sub_box(problem, rng)
        points = [dict(zip(acted, point(ends, problem, rng), strict=True)) for _ in range(12)]
        truths = [Truth(data, instance, p) for p in points]
        for arithmetic in (Floats(problem), Exact(problem)):
            inside(problem, arithmetic.box(ends, "", {}), truths)
        signs = random_signs(problem, truths[0], rng)
        slopes = "".join(rng.choice("01") for _ in range(sum(problem.widths)))
        empty = Exact(problem).box(ends, slopes, signs).empty
        assert empty or not Floats(problem).box(ends, slopes, signs).empty
        kept = [t for t in truths if all(s * t.flat[n] >= 0 for n, s in signs.items())]
        assert not (empty and kept)
        leaf = random_leaf(problem, signs, rng)
        region, target = Region(ends, ((), ()), signs), Fraction(-(10**30))
        bound = proven(Exact(problem), region, leaf[1:], target)
        agree(proven(Floats(problem), region, leaf[1:], target), bound)
        for t in kept:
            assert bound < inf
            assert bound <= t.cost - multiples(problem, signs, leaf, t)
        within_a_budget(problem, region, leaf, kept, rng)
        shut = is_closed(Exact(problem), region)
        assert shut or not is_closed(Floats(problem), region)
        if shut:
            assert not any(feasible(data, t) for t in truths)


def test_doubles_are_rounded_outward(problem_of, monkeypatch):
    """A multiple of a point's logit is at most what doubles make of it; without the slack some are more."""
    missed = {True: 0, False: 0}
    for slack, seed in product(missed, range(24)):
        if not slack:
            monkeypatch.setattr(Box, "_slack", lambda *_: 0.0)
        rng, problem = random.Random(seed), problem_of(seed)[1]
        configuration = Configuration(problem, list(problem.levers))
        ends = [(low, low) for low, _ in sub_box(configuration, rng)]
        slopes, factor = "0" * sum(configuration.widths), Fraction(rng.random())
        fast, exact = (
            kind(configuration).box(ends, slopes, {}).above({}, slopes, factor, [])
            for kind in (Floats, Exact)
        )
        at = Exact(configuration).box(ends, slopes, {})
        missed[slack] += at.most(fast) < at.most(exact)
    assert not missed[True]
    assert missed[False] > 3


def within_a_budget(problem, region, leaf, truths, rng):
    """Thetas (section 7): nothing is said of dearer points, and the fast path rounds away next to nothing."""
    target = rng.choice([t.cost for t in truths] or [Fraction(1)]) * rng.choice([1, 2]) + Fraction(1, 8)
    shares = leaf[3] if len(leaf) > 3 else [0.0] * len(region.ends)
    thetas = [rng.choice([0.0, 0.01, 0.3, 7.0]) for _ in range(2 * sum(problem.widths))]
    leaf = [*leaf[:3], shares, thetas]
    fast, exact = (proven(arithmetic(problem), region, leaf[1:], target) for arithmetic in (Floats, Exact))
    agree(fast, exact)
    for t in truths:
        if t.cost < target:
            assert exact < inf
            assert max(fast, exact) <= t.cost - multiples(problem, region.signs, leaf, t)


def inside(problem, box, truths):
    """Domains and residuals of points lie in the box's intervals."""
    for truth in truths:
        for f, side in problem.domains({}):
            low, high = box.interval(problem.values[f])
            assert low <= truth.values[f] <= high
            least = side * ((low if side > 0 else high) - Fraction(domain(problem, f)[side < 0]))
            agree(box.least(problem.domains({})[f, side]), least)
        squared = [f for f in problem.acted if f != "g"] if problem.problem.model.plausible else []
        squares, rest = problem.energy.squares, problem.energy.rest
        assert len(squared) == len(squares)
        for f, (_, residual) in zip(squared, squares, strict=True):
            low, high = box.interval(residual)
            assert low <= truth.residuals[f] <= high
        if problem.problem.model.plausible:
            at = dict(zip(squared, squares, strict=True))
            own = sum(w * truth.residuals[f] ** 2 for f, (w, _) in at.items())
            assert truth.energy == rest.get(ONE, 0) + own


def domain(problem, name):
    """A feature's domain."""
    return next(f.domain for f in problem.model.features if f.name == name)


def random_signs(problem, truth, rng):
    """Signs split on, mostly those of a point."""
    before = [sum(problem.widths[:k]) for k in range(len(problem.widths))]
    chosen = {n + rng.randrange(k) for n, k in zip(before, problem.widths, strict=True) if rng.random() < 0.7}
    return {n: (1 if truth.flat[n] >= 0 else -1) * rng.choice([1, 1, 1, -1]) for n in chosen}


def random_leaf(problem, signs, rng):
    """A leaf with random multipliers."""
    terms = []
    for _ in range(rng.randint(0, 2)):
        term = {}
        if rng.random() < 0.8:
            term["g"] = rng.choice([0.25, 0.7, 3.0, 1e-9])
        if rng.random() < 0.5:
            term["s"] = "".join(rng.choice("01") for _ in range(sum(problem.widths)))
        if rng.random() < 0.6:
            term["n"] = [rng.choice([0.0, 0.3, 2.0]) for _ in signs]
        if rng.random() < 0.6:
            term["r"] = {f: [rng.choice([0.0, 0.9]), rng.choice([0.0, 0.11])] for f, _ in problem.domains({})}
        if problem.problem.model.plausible and rng.random() < 0.8:
            term["b"] = [rng.choice([0.1, 1.7]), *(rng.uniform(-2, 2) for _ in problem.energy.squares)]
        terms.append(term)
    slopes = "".join(rng.choice("01") for _ in range(sum(problem.widths)))
    count = len(problem.acted)
    chosen = rng.randrange(count)
    shares = rng.choice([[], [[0.75 / count] * count], [[float(k == chosen) for k in range(count)]]])
    return ["d", slopes, terms, *shares]


def multiples(problem, signs, leaf, truth):
    """What the leaf's terms stand for at a point, before anything is bounded."""
    total = Fraction(0)
    squared = [f for f in problem.acted if f != "g"]
    for term in leaf[2]:
        total += Fraction(term.get("g", 0.0)) * truth.logit
        for (neuron, sign), n in zip(signs.items(), term.get("n", [0.0] * len(signs)), strict=True):
            total += Fraction(n) * sign * truth.flat[neuron]
        for f, (low, high) in term.get("r", {}).items():
            least_, most = map(Fraction, domain(problem, f))
            total += Fraction(low) * (truth.values[f] - least_) + Fraction(high) * (most - truth.values[f])
        if "b" in term:
            mu, *rho = map(Fraction, term["b"])
            tangents = sum(
                w * (2 * p * truth.residuals[f] - p * p)
                for p, f, (w, _) in zip(rho, squared, problem.energy.squares, strict=True)
            )
            total -= mu * (tangents + problem.energy.rest.get(ONE, 0))
    return total


def feasible(data, truth):
    """Whether a point meets domains, classifier and plausibility."""
    domains = all(
        f["domain"][0] <= truth.values[f["name"]] <= f["domain"][1] for f in data["features"] if "domain" in f
    )
    return domains and truth.logit >= 0 and (data["plausibility"] is None or truth.energy <= 0)


@pytest.mark.parametrize("function", ["relu", "square"])
def test_lines_hold_on_the_interval(function):
    """The lower line is below the unit, the upper one above, everywhere between."""
    rng = random.Random(7)
    for _ in range(200):
        low, high = sorted(Fraction(rng.randint(-40, 40), rng.choice([1, 3, 8])) for _ in range(2))
        (slope, constant), (incline, top) = lines(function, low, high)
        step = (high - low) / 16 or Fraction(1)
        y = low
        while y <= high:
            true = {"relu": max(y, Fraction(0)), "square": y * y}[function]
            assert slope * y + constant <= true <= incline * y + top
            y += step


@pytest.mark.parametrize("label", [False, True])
def test_least_is_the_minimum(label):
    """The closed form is below every point of a grid, and attained nearly."""
    rng = random.Random(3)
    for _ in range(150):
        number = lambda: Fraction(rng.randint(0, 12), 4)  # noqa: E731
        x, cost = (
            Fraction(rng.randint(-3, 5)),
            {"scale": {"f": 1.0}} | {part: float(number()) for part in PARTS},
        )
        term = make_term(cost, "f", 1.0, label, x)
        low, high = sorted(Fraction(rng.randint(-4, 6)) for _ in range(2))
        share, p = Fraction(rng.randint(0, 4), 4), Fraction(rng.randint(-40, 40), 4)
        grid = 1 if label else 64
        points = [low + Fraction(k, grid) for k in range(int(high - low) * grid + 1)]
        costs = []
        for a in points:
            delta = Fraction(a != x) if label else abs(a - x)
            l1, l2, linf = (Fraction(cost[part]) for part in PARTS[1:])
            costs.append(l2 * delta**2 + l1 * delta + share * linf * delta - p * a)
        found = -highest(term, (low, high), {None: p}, Fraction(1), share)
        assert found <= min(costs)
        assert min(costs) - found <= (0 if label else Fraction(1, 100))


def test_what_underflows_in_a_size_still_counts(tmp_path):
    """x -> first x is below every double, second (first x) is not, and second first rounds."""
    first, second, most = 2.0**-1000 * (1 + 2.0**-30), 2.0**1000 * (1 + 2.0**-30), 2.0**-80
    content = {
        "format": "milp-recourse/instance-1",
        "features": [{"name": "a", "kind": "continuous", "actionable": True, "bounds": [0, most]}],
        "scm": {"name": "independent"},
        "classifier": {
            "kind": "relu-network",
            "dtype": "float64",
            "layers": [{"weight": [[first]], "bias": [0]}, {"weight": [[second]], "bias": [0]}],
        },
        "factual": {"a": 0},
        "preferences": {"actionable": ["a"]},
        "cost": {"kind": "l1", "scale": {"a": 1}},
    }
    (tmp_path / "instance.json").write_text(json.dumps(content))
    problem = Configuration(Source(tmp_path / "instance.json").applicant(None).problem, ["a"])
    for arithmetic in (Exact(problem), Floats(problem)):
        box = arithmetic.box([(Fraction(0), Fraction(most))], "1", {0: 1})
        above = box.above({}, "1", Fraction(1), ())
        needed = Fraction(content.get("accept", {}).get("at_least", 0))
        assert sum(c * (1 if key == ONE else Fraction(most)) for key, c in above.items()) >= (
            Fraction(first) * Fraction(second) * Fraction(most) - needed
        )


def test_weights_may_be_as_small_as_they_like(problem_of, tmp_path):
    """Networks that scikit-learn has fitted have weights of 1e-65. They are not left to the kernel, and
    doubles prove what it does."""
    tried = 0
    for seed in range(12):
        rng, (data, _) = random.Random(seed), problem_of(seed)
        for layer in data["classifier"]["layers"][:-1]:
            small = 10.0 ** -rng.choice([65, 150, 290, 320])
            layer["weight"][0] = [w * small for w in layer["weight"][0]]
        (tmp_path / "instance.json").write_text(json.dumps(data))
        problem = Source(tmp_path / "instance.json").applicant(None).problem
        configuration = Configuration(problem, list(problem.levers))
        floats = Floats(configuration)
        assert floats.ordinary
        ends, signs = sub_box(configuration, rng), {}
        region = Region(ends, ((), ()), signs)
        for _ in range(10):
            leaf = random_leaf(configuration, signs, rng)
            bound = proven(Exact(configuration), region, leaf[1:], Fraction(-(10**30)))
            agree(proven(floats, region, leaf[1:], Fraction(-(10**30))), bound)
            tried += 1
    assert tried

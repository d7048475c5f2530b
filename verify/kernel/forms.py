"""Forms: what follows from actions, affine in actions and units; units are functions of forms (section 5)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache, partial, reduce
from itertools import repeat
from math import inf, nextafter
from typing import Any, NamedTuple

from verify.kernel.checks import ZERO, Clock, Empty, Rejected, bounded
from verify.kernel.problem import Interval, Problem, products, total
from verify.kernel.trees import Number, Range, options

ONE = -1
Paid = Callable[[int, Number, Number], tuple[tuple[Fraction, Fraction], ...]]
Form = dict[int, Fraction]
"""The constant (key ONE) and the coefficients of actions and units, by their keys; none of them is 0."""


class Unit(NamedTuple):
    """An elementary function of a form in actions and in units of smaller keys.

    The function ``indicator`` is 1 where its argument is 0, and 0 elsewhere.
    """

    function: str
    argument: Form


def constant(value: Fraction) -> Form:
    """A form that is a number."""
    return {ONE: value} if value else {}


UNIT = constant(Fraction(1))


def add(total: Form, q: Form, factor: Fraction | int) -> None:
    """Add factor q to a form."""
    Clock.look()
    for key, c in q.items():
        total[key] = bounded(total.get(key, ZERO) + factor * c)
        if not total[key]:
            del total[key]


def combined(factors: Iterable[Fraction | float], forms: Iterable[Form]) -> Form:
    """The sum of factor * form."""
    total: Form = {}
    for factor, form in zip(factors, forms, strict=True):
        add(total, form, Fraction(factor))
    return total


def plus(p: Form, q: Form, factor: Fraction | int = 1) -> Form:
    """p + factor q."""
    return combined((1, factor), (p, q))


class Energy(NamedTuple):
    """Excess energy, log p(factual) + offset - log p(counterfactual): sum of weight * form^2, plus the rest.

    Attributes
    ----------
    squares
        (weight, form) for each feature acted on that has normal noise, in the order of ``features``.
    rest
        A form: all other terms.
    positive
        What logarithms are taken of: all must be above 0, also where the logarithms cancel.
    chances
        Bernoulli noises of features acted on; each of them must be 0 or 1.
    """

    squares: list[tuple[Fraction, Form]]
    rest: Form
    positive: list[Form]
    chances: list[Form]


class Configuration:
    """The problem where exactly certain features are acted on: forms over a box of actions (section 5).

    Parameters
    ----------
    part
        In a case, the number of the ensemble's part that must accept (section 7.4); else None.
    at
        The values of the actions, to have numbers in place of forms; None: forms.

    Attributes
    ----------
    box, lattices
        By action, its lever interval, and the lattice that its values are limited to, None for all doubles.
    terms, fixed, paid
        What the actions cost, and the fixed part of the cost; ``paid``: the least and the most that the k-th
        costs in an interval.
    demand
        What the conditions demand where exactly these features are acted on (section 11).
    values
        Feature -> form over the actions, numbered from 0, and :attr:`units`.
    products
        Two features -> the form of their product, for the products that conditions are about.
    units
        Key -> unit; keys go on from the actions'.
    neurons
        The keys of the network's units, layer by layer, once :attr:`logit` was asked for.
    labels
        Key -> (action, k) of the indicators, likewise: only actions change labels.
    equations
        What each feature's equation gives before and after the action.
    """

    def __init__(
        self, problem: Problem, acted: list[str], part: int | None = None, at: Mapping[str, Any] | None = None
    ) -> None:
        self.problem, self.acted, self.model = problem, acted, problem.model
        place = {f: k for k, f in enumerate(acted)}
        self.forests = self.model.forests if part is None else [self.model.forests[part]]
        self.one_suffices = self.model.one_suffices and part is None
        self.box = [problem.levers[f] for f in acted]
        self.lattices = [f.lattice for f in self.model.features if f.name in place]
        self.terms = [problem.terms[f] for f in acted]
        self.fixed = sum((problem.fixed[f] for f in acted), ZERO)
        self.paid: Paid = lru_cache(2**16)(lambda k, *ends: self.terms[k].ends(*ends))
        self.demand, self.missing = problem.demand(acted), problem.missing - place.keys()
        self.widths = [len(layer["bias"]) for layer in (self.model.layers or ())[:-1]]
        self.units, self.neurons, self._known = dict[int, Unit](), range(0), dict[Any, int]()
        self.labels, self.values = dict[int, tuple[int, int]](), dict[str, Form]()
        self.products = dict[tuple[str, str], Form]()
        self.equations = dict[str, tuple[Form, Form]]()
        factual = {f: constant(x) for f, x in problem.factual.items()}
        for f, mechanism in self.model.mechanisms.items():  # causes before effects
            before, after = (self._lower(mechanism.equation, values) for values in (factual, self.values))
            self.equations[f] = before, after
            moved, link = plus(after, before, -1), mechanism.link
            value = self._linked(f, link, moved) if link and moved else plus(factual[f], moved)
            self.values[f] = value if f not in place else constant(at[f]) if at else {place[f]: Fraction(1)}
        for first, second in sorted(products(self.demand)):
            self.products[first, second] = self._product(self.values[first], self.values[second])

    def costs(self, ends: Sequence[Interval]) -> Interval:
        """A lower and an upper bound of the cost on a box: all terms at their least, at their most."""
        both = [self.paid(k, *pair) for k, pair in enumerate(ends)]
        return self.fixed + total(least for least, _ in both), self.fixed + total(most for _, most in both)

    def domains(self, cells: Mapping[str, Range]) -> dict[tuple[str, int], Form]:
        """The domain rows, by feature and side: value - low for side 1, high - value for side -1.

        Features that stay missing and infinite ends have no row.

        ``cells``: by feature, the least and greatest double that splits on its value leave (section 6); they
        narrow its domain to one double beyond these. Raises Empty where a domain is then empty.
        """
        known = [(f.name, f.domain) for f in self.model.features if f.name not in self.missing]
        found = {f: (ends[0], ends[1]) for f, ends in known if ends}
        for f, (least, most) in cells.items():
            low, high = found.get(f, (-inf, inf))
            found[f] = max(low, nextafter(least, -inf)), min(high, nextafter(most, inf))
        if any(low > high for low, high in found.values()):
            raise Empty
        rows = [(f, side, end) for f, ends in found.items() for side, end in zip((1, -1), ends, strict=True)]
        return {(f, s): combined((s, -s * e), (self.values[f], UNIT)) for f, s, e in rows if abs(e) < inf}

    def accepts(self, values: Mapping[str, tuple[Number, Number]], pick: Any) -> bool:
        """Whether the trees accept all values in these intervals (``min``), or may accept some (``max``)."""
        known = [(f.table, None if f.name in self.missing else values[f.name]) for f in self.model.features]
        inside = tuple(options(table, ends, self.forests[0].single) for table, ends in known)
        return (any if self.one_suffices else all)(one.accepts(inside, pick) for one in self.forests)

    def columns(self) -> list[Form]:
        """What enters the ensemble or the ReLU network (section 5): values, or labels' numbers by one
        indicator per label; after layers with curves, what comes out of these."""
        found: list[Form] = []
        for f in self.model.features:
            value, table = self.values[f.name], f.table or ()
            labels = [self._folded("indicator", plus(value, UNIT, -k)) for k in range(len(table))]
            found += [combined(column, labels) for column in zip(*table, strict=True)] if table else [value]
        for layer in self.model.front:
            pairs = zip(layer.get("functions") or repeat("relu"), self._affine(layer, found), strict=False)
            found = [form if name == "identity" else self._folded(name, form) for name, form in pairs]
        return found

    @cached_property
    def logit(self) -> Form:
        """The network's logit less what it must reach; every neuron becomes a unit of its own."""
        inputs, first = self.columns(), len(self.acted) + len(self.units)
        logit = self._network(self.model.layers, inputs, lambda y: {self._new(Unit("relu", y)): Fraction(1)})
        self.neurons = range(first, len(self.acted) + len(self.units))
        return plus(logit, constant(Fraction(self.model.at_least) + Fraction(self.model.margin)), -1)

    @cached_property
    def energy(self) -> Energy:
        """The excess energy (sections 2 and 5); without plausibility it has no terms."""
        energy, acts = Energy([], constant(self.problem.offset), [], []), set(self.acted)
        for f, x in self.problem.factual.items() if self.model.plausible else ():
            (_, link, noise), acted = self.model.mechanisms[f], f in acts
            ends = [constant(x), self.values[f]]
            if link and (acted or ends[0] != ends[1]):
                ends = [combined((1 / link[1], -link[0] / link[1]), (end, UNIT)) for end in ends]
                for share, side in zip(ends, (-1, 1), strict=True):
                    for part in (share, plus(UNIT, share, -1)):
                        self._add_log(energy, part, side)
                ends = list(map(self._logit, ends))
            if acted:
                before, after = (plus(end, e, -1) for end, e in zip(ends, self.equations[f], strict=True))
                if noise.square:
                    energy.squares.append((noise.square, after))
                    add(energy.rest, self._folded("square", before), -noise.square)
                if noise.coin and after != before:
                    energy.chances.append(after)
                for u, sign in ((after, 1), (before, -1)):
                    add(energy.rest, u, sign * noise.linear)
                    for times, at, slope in noise.logs:
                        self._add_log(energy, combined((at, slope), (UNIT, u)), sign * times)
        return energy

    def _add_log(self, energy: Energy, form: Form, times: Fraction | int) -> None:
        """Add a multiple of a form's logarithm, and note that the form must be positive."""
        energy.positive.append(form)
        add(energy.rest, self._folded("log", form), times)

    def _linked(self, f: str, link: tuple[Fraction, Fraction], moved: Form) -> Form:
        """offset + scale sigmoid(logit of the factual's share + what the equation adds) (section 2)."""
        offset, scale = link
        share = (self.problem.factual[f] - offset) / scale
        if not 0 < share < 1:
            raise Rejected(f"factual.{f}: allowed: inside its link's range, from offset to offset + scale")
        value = self._folded("sigmoid", plus(self._logit(constant(share)), moved))
        return plus(constant(offset), value, scale)

    def _logit(self, share: Form) -> Form:
        """log(share) - log(1 - share)."""
        return plus(self._folded("log", share), self._folded("log", plus(UNIT, share, -1)), -1)

    def _folded(self, function: str, argument: Form) -> Form:
        """A function of a form, as a form. Equal arguments share one unit.

        A relu, square or indicator of a constant is a constant (section 5).
        """
        if argument.keys() <= {ONE} and function in ("relu", "square", "indicator"):
            y = argument.get(ONE, ZERO)
            return constant({"relu": max(y, ZERO), "square": bounded(y) ** 2}.get(function, Fraction(not y)))
        unit = (function, frozenset(argument.items()))
        if unit not in self._known:
            self._known[unit] = self._new(Unit(function, argument))
        return {self._known[unit]: Fraction(1)}

    def _new(self, unit: Unit) -> int:
        key = len(self.acted) + len(self.units)
        self.units[key] = unit
        if unit.function == "indicator":
            self.labels[key] = next(iter(unit.argument.keys() - {ONE})), -int(unit.argument.get(ONE, ZERO))
        return key

    def _network(self, layers: Any, forms: list[Form], relu: Callable[[Form], Form]) -> Form:
        """A network's output; ``relu`` returns the relu of a form, as a form."""
        for k, layer in enumerate(layers):
            forms = list(map(relu, forms)) if k else forms
            forms = self._affine(layer, forms)
        return forms[0]

    def _affine(self, layer: Any, forms: list[Form]) -> list[Form]:
        rows = zip(layer["weight"], layer["bias"], strict=True)
        return [combined((*row, bias), (*forms, UNIT)) for row, bias in rows]

    def _product(self, p: Form, q: Form) -> Form:
        for a, b in ((p, q), (q, p)):
            if a.keys() <= {ONE}:
                return plus({}, b, a.get(ONE, ZERO))
        sides = [self._folded("square", plus(p, q, sign)) for sign in (1, -1)]
        return combined((Fraction(1, 4), Fraction(-1, 4)), sides)

    def _lower(self, expression: Any, values: Mapping[str, Form]) -> Form:
        """An equation where features have the given forms (section 5)."""
        if isinstance(expression, float):
            return constant(Fraction(expression))
        if isinstance(expression, str):
            return values[expression]
        if "network" in expression:
            inputs = [self._lower(e, values) for e in expression["inputs"]]
            return self._network(expression["network"]["layers"], inputs, partial(self._folded, "relu"))
        function, inner = next(iter(expression.items()))
        if function in ("relu", "sigmoid", "square"):
            return self._folded(function, self._lower(inner, values))
        terms = [self._lower(part, values) for part in inner]
        if function == "product":
            return reduce(self._product, terms, UNIT)
        return combined([1] * len(terms), terms)

"""Affine bounds on a box in floating point, rounded outward. The kernel decides where they close no leaf. (Of
bounds by prices, in whole numbers, the kernel's are not tried again.)

Read :class:`verify.kernel.box.Box` first: intervals, lines and bounds are the same here, but every number is
the nearest double. The error of a form's bound is then at most gamma times the form's *size*, the sum in
which every product is replaced by its absolute value (Higham 2002, section 3.1); it is added to the bound.
docs/certificate_constants.md derives it. Intervals come out a little wider, and lines with them: any line
that holds on an interval is valid. A number too large for a double gives an infinite bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import chain
from math import floor, inf
from operator import add, mul
from typing import Any, NamedTuple

from verify.fast.cells import Unsuited
from verify.fast.prices import Prices
from verify.kernel import box
from verify.kernel.box import FREE, Budget, Signs
from verify.kernel.checks import ZERO, Clock, Empty, Rejected
from verify.kernel.curves import GRID, lines
from verify.kernel.forms import ONE, Configuration, Form
from verify.kernel.prices import Exact
from verify.kernel.prices import Prices as KernelPrices
from verify.kernel.problem import Interval, Term

MOST_COLUMNS = 600
"""Rows are dense here. A configuration with more actions and units is left to the kernel's sparse forms."""

LARGE = 1000
"""From so many leaves on, trees are bounded all at once, if numpy is installed."""

MOST_CELLS = 0.7
"""The largest share of a configuration's cells in a box that prices are made for."""

ROUNDOFF = 2.0**-53
TINY = 2.0**-960
"""This share of a size is added to a bound, for what products lose below the smallest normal number."""

LEAST = 2.0**-960
"""This share is added to sizes for the same loss, which later weights may enlarge."""

MOST = 2.0**900
"""Forms of a larger size are left to the kernel, so that nothing overflows on the way."""

ORDINARY = 2.0**200
"""Numbers of an instance or a leaf that are larger than this are left to the kernel; so are those of costs,
ends and leaves that are not 0 and smaller than its inverse, which may be divided by."""

HUGE = Fraction(2) ** 5000
"""Stands for an infinite bound: more than the square of any bound in doubles, times any weight."""

Sparse = list[tuple[int, float]]
"""A form's coefficients and their places: 0 for the constant, k + 1 for the kernel's key k."""

Line = tuple[float, float]


def arithmetics(configuration: Configuration) -> list[Exact]:
    """The ways to bound a configuration's boxes, in the order in which they are tried."""
    exact = Exact(configuration)
    exact.prices = partial(PricesNearby, configuration)
    size = len(configuration.acted) + len(configuration.units)
    size += sum(len(f.table) for f in configuration.model.features if f.table)
    if not configuration.model.layers or size > MOST_COLUMNS:
        return [exact]
    floats = Floats(configuration)
    return [floats, exact] if floats.ordinary else [exact]


def _weights(configuration: Configuration, forms: Iterable[Form]) -> Iterator[Any]:
    """The numbers of the instance that bounds multiply by: of network and forms."""
    for layer in configuration.model.layers or ():
        yield from chain(layer["bias"], *layer["weight"])
    for form in forms:
        yield from form.values()


def _costs(configuration: Configuration) -> Iterator[Any]:
    """The numbers of the instance's costs."""
    for term in configuration.terms:
        yield from (term.kappa, term.beta, term.omega)
        yield from chain.from_iterable((piece.rate, piece.start) for piece in term.pieces)


def ordinary(numbers: Iterable[Any]) -> bool:
    """Whether every number that is not 0 is between 1 / ORDINARY and ORDINARY in size."""
    return all(not v or 1 / ORDINARY < abs(v) < ORDINARY for v in numbers)


def prices(configuration: Configuration, tables: Any, target: Fraction) -> KernelPrices:
    """The configuration's tables of prices; the kernel's own where the fast ones are unsuited."""
    try:
        found = Prices(configuration, tables, target)
        if sum(map(len, found.ordered.leaves)) >= LARGE:
            with suppress(ImportError, Unsuited):  # without numpy it takes longer
                from verify.fast.arrays import Arrays

                return Arrays(found)
        return found
    except Unsuited:
        return KernelPrices(configuration, tables, target)


class PricesNearby:
    """:func:`prices`, made for the box in which they are first used: it often holds few of a forest's leaves.

    For a node outside that box they are made again, for the whole configuration. Nothing has been taken out
    there: a node that takes something out has its own box in the one that prices were made for. They are made
    for the whole at once where the box holds most of its cells.
    """

    def __init__(self, configuration: Configuration, tables: Any, target: Fraction) -> None:
        self.configuration, self.tables, self.target = configuration, tables, target
        corner = tables.within([(low, low) for low, _ in configuration.box])
        KernelPrices(configuration, corner, target)  # may reject
        self.made: KernelPrices | None = None

    def _made(self, ends: Sequence[Interval], left: Any) -> KernelPrices:
        self.made = self.made or self._first(ends)
        box = self.made.tables.box
        outside = (a < low or high < b for (a, b), (low, high) in zip(ends, box, strict=True))
        if box is not self.configuration.box and any(outside):
            if left:
                raise Rejected("cells taken out in another box, a fault of verify/fast: use --slow")
            self.made = prices(self.configuration, self.tables, self.target)
        return self.made

    def _first(self, box: Sequence[Interval]) -> KernelPrices:
        near = self.tables.within(box)
        if sum(map(len, near.cells)) > MOST_CELLS * sum(map(len, self.tables.cells)):
            whole = prices(self.configuration, self.tables, self.target)
            if type(whole) is not KernelPrices:
                return whole
        return prices(self.configuration, near, self.target)

    def bound(self, k: int, ends: Sequence[Interval], left: Any) -> Fraction | float:
        """As :meth:`verify.kernel.prices.Prices.bound`."""
        return self._made(ends, left).bound(k, ends, left)

    def taken_out(self, k: int, ends: Sequence[Interval], left: Any) -> Any:
        """As :meth:`verify.kernel.prices.Prices.taken_out`."""
        return self._made(ends, left).taken_out(k, ends, left)

    def merged(self, ends: Sequence[Interval], left: Any) -> Any:
        """As :meth:`verify.kernel.prices.Prices.merged`."""
        return self._made(ends, left).merged(ends, left)


def near(value: Fraction) -> float:
    """The nearest double, infinite where there is none."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def sparse(form: Form) -> Sparse:
    """A form in doubles."""
    return [(key + 1, near(c)) for key, c in form.items()]


class Floats(Exact):
    """One configuration of a network in doubles.

    Attributes
    ----------
    units
        (function, argument) for every unit. Labels and the network's neurons stand as "indicator": they are
        not replaced by lines with the other units.
    first
        By place, the coefficient of what has that place in each argument of the first layer.
    ordinary
        Whether all numbers are (:func:`ordinary`). If not, the bounds must not be used.
    gamma
        The largest error of a sum of products, relative to its size: twice the most roundings that a product
        can go through, times ROUNDOFF.
    """

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(configuration)
        self.box = partial(Box, self)
        forms, _ = configuration.columns(), configuration.energy  # whose logarithms are units too
        arguments = [unit.argument for unit in configuration.units.values()]
        columns, numbers = list(map(sparse, forms)), _weights(configuration, [*forms, *arguments])
        self.ordinary = all(abs(w) < ORDINARY for w in numbers) and ordinary(_costs(configuration))
        start, layers = len(configuration.acted) + 1, configuration.model.layers or ()
        self.units = [
            ("indicator", []) if key in configuration.neurons else (unit.function, sparse(unit.argument))
            for key, unit in configuration.units.items()
        ]
        self.inputs, self.layers = columns, layers
        self.absolute = [[list(map(abs, row)) for row in layer["weight"]] for layer in layers]
        self.labels: dict[int, dict[int, int]] = {}  # an action's place -> number -> place
        for key, (action, number) in configuration.labels.items():
            self.labels.setdefault(action + 1, {})[number] = key + 1
        places = start + len(self.units)
        self.first = [[0.0] * len(layers[0]["bias"]) for _ in range(places)]
        self.first[0] = list(layers[0]["bias"])
        for column, weights in zip(columns, zip(*layers[0]["weight"], strict=True), strict=True):
            for place, c in column:
                self.first[place] = [a + c * w for a, w in zip(self.first[place], weights, strict=True)]
        self.needed = Fraction(configuration.model.at_least) + Fraction(configuration.model.margin)
        self.depth = [0] * places
        for place, (_, argument) in enumerate(self.units, start):
            self.depth[place] = 1 + max((self.depth[p] for p, _ in argument), default=0)
        count = sum(len(layer["bias"]) + 4 for layer in layers) + len(columns) + 4
        count += max(self.depth) * (len(self.units) + 4) + places + 32
        self.gamma = 2 * count * ROUNDOFF if count * ROUNDOFF < 0.25 else inf
        self.lever = lru_cache(2**10)(self._lever)

    def _lever(self, place: int, low: Fraction, high: Fraction) -> Lever:
        return Lever(self.configuration.terms[place - 1], low, high, self.labels.get(place, {}))


class Lever:
    """An action's cost on an interval in doubles, made once and used for many forms.

    Attributes
    ----------
    values, costs, tops
        For every end of a piece, or for every label: the value, the cost, the entry in the cost's maximum.
    numbers
        (value, place) of every label, 0 where it has no place; nothing for other actions.
    bends
        (rate, start, least size, largest size) for pieces on which the derivative may be 0 between the ends.
    reach
        The largest absolute value, or size of a change divided by its rate; infinite where an end is not
        ordinary.
    """

    def __init__(self, term: Term, low: Fraction, high: Fraction, labels: Mapping[int, int]) -> None:
        pieces = term.within(low, high)
        ends = {Fraction(a): piece for piece in pieces for a in (piece.low, piece.high)}
        if labels:
            numbers = map(Fraction, range(floor(low), floor(high) + 1))
            ends = {k: piece for k in numbers for piece in pieces if piece.low <= k <= piece.high}
        self.kappa, self.beta = near(term.kappa), near(term.beta)
        paid = [term.paid(piece.size(a)) for a, piece in ends.items()]
        self.values = [near(a) for a in ends]
        self.costs, self.tops = [near(cost) for cost, _ in paid], [near(top) for _, top in paid]
        self.omega = near(term.omega)
        self.numbers = [(near(a), labels.get(floor(a), 0)) for a in ends] if labels else []
        self.low, self.high = (0.0, 0.0) if labels else (min(self.values), max(self.values))
        self.reach = max(map(abs, self.values))
        if not ordinary(ends):
            self.reach = inf
        self.bends: list[tuple[float, float, float, float]] = []
        for piece in pieces if term.kappa and not labels else ():
            least, most = sorted(near(piece.size(Fraction(a))) for a in (piece.low, piece.high))
            if piece.rate:
                self.bends.append((near(piece.rate), near(piece.start), least, most))
                self.reach = max(self.reach, (most + abs(near(piece.start))) / abs(near(piece.rate)))

    def most(self, slope: float, labels: Sequence[float], theta: float = 1.0, share: float = 0.0) -> float:
        """The maximum of slope * value + (the label's coefficient) - theta * cost.

        ``labels`` has the coefficient of every label, or nothing. The cost includes ``share`` times the entry
        in the cost's maximum. Infinite where the maximum cannot be computed in doubles.
        """
        values = [slope * a for a in self.values]
        if labels:
            values = list(map(add, values, labels))
        costs = self.costs
        if share:
            costs = [cost + share * top for cost, top in zip(costs, self.tops, strict=True)]
        found = max([value - theta * cost for value, cost in zip(values, costs, strict=True)])
        beta, steep = self.beta + share * self.omega, 2.0 * theta * self.kappa
        if self.bends and not (steep > TINY and abs(slope) < MOST):
            return inf
        for rate, start, least, most in self.bends:
            size = (slope / rate - theta * beta) / steep
            if least < size < most:
                value = slope * ((size - start) / rate) - theta * (self.kappa * size + beta) * size
                found = max(found, value)
        return found


class Neuron(NamedTuple):
    """A hidden neuron that may be positive on the box, or whose sign was split on.

    Attributes
    ----------
    number, place
        Its number in the network, and in its layer.
    reads, bias
        Its weights, for every place (layer 0) or every kept neuron of the layer before; the constant added.
    size
        The size of its argument.
    slope, rise
        Slope and intercept of its upper line.
    free
        Whether its sign is open: then a leaf chooses its lower line's slope.
    """

    number: int
    place: int
    reads: Sequence[float]
    bias: float
    size: float
    slope: float
    rise: float
    free: bool


class Layer:
    """The neurons of a hidden layer that are kept (see :class:`Neuron`), as one list per attribute.

    Attributes
    ----------
    outputs
        The sizes of the neurons' values.
    columns
        For each of the ``reads`` inputs of the layer, the neurons' weights of it.
    """

    def __init__(self, neurons: list[Neuron], reads: int) -> None:
        self.neurons = neurons
        self.places, self.bias = [one.place for one in neurons], [one.bias for one in neurons]
        self.slope, self.rise = [one.slope for one in neurons], [one.rise for one in neurons]
        self.outputs = [LEAST + (1.0 if one.free else one.slope) * one.size + one.rise for one in neurons]
        self.columns = list(zip(*(one.reads for one in neurons), strict=True)) or [()] * reads

    def lower(self, slopes: str) -> list[float]:
        """The lower lines' slopes."""
        return [float(slopes[one.number]) if one.free else one.slope for one in self.neurons]


class Box(box.Box):
    """A box of actions with the lines of every unit; those of neurons are made when first needed.

    Attributes
    ----------
    sizes, largest
        By place, the size of the action or unit there; the largest size computed so far.
    bounds
        Lower and upper line of every unit but neurons; None where no line is known.
    hidden
        The hidden layers: all of them, unless the box is :attr:`empty`.
    """

    def __init__(
        self, floats: Floats, ends: Sequence[Interval], slopes: str, signs: Signs, budget: Budget = FREE
    ) -> None:
        self.floats, self.ends, self.slopes, self.signs, self.budget = floats, ends, slopes, signs, budget
        self.levers = [floats.lever(place, *pair) for place, pair in enumerate(ends, 1)]
        self.low = [1.0, *(lever.low for lever in self.levers)]
        self.high = [1.0, *(lever.high for lever in self.levers)]
        self.sizes = [1.0, *(LEAST + lever.reach for lever in self.levers)]
        self.largest = max(self.sizes)
        self.labelled = [
            (place, lever.numbers) for place, lever in enumerate(self.levers, 1) if lever.numbers
        ]
        self.spent = near(budget.most)
        self.dear = LEAST + sum([max(lever.costs) for lever in self.levers])
        self.bounds: list[tuple[Line | None, Line | None]] = []
        for function, argument in floats.units:
            Clock.look()
            size, above, below = self._lines(function, argument)
            self.sizes.append(size)
            self.largest = max(self.largest, size)
            self.bounds.append((below, above))

    def _lines(self, function: str, argument: Sparse) -> tuple[float, Line | None, Line | None]:
        """A unit's size, and its upper and lower line."""
        if function == "indicator":
            return 1.0, None, None
        size = self._size(argument)
        low, high = (side * self._most(self._row(argument, side), size) for side in (-1.0, 1.0))
        if not max(abs(low), abs(high)) < MOST:
            return inf, None, None
        below, above = lines(function, Fraction(low), Fraction(high))
        pair = [line and (near(line[0]), near(line[1])) for line in (above, below)]
        return LEAST + max(abs(line[0]) * size + abs(line[1]) for line in pair if line), pair[0], pair[1]

    # -- forms ------------------------------------------------------------------------------

    def _size(self, form: Sparse) -> float:
        return self._least() + sum(abs(c) * self.sizes[place] for place, c in form)

    def _least(self) -> float:
        """What is added to a size for products below the smallest normal number."""
        return LEAST * (1.0 + self.largest)

    def _slack(self, size: float) -> float:
        """The largest rounding error of a bound of this size; infinite where numbers may have overflowed."""
        most = max(size, self.largest)
        return self.floats.gamma * size + TINY * (1.0 + most) if most < MOST else inf

    def _row(self, form: Sparse, factor: float = 1.0) -> list[float]:
        """A multiple of a form, its units replaced from above, by place."""
        return self._flat(self._dense(form, factor))

    def _dense(self, form: Sparse, factor: float = 1.0) -> list[float]:
        row = [0.0] * len(self.floats.first)
        for place, c in form:
            row[place] = factor * c
        return row

    def _flat(self, row: list[float]) -> list[float]:
        """The row with its units replaced from above, the last first; labels stay."""
        start = len(self.low)
        for place in range(start + len(self.bounds) - 1, start - 1, -1):
            c, (function, argument) = row[place], self.floats.units[place - start]
            if not c or function == "indicator":
                continue
            line, row[place] = self.bounds[place - start][c > 0], 0.0
            slope, intercept = line or (0.0, inf)
            row[0] += abs(c) * inf if line is None else c * intercept
            for at, a in argument:
                row[at] += c * slope * a
        return row

    def _most(self, row: list[float], size: float) -> float:
        """An upper bound on the box of a row whose units have been replaced."""
        found = sum(map(max, map(mul, row, self.low), map(mul, row, self.high)))
        for place, numbers in self.labelled:
            found += max([row[place] * a + (row[at] if at else 0.0) for a, at in numbers])
        return finite(found + self._slack(size))

    def _within(self, row: list[float], size: float, theta: float) -> float:
        """As :meth:`_most`, for actions that cost less than the target; theta weighs their cost."""
        if not theta:
            return self._most(row, size)
        if not ordinary([theta]):
            return inf
        found = row[0] + theta * self.spent
        for place, lever in enumerate(self.levers, 1):
            found += lever.most(row[place], [row[at] if at else 0.0 for _, at in lever.numbers], theta)
        return finite(found + self._slack(size + theta * (abs(self.spent) + 4.0 * self.dear)))

    def most(self, form: Form, theta: Fraction = ZERO) -> Fraction:
        """An upper bound of the form on the box; ``theta`` must be 0."""
        assert not theta
        return self._settled(sparse(form), 1.0)

    def highest(self, k: int, part: box.Part, theta: Fraction, share: Fraction = ZERO) -> Fraction:
        """An upper bound of the maximum of action k's part less its cost; ``theta`` must be 1."""
        assert theta == 1
        lever, weight, slope = self.levers[k], near(share), near(part.get(None, ZERO))
        labels = [near(part.get(int(a), ZERO)) for a, _ in lever.numbers]
        if not (ordinary([weight]) and max(map(abs, [slope, *labels])) < MOST):
            return HUGE
        size = abs(slope) * lever.reach + max(map(abs, labels), default=0.0)
        size += max(lever.costs) + weight * max(lever.tops)
        return known(lever.most(slope, labels, share=weight) + self._slack(LEAST + size))

    def least(self, form: Form) -> Fraction:
        """A lower bound of the form on the box."""
        return -self._settled(sparse(form), -1.0)

    def _settled(self, form: Sparse, factor: float) -> Fraction:
        """An upper bound of a multiple of a form."""
        return known(self._most(self._row(form, factor), self._size(form)))

    def interval(self, form: Form) -> Interval:
        """Bounds of the form on the box, from below and from above (section 7)."""
        return self.least(form), self.most(form)

    # -- the network ------------------------------------------------------------------------

    @property
    def empty(self) -> bool:
        """Whether some neuron's argument has an empty interval, so that the box holds nothing."""
        return len(self.hidden) < len(self.floats.layers) - 1

    @cached_property
    def hidden(self) -> list[Layer]:
        """The hidden layers, up to the first with a neuron whose argument has an empty interval."""
        found, number = list[Layer](), 0
        for depth, layer in enumerate(self.floats.layers[:-1]):
            lower, neurons = [one.lower(self.slopes) for one in found], list[Neuron]()
            for place in range(len(layer["bias"])):
                Clock.look()
                reads, bias, size = self._reads(depth, place, found)
                sign, thetas = self.signs.get(number, 0), (ZERO, ZERO)
                if self.budget.thetas:
                    thetas = self.budget.thetas[number]
                ends = list[float]()
                for side, theta in zip((1.0, -1.0), thetas, strict=True):
                    row = self._flat(self._argument(reads, bias, side, found, lower))
                    ends.append(side * self._within(row, size, near(theta)))
                high, low = ends
                low, high = max(low, 0.0) if sign > 0 else low, min(high, 0.0) if sign < 0 else high
                if low > high:
                    return found
                if high > 0.0 or sign:
                    line = (0.0, 0.0) if sign < 0 else upper(low, high)
                    neurons.append(Neuron(number, place, reads, bias, size, *line, low < 0.0 < high))
                number += 1
            found.append(Layer(neurons, len(reads)))
            self.largest = max([self.largest, *found[-1].outputs])
        return found

    def _reads(self, depth: int, place: int, layers: list[Layer]) -> tuple[Sequence[float], float, float]:
        """A neuron's, or the output's, (weights, bias, size of the argument).

        The weights are those of its layer's inputs: places in layer 0, else the kept neurons of the layer
        before. In layer 0 the constant's place has the bias, and 0 is returned for it.
        """
        floats, bias = self.floats, self.floats.layers[depth]["bias"][place]
        if not layers:  # the constant's place holds the bias
            size = self._least() + abs(bias) + sum(map(mul, floats.absolute[0][place], self.inputs))
            reads, bias = [column[place] for column in floats.first], 0.0
        else:
            weight = floats.layers[depth]["weight"][place]
            reads = [weight[one] for one in layers[-1].places]
            size = self._least() + abs(bias) + sum(map(mul, map(abs, reads), layers[-1].outputs))
        self.largest = max(self.largest, size)
        return reads, bias, size

    @cached_property
    def inputs(self) -> list[float]:
        """The sizes of the network's inputs."""
        return list(map(self._size, self.floats.inputs))

    def _argument(
        self,
        reads: Sequence[float],
        bias: float,
        factor: float,
        layers: list[Layer],
        lower: list[list[float]],
        more: Sequence[Sequence[float]] = (),
    ) -> list[float]:
        """``factor`` times a unit's argument, plus ``more`` times the neurons' arguments, bounded from above.

        Returns coefficients by place (see ``Sparse``); neurons are replaced by their lines.
        """
        outputs, constant = [factor * w for w in reads], factor * bias
        for k in range(len(layers) - 1, -1, -1):
            layer = layers[k]
            constant += sum([c * rise for c, rise in zip(outputs, layer.rise, strict=True) if c > 0.0])
            both = zip(outputs, layer.slope, lower[k], strict=True)
            arguments = [c * (over if c > 0.0 else under) for c, over, under in both]
            if more:
                arguments = list(map(add, arguments, more[k]))
            constant += sum(map(mul, arguments, layer.bias))
            outputs = [sum(map(mul, arguments, column)) for column in layer.columns]
        outputs[0] += constant
        return outputs

    def above(
        self, form: Form, slopes: str, logit: Fraction, arguments: Sequence[tuple[int, Fraction]]
    ) -> Form:
        """The form, plus ``logit`` times the logit row and multiples of arguments, bounded from above.

        As :meth:`verify.kernel.box.Box.above`. The constant is HUGE where the bound may have overflowed.
        """
        given = sparse(form)
        row, size = self._dense(given), self._size(given)
        if logit or arguments:
            if self.empty:
                raise Empty
            layers, factors = self.hidden, dict(arguments)
            more = [[near(factors.get(one.number, ZERO)) for one in layer.neurons] for layer in layers]
            reads, bias, own = self._reads(len(layers), 0, layers)
            lower = [layer.lower(slopes) for layer in layers]
            added = self._argument(reads, bias, near(logit), layers, lower, more)
            added[0] -= near(logit * self.floats.needed)
            row = list(map(add, row, added))
            size += near(logit) * (own + abs(near(self.floats.needed)))
            for layer, factor in zip(layers, more, strict=True):
                size += sum(abs(m) * one.size for m, one in zip(factor, layer.neurons, strict=True))
        row = self._flat(row)
        constant = row[0] + self._slack(size)
        weighed = [logit, *(factor for _, factor in arguments)]
        if not (ordinary(weighed) and all(abs(c) < inf for c in (constant, *row))):
            return {ONE: HUGE}
        return {ONE: known(constant)} | {place - 1: known(c) for place, c in enumerate(row) if place and c}


def upper(low: float, high: float) -> Line:
    """Slope and intercept of a relu's upper line."""
    if low >= 0.0:
        return 1.0, 0.0
    if high <= 0.0:
        return 0.0, 0.0
    if not high - low < MOST:
        return 1.0, inf
    slope = floor(high / (high - low) * GRID) / GRID
    return slope, max(-slope * low, (1.0 - slope) * high)


def finite(value: float) -> float:
    """An upper bound; infinite where it is not a finite number."""
    return value if abs(value) < inf else inf


def known(value: float) -> Fraction:
    """An upper bound as a fraction, HUGE where it is not finite."""
    return Fraction(value) if abs(value) < inf else HUGE

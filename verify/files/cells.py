"""Reads a certificate's tables of prices for a configuration (section 7.3).

Cells and classes are worked out here. A mistake in them proves nothing false: the kernel checks that the
cells cover the box, and then any prices of cells are valid; the fast path checks that they are right.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Mapping, MutableSequence, Sequence
from copy import copy
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, chain, islice, pairwise, repeat
from typing import Any, NamedTuple

from verify.files.features import WHOLE
from verify.files.shapes import Reading, anything, conform, not_negative, placed, positive, refuse
from verify.kernel import checks
from verify.kernel.certificate import Read
from verify.kernel.checks import Rejected
from verify.kernel.forms import Configuration
from verify.kernel.lattice import Lattice
from verify.kernel.prices import Table
from verify.kernel.problem import Interval
from verify.kernel.trees import Ensemble, Node, Number, above32, float32, float64

LARGEST_PRICE = 2.0**53

MOST_CLASSES = 300_000_000
"""The most classes of cells, over all trees and actions, that are worked out; each takes four bytes."""

MOST_SIGNS = 20
"""Text of more signs for each of the classes is not read with numpy, which takes several bytes for a sign."""

Classes = MutableSequence[int]


def _some(value: Any, where: str) -> bool:
    """Whether some price is not 0; reject prices that are not whole numbers of at most 2^53 in size."""
    given = conform(value, list, where)
    whole = {*map(type, given)} <= {float} and all(map(float.is_integer, given))
    if not whole or max(given, default=0.0) > LARGEST_PRICE or min(given, default=0.0) < -LARGEST_PRICE:
        for price in given:
            if type(price) is not float or not price.is_integer() or abs(price) > LARGEST_PRICE:
                refuse(where, price, "as a price a whole number of at most 2^53 in size")
    return any(given)


SOME = {"weights?": [float], "shares?": [float], "nu?": not_negative, "steps?": bool, "runs?": anything}
TABLE = {"unit": positive, "mu": float, "trees": list, **SOME}


class Counted(NamedTuple):
    """A table as the file has it: prices by tree, feature and class, as whole numbers of ``unit``.

    ``rates`` has mu times the weight for each part of the ensemble; ``nu`` is in units, too.
    """

    unit: Fraction
    shares: Sequence[float] | None
    rates: Sequence[Fraction]
    nu: int
    prices: Sequence[Mapping[int, Sequence[float]]]


Row = tuple[Sequence[float], float, float]
"""Numbers in a row, the largest size of one, and how many prices they stand for."""


def _row(found: Sequence[float]) -> Row:
    again = [one for one in found if one < 0]
    return found, max(map(abs, found), default=0), len(found) - len(again) - sum(again)


def in_text(text: str) -> Row:
    """The whole numbers in a text, a space between two; raise :class:`ValueError` for any other text."""
    if text.encode("ascii", "replace").translate(None, b"-0123456789 "):
        raise ValueError
    return _row(list(map(int, text.split(" "))))


def reader(listed: Sequence[Any], where: str, reading: Reading) -> Read:
    """Return a function that reads these tables for a configuration."""

    def read(configuration: Configuration) -> Any:  # Tables, whose cells are worked out when asked for
        reading.place = where
        if not configuration.forests:
            raise Rejected("allowed: only where the classifier is made of trees")
        return Priced(listed, where, configuration)

    return read


class Priced:
    """A certificate's tables for a box of a configuration (:class:`verify.kernel.prices.Tables`).

    Attributes
    ----------
    box
        An interval per action.
    cells
        Per action, the cells that meet the box, ascending.
    classes
        Per tree, for each action that it looks at, the class of each of these cells; the first is 0 here.
    numbered
        Likewise, the number of the first of these classes in the document's count, and how many it counts.
    """

    def __init__(self, listed: Sequence[Any], where: str, configuration: Configuration) -> None:
        self.listed, self.where, self.forests = listed, where, configuration.forests
        self.most = configuration.problem.most
        self.box: Sequence[Interval] = configuration.box
        features = configuration.model.features
        acted = [j for j, f in enumerate(features) if f.name in configuration.acted]
        self.looked = [looks(tree, forest, set(acted)) for forest in self.forests for tree in forest.trees]
        self.actions: dict[int, Labels | Numbers] = {}
        for j, whole in zip(acted, self.box, strict=True):
            if features[j].table is not None:
                self.actions[j] = Labels(whole, features[j].lattice)
            else:
                cuts = set().union(*(thresholds.get(j, ()) for thresholds in self.looked))
                self.actions[j] = Numbers(whole, cuts, self.forests[0].single, features[j].lattice)

    def within(self, box: Sequence[Interval]) -> Priced:
        """The same tables for a part of the configuration's box.

        Where a cost leaves little of the levers' intervals, a forest of deep trees has few cells inside.
        """
        part = copy(self)
        part.box = list(box)
        for name in ("cells", "every", "_worked_out"):
            vars(part).pop(name, None)
        return part

    @cached_property
    def cells(self) -> list[list[Interval]]:
        """See above."""
        return [own.cells(*own.met(ends)) for own, ends in zip(self.actions.values(), self.box, strict=True)]

    @property
    def classes(self) -> list[dict[int, Classes]]:
        """See above."""
        return self._worked_out[0]

    @property
    def numbered(self) -> list[dict[int, tuple[int, int]]]:
        """See above."""
        return self._worked_out[1]

    @cached_property
    def every(self) -> int:
        """How many classes the document counts."""
        return sum(count for own in self.numbered for _, count in own.values())

    @cached_property
    def _worked_out(self) -> tuple[list[dict[int, Classes]], list[dict[int, tuple[int, int]]]]:
        met = {j: own.met(ends) for (j, own), ends in zip(self.actions.items(), self.box, strict=True)}
        if sum(met[j][1] - met[j][0] + 1 for one in self.looked for j in one) > MOST_CLASSES:
            raise Rejected(f"{self.where}: more than {MOST_CLASSES} classes of cells (section 7.3)")
        classes: list[dict[int, Classes]] = [{} for _ in self.looked]
        numbered: list[dict[int, tuple[int, int]]] = [{} for _ in self.looked]
        for t, thresholds in enumerate(self.looked):
            for j, own in thresholds.items():
                checks.Clock.look()
                found, count = self.actions[j].classes(own, *met[j])
                numbered[t][j] = found[0], count
                classes[t][j] = array("i", [number - found[0] for number in found])
        return classes, numbered

    def table(self, k: float) -> Table:
        """The k-th table, with a price for every cell."""
        unit, shares, rates, nu, paid = self.counted(k)
        each = zip(self.classes, paid, strict=True)
        found = [{j: [unit * int(own[c]) for c in of[j]] for j, own in tree.items()} for of, tree in each]
        return Table(shares, rates, unit * nu, found)

    def counted(self, k: float) -> Counted:
        """The k-th table, with a price for every class."""
        found, runs = self.unspread(k)
        return found if runs is None else found._replace(prices=self._run(runs))

    def unspread(self, k: float, read: Any = in_text) -> tuple[Counted, Sequence[float] | None]:
        """The k-th table as the file has it, once the number of trees, actions and classes is checked.

        Where prices are runs over all classes, these come second, and the table has none. ``read`` does as
        :func:`in_text`.
        """
        where = f"{self.where}.{checks.index(k, len(self.listed))}"
        given, parts = conform(self.listed[int(k)], TABLE, where), len(self.forests)
        weights = given["weights"] or []
        if len(weights) != (parts if parts > 1 else 0):
            raise Rejected(f"{where}.weights: got {len(weights)}; allowed: one per sum, if there are several")
        prices, runs = list[dict[int, list[float]]](), given["runs"]
        if runs is None:
            prices = self._listed(given, where)
        elif given["trees"]:
            raise Rejected(f"{where}.trees: allowed beside runs: []")
        elif given["steps"]:
            raise Rejected(f"{where}.steps: allowed beside runs: false")
        else:
            runs = in_a_row(runs, self.every, f"{where}.runs", read)
        numbers = [given["mu"], *(weights or [1.0])]
        mu, *each = checks.multipliers(f"{where}, mu and weights", numbers, len(numbers))
        rates = [mu * weight for weight in each]
        _some([nu := given["nu"] or 0.0], f"{where}.nu")
        if nu and self.most == math.inf:
            raise Rejected(f"{where}.nu: allowed: only where a condition limits the number of actions")
        return Counted(Fraction(given["unit"]), given["shares"], rates, int(nu), prices), runs

    def _listed(self, given: dict[str, Any], where: str) -> list[dict[int, list[float]]]:
        """The prices of classes from a list for each tree and action."""
        prices: list[dict[int, list[float]]] = [{} for _ in self.classes]
        for t, paid in filled(given["trees"], len(prices), f"{where}.trees").items():
            at, looked = f"{where}.trees.{t}", list(self.numbered[t].items())
            for place, listed in filled(paid, len(looked), at).items():
                (j, (first, count)), some = looked[place], _some(listed, at)
                own = spread(listed, count, at) if given["steps"] else listed
                if len(own) != count:
                    raise Rejected(f"{at}: {len(own)} prices; allowed: none or {count}, one per class")
                if some:
                    prices[t][j] = own[first : first + self.classes[t][j][-1] + 1]
        return prices

    def _run(self, runs: Sequence[float]) -> list[dict[int, list[float]]]:
        """The prices of classes from one list for all of them."""
        times = (int(max(1.0, -one)) for one in runs)
        held = accumulate(runs, lambda price, one: price if one < 0 else one, initial=0.0)
        each = chain.from_iterable(map(repeat, islice(held, 1, None), times))
        each = chain(each, repeat(next((one for one in reversed(runs) if one >= 0), 0.0)))
        prices: list[dict[int, list[float]]] = [{} for _ in self.classes]
        for t, looked in enumerate(self.numbered):
            for j, (first, count) in looked.items():
                checks.Clock.look()
                some = islice(each, count)
                found = list(islice(some, first, first + self.classes[t][j][-1] + 1))
                deque(some, maxlen=0)
                if len({*found}) > 1:  # one price for all would cancel
                    prices[t][j] = found
        return prices


def in_a_row(given: Any, most: int, where: str, read: Any) -> Sequence[float]:
    """Prices in a row, from a list, or from text with a space between two; -n stands for n of them."""
    if isinstance(given, str):
        if given and len(given) >= most and given.count(" ") >= most:
            raise Rejected(f"{where}: {given.count(' ') + 1} numbers; allowed: at most {most}, one per class")
        long = len(given) > MOST_SIGNS * most
        try:
            found, largest, stated = (in_text if long else read)(given) if given else _row([])
        except ValueError:
            largest = math.inf
        if largest > LARGEST_PRICE:
            refuse(where, given, "whole numbers of at most 2^53 in size, a space between two")
    else:
        _some(given, where)
        found, _, stated = _row(given)
    if stated > most:
        raise Rejected(f"{where}: {stated:.0f} prices; allowed: at most {most}, one per class")
    return found


def filled(listed: Any, count: int, where: str) -> dict[int, list[Any]]:
    """The lists that are not empty, by their places among ``count``.

    In ``listed`` a number n stands for n empty lists, and an empty ``listed`` for ``count`` of them.
    """
    found, place, given = {}, 0, conform(listed, list, where)
    with placed(where):
        for one in given:
            if isinstance(one, list):
                if one:
                    found[place] = one
                place += 1
            else:
                place += checks.index(conform(one, float, "an entry"), count - place + 1)
    if place not in (0, count):
        raise Rejected(f"{where}: {place} lists; allowed: none or {count}")
    return found


def spread(steps: Sequence[float], count: int, where: str) -> list[float]:
    """One price per class, from [class, price, class, price, ...]: each price holds up to the next class."""
    with placed(where):
        firsts = [checks.index(k, count) for k in steps[::2]]
    if len(steps) % 2 or any(a >= b for a, b in pairwise(firsts)):
        raise Rejected(f"{where}: got {len(steps)} numbers; allowed: pairs of a class and a price, ascending")
    found = [0.0] * min(firsts, default=count)
    for first, end, price in zip(firsts, [*firsts, count][1:], steps[1::2], strict=True):
        found += [price] * (end - first)
    return found


def looks(tree: Sequence[Node], forest: Ensemble, acted: set[int]) -> dict[int, set[float]]:
    """For each action that a tree looks at, in order, the thresholds that it compares the action with."""
    found, others = {j: set[float]() for j in sorted(acted)}, set[float]()
    adds = [found.get(j, others).add for j, _ in forest.places]
    for node in tree:
        if not isinstance(node, float):
            adds[node[0]](node[1])
    return {j: own for j, own in found.items() if own}


class Labels:
    """An action of a feature with a table, in an interval: each label is a cell and a class."""

    def __init__(self, whole: Interval, lattice: Lattice | None) -> None:
        every = map(Fraction, range(int(whole[0]), int(whole[1]) + 1))
        self.values = [k for k in every if lattice is None or lattice.floor(k) == k]
        self.count = len(self.values)

    def met(self, ends: Interval) -> tuple[int, int]:
        """The numbers of the first and the last cell that meet a part of the interval."""
        return bisect_left(self.values, ends[0]), bisect_right(self.values, ends[1]) - 1

    def cells(self, first: int, last: int) -> list[Interval]:
        """The cells of these numbers."""
        return [(k, k) for k in self.values[first : last + 1]]

    def classes(self, thresholds: set[float], first: int, last: int) -> tuple[list[int], int]:
        """The number of each cell's class to a tree with these thresholds, and how many classes it has."""
        return list(range(first, last + 1)), self.count


class Numbers:
    """An action of another feature, in an interval that the thresholds of all trees cut into cells; likewise.

    ``single``: whether values are compared in float32. ``lattice``: that of the feature.

    Attributes
    ----------
    last_of
        By threshold, the last value that goes left there; those that do not divide the interval are left out.
    ends
        The last values of all cells; of the last one, infinity.
    """

    def __init__(
        self, whole: Interval, thresholds: set[float], single: bool, lattice: Lattice | None
    ) -> None:
        (self.low, self.high), self.lattice, self.last_of = whole, lattice, dict[float, float]()
        low, high = map(float, whole)  # the ends are doubles
        compared = float32 if single else float64
        cuts, after = sorted(thresholds), 0
        while (first := after) < len(cuts):
            last, after = last_left(single, cuts[first]), first + 1
            finite = math.isfinite(last) and math.isfinite(math.nextafter(last, math.inf))
            if lattice and finite:  # cuts below ``above`` divide the lattice where this one does
                below, above = _around(lattice, last)
                last, after = float(below), bisect_left(cuts, compared(above), after)
            if low <= last < high:
                self.last_of.update(dict.fromkeys(cuts[first:after], last))
        self.ends = [*sorted({*self.last_of.values()}), math.inf]

    def met(self, ends: Interval) -> tuple[int, int]:
        """The numbers of the first and the last cell that meet a part of the interval."""
        return bisect_left(self.ends, ends[0]), bisect_left(self.ends, ends[1])

    def cells(self, first: int, last: int) -> list[Interval]:
        """The cells of these numbers."""
        found, start = [], self._after(self.ends[first - 1]) if first else self.low
        for end in self.ends[first:last]:
            found.append((start, Fraction(end)))
            start = self._after(end)
        final = self.ends[last]
        return [*found, (start, Fraction(final) if final < math.inf else self.high)]

    def _after(self, value: float) -> Fraction:
        return Fraction(_around(self.lattice, value)[1] if self.lattice else math.nextafter(value, math.inf))

    def classes(self, thresholds: set[float], first: int, last: int) -> tuple[list[int], int]:
        """The number of each cell's class to a tree with these thresholds, and how many classes it has."""
        borders = sorted({*map(self.last_of.get, thresholds, repeat(math.inf))} - {math.inf})
        return [bisect_left(borders, end) for end in self.ends[first : last + 1]], len(borders) + 1


def _around(lattice: Lattice, value: float) -> tuple[Number, Number]:
    """The values of a lattice nearest to a double: at most that, and above it."""
    if lattice is WHOLE and abs(value) < LARGEST_PRICE:
        return math.floor(value), math.floor(value) + 1
    return lattice.floor(value), lattice.ceil(math.nextafter(value, math.inf))


def last_left(single: bool, threshold: float) -> float:
    """The largest double that goes left at a threshold, after rounding to float32 where ``single``."""
    compared, end = float32 if single else float64, threshold
    if single:  # about half way between two neighbours
        above = min(above32(threshold), 2.0**128)  # from there on numbers are rounded to infinity
        end = above / 2 - above32(-above) / 2
    if compared(end) > threshold:
        end = math.nextafter(end, -math.inf)
    if not compared(end) <= threshold < compared(math.nextafter(end, math.inf)):
        raise Rejected(f"classifier: a threshold of {threshold!r}, too large for prices (section 7.3)")
    return end

"""Reads a certificate's tables of prices for a configuration (section 7.3).

Cells and classes are worked out here. A mistake in them proves nothing false: the kernel checks that the
cells cover the box, and then any prices of cells are valid; the fast path checks that they are right.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from verify.files.shapes import Reading, conform, placed, positive
from verify.kernel import checks
from verify.kernel.certificate import Read
from verify.kernel.checks import Rejected
from verify.kernel.forms import Configuration
from verify.kernel.prices import Table
from verify.kernel.problem import Feature, Interval
from verify.kernel.trees import Ensemble, Node, above32, float32, float64

LARGEST_PRICE = 2.0**53


def _some(value: Any, where: str) -> bool:
    """Whether some price is not 0; reject prices that are not whole numbers of at most 2^53 in size."""
    for price in conform(value, list, where):
        if type(price) is not float or not price.is_integer() or abs(price) > LARGEST_PRICE:
            raise Rejected(f"{where}: a price that is no whole number of at most 2^53")
    return any(value)


TABLE = {"unit": positive, "mu": float, "trees": list, "weights?": [float], "shares?": [float]}


class Counted(NamedTuple):
    """A table as the file has it: prices by tree, feature and class, as whole numbers of ``unit``.

    ``rates`` has mu times the weight for each part of the ensemble.
    """

    unit: Fraction
    shares: Sequence[float] | None
    rates: Sequence[Fraction]
    prices: Sequence[Mapping[int, Sequence[float]]]


def reader(listed: Sequence[Any], where: str, reading: Reading) -> Read:
    """Return a function that reads these tables for a configuration."""

    def read(configuration: Configuration) -> Priced:
        reading.place = where
        if not configuration.forests:
            raise Rejected("allowed: only where the classifier is made of trees")
        return Priced(listed, where, configuration)

    return read


class Priced:
    """A certificate's tables for a configuration (:class:`verify.kernel.prices.Tables`)."""

    def __init__(self, listed: Sequence[Any], where: str, configuration: Configuration) -> None:
        self.listed, self.where = listed, where
        self.forests, features = configuration.forests, configuration.model.features
        acted = [j for j, f in enumerate(features) if f.name in configuration.acted]
        self.cells = [
            cells(self.forests, features[j], j, box) for j, box in zip(acted, configuration.box, strict=True)
        ]
        compared = float32 if self.forests[0].single else float64
        least = {j: [compared(low) for low, _ in own] for j, own in zip(acted, self.cells, strict=True)}
        labelled = {j for j in acted if features[j].table is not None}
        self.classes = [
            classes(tree, forest, least, labelled) for forest in self.forests for tree in forest.trees
        ]

    def table(self, k: float) -> Table:
        """The k-th table, with a price for every cell."""
        unit, shares, rates, paid = self.counted(k)
        each = zip(self.classes, paid, strict=True)
        found = [{j: [unit * int(own[c]) for c in of[j]] for j, own in tree.items()} for of, tree in each]
        return Table(shares, rates, found)

    def counted(self, k: float) -> Counted:
        """The k-th table as the file has it, once the number of trees, actions and classes is checked."""
        where = f"{self.where}.{checks.index(k, len(self.listed))}"
        given, parts = conform(self.listed[int(k)], TABLE, where), len(self.forests)
        weights = given["weights"] or []
        if len(weights) != (parts if parts > 1 else 0):
            raise Rejected(f"{where}.weights: allowed: one per sum, where there are several")
        prices: list[dict[int, list[float]]] = [{} for _ in self.classes]
        for t, paid in filled(given["trees"], len(prices), f"{where}.trees").items():
            at, looked = f"{where}.trees.{t}", list(self.classes[t].items())
            for place, own in filled(paid, len(looked), at).items():
                (j, of_cells), some = looked[place], _some(own, at)
                if len(own) != of_cells[-1] + 1:  # classes ascend
                    raise Rejected(
                        f"{at}: {len(own)} prices; allowed: none or {of_cells[-1] + 1}, one per class"
                    )
                if some:
                    prices[t][j] = own
        mu = Fraction(given["mu"])
        rates = [mu * Fraction(weight) for weight in weights or [1.0]]
        return Counted(Fraction(given["unit"]), given["shares"], rates, prices)


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
                place += checks.index(conform(one, float, where), count - place + 1)
    if place not in (0, count):
        raise Rejected(f"{where}: {place} lists; allowed: none or {count}")
    return found


def classes(
    tree: Sequence[Node], forest: Ensemble, least: dict[int, list[float]], labelled: set[int]
) -> dict[int, list[int]]:
    """For each action that a tree looks at, every cell's class.

    ``least`` has, by action, the least compared value of each cell; ``labelled`` are actions with tables.
    """
    looks = [(forest.places[node[0]][0], node[1]) for node in tree if not isinstance(node, float)]
    found = {}
    for j in sorted({j for j, _ in looks} & least.keys()):
        cuts = sorted({threshold for i, threshold in looks if i == j})
        keys = range(len(least[j])) if j in labelled else [bisect_left(cuts, value) for value in least[j]]
        known = {key: k for k, key in enumerate(sorted(set(keys)))}
        found[j] = [known[key] for key in keys]
    return found


def cells(forests: Sequence[Ensemble], f: Feature, number: int, box: Interval) -> list[Interval]:
    """An action's cells, ascending; for a feature with a table each label is a cell."""
    low, high = box
    if f.table is not None:
        return [(Fraction(k), Fraction(k)) for k in range(int(low), int(high) + 1)]
    nodes = (n for forest in forests for tree in forest.trees for n in tree if not isinstance(n, float))
    cuts = {node[1] for node in nodes if forests[0].places[node[0]][0] == number}
    found, start = [], low
    for end in sorted({last_left(forests[0].single, cut) for cut in cuts}):
        last = Fraction(math.floor(end)) if f.whole and math.isfinite(end) else end
        if start <= last < high:
            found.append((start, Fraction(last)))
            start = Fraction(math.floor(last) + 1 if f.whole else math.nextafter(float(last), math.inf))
    return [*found, (start, high)]


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

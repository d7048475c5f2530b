"""Every action of a person in the order of its cost, without listing all of them first.

Actions are made in bands of cost, each from those of the bands before. Levers have an order. An action on
d + 1 levers is an action on d of them, its prefix, and a value of one lever behind these. It costs at least
as much as its prefix, because sums and maxima of costs only grow. So all actions in a band (low, high] come
from prefixes that cost at most high, and to each prefix belongs a slice of the values of the levers behind
it, which are sorted by what they cost. A band that would hold too many actions is narrowed.

Costs are doubles here, off by less than :attr:`InOrder.off` times themselves. Actions whose costs are closer
to each other may come in either order; what is proven of a cost takes that into account.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.conditions import (
    AllOf,
    Counted,
    Demand,
    Labelled,
    Row,
    Switched,
    factors,
    holds,
    leaves,
)
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.features import Steps
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.lever_cost import ROUNDINGS

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

FEW, MANY, ROOM = 2**12, 2**20, 2**23
"""The most actions in the first bands, in later ones, and in a band of equal costs; there are no larger ones,
and no more than four times as many prefixes."""


def lever_values(instance: Instance, name: str) -> Array | None:
    """The values that an action may set on a lever, ascending; None where it may set every double between
    two limits."""
    lattice = instance.by_name[name].lattice
    return None if lattice is None else lattice.within(*instance.levers[name])


def endless_levers(instance: Instance) -> list[str]:
    """The levers whose values cannot be listed, or are more than :data:`ROOM`."""
    levers = ((name, instance.by_name[name].lattice, ends) for name, ends in instance.levers.items())
    return [
        name
        for name, lattice, ends in levers
        if lattice is None or (isinstance(lattice, Steps) and lattice.count(*ends) > ROOM)
    ]


class _Settings(NamedTuple):
    """Values of levers, sorted by what they cost alone: what each adds to the cost, its entry in the maximum,
    the size of the change, and the value."""

    added: Array
    widest: Array
    size: Array
    lever: Whole
    value: Array

    def some(self, chosen: Whole) -> _Settings:
        """A part of them."""
        return _Settings._make(column[chosen] for column in self)


class _Actions(NamedTuple):
    """Actions on equally many levers: cost parts and size as of settings, the last lever, its value, and the
    place of the prefix among all actions on one lever less."""

    added: Array
    widest: Array
    size: Array
    lever: Whole
    value: Array
    prefix: Whole

    @property
    def cost(self) -> Array:
        """The cost."""
        return self.added + self.widest

    @staticmethod
    def joined(parts: Sequence[_Actions]) -> _Actions:
        """Several after each other."""
        return _Actions(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


_NUMBERS, _PLACES = np.zeros(0), np.zeros(0, dtype=np.int64)
_NONE = _Actions(_NUMBERS, _NUMBERS, _NUMBERS, _PLACES, _NUMBERS, _PLACES)
_NOTHING = _Actions(*(np.zeros(1),) * 3, np.array([-1]), np.zeros(1), np.zeros(1, dtype=np.int64))


class InOrder:
    """Iterates over bands of actions but the empty one, cheapest first: (costs, actions), ascending.

    ``actions`` is a function of a slice of the band. It gives a row per action and a column per lever of
    ``names``, nan where that is left alone. Of equal costs the smaller changes come first.

    Actions that set a feature to the value that it has anyway are left out where they differ in nothing: if
    no lever moves the feature, and no condition counts or names the features acted on. So are actions on more
    features than a condition allows, and values that a condition on their feature alone forbids.

    Parameters
    ----------
    instance
        All of its levers have finitely many values.

    Attributes
    ----------
    done
        No action that is still to come costs less, but for rounding.
    full
        Whether it stopped because a band, or the prefixes, would have taken too much room.
    """

    def __init__(self, instance: Instance) -> None:
        demands = _parts(instance.demand)
        most = [d.at_most for d in demands if isinstance(d, Counted) and d.at_most is not None]
        values = {name: _allowed(instance, name, demands) for name in instance.levers}
        # a lever's values are behind every prefix of levers before it: levers of many values come first
        self.names = sorted((n for n in values if len(values[n])), key=lambda n: -len(values[n]))
        self.most = min([len(self.names), *most])
        self.off = (ROUNDINGS + len(self.names) + 4) * 2.0**-52
        made = [_settings(instance, name, k, values[name]) for k, name in enumerate(self.names)]
        self.behind = [_sorted(made[k:]) for k in range(len(made) + 1)]
        first = self.behind[0]
        self.sums = bool(first.added.any())
        self.top = sum(float(one.added.max()) for one in made) + float(first.widest.max(initial=0.0))
        self.levels = [_NOTHING] + [_NONE] * self.most
        self.done, self.full, self.given = -1.0, False, 0

    def __iter__(self) -> Iterator[tuple[Array, Callable[[slice], Array]]]:
        step, ceiling = 1.0 + self._next_single(), math.inf
        while self.most > 0 and self.done <= self.top * (1 + self.off):
            few, high = min(max(FEW, self.given // 2), MANY), min(self.done + step, ceiling)
            tied = high - self.done <= 1e-9 * high
            band = self._band(self.done, high, ROOM if tied else few)
            if band is None and not tied:
                step, ceiling = (high - self.done) / 2, high
                continue
            if band is None or sum(len(level.lever) for level in self.levels) > 4 * ROOM:
                self.full = True
                return
            self.done, ceiling = high, math.inf if high == ceiling else ceiling
            count = sum(len(level.lever) for level in band)
            step = 2 * step if 8 * count < few else step
            if count:
                yield self._take(band)

    def _next_single(self) -> float:
        """What the cheapest value costs, unless it is free."""
        paid = self.behind[0].added + self.behind[0].widest
        return float(paid[paid > 0].min(initial=self.top)) if self.top else 1.0

    def _band(self, low: float, high: float, most: int) -> list[_Actions] | None:
        """The actions that cost more than low and at most high, by how many levers they act on; None if there
        may be more than ``most``."""
        band = [_NONE]
        for depth in range(self.most):
            known = _Actions.joined([self.levels[depth], band[depth]])
            found, room = [_NONE], most - sum(len(level.lever) for level in band)
            for lever in np.unique(known.lever).tolist():
                group = np.flatnonzero(known.lever == lever)
                new = self._behind(known, group, self.behind[lever + 1], low, high, room)
                if new is None:
                    return None
                found.append(new)
                room -= len(new.lever)
            band.append(_Actions.joined(found))
        return band[1:]

    def _behind(
        self, known: _Actions, group: Whole, behind: _Settings, low: float, high: float, most: int
    ) -> _Actions | None:
        """The actions of a band whose prefixes are of a group, with the settings behind these."""
        added, widest = known.added[group], known.widest[group]
        paid, slack = behind.added + behind.widest, self.off * max(high, 0.0)
        # a sum of maxima is at least the maximum, which is all that counts where nothing is summed
        least = low - added - widest if self.sums else np.where(widest > low, -1.0, low)
        begin = np.searchsorted(paid, least - slack, side="left")
        count = np.maximum(np.searchsorted(paid, high - added + slack, side="right") - begin, 0)
        total = int(count.sum())
        if total > most and (self.pure or total > ROOM):
            return None
        which = np.repeat(group, count)
        where = np.arange(total) - np.repeat(np.cumsum(count) - count - begin, count)
        sums = known.added[which] + behind.added[where]
        maxima = np.maximum(known.widest[which], behind.widest[where])
        fits = (sums + maxima > low) & (sums + maxima <= high)
        which, where = which[fits], where[fits]
        if len(which) > most:
            return None
        sizes = known.size[which] + behind.size[where]
        own = behind.lever[where], behind.value[where]
        return _Actions(sums[fits], maxima[fits], sizes, *own, which)

    @property
    def pure(self) -> bool:
        """Whether a cost is a sum alone, so that slices hold a band's actions and hardly any others."""
        return not self.behind[0].widest.any()

    def _take(self, band: Sequence[_Actions]) -> tuple[Array, Callable[[slice], Array]]:
        """Keep a band's actions as prefixes, and give them in order."""
        starts = [len(level.lever) for level in self.levels[1:-1]] + [0]
        levels = [_Actions.joined([old, new]) for old, new in zip(self.levels[1:-1], band[:-1], strict=True)]
        self.levels[1:-1], levels = levels, [*levels, band[-1]]
        depth = np.repeat(np.arange(len(band)), [len(new.lever) for new in band])
        place = np.concatenate(
            [start + np.arange(len(new.lever)) for start, new in zip(starts, band, strict=True)]
        )
        cost = np.concatenate([new.cost for new in band])
        order = np.lexsort((np.concatenate([new.size for new in band]), cost))
        self.given += len(order)

        def actions(some: slice) -> Array:
            at, deep = place[order[some]], depth[order[some]]
            rows = np.full((len(at), len(self.names)), np.nan)
            for k in range(len(levels) - 1, -1, -1):
                here = np.flatnonzero(deep >= k)
                rows[here, levels[k].lever[at[here]]] = levels[k].value[at[here]]
                at[here] = levels[k].prefix[at[here]]
            return rows

        return cost[order], actions


def _allowed(instance: Instance, name: str, demands: Sequence[Demand]) -> Array:
    """A lever's values that are to be tried."""
    values = lever_values(instance, name)
    assert values is not None, name
    counted = any(
        isinstance(one, Switched | Counted) and not _is_limit(one) for one in leaves(instance.demand)
    )
    if not counted and name not in instance.scm.descendants(instance.levers.keys() - {name}):
        values = values[values != instance.factual[name]]
    own = [d for d in demands if _features(d) == {name}]
    if own:
        kept = [all(holds(d, {name: Enclosure.of(v)}, {name}) for d in own) for v in values.tolist()]
        values = values[np.array(kept, dtype=bool)]
    return values


def _settings(instance: Instance, name: str, lever: int, values: Array) -> _Settings:
    cost = instance.lever_costs[name]
    added, widest = cost.evaluate(values)
    return _Settings(added, widest, cost.sizes(values), np.full(len(values), lever), values)


def _sorted(parts: Sequence[_Settings]) -> _Settings:
    if not parts:
        return _Settings(*_NONE[:5])
    joined = _Settings(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    return joined.some(np.argsort(joined.added + joined.widest, kind="stable"))


def _parts(demand: Demand) -> list[Demand]:
    """Demands that must all hold."""
    return [p for part in demand.parts for p in _parts(part)] if isinstance(demand, AllOf) else [demand]


def has_limits_only(demand: Demand) -> bool:
    """Whether all that is demanded is that at most so many features are acted on."""
    return all(isinstance(part, Counted) and _is_limit(part) for part in _parts(demand))


def _is_limit(leaf: Demand) -> bool:
    """Whether a demand only limits the number of features acted on."""
    return isinstance(leaf, Counted) and not leaf.at_least


def _features(demand: Demand) -> set[str] | None:
    """The features whose values alone decide a demand; None if something else does."""
    found: set[str] = set()
    for leaf in leaves(demand):
        if isinstance(leaf, Row):
            found |= {f for of, _ in leaf.terms for f in factors(of)}
        elif isinstance(leaf, Labelled):
            found.add(leaf.feature)
        else:
            return None
    return found

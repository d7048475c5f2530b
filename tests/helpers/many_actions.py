"""Some of the actions of a person who can set any number: random ones, and ones that are accepted just so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tests.helpers.every_action import Array, Everything, Mask

ROUNDS, PARTS = 8, 16
"""How often the interval between a refused and an accepted value is cut, into how many parts."""


def many_actions(
    blank: Everything, known: Sequence[Mapping[str, float]], count: int, rng: np.random.Generator
) -> Array:
    """Settings (actions x levers) of random actions, of some on the way to known ones, and of those where one
    lever's value is as near to today's as the model still accepts.

    Parameters
    ----------
    blank
        The person, with whatever actions.
    known
        Actions that others have found.
    """
    drawn = np.full((count, len(blank.levers)), np.nan)
    for k in range(len(blank.levers)):
        on = rng.random(count) < rng.choice([0.3, 0.6, 0.9], count)
        drawn[on, k] = values(blank, k, int(on.sum()), rng)
    near = [drawn, np.full((1, len(blank.levers)), np.nan)]
    for action in known:
        row = np.array([action.get(name, np.nan) for name in blank.levers])
        near.append(row[None])
        for k, name in enumerate(blank.levers):
            others = [np.nan, *(row[k] + t * (blank.x[name] - row[k]) for t in (1e-5, 1e-3, 0.05, 0.5))]
            some = np.tile(row, (len(others), 1))
            some[:, k] = np.round(others) if blank.by_name[name].feature.integral else others
            near.append(some)
    start = np.concatenate(near)
    every = np.concatenate([start, just_so(blank, start, rng)])
    fine = np.ones(len(every), dtype=bool)
    for k, name in enumerate(blank.levers):
        low, high = blank.limits(name)
        fine &= np.isnan(every[:, k]) | ((every[:, k] >= low) & (every[:, k] <= high))
    return every[fine]


def values(blank: Everything, k: int, count: int, rng: np.random.Generator) -> Array:
    """What the lever may be set to."""
    name = blank.levers[k]
    column, (low, high) = blank.by_name[name], blank.limits(name)
    if column.feature.integral:
        return rng.choice(blank.settable(column), count) if blank.settable(column) else np.full(count, np.nan)
    held = blank.lender.X[name].dropna().to_numpy(dtype=float)
    ends = [low, high, *blank.ranges.get(name, ()), *(blank.domain(column) or ())]
    drawn = np.choose(
        rng.integers(0, 4, count),
        [rng.uniform(low, high, count), *(rng.choice(some, count) for some in (held, ends, [blank.x[name]]))],
    )
    return np.clip(drawn, low, high)


def sure(blank: Everything, settings: Array) -> Mask:
    """Which actions are accepted without doubt."""
    some = blank.these(settings)
    return some.accepted & ~some.unsure


def just_so(blank: Everything, settings: Array, rng: np.random.Generator) -> Array:
    """Accepted actions of which a number that is set is moved back as far as the model allows."""
    good = settings[sure(blank, settings)]
    good = good[rng.permutation(len(good))[:60]]
    free = np.array(
        [not blank.by_name[n].feature.integral and not np.isnan(blank.x[n]) for n in blank.levers]
    )
    can = ~np.isnan(good) & free
    good, can = good[can.any(axis=1)], can[can.any(axis=1)]
    if not len(good):
        return good
    at = np.arange(len(good)), np.array([rng.choice(np.flatnonzero(row)) for row in can])
    today = np.array([blank.x[n] for n in blank.levers])[at[1]]
    share = np.zeros(len(good))  # of the way back to today's value
    for k in range(1, ROUNDS + 1):
        shares = share + np.arange(1, PARTS)[:, None] * float(PARTS) ** -k
        some = np.tile(good, (PARTS - 1, 1, 1))
        some[:, *at] = good[at] + shares * (today - good[at])
        fine = sure(blank, some.reshape(-1, good.shape[1])).reshape(shares.shape)
        share = np.where(
            fine.all(axis=0), shares[-1], np.where(fine[0], shares[fine.argmin(axis=0) - 1, at[0]], share)
        )
    found = good.copy()
    found[at] = good[at] + share * (today - good[at])
    return found

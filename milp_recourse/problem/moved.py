"""The same person at other values than their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from milp_recourse.problem.enclosure import Enclosure, round_up
from milp_recourse.problem.instance import Instance


def moved(instance: Instance, factual: Mapping[str, float], acted: Iterable[str]) -> Instance | None:
    """The problem of somebody who begins at other values; the outcome must be as dense as it had to be.

    Parameters
    ----------
    factual
        The values, effects included.
    acted
        The features whose change the others are effects of.

    Returns
    -------
    Instance or None
        None if the values are impossible.
    """
    offset = instance.preferences.density_offset
    if instance.plausible:
        now = {name: Enclosure.of(x) for name, x in factual.items()}
        rarer = instance.scm.excess_energy(instance.factual, now, frozenset(acted))
        if rarer is None:
            return None
        offset = round_up(Fraction(instance.offset) + rarer.midpoint)
    own = replace(instance.preferences, density_offset=offset)
    return replace(instance, factual=factual, preferences=own, reference=None)

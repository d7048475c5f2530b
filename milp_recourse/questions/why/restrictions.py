"""An applicant's restrictions, and the problem without some of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from milp_recourse.errors import BadInput
from milp_recourse.problem.instance import Instance


def restrictions(instance: Instance) -> list[str]:
    """Ids of the restrictions, in the order of the table in docs/why.md. Bounds are no restrictions.

    ``mask:F`` is listed only if it is defined what acting on F costs: any cost but l0 alone needs a scale or
    quantiles for F.
    """
    return list(_all(instance))


def _all(instance: Instance) -> Iterator[str]:
    own = instance.preferences
    for f in instance.features:
        if f.actionable and f.name not in own.actionable and instance.cost.covers(f.name):
            yield f"mask:{f.name}"
    yield from (f"range:{f.name}" for f in instance.features if f.name in own.ranges)
    yield from (f"monotone:{f.name}" for f in instance.features if f.actionable and f.monotone is not None)
    yield from (f"domain:{f.name}" for f in instance.features if f.domain is not None)
    yield from (f"condition:{k}" for k in range(len(instance.all_conditions)))
    if instance.plausible:
        yield "plausibility"


def lift(instance: Instance, ids: Collection[str]) -> Instance:
    """The problem without some of its restrictions.

    Raises
    ------
    BadInput
        An id is not among the instance's restrictions.
    """
    known = restrictions(instance)
    for one in ids:
        if one not in known:
            raise BadInput("lift", one, ", ".join(known) or "nothing: there are no restrictions")
    named = _by_kind(ids)
    own = instance.preferences
    actionable = {*own.actionable, *named.get("mask", ())}
    lifted = {int(k) for k in named.get("condition", ())}
    shared = len(instance.conditions)
    preferences = replace(
        own,
        actionable=tuple(f.name for f in instance.features if f.name in actionable),
        ranges={name: ends for name, ends in own.ranges.items() if name not in named.get("range", ())},
        conditions=tuple(c for k, c in enumerate(own.conditions, shared) if k not in lifted),
    )
    features = tuple(
        replace(
            f,
            domain=None if f.name in named.get("domain", ()) else f.domain,
            monotone=None if f.name in named.get("monotone", ()) else f.monotone,
        )
        if f.name in (*named.get("domain", ()), *named.get("monotone", ()))
        else f
        for f in instance.features
    )
    return replace(
        instance,
        features=features if named.keys() & {"domain", "monotone"} else instance.features,
        preferences=preferences,
        conditions=tuple(c for k, c in enumerate(instance.conditions) if k not in lifted),
        plausible=instance.plausible and "plausibility" not in ids,
        reference=None,
    )


def _by_kind(ids: Collection[str]) -> Mapping[str, list[str]]:
    named: dict[str, list[str]] = {}
    for one in ids:
        kind, _, rest = one.partition(":")
        named.setdefault(kind, []).append(rest)
    return named

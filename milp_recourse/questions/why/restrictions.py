"""An applicant's restrictions, and all minimal sets of them to lift.

The sets are found by the duality of minimal feasible and maximal infeasible sets. Lifting more never makes
recourse impossible, so feasibility is monotone in the set that is lifted. A set suffices exactly if it meets
the complement of every maximal insufficient set. The search therefore proposes a minimal set that meets all
complements known so far. If the set suffices, it is minimal. If not, it is grown to a maximal insufficient
set, whose complement is new. When every such proposal suffices, all minimal sets are known.

References
----------
Reiter (1987), https://doi.org/10.1016/0004-3702(87)90062-2; Liffiton et al. (2016),
https://doi.org/10.1007/s10601-015-9183-0 (MARCO)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
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


Set = frozenset[str]

Answer = bool | None
"""Whether lifting a set makes recourse possible; None if that stayed open."""

Asking = Generator[Set, Answer, tuple[list[Set], bool]]
"""Yields sets, receives answers, and returns what :func:`minimal_sets` returns."""


def minimal_sets(ids: Sequence[str], suffices: Callable[[Set], Answer]) -> tuple[list[Set], bool]:
    """The inclusion-minimal sets that suffice, and whether these are all of them.

    Only sets that are proven to be minimal are listed.

    Parameters
    ----------
    suffices
        Whether lifting a set makes recourse possible; called at most once per set.
    """
    questions = asking(ids)
    answer: Answer = None
    try:
        one = next(questions)
        while True:
            answer = suffices(one)
            one = questions.send(answer)
    except StopIteration as end:
        found: tuple[list[Set], bool] = end.value
        return found


def asking(ids: Sequence[str]) -> Asking:
    """:func:`minimal_sets` as a generator: it yields each set in question, and the answer is sent to it."""
    known: dict[Set, Answer] = {}

    def ask(some: Set) -> Generator[Set, Answer, Answer]:
        if some not in known:
            known[some] = yield some
        return known[some]

    everything, complements, found, settled = frozenset(ids), list[Set](), list[Set](), True
    whole = yield from ask(everything)
    if whole is not True:
        return [], whole is False
    while True:
        proposal = next((s for s in _hitting(complements) if s not in found), None)
        if proposal is None:
            return [s for s in found if _no_part_suffices(s, known)], settled
        answer = yield from ask(proposal)
        if answer:
            found.append(proposal)
            continue
        settled = settled and answer is False
        grown = proposal
        for one in ids:  # a set whose answer stays open counts as insufficient, and makes ``settled`` False
            if one not in grown:
                larger = yield from ask(grown | {one})
                if not larger:
                    settled = settled and larger is False
                    grown = grown | {one}
        complements.append(everything - grown)


def _no_part_suffices(some: Set, known: Mapping[Set, Answer]) -> bool:
    """Whether it is proven that no proper subset of a set suffices: each is in a set that does not."""
    refused = [other for other, answer in known.items() if answer is False]
    return all(any(some - {one} <= other for other in refused) for one in some)


def _hitting(sets: Sequence[Set]) -> list[Set]:
    """The minimal sets that meet every one of ``sets``, smallest first (Berge's multiplication)."""
    hitting: list[Set] = [frozenset()]
    for one in sets:
        longer = {s if s & one else s | {element} for s in hitting for element in (("",) if s & one else one)}
        hitting = [s for s in longer if not any(other < s for other in longer)]
    return sorted(hitting, key=lambda s: (len(s), sorted(s)))

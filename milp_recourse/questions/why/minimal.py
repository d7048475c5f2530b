"""All minimal sets of restrictions to lift, by the duality of minimal feasible and maximal infeasible sets.

Lifting more never makes recourse impossible, so feasibility is monotone in the set that is lifted. A set
suffices exactly if it meets the complement of every maximal insufficient set. The search therefore proposes a
minimal set that meets all complements known so far. If the set suffices, it is minimal. If not, it is grown
to a maximal insufficient set, whose complement is new. When every such proposal suffices, all minimal sets
are known.

References
----------
Reiter (1987), https://doi.org/10.1016/0004-3702(87)90062-2; Liffiton et al. (2016),
https://doi.org/10.1007/s10601-015-9183-0 (MARCO)
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence

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

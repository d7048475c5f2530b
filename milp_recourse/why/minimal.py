"""All minimal sets of restrictions to lift, by the duality of minimal feasible and maximal infeasible sets.

Lifting more never makes recourse impossible, so feasibility is monotone in the set that is lifted. A set
suffices exactly where
it meets the complement of every maximal insufficient set. So: propose a minimal set that meets all
complements known so
far. If it suffices it is minimal; if not, it is grown to a maximal insufficient set, whose complement is
new. When every such proposal suffices, all minimal sets are known.

References
----------
Reiter (1987), https://doi.org/10.1016/0004-3702(87)90062-2; Liffiton et al. (2016),
https://doi.org/10.1007/s10601-015-9183-0 (MARCO)
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence

Set = frozenset[str]


Answer = bool | None
"""Whether lifting a set makes recourse possible; None where that stayed open."""

Asking = Generator[Set, Answer, tuple[list[Set], bool]]


def minimal_sets(ids: Sequence[str], suffices: Callable[[Set], Answer]) -> tuple[list[Set], bool]:
    """The inclusion-minimal sets that suffice, and whether all were settled; only what is settled is listed.

    Parameters
    ----------
    suffices
        Asked at most once per set.
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
    """As :func:`minimal_sets`, but yielding each set to ask about; the answer is sent in."""
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
        for one in ids:  # what stays open counts as insufficient here, and is reported as unsettled
            if one not in grown:
                larger = yield from ask(grown | {one})
                if not larger:
                    settled = settled and larger is False
                    grown = grown | {one}
        complements.append(everything - grown)


def _no_part_suffices(some: Set, known: Mapping[Set, Answer]) -> bool:
    """Whether it is settled that no part of a set suffices: all of them lie in sets that do not."""
    refused = [other for other, answer in known.items() if answer is False]
    return all(any(some - {one} <= other for other in refused) for one in some)


def _hitting(sets: Sequence[Set]) -> list[Set]:
    """The minimal sets that meet every one of ``sets``, smallest first (Berge's multiplication)."""
    made: list[Set] = [frozenset()]
    for one in sets:
        longer = {s if s & one else s | {element} for s in made for element in (("",) if s & one else one)}
        made = [s for s in longer if not any(other < s for other in longer)]
    return sorted(made, key=lambda s: (len(s), sorted(s)))

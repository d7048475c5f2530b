"""The branching of a finished search, kept so that a certificate can be written from it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from milp_recourse.forests.axes import Axis

COST, SCORE, SPLIT, OPEN = 0, 1, 2, 3

Entry = tuple[str, int, float] | tuple[str]


@dataclass
class BranchTree:
    """Nodes by number, the root being 0; a split's children have consecutive numbers.

    Attributes
    ----------
    axes
        What was branched on.
    kind
        Per node: closed because its least cost is no less than the search's bound (``COST``), closed because
        its largest score is not accepted (``SCORE``), split, or left open when time ran out.
    axis, cut
        Of a split: cells up to ``cut`` of ``axes[axis]`` go to the first child, the others to the second.
    first
        Number of the first child.
    """

    axes: Sequence[Axis]
    kind: list[int] = field(default_factory=lambda: [OPEN])
    axis: list[int] = field(default_factory=lambda: [-1])
    cut: list[int] = field(default_factory=lambda: [-1])
    first: list[int] = field(default_factory=lambda: [-1])

    def split(self, node: int, axis: int, cut: int) -> tuple[int, int]:
        """Give a node two children; their numbers."""
        child = len(self.kind)
        self.kind[node], self.axis[node], self.cut[node], self.first[node] = SPLIT, axis, cut, child
        for column, value in ((self.kind, OPEN), (self.axis, -1), (self.cut, -1), (self.first, -1)):
            column += [value, value]
        return child, child + 1

    def preorder(self, acted: Collection[str] | None = None) -> Iterator[Entry]:
        """The tree of one configuration, in preorder.

        ``("a", i, t)``: split on the i-th acted feature (in feature order), first child a_i <= t, second
        a_i > t, so from the next double or whole number on; ``("cost",)`` and ``("score",)``: leaves.
        The boxes are those of the acted features' lever intervals; where a feature is not acted on,
        or one side of a split holds no value an action may set, the split is left out.

        Parameters
        ----------
        acted
            Levers that are acted on; all of them when None.

        Raises
        ------
        ValueError
            A node is open.
        """
        names = [a.feature for a in self.axes]
        chosen = [n for n in names if acted is None or n in acted]
        stack = [(0, [(0, len(a) - 1) for a in self.axes])]
        while stack:
            node, box = stack.pop()
            if self.kind[node] != SPLIT:
                if self.kind[node] == OPEN:
                    raise ValueError("the search was stopped: a node is open")
                yield ("cost",) if self.kind[node] == COST else ("score",)
                continue
            i, cut = self.axis[node], self.cut[node]
            low, high = box[i]
            halves = [[*box[:i], part, *box[i + 1 :]] for part in ((low, cut), (cut + 1, high))]
            axis = self.axes[i]
            if axis.feature not in chosen:
                side = 0 if axis.home <= cut else 1
                stack.append((self.first[node] + side, halves[side]))
                continue
            settable = [bool(axis.settable[a : b + 1].any()) for (a, b) in (halves[0][i], halves[1][i])]
            if all(settable):
                below = [k for k in range(low, cut + 1) if axis.settable[k]]
                yield ("a", chosen.index(axis.feature), float(axis.high[below[-1]]))
            for side in (1, 0):
                if settable[side]:
                    stack.append((self.first[node] + side, halves[side]))

r"""Trees inside a causal model: CP-SAT picks leaves, the network engine solves the rest of the problem.

Per piece, :class:`~milp_recourse.solvers.cpsat.piece_model.PieceModel` gives a lower bound of all actions'
costs and the leaves that its cheapest point is in. These leaves are a box of the columns, on which the
ensemble is a constant. What is left is a causal problem without a classifier, which the engine of
:mod:`milp_recourse.engine.networks` solves exactly, whatever piece its optimum is in. The leaves are then
forbidden, and so on until no piece's bound is below the best action in hand (logic-based Benders
decomposition). The search shares pieces, costs and the table of leaves with
:mod:`milp_recourse.engine.forests.causal_search`, which solves the same problems for back end ``bab``, but
nothing else.

References
----------
Hooker and Ottosson (2003), https://doi.org/10.1007/s10107-003-0375-9
"""

from __future__ import annotations

import math

import numpy as np

from milp_recourse.engine.forests.causal_pieces import Piece, pieces_of
from milp_recourse.engine.forests.causal_search import Costs
from milp_recourse.engine.forests.cell_problem import region
from milp_recourse.engine.forests.table import BITS, LeafTable
from milp_recourse.judge.best_first import BestFirst
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.options import LATE, Clock, OutOfTime
from milp_recourse.solvers.bab import BabBackend
from milp_recourse.solvers.cpsat.piece_model import PieceModel
from milp_recourse.solvers.leaf_model import Cells
from milp_recourse.solvers.protocol import Options, Proposal

LeafPerTree = tuple[int, ...]
"""One leaf per tree: its position in the tree's leaves."""

Labels = tuple[tuple[str, int], ...]
"""The label of each feature that enters the ensemble by its labels' numbers: leaves allow sets of these, no
intervals. One that is acted on, but whose label changes no cell, is left out: it may be any."""


class RegionSearch(BestFirst["_Piece"]):
    """One applicant's search over pieces and leaves."""

    def __init__(self, instance: Instance, options: Options) -> None:
        assert isinstance(instance.classifier, TreeEnsemble)
        super().__init__(instance, Clock.start(options.time_limit), "solver", found=options.found)
        self.instance, self.forest = instance, instance.classifier
        self.solved: set[tuple[LeafPerTree, Labels]] = set()
        """The regions that have been solved."""

    def run(self) -> Proposal:
        """Cheapest bound first, until none is below the best action."""
        try:
            for one in pieces_of(self.instance, self.clock):
                piece = _Piece(self, one)
                self.push(piece.bound, piece)
        except OutOfTime:
            self.close(0.0)
            self.stop(LATE)
        while taken := self.next():
            [(_, piece)] = taken
            message = piece.step()
            self.push(piece.bound, piece)
            if message is not None:
                self.stop(message)
        return self.outcome()

    def solve(self, leaves: LeafPerTree, labels: Labels) -> None:
        """Solve the problem that some leaves and labels leave, and close it with its bound."""
        bound = 0.0
        boxes = [(t.low[k], t.high[k]) for t, k in zip(self.forest.leaves, leaves, strict=True)]
        first, last = np.max([low for low, _ in boxes], axis=0), np.min([high for _, high in boxes], axis=0)
        for outward in (True, False):  # the second only looks for an action
            problem = region(self.instance, first, last, dict(labels), outward)
            found = Proposal(None, math.inf)
            if problem is not None:
                found = BabBackend().solve(problem, Options(self.clock.left()))
            self.nodes += found.nodes or 0
            if outward:
                assert found.lower_bound is not None
                bound = found.lower_bound
            taken = found.action is None or self.offer(found.action).feasible
            if taken or bound >= self.best.target:
                break
        self.solved.add((leaves, labels))
        self.close(bound)


class _Piece:
    """One piece: its model, made when first asked for, and its bound."""

    def __init__(self, search: RegionSearch, piece: Piece) -> None:
        self.search, self.piece = search, piece
        self.costs = Costs(search.instance, piece)
        self.bound = float(self.costs.least(piece.low[None], piece.high[None])[0])
        self.model: PieceModel | None = None
        self.cutoff = math.inf  # the incumbent's cost when the model was made
        self.forbidden: list[Cells] = []

    def step(self) -> str | None:
        """Solve the model once, and the region of its leaves; returns why CP-SAT stopped early, or None."""
        search = self.search
        try:
            if self.model is None or search.best.cost < 0.25 * self.cutoff:  # a finer grid pays
                self.model = self._new_model()
        except OutOfTime:
            return LATE
        if self.model is None:
            self.bound = math.inf
            return None
        status, bound, point = self.model.solve(search.clock.left())
        search.nodes += self.model.branches
        # infeasible: nothing in the piece costs less than the cutoff
        self.bound = max(self.bound, self.cutoff if status == "infeasible" else bound)
        if point is not None and self.bound < search.best.target:
            if self.model.accepts(point):
                key = self._key(point)
                if key not in search.solved:
                    search.solve(*key)
            self.forbidden.append(point)
            self.model.forbid(point, self._label_axes)
        if status != "stopped":
            return None
        return LATE if search.clock.over else "CP-SAT stopped early"

    def _new_model(self) -> PieceModel | None:
        """A model that excludes what costs more than the best action; None if no leaves are accepted."""
        search, piece = self.search, self.piece
        table = LeafTable(search.forest, piece.cells, piece.columns, clock=search.clock)
        self.cutoff = search.best.cost
        threshold = search.instance.accept.above
        if not table.bound(table.full[None])[0] > threshold:
            return None
        model = PieceModel(piece, self.costs, table, threshold, search.best.cost)
        for point in self.forbidden:
            model.forbid(point, self._label_axes)
        return model

    @property
    def _label_axes(self) -> list[int]:
        return [i for i, column in enumerate(self.piece.columns) if column.labels]

    def _key(self, point: Cells) -> tuple[LeafPerTree, Labels]:
        """The leaves a point is in, and the labels of features that enter by them and move a cell."""
        assert self.model is not None
        table, forest = self.model.table, self.search.forest
        chosen = []
        for t, number in enumerate(self.model.leaves_at(point)):
            node = table.node[t * table.words + number // BITS, number % BITS]
            chosen.append(int(np.flatnonzero(forest.leaves[t].node == node)[0]))
        acted = self.piece.names
        values = {n: v for n, v in self.search.instance.factual.items() if n not in acted}
        for i in self._label_axes:
            k = int(np.argmax(self.piece.forms.matrix[i]))
            values[acted[k]] = float(self.piece.low[k]) + float(point[i])
        features = self.search.instance.features
        labels = ((f.name, int(values[f.name])) for f in features if f.by_label and f.name in values)
        return tuple(chosen), tuple(labels)

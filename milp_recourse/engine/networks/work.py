"""Memory that a search works in, made once for problems of one shape.

In compiled code p is a ``Problem``, w its ``Work`` and t its ``Pool``. As a rule i numbers levers, c columns,
k layers, j the units of one, m causal units, f residuals, and r the rows of a Lagrangian or of the problem;
where the convex problem is solved, m and k are how many variables and rows it has. u (d,) is a point: a
coordinate of each lever, or its label's number.

d levers, P columns, M causal units, layers 0..K of at most n units, F residuals, R rows of a Lagrangian. A
line has L coefficients: those of the columns, and where lines may be bent
(:mod:`~milp_recourse.engine.networks.bent_lines`) those of each lever's distance from the factual. The
convex problem has at most v variables and k rows. Shapes are at the fields; ``block`` is the memory of a
record's other fields, one behind the other.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from milp_recourse.engine.compiling import allocated, by_reference, compiled, record
from milp_recourse.engine.networks.lever_arrays import INTERVAL
from milp_recourse.engine.networks.problem_arrays import Problem, most_rows

Array = NDArray[np.float64]
Whole = NDArray[np.int64]


@by_reference
class Units(NamedTuple):
    """What is known of every unit in the node at hand.

    Attributes
    ----------
    low, high
        Bounds of its argument.
    split
        Which end of these was split on: 1 the lower one, so that a ReLU is on; 2 the upper one; of a curve
        also 3, both.
    size
        The sum of absolute terms behind its argument.
    upper, base, bent
        A line above its argument, and its constant; where ``bent`` is positive, above the unit.
    alpha
        The slope of its lower line.
    z, z_size
        Its argument at a point, and the sum of absolute terms behind that.
    relaxed
        Its argument at the relaxed optimum.
    score
        Its coefficient in the line at hand or, while a split is chosen, what the bound loses per width of its
        argument.
    slope, rise, fall
        Slope and constant of its upper line, constant of its lower line (fall: of causal units, else 0).
    theta_high, theta_low
        The thetas of its bounds within the budget.
    """

    block: Annotated[Array, "block"]
    low: Annotated[Array, "layers", "n"]
    high: Annotated[Array, "layers", "n"]
    split: Annotated[Array, "layers", "n"]
    size: Annotated[Array, "layers", "n"]
    upper: Annotated[Array, "layers", "n", "L"]
    base: Annotated[Array, "layers", "n"]
    bent: Annotated[Array, "layers", "n"]
    alpha: Annotated[Array, "layers", "n"]
    z: Annotated[Array, "layers", "n"]
    relaxed: Annotated[Array, "layers", "n"]
    score: Annotated[Array, "layers", "n"]
    slope: Annotated[Array, "layers", "n"]
    rise: Annotated[Array, "layers", "n"]
    fall: Annotated[Array, "layers", "n"]
    theta_high: Annotated[Array, "layers", "n"]
    theta_low: Annotated[Array, "layers", "n"]
    z_size: Annotated[Array, "layers", "n"]


@by_reference
class Points(NamedTuple):
    """Points in the levers' coordinates, and shares of the maximum.

    Attributes
    ----------
    best, relaxed
        The best action, and the relaxed optimum.
    choice
        A Lagrangian's minimiser, or what is tried next.
    trial, other
        Work of :mod:`~milp_recourse.engine.networks.descent`.
    anchor
        What Python is to judge, or work.
    shares, try_shares, cut_shares
        Those with the best multipliers, with those on trial, and with the inherited cut.
    least_paid
        Where r is least (:func:`~milp_recourse.engine.networks.linear_bounds.least_paid`).
    seen
        The parent's relaxed optimum.
    start, place
        Where a dive starts, and where :func:`~milp_recourse.engine.networks.linear_bounds.logit_at` was.
    """

    block: Annotated[Array, "block"]
    best: Annotated[Array, "d"]
    relaxed: Annotated[Array, "d"]
    choice: Annotated[Array, "d"]
    trial: Annotated[Array, "d"]
    other: Annotated[Array, "d"]
    anchor: Annotated[Array, "d"]
    shares: Annotated[Array, "d"]
    try_shares: Annotated[Array, "d"]
    cut_shares: Annotated[Array, "d"]
    least_paid: Annotated[Array, "d"]
    start: Annotated[Array, "d"]
    seen: Annotated[Array, "d"]
    place: Annotated[Array, "d"]


@by_reference
class Columns(NamedTuple):
    """Numbers for every column.

    Attributes
    ----------
    gradient
        The logit's, at a point.
    line
        The line at hand.
    gain, size
        The Lagrangian's rows summed, or work, and the sum of their absolute terms.
    share
        The relaxed optimum, with shares of labels.
    cut
        The inherited cut.
    zeros
        What its name says.
    """

    block: Annotated[Array, "block"]
    gradient: Annotated[Array, "L"]
    line: Annotated[Array, "L"]
    gain: Annotated[Array, "L"]
    size: Annotated[Array, "L"]
    share: Annotated[Array, "L"]
    cut: Annotated[Array, "L"]
    zeros: Annotated[Array, "L"]


AHEAD = 64
"""How many lines are put together at once."""


@by_reference
class Lines(NamedTuple):
    """Lines that are bounded together (:func:`~milp_recourse.engine.networks.linear_bounds.within`).

    Attributes
    ----------
    unit, side
        Which unit's argument, or its negative, it is above.
    const, spread
        Its constant, and the sum of absolute terms behind it.
    top, bound, theta
        Its largest value over the box and within the budget, and the theta of that.
    left, fall, right, climb
        Tangents of the line's bound as a function of theta, on either side of the best one: what they are at
        theta = 0, and their slopes.
    tried, gains, pays, here, own
        Work of that function.
    terms
        The lines themselves, a row for each column.
    """

    unit: Annotated[Array, "2 n"]
    side: Annotated[Array, "2 n"]
    const: Annotated[Array, "2 n"]
    spread: Annotated[Array, "2 n"]
    top: Annotated[Array, "2 n"]
    bound: Annotated[Array, "2 n"]
    theta: Annotated[Array, "2 n"]
    tried: Annotated[Array, "2 n"]
    gains: Annotated[Array, "2 n"]
    pays: Annotated[Array, "2 n"]
    here: Annotated[Array, "2 n"]
    own: Annotated[Array, "2 n"]
    left: Annotated[Array, "2 n"]
    fall: Annotated[Array, "2 n"]
    right: Annotated[Array, "2 n"]
    climb: Annotated[Array, "2 n"]
    terms: Annotated[Array, "L", "2 n"]


@by_reference
class Ahead(NamedTuple):
    """Lines above arguments of one layer (:func:`~milp_recourse.engine.networks.layer_lines.layer_lines`).

    Attributes
    ----------
    lines, const
        The lines, over columns and causal units, a column for each, and their constants.
    coef
        Their coefficients of the outputs of the layer at hand and of the one before it, by turns.
    through, above
        Those of arguments of the layer at hand, and of its bent lines, only where some are not 0.
    units, bent
        Which arguments and bent lines these are.
    """

    lines: Annotated[Array, "L + M", AHEAD]
    const: Annotated[Array, AHEAD]
    coef: Annotated[Array, 2, "n", AHEAD]
    through: Annotated[Array, "n + 3", AHEAD]
    above: Annotated[Array, "n + 3", AHEAD]
    units: Annotated[Whole, "n + 3"]
    bent: Annotated[Whole, "n + 3"]


@by_reference
class Rows(NamedTuple):
    """A Lagrangian's rows: constants, best multipliers, those on trial, how far inside a point is to stay,
    and which kind of row it is."""

    block: Annotated[Array, "block"]
    consts: Annotated[Array, "R"]
    multipliers: Annotated[Array, "R"]
    try_multipliers: Annotated[Array, "R"]
    inside: Annotated[Array, "R"]
    kind: Annotated[Whole, "R"]


@by_reference
class Ball(NamedTuple):
    """What is known of every residual.

    Attributes
    ----------
    consts
        The constants of the lines above it and above its negative.
    size
        The sum of absolute terms behind them.
    rest
        Both lines where the convex problem's variables are 0.
    phat, best_phat
        The residual's noise at the convex problem's iterate, and at that of the best bound.
    room
        Of the linear part alone: the most that its negative can be in the node.
    """

    block: Annotated[Array, "block"]
    consts: Annotated[Array, 2, "F"]
    size: Annotated[Array, "F"]
    rest: Annotated[Array, 2, "F"]
    phat: Annotated[Array, "F"]
    best_phat: Annotated[Array, "F"]
    room: Annotated[Array, "F"]


@by_reference
class Variables(NamedTuple):
    """The convex problem's variables: whose column and lever each is, its step, its costs q and c, its entry
    in the maximum, then work of a Newton step (dual residual rd, right side h, theta, scaled row)."""

    column: Annotated[Whole, "v"]
    lever: Annotated[Whole, "v"]
    step: Annotated[Array, "v"]
    q: Annotated[Array, "v"]
    c: Annotated[Array, "v"]
    tops: Annotated[Array, "v"]
    rd: Annotated[Array, "v"]
    h: Annotated[Array, "v"]
    theta: Annotated[Array, "v"]
    scaled: Annotated[Array, "v"]


@by_reference
class Inequalities(NamedTuple):
    """The convex problem's inequalities: slacks and multipliers, their steps, the right side, 1 / slack."""

    slack: Annotated[Array, "2 v + k"]
    multiplier: Annotated[Array, "2 v + k"]
    slack_step: Annotated[Array, "2 v + k"]
    multiplier_step: Annotated[Array, "2 v + k"]
    rest: Annotated[Array, "2 v + k"]
    inverse: Annotated[Array, "2 v + k"]


@by_reference
class ConvexRows(NamedTuple):
    """The convex problem's rows: what each stands for, its constant b, scale, residual rp, work x, and weight
    in a Newton step."""

    stands_for: Annotated[Whole, "k"]
    b: Annotated[Array, "k"]
    scale: Annotated[Array, "k"]
    rp: Annotated[Array, "k"]
    x: Annotated[Array, "k"]
    weight: Annotated[Array, "k"]


NOW = record(
    best_cost=float,
    best_case=int,
    case=int,
    cut_const=float,
    allowance=float,
    ceiling=float,
    room=float,
    promise=float,
    left=float,
    which=int,
    late=float,
    surplus=float,
    spare=float,
)
"""The best action's cost and configuration, the configuration at hand, the cut's constant, the tolerance's
part that is no share of the cost, more than any action costs, how far the logit may still be above what it
must be, what a split promises to take of that (negative for a sign), the complementarity that the last convex
problem was left with, the split's column in ``learned``, the clock's value when no more good actions are to
be searched for, what the logit of the point tried last has more than it needs, and what the budget leaves
to bend lines for (:func:`~milp_recourse.engine.networks.bent_lines.left_to_bend`)."""


@by_reference
class Work(NamedTuple):
    """Arrays that compiled functions write to.

    Attributes
    ----------
    box, allowed
        A node's box and labels.
    unit, points, columns, row, ball
        Numbers for units, levers, columns, rows and residuals.
    ahead
        Lines that are put together at once.
    lines
        Lines that are bounded together.
    row_coefficients
        The coefficient of every unit in each row, and its lower line's slope there.
    rows
        A Lagrangian's rows.
    tangent, ball_coefficients, pull
        Lines above the residuals and above their negatives, the causal units' coefficients in them, and these
        lines in the convex problem's variables.
    aside, aside_allowed, ends, order
        A proof's node while parts of it are looked at: box and what is left of it, its intervals, and its
        splits.
    variables, pair, convex_rows, a, m
        The convex problem's variables, inequalities, rows and matrices.
    layer
        Work of one layer: mostly sums of absolute terms behind its arguments, then coefficients of causal
        units, then those of the layer's units.
    now
        Single numbers (:data:`NOW`).
    learned
        What splits on each lever, then on each unit, have gained and had promised in this search: the
        pseudo-costs of the branching (Benichou et al. 1971).
    gained, promised
        The same of all splits on signs, and of all on levers.
    random
        The state of the random numbers.
    """

    box: Annotated[Any, INTERVAL, "d"]
    allowed: Annotated[NDArray[np.uint8], "P"]
    unit: Units
    points: Points
    columns: Columns
    row: Rows
    ball: Ball
    ahead: Ahead
    lines: Lines
    row_coefficients: Annotated[Array, 2, "R", "layers", "n"]
    rows: Annotated[Array, "R", "L"]
    tangent: Annotated[Array, 2, "F", "L"]
    ball_coefficients: Annotated[Array, 2, "F", "M"]
    pull: Annotated[Array, 2, "F", "v"]
    aside: Annotated[Any, INTERVAL, "d"]
    aside_allowed: Annotated[NDArray[np.uint8], "P"]
    ends: Annotated[Array, 2, "d"]
    order: Annotated[Whole, "layers", "n"]
    variables: Variables
    pair: Inequalities
    convex_rows: ConvexRows
    a: Annotated[Array, "k", "v"]
    m: Annotated[Array, "k", "k"]
    layer: Annotated[Array, 3, "n"]
    now: Annotated[Any, NOW]
    learned: Annotated[Array, 2, "d + layers n"]
    gained: Annotated[Array, 2]
    promised: Annotated[Array, 2]
    random: Annotated[NDArray[np.uint64], 1]


def workspace(p: Problem, bends: bool) -> Work:
    """Zeroed memory for a problem, in whatever configuration; with room for bent lines if it ``bends``."""
    d, columns, units, f = len(p.lever), int(p.start[-1]), int(p.widths[0]), len(p.noise)
    layers, n, rows = len(p.widths), p.weights.shape[1], most_rows(p.row.shape[-2], bool((p.kind > 0).any()))
    v, k, bent = columns + d + 1, rows + 2 * d + f, bends * d
    sizes = {"d": d, "P": columns, "M": units, "layers": layers, "n": n, "F": f, "R": rows, "v": v, "k": k}
    sizes |= {"2 n": 2 * n, "n + 3": n + 3, "2 v + k": 2 * v + k, "d + layers n": d + layers * n}
    return allocated(Work, **sizes, **{"L": columns + bent, "L + M": columns + bent + units})


COUNTS = record(open=int, free=int, examined=int, dived=int, young=int, rootless=int, sought=int)


@by_reference
class Pool(NamedTuple):
    """The open nodes, each in a slot of the arrays.

    Attributes
    ----------
    heap, free
        Slots of the open nodes as a heap by bound, and slots to use again.
    bound
        Every slot's bound.
    case
        Every slot's configuration.
    box, allowed, low, high, split
        A node's box, its allowed labels, and its units' bounds and signs.
    seen
        Its parent's relaxed optimum.
    cut, shares, const
        Its parent's cut; zeros for none.
    promise
        How far above what it must be its parent's logit line reached, what the split promised, its column in
        ``learned``.
    asked
        Whether its point was given to Python to judge, or
        :data:`~milp_recourse.engine.networks.search.CLOSED`.
    stuck
        The least bound of nodes that could neither be closed nor split.
    now
        How many nodes are open, how many slots are free, how many nodes have been examined, how many had been
        when a dive was last made, 1 + the slot of the child stored last (0: none), whether the one open node
        stands for the configurations' roots, which are not made yet, and how often good actions have been
        searched for beside the nodes.
    """

    heap: Annotated[Whole, "size"]
    free: Annotated[Whole, "size"]
    bound: Annotated[Array, "size"]
    case: Annotated[Whole, "size"]
    box: Annotated[Any, INTERVAL, "size", "d"]
    allowed: Annotated[NDArray[np.uint8], "size", "P"]
    seen: Annotated[Array, "size", "d"]
    low: Annotated[Array, "size", "layers", "n"]
    high: Annotated[Array, "size", "layers", "n"]
    split: Annotated[Array, "size", "layers", "n"]
    cut: Annotated[Array, "size", "L"]
    shares: Annotated[Array, "size", "d"]
    const: Annotated[Array, "size"]
    promise: Annotated[Array, "size", 3]
    asked: Annotated[NDArray[np.uint8], "size"]
    stuck: Annotated[Array, 1]
    now: Annotated[Any, COUNTS]


RESERVE = 70
"""Free slots that there must be before a node is examined."""


def pool(p: Problem, size: int, bends: bool) -> Pool:
    """Room for so many open nodes, at least for the roots, which
    :func:`~milp_recourse.engine.networks.search.run` puts in; ``bends`` as for :func:`workspace`."""
    size, layers, n = max(size, len(p.box) + RESERVE + 2), len(p.widths), p.weights.shape[1]
    d, columns = len(p.lever), int(p.start[-1])
    return allocated(Pool, size=size, d=d, P=columns, L=columns + bends * d, layers=layers, n=n)


def larger(old: Pool, size: int) -> Pool:
    """The same nodes with more room."""
    had, free = len(old.heap), int(old.now.free)
    slots = {name: a for name, a in old._asdict().items() if a.ndim and len(a) == had}
    more = {name: np.zeros((size - had, *a.shape[1:]), a.dtype) for name, a in slots.items()}
    grown = old._replace(**{name: np.concatenate([a, more[name]]) for name, a in slots.items()})
    grown.free[free : free + size - had] = np.arange(size - 1, had - 1, -1)
    grown.now.free = free + size - had
    return grown


@compiled
def copied(source: Any, target: Any) -> None:
    """Copy an array of any shape, or as much of a row as the target holds; an assignment would compile
    numpy's error messages in."""
    one = source if source.ndim == 1 else source.flat
    other = target if target.ndim == 1 else target.flat
    for i in range(len(other)):
        other[i] = one[i]


@compiled
def cleared(target: Any) -> None:
    """Set all of an array of any shape to zero."""
    one = target if target.ndim == 1 else target.flat
    for i in range(len(one)):
        one[i] = 0.0


@compiled
def add(target: Any, factor: float, source: Any, n: int) -> None:
    """Add ``factor`` times the first n numbers of a row to those of another: target, source (n or more,)."""
    for i in range(n):
        target[i] += factor * source[i]


@compiled
def dot(x, y, n):
    """The sum of the first n products x[i] y[i]: x, y (n or more,)."""
    total = 0.0
    for i in range(n):
        total += x[i] * y[i]
    return total

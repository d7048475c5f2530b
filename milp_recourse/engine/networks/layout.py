"""Names of the rows of the few arrays that compiled code passes around: many small arrays would cost more to
pass than to use.

What the rows hold is written at :class:`~milp_recourse.engine.networks.problem_arrays.Problem` (``lever``,
``box``, ``column``) and :class:`~milp_recourse.engine.networks.work.Work` (the others).

In compiled code p is a ``Problem`` and w its ``Work``. As a rule i numbers levers, c columns, k layers, j the
units of one, m causal units, f residuals, and r the rows of a Lagrangian or of the problem; where the convex
problem is solved, m and k are how many variables and rows it has.
"""

# lever; where it has KNOTS, its cost itself is made of OWN_FIXED and the rates, and DOWN to LEAST are a
# lower bound of it in the node at hand
LABEL, GRID, FACTUAL, UNIT, SHIFT, KNOTS, DOWN, FIXED, LINEAR, SQUARE, LARGEST, LEAST = range(12)
OWN_FIXED, RATE, SQUARE_RATE, TOP_RATE = range(12, 16)
COSTS = slice(FIXED, TOP_RATE + 1)
# box: a numeric lever's interval, and 0: it may be acted on or not, 1: it is acted on, 2: it is not
LO, HI, MODE = range(3)
# column
COST, TOP = range(2)
# unit
ZL, ZH, SPLIT, ZS, ALPHA, Z, ZB, SCORE, SLOPE, RISE, FALL, THETA_HIGH, THETA_LOW, Z_SIZE = range(14)
# at, points: of the best action, the relaxed optimum, a Lagrangian's minimiser (or what is tried next), work
# of `descent` (two), what Python is to judge (or work); shares of the maximum: with the best multipliers,
# with those on trial, with the inherited cut; points: of least r (`least_paid`), where a dive starts, and of
# `logit_at`
BEST, POINT, CHOICE, TRIAL, OTHER, ANCHOR, SHARES, TRY_SHARES, CUT_SHARES, IDLE, START, PLACE = range(12)
# col: the logit's gradient at a point; the line at hand; the Lagrangian's rows summed (or work), and the sum
# of their absolute terms; the relaxed optimum, with shares of labels; the inherited cut; zeros
GRAD, LINE, GAIN, SIZE, SHARE, CUT, NOTHING = range(7)
# lines: of each its unit and side, constant, sum of absolute terms, largest value over the box and within the
# budget, and the theta of that; then work of `within`; then its terms, a row for each column
UNIT_OF, SIDE_OF, CONST_OF, SPREAD_OF, TOP_OF, BOUND, THETA_OF = range(7)
TRIED, GAINS, PAYS, HERE, OWN, REST_OF, ALL_PAYS, TERMS = range(7, 15)
# row
CONSTS, MULTIPLIERS, TRY_MULTIPLIERS, INSIDE = range(4)
# vec, of the convex problem's variables: step, costs, entry in the maximum, then work of a Newton step
STEP, Q, C, TOPS, RD, H, THETA, SCALED = range(8)
# pair: slacks and multipliers of the convex problem's inequalities, their steps, the right side, 1 / slacks
SLACK, LAMBDA, DS, DL, REST, INVERSE = range(6)
# kvec, of the convex problem's rows: constant, scale, residual, work, and weight in a Newton step
B, ROW_SCALE, RP, X, WEIGHT = range(5)
# ball: 0 and 1 are the constants of the lines above a residual and above its negative; the sum of absolute
# terms behind them; both lines where the convex problem's variables are 0 (two); its residuals' noise at the
# iterate, and at that of the best bound; the last is of the linear part alone, the most that its negative
# can be in the node
BALL_SIZE, BALL_AT, _, PHAT, BEST_PHAT, BALL_ROOM = range(2, 8)
# ints: of variables their column and lever, of the convex problem's rows and of the node's what they are
COLUMN, LEVER, ROW_OF, KINDS = range(4)
# scalar: the best action's cost and configuration, the configuration at hand, the cut's constant, the
# tolerance's part that is no share of the cost, more than any action costs, how far the logit may still be
# above what it must be, what a split promises to take of that (negative for a sign), what such splits have
# taken and had promised (two numbers each: of signs, of levers), the complementarity that the last convex
# problem was left with, the split's column in ``learned``, the clock's value when no more good actions are to
# be searched for, and what the logit of the point tried last has more than it needs
BEST_COST, BEST_CASE, CASE, CUT_CONST, ALLOWANCE, CEILING = range(6)
ROOM, PROMISE, GAINED, _, PROMISED, _, LEFT, WHICH, LATE, SURPLUS = range(6, 16)

"""Where numbers lie in the few arrays that compiled code passes around: many small arrays would cost more
to pass than to use.
"""

# lever; of those whose change is measured in percentiles the node's FIXED, LINEAR and LARGEST bound the cost
# from below, and OWN_FIXED to KNOTS are what it is made of
LABEL, GRID, FIXED, LINEAR, SQUARE, LARGEST, FACTUAL, UNIT, OWN_FIXED, RATE, TOP_RATE, KNOTS, SHIFT = range(
    13
)
# box
LO, HI, MODE = range(3)
# column
COST, TOP = range(2)
# unit
ZL, ZH, SPLIT, ZS, ALPHA, Z, ZB, SCORE, SLOPE, RISE, FALL = range(11)
# at
BEST, POINT, CHOICE, TRIAL, OTHER, ANCHOR, SHARES, TRY_SHARES, CUT_SHARES, IDLE, START, INVERSE = range(12)
# col
GRAD, LINE, GAIN, SIZE, SHARE, CUT, NOTHING = range(7)
# offer
AT_LOW, AT_REST, AT_HIGH, CHEAP, LEAST, FAR = range(6)
# row
CONSTS, MULTIPLIERS, TRY_MULTIPLIERS, INSIDE = range(4)
# vec
SIGN, WIDTH, Q, C, TOPS, Y, ZZ, V, RD, RZ, RV, H, THETA, DY, DZ, DV, SCALED = range(17)
# kvec
B, ROW_SCALE, S, LAM, RP, RL, X, DS, DL, DIAGONAL = range(10)
# ball: 0 and 1 are the constants of the lines above a residual and above its negative; the last two are of
# its linear part alone: the most its negative can be in the node, and the least that it is at a point
BALL_SIZE, BALL_AT, _, BALL_SIDE, PHAT, BEST_PHAT, BALL_ROOM, BALL_LEAST = range(2, 10)
# ints
COLUMN, LEVER, ROW_OF, ORDER, KINDS = range(5)
# scalar: the best action's cost and configuration, the configuration at hand, a bound that waits for a
# judgement, the cut's constant, the tolerance's part that is no share of the cost, more than any action
# costs, how far the logit may still be above what it must be, what a split promises to take of that
# (negative for a sign), what such splits have taken and had promised (two numbers each: of signs, of levers),
# and the complementarity that the last convex problem was left with
BEST_COST, BEST_CASE, CASE, STUCK_BOUND, CUT_CONST, ALLOWANCE, CEILING = range(7)
ROOM, PROMISE, GAINED, _, PROMISED, _, LEFT = range(7, 14)

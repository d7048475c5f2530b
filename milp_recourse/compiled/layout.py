"""Where numbers lie in the few arrays that compiled code passes around: many small arrays would cost
more to pass than to use.
"""

# lever
LABEL, GRID, FIXED, LINEAR, SQUARE, LARGEST, FACTUAL, UNIT, LEAST, MOST = range(10)
# box
LO, HI, MODE = range(3)
# column
COST, TOP = range(2)
# unit
ZL, ZH, SPLIT, ZS, ALPHA, Z, ZB, SCORE = range(8)
# at
BEST, POINT, CHOICE, TRIAL, OTHER, ANCHOR, SHARES, TRY_SHARES, CUT_SHARES, IDLE = range(10)
# col
GRAD, LINE, GAIN, SIZE, SHARE, CUT, NOTHING = range(7)
# row
CONSTS, PRICES, TRY_PRICES = range(3)
# vec
SIGN, WIDTH, Q, C, TOPS, Y, ZZ, V, RD, RZ, RV, H, THETA, DY, DZ, DV = range(16)
# kvec
B, ROW_SCALE, S, LAM, RP, RL, X, DS, DL = range(9)
# ints
COLUMN, LEVER, ROW_OF, ORDER = range(4)
# scalar
BEST_COST, HAIR, STUCK_BOUND, CUT_CONST = range(4)

"""Print the proven error of bands around a sigmoid: it falls with the square of the number of pieces."""

import numpy as np

from milp_recourse.program.functions import band

print("pieces  widest band of sigmoid on [-4, 4]")
for pieces in (1, 2, 4, 8, 16, 32):
    ends = np.linspace(-4.0, 4.0, pieces + 1)
    slope, below, above = band("sigmoid", ends[:-1], ends[1:])
    print(f"{pieces:6}  {(above - below).max():.5f}")

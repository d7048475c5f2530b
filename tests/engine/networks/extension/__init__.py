"""One family of the engine's functions as a compiled extension, to compare with numba."""

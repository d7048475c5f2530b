"""Benchmarks: time of this package and of other solvers, measured in the same run."""

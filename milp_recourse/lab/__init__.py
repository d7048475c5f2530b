"""Experiments: they make the shipped instances, compare solvers, and compute the paper's tables again."""

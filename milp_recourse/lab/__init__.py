"""Experiments: what makes the shipped instances, times against peers, and redoes the paper's tables."""

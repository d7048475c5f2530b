"""Exact search over tree ensembles: cells between thresholds, leaves as boxes, branch and bound."""

"""Branch and bound of this package: compiled bounds and searches for networks and tree ensembles."""

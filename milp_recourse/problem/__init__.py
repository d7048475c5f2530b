"""The mathematics of recourse: features, causal models, classifiers, costs. Knows no solver."""

"""Methods that are not ours, to be evaluated: a plain gradient counterfactual, and DiCE."""

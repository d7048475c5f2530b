"""Other people's methods, to be evaluated: gradient counterfactuals, and DiCE."""

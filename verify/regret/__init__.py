"""The geometry behind claims about regret: the weights that a person's answers allow."""

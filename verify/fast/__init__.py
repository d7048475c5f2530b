"""The fast path, which need not be trusted: networks in doubles, prices of trees in whole numbers.

It answers what ``verify.kernel.prices.Exact`` answers, several times as fast; ``--slow`` leaves it out.
Tests compare the two on every certificate in the repository, also on those that must be rejected (attacks).
"""

"""The fast path computes the kernel's bounds several times as fast; a check with ``--slow`` does without it.

Networks are bounded in doubles rounded outward (``box``), trees in whole numbers (``cells``, ``prices``);
large forests all trees at once (``arrays``), where numpy is installed. ``python -S -m verify`` finds none.
Without ``--slow`` the verdict rests on this folder too. Tests compare the two ways on every certificate in
the repository, also on those that must be rejected (attacks).
"""

"""The kernel, which has to be trusted: the problem, exact arithmetic in plain fractions, and the rules.

Claims about certain actions need ``verify/certain``, too.

Whoever trusts this folder can trust what ``python -m verify --slow`` says about a problem. Read it in this
order: ``problem`` (what it costs, what limits it), ``forms`` (what follows from actions on the same
features), ``curves`` and ``box`` (bounds), ``feasible`` (one action), ``trees``, ``leaf`` and ``prices`` (the
rules), ``certificate`` (how they are put together). It imports nothing but itself and pure parts of Python's
library.

Its input is a :class:`~verify.kernel.problem.Problem`, which ``verify/files`` makes of an instance's
canonical content (labels as numbers, lever intervals, sizes of changes, causes before effects, conditions as
demands with negations worked in: sections 1, 2, 3 and 11), and what a certificate states, in the shape of
section 4. If ``verify/files`` made the wrong problem of a file, the verdict would be about that other
problem; no certificate can cause this. Nothing in a certificate is taken on trust: any multipliers that are
not negative, any prices, and any cells that cover the box give valid bounds. Anything else is rejected.
"""

"""The kernel, which has to be trusted: the problem, exact arithmetic in plain fractions, and the rules.

Whoever trusts this folder can trust what ``python -m verify --slow`` says about a problem. Read it in this
order: ``problem`` (what it costs, what limits it), ``forms`` (what follows from actions on the same
features), ``curves`` and ``box`` (bounds), ``feasible`` (one action), ``trees``, ``leaf`` and ``prices`` (the
rules), ``certificate`` (how they are put together). It imports nothing but itself and pure parts of Python's
library.

What it is given: a :class:`~verify.kernel.problem.Problem`, which ``verify/files`` makes of an instance's
canonical content (labels as numbers, lever intervals, sizes of changes, causes before effects, conditions as
demands with negations worked in: sections 1, 2, 3 and 11), and what a certificate states, of the shape of
section 4. A problem that is not what the file says would be a proof about something else; no certificate can
bring that about. Of a certificate nothing is taken on trust: multipliers may be any numbers that are not
negative, prices any numbers at all, cells any that cover the box. What is not of the shape ends the check.
"""

"""Ring 1, the trust base: the problem, exact arithmetic in plain fractions, and the rules.

Whoever trusts this folder can trust what ``python -m verify --slow`` says about a problem. Read it in this
order: ``problem`` (what is feasible, what it costs), ``forms`` and ``configuration`` (the same over a box
of actions), ``curves`` and ``box`` (bounds), ``trees``, ``leaf`` and ``prices`` (the rules), ``certificate``
(how they are put together). It imports nothing but itself and pure parts of Python's library.

What it is given: a :class:`~verify.kernel.problem.Problem`, which ``verify/files`` makes of an instance's
canonical content (labels as numbers, causes before effects, conditions as demands with negations worked in:
sections 1 and 11), and a certificate's JSON value, every shape of which is checked here. A problem that is
not what the file says would be a proof about something else; no certificate can bring that about.
"""

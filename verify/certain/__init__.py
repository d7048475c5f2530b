"""What has to be trusted besides the kernel for claims about certain actions (section 12).

``outcomes`` has what may happen, and the problems that follow: a network in several scenarios, and reaching a
refused outcome. ``check`` puts them together with the kernel's rules, and has the rule of refused boxes. It
imports nothing but itself, the kernel and pure parts of Python's library. The highest threshold and the
problems are made of the kernel's :class:`~verify.kernel.problem.Problem`, so what ``verify/files`` decides is
the same as for other claims, and which limits are meant.
"""

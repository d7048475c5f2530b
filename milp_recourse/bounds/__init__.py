"""Bounds of forms and costs on a box, for the back ends ``highs`` and ``pyomo`` and for ``export``.

None is assumed: all follow from the intervals that an instance states.
"""

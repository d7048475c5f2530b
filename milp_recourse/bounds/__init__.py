"""Derived bounds: nothing here is assumed, everything follows from stated intervals."""

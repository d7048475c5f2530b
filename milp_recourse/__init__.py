"""Exact, proven algorithmic recourse: the least an applicant must change to be accepted."""

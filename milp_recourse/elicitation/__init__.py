"""Preferences: what people are asked, and the masks, ranges and weights that follow. They never solve."""

from milp_recourse.elicitation.preferences_text import preferences_from_text
from milp_recourse.elicitation.scores_file import preferences_of, read_scores, with_scores, write_scores

__all__ = ["preferences_from_text", "preferences_of", "read_scores", "with_scores", "write_scores"]

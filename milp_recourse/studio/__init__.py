"""The studio: a local page on which a person and an adviser find a way together, with proof."""

from milp_recourse.studio.launch import studio

__all__ = ["studio"]

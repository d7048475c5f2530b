"""Regions: the box around an action in which everything is accepted."""

from milp_recourse.questions.regions.around import Region, region

__all__ = ["Region", "region"]

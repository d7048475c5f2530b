"""Regions: the box around an action in which everything is accepted."""

from milp_recourse.questions.regions.around import REGION_FORMAT, Region, region

__all__ = ["REGION_FORMAT", "Region", "region"]

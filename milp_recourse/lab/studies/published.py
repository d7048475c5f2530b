"""The oracle rows that the iCARMA paper prints, to stand beside what is computed here.

Source: "individualized CARMA", arXiv 2604.08030, tables 1 and 2 (section 5), 5 and 6 (appendix D). Nothing
here enters a computation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from milp_recourse.lab.studies.cells import Cell


@dataclass(frozen=True)
class Published:
    """One printed row; ``hap`` where the paper has it."""

    validity: float
    plausibility: float
    cost_mean: float
    cost_sd: float
    hap: float | None = None


_HARD = {
    ("uniform", "4"): Published(0.959, 1.0, 0.057, 0.064),
    ("uniform", "3"): Published(0.796, 1.0, 0.070, 0.085),
    ("uniform", "2"): Published(0.539, 1.0, 0.078, 0.096),
    ("uniform", "1"): Published(0.220, 1.0, 0.077, 0.096),
    ("uniform", "random"): Published(0.637, 1.0, 0.068, 0.081),
    ("causal", "4"): Published(0.959, 1.0, 0.057, 0.064),
    ("causal", "3"): Published(0.821, 1.0, 0.066, 0.078),
    ("causal", "2"): Published(0.597, 1.0, 0.072, 0.088),
    ("causal", "1"): Published(0.259, 1.0, 0.070, 0.087),
    ("causal", "random"): Published(0.656, 1.0, 0.062, 0.074),
    ("reverse-causal", "4"): Published(0.959, 1.0, 0.057, 0.064),
    ("reverse-causal", "3"): Published(0.778, 1.0, 0.074, 0.091),
    ("reverse-causal", "2"): Published(0.467, 1.0, 0.085, 0.103),
    ("reverse-causal", "1"): Published(0.166, 1.0, 0.084, 0.107),
    ("reverse-causal", "random"): Published(0.60, 1.0, 0.071, 0.087),
}
"""Tables 1 and 5."""

_RANKED = {
    ("4", "constant"): Published(0.959, 1.0, 0.057, 0.064, 0.614),
    ("4", "concave"): Published(0.959, 1.0, 0.074, 0.088, 0.492),
    ("4", "linear"): Published(0.959, 1.0, 0.072, 0.085, 0.443),
    ("4", "convex"): Published(0.959, 1.0, 0.070, 0.081, 0.387),
    ("random", "constant"): Published(0.637, 1.0, 0.068, 0.081, 0.694),
    ("random", "concave"): Published(0.637, 1.0, 0.079, 0.095, 0.607),
    ("random", "linear"): Published(0.637, 1.0, 0.076, 0.091, 0.596),
    ("random", "convex"): Published(0.637, 1.0, 0.074, 0.088, 0.583),
}
"""Table 2."""

_NOT_PLAUSIBLE = {
    ("uniform", "1"): Published(0.876, 0.25, 0.135, 0.151),
    ("uniform", "2"): Published(0.994, 0.25, 0.096, 0.133),
    ("causal", "1"): Published(0.923, 0.28, 0.119, 0.139),
    ("causal", "2"): Published(0.997, 0.37, 0.078, 0.112),
    ("reverse-causal", "1"): Published(0.838, 0.198, 0.148, 0.158),
    ("reverse-causal", "2"): Published(0.997, 0.29, 0.103, 0.126),
}
"""Table 6; its rows with plausibility are those of tables 1 and 5."""


def published(target: str, cell: Cell) -> Published | None:
    """The printed row for a cell; None where the paper prints no number (figures, scores)."""
    if cell.elicitation == "score":
        return None
    if target == "table2":
        return _RANKED.get((cell.actionable, cell.profile))
    rows: Mapping[tuple[str, str], Published] = _HARD if cell.plausible else _NOT_PLAUSIBLE
    return rows.get((cell.distribution, cell.actionable)) if target.startswith("table") else None

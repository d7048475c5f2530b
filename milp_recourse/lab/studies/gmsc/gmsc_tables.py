"""Tables of ``gmsc``: the paper's printed rows, certified optima, networks, and the gap between these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milp_recourse.lab.arrays import BoolArray, FloatArray
from milp_recourse.lab.gap.paper_settings import Setting, draw
from milp_recourse.lab.icarma.flow import CausalFlow
from milp_recourse.lab.icarma.icarma_model import Recommender
from milp_recourse.lab.icarma.sampling import Wishes
from milp_recourse.lab.icarma.score import Scored, score
from milp_recourse.lab.means import mean, quantiles, sd
from milp_recourse.lab.recipe.gmsc_data import FEATURES, LEVERS
from milp_recourse.lab.studies.gmsc.certified import actions, problems
from milp_recourse.lab.studies.gmsc.gmsc_networks import THROUGH, Profile, Through
from milp_recourse.lab.studies.kept_answers import Answer
from milp_recourse.lab.studies.paper_cells import Problem
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import gap_tolerance


@dataclass(frozen=True)
class Side:
    """One method's actions in one setting, judged.

    Attributes
    ----------
    action
        Values by applicant and feature; nan where a feature is not acted on, or there is no action.
    scored
        The judgement under the learned equations, as in the certified problem, and under the flow.
    served
        Whose action is feasible for the certified problem.
    """

    action: FloatArray
    scored: Scored
    served: BoolArray


@dataclass(frozen=True)
class MethodsCompared:
    """One setting: the certified optima and the networks' recommendations, with an entry per applicant.

    Attributes
    ----------
    status, bound, seconds
        Status, lower bound and processor seconds of the certified problem; the bound is infinite where the
        problem is infeasible.
    sides
        Actions by method: ``certified``, ``iCARMA, flow``, ``iCARMA, equations``.
    """

    setting: Setting
    wishes: Wishes
    status: NDArray[np.str_]
    bound: FloatArray
    seconds: FloatArray
    sides: Mapping[str, Side]

    def contradictions(self) -> int:
        """How many feasible actions are cheaper than a proven bound."""
        count = 0
        for side in self.sides.values():
            tolerance = np.array([gap_tolerance(c) if np.isfinite(c) else 0.0 for c in self.bound])
            count += int((side.served & (side.scored.cost < self.bound - tolerance)).sum())
        return count


def compare(
    people: Population,
    flow: CausalFlow,
    models: Mapping[tuple[Through, Profile], Recommender],
    setting: Setting,
    table: Mapping[Problem, Answer],
    seed: int,
) -> MethodsCompared:
    """Judge every method's actions in one setting under both causal models."""
    rows = people.rows
    asked = draw(setting, len(rows), seed)
    mine = problems(setting, len(rows), seed)
    profile: Profile = "constant" if setting.cell.profile == "constant" else "linear"
    columns = [FEATURES.index(f) for f in LEVERS]
    optimal = np.full(rows.shape, np.nan)
    optimal[:, columns] = actions(table, mine)
    answers = [table[p] for p in mine]
    status = np.array([a.status for a in answers])
    any_model = next(iter(models.values()))
    sides = {}
    exact = score(people.template, any_model, rows, asked, optimal, flow)
    sides["certified"] = Side(optimal, exact, np.array([a.cost is not None for a in answers]))
    for way in THROUGH:
        if (way, profile) in models:
            model = models[way, profile]
            action, _ = model.recommend(rows, asked)
            scored = score(people.template, model, rows, asked, action, flow)
            sides[f"iCARMA, {way}"] = Side(action, scored, scored.serves(people.template.plausible))
    bound = np.array([np.inf if a.status == "infeasible" else a.lower_bound or 0.0 for a in answers])
    return MethodsCompared(setting, asked, status, bound, np.array([a.seconds for a in answers]), sides)


def table_rows(one: MethodsCompared) -> list[dict[str, Any]]:
    """The rows of a setting: the paper's printed numbers, then one per method.

    Columns with ``_flow`` are under the spline flow, as in the paper; the others under the learned equations.
    """
    setting = one.setting
    fixed = {"table": setting.table, "setting": setting.label}
    rows: list[dict[str, Any]] = []
    paper = setting.icarma
    rows.append(fixed | {"method": "published iCARMA", "valid_flow": paper.validity})
    rows[-1] |= {"plausible_flow": paper.plausibility, "cost": paper.cost_mean}
    rows[-1] |= {"cost_sd": paper.cost_sd, "hap": paper.hap}
    certified = one.sides["certified"]
    for name, side in one.sides.items():
        acting = side.served if name == "certified" else np.ones(len(side.served), dtype=bool)
        valid = side.scored.valid & acting
        cost = side.scored.plain_cost[valid]
        both = side.served & certified.served
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (side.scored.cost / certified.scored.cost)[both]
        rows.append(
            {
                **fixed,
                "method": name,
                "applicants": len(acting),
                "valid": float(valid.mean()),
                "valid_flow": float((side.scored.valid_flow & acting).mean()),
                "plausible": float((side.scored.plausible & acting).mean()),
                "plausible_flow": float((side.scored.plausible_flow & acting).mean()),
                "plausible_flow_of_served": mean(side.scored.plausible_flow[side.served]),
                "cost": mean(cost),
                "cost_sd": sd(cost),
                "hap": mean(side.scored.hard[acting]),
                "actions": mean(side.scored.actions[acting]),
                "served": float(side.served.mean()),
                "missed": float((certified.served & ~side.served).mean()),
                "missed_invalid": float((certified.served & ~side.scored.sure).mean()),
                "missed_implausible": float((certified.served & side.scored.sure & ~side.served).mean()),
                **quantiles("cost_ratio", ratio, median=0.5, p90=0.9),
            }
        )
    return [{k: None if pd.isna(v) else v for k, v in row.items()} for row in rows]


def proof_row(one: MethodsCompared) -> dict[str, Any]:
    """Counts of the statuses of a setting's certified problems, their seconds, and contradictions."""
    return {
        "table": one.setting.table,
        "setting": one.setting.label,
        "applicants": len(one.status),
        **{name: int((one.status == name).sum()) for name in ("optimal", "infeasible", "limit")},
        **quantiles("seconds", one.seconds, median=0.5, p90=0.9, max=1.0),
        "contradicted": one.contradictions(),
    }


def out_of_range(
    one: MethodsCompared, people: Population, low: FloatArray, high: FloatArray
) -> list[dict[str, Any]]:
    """Per feature, how far the certified counterfactuals leave the range of the train rows."""
    side = one.sides["certified"]
    rows = people.rows[side.served]
    after = people.template.scm.counterfactual(rows, side.action[side.served])
    found = []
    for k, f in enumerate(FEATURES):
        excess = np.maximum(low[k] - after[:, k], after[:, k] - high[k])
        moved = np.abs(after[:, k] - rows[:, k])
        found.append(
            {
                "feature": f,
                "moved_mean": float(moved.mean()),
                "outside_share": float((excess > 1e-9).mean()),
                "outside_max": float(max(0.0, excess.max(initial=0.0))),
                "range": float(high[k] - low[k]),
            }
        )
    return found

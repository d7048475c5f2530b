"""Checks that everything is accepted in a box of actions (section 14)."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

from verify.certain.check import check_none_refused
from verify.certain.outcomes import to_refuse
from verify.fast.box import arithmetics
from verify.files.certificate import PROOF, trees_of
from verify.files.instance import Source
from verify.files.shapes import Reading, anything, conform, not_negative
from verify.kernel.certificate import check_action
from verify.kernel.checks import Rejected
from verify.kernel.lattice import Values
from verify.kernel.prices import Exact

FORMAT = "milp-recourse/region-certificate-1"
SHAPE = {
    "format": {FORMAT},
    "instance_sha256": str,
    "index?": float,
    "action": {str: anything},
    "cost": not_negative,
    "box": {str: [anything]},
    **PROOF,
}


def check_region(data: Any, source: Source, slow: bool) -> str:
    """Check a region's file and return what it proves, in one line."""
    given, reading = conform(data, SHAPE, "region"), Reading()
    applicant = source.applicant(given["index"])
    if given["instance_sha256"] != applicant.digest:
        raise Rejected("instance_sha256: the region belongs to another instance")
    problem, action = applicant.problem, applicant.numbers(given["action"])
    check_action(problem, action, given["cost"])
    if not action or given["box"].keys() != action.keys():
        raise Rejected("box: allowed: values for what the action acts on, and only for these")
    box, features = {}, {f.name: f for f in problem.model.features}
    for name in (f for f in problem.levers if f in action):
        variable, (low, high), where = applicant.variables[name], problem.levers[name], f"box.{name}"
        values = [Fraction(variable.value(v, where)) for v in given["box"][name]]
        listed, lattice = variable.kind == "categorical", features[name].lattice
        if values != sorted(values) or not values or not (low <= values[0] and values[-1] <= high):
            raise Rejected(f"{where}: allowed: ascending, inside [{float(low)}, {float(high)}]")
        if listed and lattice and any(lattice.floor(v) != v for v in values):
            raise Rejected(f"{where}: a label that may not be set")
        if not listed and len(values) != 2:
            raise Rejected(f"{where}: allowed: the lowest and the highest value")
        if not (action[name] in values if listed else values[0] <= action[name] <= values[1]):
            raise Rejected(f"{where}: the action is not inside")
        if listed:
            features[name] = features[name]._replace(lattice=Values(tuple(values)))
        box[name] = values[0], values[-1]
    own = replace(problem, model=replace(problem.model, features=[*features.values()]))
    trees = trees_of(given, "region", reading)
    with reading.placed():
        check_none_refused(
            to_refuse(own, box, {}), trees, "region", (lambda one: [Exact(one)]) if slow else arithmetics
        )
    whose = "" if given["index"] is None else f" index={given['index']:.0f}"
    return f"region{whose} action={json.dumps(given['action'])} box={json.dumps(given['box'])}"

"""The cheapest action of one Loan applicant under each of eight lists of conditions."""

from dataclasses import replace

import milp_recourse
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.problem.conditions import condition_from_text, condition_text

applicant = milp_recourse.read_instance(instances_path() / "loan" / "loan_007.json")
features = {f.name: f for f in applicant.features}

for lines in (
    [],
    ["at most 3 actions"],
    ["amount + 5 * income >= 0"],
    ["if savings rises then duration does not fall"],
    ["income change at most +80%"],
    ["savings is acted on", "duration does not rise"],
    ["income >= 0 or amount <= 0.5", "not (savings change at least 4)"],
    ["at most 1 action", "savings <= 0"],
):
    conditions = tuple(condition_from_text(line, features) for line in lines)
    result = milp_recourse.solve(replace(applicant, conditions=conditions))
    title = "; ".join(condition_text(one, features) for one in conditions) or "no conditions"
    changes = ", ".join(f"{name} {value:.2f}" for name, value in (result.action or {}).items())
    print(f"{title}\n    {result.status.value}: {changes or 'nothing helps'}", end="")
    print("" if result.cost is None else f" at cost {result.cost:.4f}")

"""The cheapest action of one Loan applicant under each cost, then under each demand on the density."""

from dataclasses import replace

import milp_recourse
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.problem.cost import Cost, Distance, Relative

applicant = milp_recourse.read_instance(instances_path() / "loan" / "loan_007.json")
scale = dict(applicant.cost.lengths)
plain = replace(applicant, reference=None)


def answer(title: str, problem: milp_recourse.Instance) -> None:
    """Print a title and the proven answer to a problem."""
    result = milp_recourse.solve(problem)
    changes = ", ".join(f"{name} {value:.2f}" for name, value in (result.action or {}).items())
    cost = "" if result.cost is None else f" at cost {result.cost:.4f}"
    print(f"{title}\n    {result.status.value}: {changes or 'nothing helps'}{cost}")


print("costs")
answer("l2-squared", replace(plain, cost=Cost.pure("l2-squared", scale)))
answer("l2", replace(plain, cost=Cost.pure("l2", scale)))
answer("l1", replace(plain, cost=Cost.pure("l1", scale)))
falls = {name: Distance(s, s / 3) for name, s in scale.items()}
answer("l1, falls three times as dear", replace(plain, cost=Cost.pure("l1", falls)))
rises = {name: Distance(s / 3, s) for name, s in scale.items()}
answer("l1, rises three times as dear", replace(plain, cost=Cost.pure("l1", rises)))
answer("l1, relative changes", replace(plain, cost=Cost.pure("l1", dict.fromkeys(scale, Relative()))))

print("log density of the outcome, above today's by at least")
for offset in (-0.5, -0.1, 0.0, 0.1, 1.0):
    own = replace(plain.preferences, density_offset=offset)
    answer(f"{offset:+g} nats", replace(plain, preferences=own))
answer("not asked", replace(plain, plausible=False))

"""Print the Loan SCM as an explicit SCM, ready for an instance file."""

from milp_recourse.formats import scm_to_dict
from milp_recourse.formats.strict_json import dump
from milp_recourse.problem.loan import loan

print(dump(scm_to_dict(loan(), explicit=True)), end="")

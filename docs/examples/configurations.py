"""Print the configurations of a Loan problem: the sets of acted features that are solved one by one."""

from milp_recourse import read_instance
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.program import lower

program = lower(read_instance(instances_path() / "loan" / "loan_007.json"))
for acted in program.configurations():
    print(*sorted(acted))

"""The command line. Each command calls one public function and prints what it returns.

Exit codes: 0 done (also "infeasible, proven", ``found``, ``not-found``); 1 the machine failed (a full
disk); 2 bad input, one line on stderr; 3 a limit was reached, or an applicant could not be read; 4 a
result contradicts a known answer, or verification failed; 130 interrupted.
"""

from milp_recourse.cli.app import app, main

__all__ = ["app", "main"]

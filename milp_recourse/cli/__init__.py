"""The command line. Each command calls one public function and prints what it returns.

Exit codes: 0 if the command is done (also with ``infeasible``, ``found`` and ``not-found``); 1 if the machine
failed (a full disk); 2 for bad input, with one line on stderr; 3 if a limit was reached or an applicant could
not be read; 4 if a result contradicts a known answer, a given action is not feasible, or verification failed;
130 if interrupted.
"""

from milp_recourse.cli.app import app, main

__all__ = ["app", "main"]

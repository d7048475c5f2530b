"""The package and its compiled functions, loaded by a solve of each kind, for processes that share them."""

from __future__ import annotations

import sklearn.pipeline  # noqa: F401  # scripts import it

import milp_recourse.cli  # noqa: F401  # commands do
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.questions.solve import solve

for _name in ("loan/loan_007.json", "smoke/two_trees.json"):
    solve(instances_path() / _name, certificates=True)

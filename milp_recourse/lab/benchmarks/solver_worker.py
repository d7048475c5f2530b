"""One solver in a process: ``python -m milp_recourse.lab.benchmarks.solver_worker SOLVER MODELS [bare]``.

MODELS is ``networks`` or ``trees``, the kind of classifier; ``bare``: without certificates. The process reads
pickled (instance, time limit) pairs and writes a line of JSON for each. Every solver has a process of its
own, because OR-Tools and highspy cannot be imported into the same one, and because processor seconds are
measured per process. Compiling and importing are done before the first question.

For networks, peers get the whole program as one model, with big-M bounds from the stated intervals, one
thread and a relative gap of 1e-6. The time to build the model counts, that to import the solver does not.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

from milp_recourse.judge import conclude, judge
from milp_recourse.lab.benchmarks.leaf_milp import LeafMilp
from milp_recourse.lab.benchmarks.peers import PEERS, Solve, raw_action, whole_program
from milp_recourse.lab.benchmarks.timed import Answer, Events, clocked, judged
from milp_recourse.lab.measured import with_seconds
from milp_recourse.problem.instance import Acceptance, Instance
from milp_recourse.problem.result import Result
from milp_recourse.solvers import Options
from milp_recourse.solvers import backend as find_backend
from milp_recourse.solvers.cpsat import CpsatBackend

TOLERANCE = 1e-5
"""In units of the logit: ten times the feasibility tolerance of the peers' default settings."""


def ours(solver: str, certify: bool, instance: Instance, time_limit: float) -> Answer:
    """A back end of this package; for ``bab``, if asked, with its certificate's time and size. ``bab:2`` is
    ``bab`` with two threads."""
    name, _, count = solver.partition(":")
    threads = int(count or 1)
    back_end = CpsatBackend(in_process=True) if name == "cpsat" else find_backend(name)

    def solve(events: Events) -> Answer:
        return {"proposal": back_end.solve(instance, Options(time_limit, watch=events, threads=threads))}

    answer = clocked(instance, solve)
    result = conclude(instance, answer.pop("proposal"), name, answer["seconds"])
    answer |= {"status": result.status.value, "claimed_cost": result.cost, "nodes": result.nodes}
    answer |= {"lower_bound": result.lower_bound} | judged(instance, result.action)
    if certify and name == "bab" and answer["status"] in ("optimal", "infeasible"):
        answer |= certified(instance, result, time_limit)
    return answer


def certified(instance: Instance, result: Result, time_limit: float) -> Answer:
    """Processor seconds to make and to check the certificate; its nodes by kind, and its size packed.

    A proof that is written may take five times as long as the answer.
    """
    from milp_recourse.certificates import certificates_for, encode
    from milp_recourse.formats.write import write_instance
    from milp_recourse.lab.benchmarks.certificates import checked, counts

    (certificate,), produced = with_seconds(lambda: certificates_for([instance], [result], 5.0 * time_limit))
    if certificate is None:
        return {}
    packed = encode(certificate)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "instance.json"
        write_instance(instance, path)
        outcome, seconds = checked(packed, path, Path(folder))
    kinds = counts(certificate)
    return {
        "certificate_seconds": produced,
        "certificate_nodes": sum(kinds.values()),
        "certificate_kinds": " ".join(f"{count}{kind}" for kind, count in sorted(kinds.items())),
        "certificate_bytes": len(packed),
        "check_seconds": seconds,
        "verified": outcome.claim == certificate["claim"],
    }


def leaf_milp(instance: Instance, time_limit: float) -> Answer:
    """The answer of the plain leaf formulation in HiGHS; the time to build its rows counts."""
    return clocked(instance, lambda events: LeafMilp(instance).solve(time_limit, events))


def peer(solve: Solve, instance: Instance, time_limit: float) -> Answer:
    """A peer's answer about a network.

    ``nearly`` says whether its action is feasible if the logit may miss the threshold by TOLERANCE.
    """

    def solved(events: Events) -> Answer:
        mip = whole_program(instance)
        if mip is None:
            return {"status": "infeasible"}
        found = solve(mip, time_limit, events)
        values = found.pop("values", None)
        return found | {"action": None if values is None else raw_action(instance, mip, values)}

    answer = clocked(instance, solved)
    near = replace(instance, accept=Acceptance(instance.accept.threshold - TOLERANCE))
    action = answer["action"]
    return answer | {"nearly": None if action is None else judge(near, action).feasible}


def ready(solver: str, models: str, how: str = "") -> Callable[[Instance, float], Answer]:
    """Import and compile what a solver needs; return the function that answers."""
    name = solver.partition(":")[0]
    if solver in PEERS:
        solve, module = PEERS[solver]
        import_module(module)
        return partial(peer, solve)
    if solver == "leaf-milp":
        import_module("highspy")
        return leaf_milp
    if name == "bab" and models == "networks":
        from milp_recourse.certificates.engine_proofs import ready as compile_proofs
        from milp_recourse.engine.networks.propose import ready as compile_search

        compile_search()
        if how != "bare":
            compile_proofs()
    elif solver == "bab":
        from milp_recourse.certificates import price_proof  # noqa: F401
        from milp_recourse.engine.forests.priced import ready as compile_all

        compile_all()
    else:
        import_module("highspy" if solver == "highs" else "ortools.sat.python.cp_model")
    return partial(ours, solver, how != "bare")


def main() -> None:
    """Answer as the solver named on the command line until the parent closes the pipe."""
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a solver prints must not mix with answers
    answer = ready(*sys.argv[1:])
    while True:
        try:
            instance, time_limit = pickle.load(questions)
        except EOFError:
            return
        answers.write(json.dumps(answer(instance, time_limit)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()

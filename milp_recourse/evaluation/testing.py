"""An assertion for a project's own tests: its method is near the certified optimum.

>>> def test_our_recourse():  # doctest: +SKIP
...     assert_near_optimal("ours.recourse:actions", "people.json", within=0.05, share=0.95)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from milp_recourse.evaluation.evaluate import Action, Evaluation, evaluate, is_near
from milp_recourse.evaluation.methods import Method, ask, load
from milp_recourse.evaluation.optima import certified_optima
from milp_recourse.formats import read_population
from milp_recourse.judge import judge
from milp_recourse.problem.population import Population


def assert_near_optimal(
    method: str | Method | Sequence[Action | None],
    population: Population | str | Path,
    within: float = 0.05,
    share: float = 0.95,
    *,
    first: int | None = None,
    folder: str | Path | None = None,
    time_limit: float | None = None,
) -> Evaluation:
    """Assert that a method is near the certified optimum (within 5%) on most applicants (95%).

    Parameters
    ----------
    method
        ``module:function``, a function as for :func:`~milp_recourse.evaluation.methods.ask`, or the actions.
    population
        The applicants, or their file.
    within
        How much an action may cost above the optimum, relatively: 0.05 allows 1.05 times the optimum.
    share
        The share of applicants with such an action that is required. Only applicants for whom an action is
        known count.
    first
        Use only the first so many applicants; None for all.
    folder
        Where the optima are kept from one test run to the next; None to keep nothing.

    Raises
    ------
    AssertionError
        Fewer applicants have such an action; the message names the worst.
    """
    people = population if isinstance(population, Population) else read_population(population)
    if first is not None:
        people = people[:first]
    if isinstance(method, str):
        method = load(method)
    actions = ask(method, people) if callable(method) else list(method)
    optima = certified_optima(people, None if folder is None else Path(folder), time_limit)
    found = evaluate(people, actions, optima)
    near, have = found.near(within)
    if near < share * have:
        bad = [one for one in found.applicants if one.recourse and not is_near(one, within)]
        worst = max(bad, key=lambda one: float("inf") if one.excess is None else one.excess)
        if worst.excess is not None:
            fault = f"costs {worst.cost:.6g}, the optimum {worst.optimum:.6g}"
        elif not worst.given:
            fault = f"got no action, where one of cost {worst.optimum:.6g} exists"
        else:
            action = actions[worst.index] or {}
            reason = _why(people, worst.index, action)
            fault = f"got an action that is not feasible, {dict(action)}: {reason}"
        raise AssertionError(
            f"{near} of {have} applicants with recourse ({near / have:.1%}) are within {within:.1%} of the "
            f"certified optimum, {share:.1%} are asked for; applicant {worst.index} {fault}"
        )
    return found


def _why(people: Population, index: int, action: Action) -> str:
    """The demands that an action breaks, in words."""
    faults = judge(people[index], action).faults
    return "; ".join(faults) or "the deployed model does not accept the counterfactual"

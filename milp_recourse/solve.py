"""Choose a back end, run it, conclude: from a problem to a result."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path

from milp_recourse.backends import Backend, Options, Proposal
from milp_recourse.backends import backend as find_backend
from milp_recourse.domain.forest import TreeEnsemble
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.formats import read_instance, read_population
from milp_recourse.instance import Classifier, Instance, Population
from milp_recourse.judge import already_good, conclude
from milp_recourse.magnitude import too_large
from milp_recourse.result import Result


def solve(
    problem: Instance | str | Path, backend: str | None = None, time_limit: float | None = None
) -> Result:
    """The cheapest action for one applicant, with a proven lower bound where the back end has one.

    Parameters
    ----------
    problem
        An instance, or the path of its file.
    backend
        Name of a back end; None takes ``highs`` for networks.
    time_limit
        Wall seconds; None for no limit.

    Returns
    -------
    Result
        A factual that is already good is ``optimal`` at cost 0 with no action, and an applicant
        who has nothing to act on is ``infeasible``, both proven without the back end (a back end
        that proves nothing, like ``grid``, still only says ``found`` or ``not-found``).

    Raises
    ------
    BadInput
        The file breaks the format, or the time limit is not a positive number.
    Unsupported
        The back end cannot solve this problem; the message says why.
    BackendUnavailable
        Unknown, or its solver is not installed.
    """
    options = check_options(time_limit)
    instance = problem if isinstance(problem, Instance) else read_instance(problem)
    return _run(instance, choose_backend(instance.classifier, backend), options)


def solve_population(
    population: Population | str | Path,
    backend: str | None = None,
    time_limit: float | None = None,
    *,
    jobs: int = 1,
    first: int = 0,
    last: int | None = None,
) -> Iterator[Result]:
    """One result per applicant, in order, each handed out as soon as it and all before it are there.

    Parameters
    ----------
    population
        A population, or the path of its file.
    backend, time_limit
        As for :func:`solve`; the limit holds per applicant.
    jobs
        Processes.
    first, last
        Solve only applicants ``first <= index < last``.

    Raises
    ------
    BadInput, Unsupported, BackendUnavailable
        As for :func:`solve`; the file and the back end are checked before the first applicant.
    """
    options = check_options(time_limit, jobs)
    people = population if isinstance(population, Population) else read_population(population)
    name = choose_backend(people.template.classifier, backend).name
    end = len(people) if last is None else min(last, len(people))
    return _results(people, name, options, jobs, range(first, end))


def choose_backend(classifier: Classifier, name: str | None = None) -> Backend:
    """The back end called ``name``, or the default for the classifier: ``highs`` for networks.

    Raises
    ------
    Unsupported
        Trees, and no back end named: none of those here is exact for them.
    BackendUnavailable
        Unknown, or its solver is not installed.
    """
    if name is None:
        if isinstance(classifier, TreeEnsemble):
            raise Unsupported(
                "classifier: no exact back end for tree ensembles yet; name one: backend grid (no proof)"
            )
        name = "highs"
    return find_backend(name)


def check_options(time_limit: float | None, jobs: int = 1) -> Options:
    """The options, if they make sense.

    Raises
    ------
    BadInput
        The time limit is no positive number of seconds, or there are fewer than one job.
    """
    if time_limit is not None and not (time_limit > 0 and math.isfinite(time_limit)):
        raise BadInput("time_limit", time_limit, "a number of seconds above 0")
    if jobs < 1:
        raise BadInput("jobs", jobs, "a whole number, 1 or more")
    return Options(time_limit)


def _results(
    population: Population, name: str, options: Options, jobs: int, indices: range
) -> Iterator[Result]:
    if jobs == 1 or len(indices) <= 1:
        back_end = find_backend(name)
        yield from (_run(population[index], back_end, options) for index in indices)
        return
    from joblib import Parallel, delayed

    tasks = (delayed(_run_by_name)(population[index], name, options) for index in indices)
    yield from Parallel(n_jobs=jobs, return_as="generator", batch_size=1)(tasks)


def _run_by_name(instance: Instance, name: str, options: Options) -> Result:
    return _run(instance, find_backend(name), options)


def _run(instance: Instance, backend: Backend, options: Options) -> Result:
    """Decide what needs no search, else search; always conclude."""
    start = time.perf_counter()

    def finish(proposal: Proposal) -> Result:
        from milp_recourse.search.repair import repair

        return conclude(instance, proposal, backend.name, time.perf_counter() - start, repair=repair)

    if already_good(instance):
        return finish(Proposal({}, 0.0, "rigorous") if backend.proves else Proposal({}, None))
    if not instance.levers:
        message = "no feature can be acted on: widen the mask, the ranges, the bounds or the domains"
        bound = math.inf if backend.proves else None
        return finish(Proposal(None, bound, "rigorous" if backend.proves else None, message=message))
    reason = too_large(instance) or backend.why_not(instance)
    if reason is not None:
        raise Unsupported(f"{instance.name or 'instance'}: backend {backend.name}: {reason}")
    return finish(backend.solve(instance, options))

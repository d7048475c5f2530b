"""Choose a back end, run it, conclude: from a problem to a result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from milp_recourse.backends import Backend, BatchBackend, Options, Proposal
from milp_recourse.backends import backend as find_backend
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.domain.scm import StructuralCausalModel
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.formats import read_instance, read_population
from milp_recourse.instance import Classifier, Instance, Population, of_one_model
from milp_recourse.judge import already_good, conclude
from milp_recourse.magnitude import too_large
from milp_recourse.result import Result
from milp_recourse.workers import Workers

T = TypeVar("T")

DEFAULTS = ("bab", "highs")
"""What is tried, in this order, where no back end is named."""


def solve(
    problem: Instance | str | Path,
    backend: str | None = None,
    time_limit: float | None = None,
    certificates: bool = False,
    starts: NDArray[np.float64] | None = None,
) -> Result:
    """The cheapest action for one applicant, with a proven lower bound where the back end has one.

    Parameters
    ----------
    problem
        An instance, or the path of its file.
    backend
        Name of a back end; None takes the default for the problem.
    time_limit
        Wall seconds; None for no limit.
    certificates
        Whether the result is to carry a certificate (in :attr:`Result.evidence`).
    starts
        Rows of feature values, (n, features), labels by index, that the model is known or believed to accept:
        good actions are looked for from there too.

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
    options = check_options(time_limit, certificates=certificates, starts=starts)
    instance = problem if isinstance(problem, Instance) else read_instance(problem)
    return _run(instance, choose_backend(instance, backend), options)


def solve_population(
    population: Population | str | Path,
    backend: str | None = None,
    time_limit: float | None = None,
    *,
    certificates: bool = False,
    jobs: int = 1,
    scheduler: str | None = None,
    first: int = 0,
    last: int | None = None,
    starts: NDArray[np.float64] | None = None,
) -> Iterator[Result]:
    """One result per applicant, in order, each handed out as soon as it and all before it are there.

    Parameters
    ----------
    population
        A population, or the path of its file.
    backend, time_limit, certificates, starts
        As for :func:`solve`; the limit holds per applicant.
    jobs
        Processes.
    scheduler
        Address of a Dask scheduler whose workers are used instead of processes here.
    first, last
        Solve only applicants ``first <= index < last``.

    Raises
    ------
    BadInput, Unsupported, BackendUnavailable
        As for :func:`solve`; the file and the back end are checked before the first applicant.
    """
    options = check_options(time_limit, jobs, certificates, starts)
    people = population if isinstance(population, Population) else read_population(population)
    name = choose_backend(people.template, backend).name
    end = len(people) if last is None else min(last, len(people))
    return _results(people, name, options, range(first, end), Workers(jobs, scheduler))


def solve_together(
    instances: Sequence[Instance], backend: str | None = None, time_limit: float | None = None
) -> Iterator[Result]:
    """One result per instance, in order; the models may differ.

    A back end that solves batches gets all of them at once.

    Parameters
    ----------
    backend, time_limit
        As for :func:`solve`; the limit holds per instance.

    Raises
    ------
    BadInput, Unsupported, BackendUnavailable
        As for :func:`solve`.
    """
    options = check_options(time_limit)
    if not instances:
        return iter(())
    return _run_many(sharing(instances), choose_backend(instances[0], backend), options)


def sharing(instances: Sequence[Instance]) -> list[Instance]:
    """The same instances, equal parts of models being one object: that tells what is lowered together."""
    networks: dict[bytes, Classifier] = {}
    models: list[StructuralCausalModel] = []
    parts: list[object] = []
    shared = []
    for instance in instances:
        network = instance.classifier
        if isinstance(network, ReluNetwork):
            network = networks.setdefault(network.content, network)
        scm = _known(instance.scm, models, lambda m: (m.name, m.features, m.mechanisms))
        features, cost = _known(instance.features, parts), _known(instance.cost, parts)
        shared.append(replace(instance, classifier=network, scm=scm, features=features, cost=cost))
    return shared


def _known(one: T, known: list[Any], content: Callable[[T], object] = lambda one: one) -> T:
    """What equals ``one`` among what is known, where it becomes known."""
    for other in known:
        if other is one or (type(other) is type(one) and content(other) == content(one)):
            return cast(T, other)
    known.append(one)
    return one


def choose_backend(problem: Instance, name: str | None = None) -> Backend:
    """The back end called ``name``, or the first of :data:`DEFAULTS` that can solve the problem.

    Parameters
    ----------
    problem
        An instance, or a population's template.

    Raises
    ------
    Unsupported
        No back end is named, and none of the defaults is exact for this problem.
    BackendUnavailable
        Unknown, or its solver is not installed.
    """
    if name is not None:
        return find_backend(name)
    reasons = []
    for default in DEFAULTS:
        made = find_backend(default)
        reason = made.why_not(problem)
        if reason is None:
            return made
        reasons.append(f"{default}: {reason}")
    raise Unsupported("no default back end for this problem: " + "; ".join(reasons))


def check_options(
    time_limit: float | None,
    jobs: int = 1,
    certificates: bool = False,
    starts: NDArray[np.float64] | None = None,
) -> Options:
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
    return Options(time_limit, certificates, starts)


def _results(
    population: Population, name: str, options: Options, indices: range, workers: Workers
) -> Iterator[Result]:
    """Chunks start at multiples of the back end's batch, whatever was asked for and whoever solves them.

    So a chunk is always solved in the same company, and going on after an interruption gives the
    results of an uninterrupted run.
    """
    back_end = find_backend(name)
    size = back_end.batch if isinstance(back_end, BatchBackend) else 1
    start = indices.start - indices.start % size
    chunks = [range(k, min(k + size, indices.stop)) for k in range(start, indices.stop, size)]
    if workers.alone or (workers.scheduler is None and len(chunks) <= 1):
        solved: Iterator[Iterable[Result]] = (
            _run_many([population[i] for i in chunk], back_end, options, chunk.start) for chunk in chunks
        )
    else:
        tasks = ((chunk.start, [population[i] for i in chunk]) for chunk in chunks)
        solved = iter(workers.map(partial(_run_by_name, name=name, options=options), tasks))
    for chunk, results in zip(chunks, solved, strict=True):
        for index, result in zip(chunk, results, strict=True):
            if index >= indices.start:
                yield result


def _run_by_name(chunk: tuple[int, list[Instance]], name: str, options: Options) -> list[Result]:
    first, instances = chunk
    return list(_run_many(instances, find_backend(name), options, first))


def _run(instance: Instance, backend: Backend, options: Options) -> Result:
    return next(_run_many([instance], backend, options))


CERTIFIED_TOGETHER = 128
"""Results certified in one batch: large enough for the kernel, small enough not to keep anyone waiting."""


def _run_many(
    instances: Sequence[Instance], backend: Backend, options: Options, first: int | None = None
) -> Iterator[Result]:
    """Solve, and certify where it is asked for; in order. ``first`` is the first applicant's index."""
    from milp_recourse.certificates import certificates_for, encode

    solved = _solve_many(instances, backend, options)
    if not options.certificates:
        yield from solved
        return
    for start in range(0, len(instances), CERTIFIED_TOGETHER):
        some = instances[start : start + CERTIFIED_TOGETHER]
        results = [result for _, result in zip(some, solved, strict=False)]
        clock = time.perf_counter()
        index = None if first is None else first + start
        certificates = certificates_for(some, results, options.time_limit, index)
        share = (time.perf_counter() - clock) / len(some)
        for result, certificate in zip(results, certificates, strict=True):
            evidence = None if certificate is None else encode(certificate)
            yield replace(result, evidence=evidence, seconds=result.seconds + share)


def _solve_many(instances: Sequence[Instance], backend: Backend, options: Options) -> Iterator[Result]:
    """Decide what needs no search, search the rest (together, if the back end can); in order."""
    results: dict[int, Result] = {}
    hard: list[int] = []
    given, begun = 0, time.perf_counter()
    for k, instance in enumerate(instances):
        start = time.perf_counter()
        proposal = _without_search(instance, backend)
        if proposal is None:
            hard.append(k)
        else:
            results[k] = _finish(instance, proposal, backend, time.perf_counter() - start)
    left = [instances[k] for k in hard]
    _check(left, backend)
    each = (time.perf_counter() - begun) / max(1, len(instances))  # what was spent on all before the search
    for position, proposal, seconds in _searched(left, backend, options):
        k = hard[position]
        results[k] = _finish(instances[k], proposal, backend, seconds + each)
        while given in results:
            yield results.pop(given)
            given += 1
    while given in results:
        yield results.pop(given)
        given += 1


def _searched(
    instances: list[Instance], backend: Backend, options: Options
) -> Iterator[tuple[int, Proposal, float]]:
    if isinstance(backend, BatchBackend):
        for position, proposal in backend.solve_many(instances, options):
            yield position, proposal, proposal.seconds or 0.0
        return
    for position, instance in enumerate(instances):
        start = time.perf_counter()
        proposal = backend.solve(instance, options)
        yield position, proposal, time.perf_counter() - start


def _finish(instance: Instance, proposal: Proposal, backend: Backend, seconds: float) -> Result:
    from milp_recourse.search.repair import repair

    start = time.perf_counter()
    result = conclude(instance, proposal, backend.name, seconds, repair=repair)
    return replace(result, seconds=seconds + time.perf_counter() - start)


def _without_search(instance: Instance, backend: Backend) -> Proposal | None:
    """The proposal where no search is needed, else None."""
    if already_good(instance):
        return Proposal({}, 0.0, "rigorous") if backend.proves else Proposal({}, None)
    if not instance.levers:
        message = "no feature can be acted on: widen the mask, the ranges, the bounds or the domains"
        bound = math.inf if backend.proves else None
        return Proposal(None, bound, "rigorous" if backend.proves else None, message=message)
    return None


def _check(instances: Sequence[Instance], backend: Backend) -> None:
    """Make sure that the back end can solve the problems.

    Raises
    ------
    Unsupported
        It cannot solve one of them; the message says why.
    """
    for group in of_one_model(instances):
        together = too_large(*(instances[k] for k in group))
        for k in group:
            instance = instances[k]
            reason = (too_large(instance) if together else None) or backend.why_not(instance)
            if reason is not None:
                raise Unsupported(f"{instance.name or 'instance'}: backend {backend.name}: {reason}")

"""Choose a back end, run it, conclude: from a problem to a result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import BadInput, Unsupported, is_number
from milp_recourse.formats import instance_from_dict, population_from_dict, read_instance, read_population
from milp_recourse.judge import already_good_among, conclude
from milp_recourse.judge.incumbent import without_search
from milp_recourse.problem.cost import root_below
from milp_recourse.problem.instance import Classifier, Instance, Population, of_one_model
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Result
from milp_recourse.problem.scm import StructuralCausalModel
from milp_recourse.program.magnitude import too_large
from milp_recourse.questions.workers import Workers
from milp_recourse.solvers import Backend, BatchBackend, Options, Proposal
from milp_recourse.solvers import backend as find_backend

T = TypeVar("T")

DEFAULTS = ("bab", "highs")
"""The back ends tried, in this order, where none is named."""

FIRST_CERTIFIED, CERTIFIED_TOGETHER = 8, 128
"""The first and the largest number of results whose certificates are searched for in one batch."""

_FEW_LEVERS = 4
_TOGETHER = 256  # larger batches are little faster, and their first results come later
_TREES_TOGETHER = 16
_TO_ONE_PROCESS = 32  # it hands them back together; what it has when a run is interrupted is lost


def solve(
    problem: Instance | Mapping[str, Any] | str | Path,
    backend: str | None = None,
    time_limit: float | None = None,
    certificates: bool = False,
    index: int | None = None,
    starts: NDArray[np.float64] | None = None,
) -> Result:
    """The cheapest action for one applicant, with a proven lower bound where the back end has one.

    Parameters
    ----------
    problem
        An instance, the JSON value of one, or the path of its file.
    backend
        Name of a back end; None takes the default for the problem.
    time_limit
        Wall seconds; None for no limit.
    certificates
        Whether the result is to carry a certificate (in :attr:`Result.evidence`).
    index
        The applicant's index (17) where ``problem`` was taken out of a population (``population[17]``). The
        certificate names the index, so that it can be verified against the population's file.
    starts
        Feature rows, (n, features), labels by index, that the model is known or believed to accept:
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
    instance = as_instance(problem)
    back_end = choose_backend(instance, backend)
    [(_, result)] = _run_many([instance], back_end, options, None if index is None else [index])
    return result


def solve_population(
    population: Population | Mapping[str, Any] | str | Path,
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
    """One result per applicant, in order, each yielded as soon as it and all before it are finished.

    Parameters
    ----------
    population
        A population, the JSON value of one, or the path of its file.
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
        As for :func:`solve`; the file, and whether the back end is there, are checked before the iterator is
        returned. In place of the result of an applicant who could not be read, the iterator raises the
        BadInput of :attr:`Population.unreadable`.
    """
    options = check_options(time_limit, jobs, certificates, starts)
    people = as_population(population)
    name = choose_backend(people.template, backend).name
    wanted = range(first, len(people) if last is None else min(last, len(people)))
    solved = solve_as_finished(people, name, options, wanted, Workers(jobs, scheduler))
    return _in_order(solved, wanted, people.unreadable)


def solve_as_finished(
    population: Population, name: str, options: Options, wanted: Iterable[int], workers: Workers
) -> Iterator[tuple[int, Result]]:
    """(index, result) of the wanted applicants who could be read, each as soon as it is finished.

    Applicants are solved in chunks. No answer depends on who else is in a chunk, so a run that is resumed
    after an interruption gives the results of an uninterrupted one.

    Parameters
    ----------
    name
        Name of a back end.
    wanted
        Indices of applicants.
    """
    readable = sorted({k for k in wanted if k not in population.unreadable})
    back_end = find_backend(name)
    size = batch_size(population, back_end)
    if not workers.alone:
        size = min(size, _TO_ONE_PROCESS)
        if workers.scheduler is None:  # enough chunks for every process to get several
            size = max(1, min(size, math.ceil(len(readable) / (4 * workers.jobs))))
    chunks = [readable[k : k + size] for k in range(0, len(readable), size)]
    tasks = ((chunk, [population[k] for k in chunk]) for chunk in chunks)
    if workers.alone or (workers.scheduler is None and len(chunks) <= 1):
        for chunk, people in tasks:
            yield from ((chunk[k], result) for k, result in _run_many(people, back_end, options, chunk))
        return
    for found in workers.map(partial(_run_by_name, name=name, options=options), tasks):
        yield from found


def batch_size(population: Population, back_end: Backend) -> int:
    """The number of applicants in a chunk.

    For networks it is the back end's ``batch``, halved for every lever beyond :data:`_FEW_LEVERS`, because
    each lever that others move doubles an applicant's configurations; to be safe, all levers are counted. It
    is at most :data:`_TOGETHER`. Trees are solved one by one within their chunk.
    """
    if not isinstance(back_end, BatchBackend):
        return 1
    if not isinstance(population.template.classifier, ReluNetwork):
        return min(back_end.batch, _TREES_TOGETHER)
    levers = max(len(p.actionable) for p in population.preferences)
    return max(1, min(_TOGETHER, back_end.batch >> max(0, levers - _FEW_LEVERS)))


def as_instance(problem: Instance | Mapping[str, Any] | str | Path) -> Instance:
    """The instance that is given as itself, as its JSON value or as its file's path.

    Raises
    ------
    BadInput
        It breaks the format, or is given as something else.
    """
    return _given_as(problem, Instance, instance_from_dict, read_instance, "problem", "an Instance")


def as_population(population: Population | Mapping[str, Any] | str | Path) -> Population:
    """The population that is given as itself, as its JSON value or as its file's path.

    Raises
    ------
    BadInput
        As for :func:`as_instance`.
    """
    return _given_as(
        population, Population, population_from_dict, read_population, "population", "a Population"
    )


def _given_as(
    given: object,
    kind: type[T],
    from_dict: Callable[[Any], T],
    read: Callable[[str | Path], T],
    argument: str,
    words: str,
) -> T:
    if isinstance(given, kind):
        return given
    if isinstance(given, Mapping):
        return from_dict(given)
    if isinstance(given, str | Path):
        return read(given)
    raise BadInput(argument, f"a {type(given).__name__}", f"{words}, the JSON value of one, or a file's path")


def solve_together(
    instances: Sequence[Instance], backend: str | None = None, time_limit: float | None = None
) -> Iterator[Result]:
    """One result per instance, in order; the models may differ.

    A back end that solves batches gets all of them at once.

    Parameters
    ----------
    backend, time_limit
        As for :func:`solve`; the limit holds per instance. Without a name, the back end is the default for
        the first instance, and it must support them all.

    Raises
    ------
    BadInput, Unsupported, BackendUnavailable
        As for :func:`solve`.
    """
    options = check_options(time_limit)
    if not instances:
        return iter(())
    found = _run_many(sharing(instances), choose_backend(instances[0], backend), options)
    return _in_order(found, range(len(instances)))


def sharing(instances: Sequence[Instance]) -> list[Instance]:
    """The instances, equal parts of their models replaced by one shared object.

    :func:`milp_recourse.problem.instance.of_one_model` compares models by identity, so instances can only be lowered
    together after this.
    """
    networks: dict[bytes, Classifier] = {}
    models: list[StructuralCausalModel] = []
    parts: list[object] = []
    shared = []
    for instance in instances:
        network = instance.classifier
        if isinstance(network, ReluNetwork):
            network = networks.setdefault(network.digest, network)
        scm = _known(instance.scm, models, lambda m: (m.name, m.features, m.mechanisms))
        features, cost = _known(instance.features, parts), _known(instance.cost, parts)
        shared.append(replace(instance, classifier=network, scm=scm, features=features, cost=cost))
    return shared


def _known(one: T, known: list[Any], content: Callable[[T], object] = lambda one: one) -> T:
    """The entry of ``known`` that equals ``one``; without such an entry ``one`` itself, which is appended."""
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
        No back end is named, and none of the defaults can solve this problem.
    BackendUnavailable
        Unknown, or its solver is not installed.
    """
    if name is not None:
        return find_backend(name)
    reasons = []
    for default in DEFAULTS:
        back_end = find_backend(default)
        reason = back_end.why_not(problem)
        if reason is None:
            return back_end
        reasons.append(f"{default}: {reason}")
    raise Unsupported("no default back end for this problem: " + "; ".join(reasons))


def check_options(
    time_limit: float | None,
    jobs: int = 1,
    certificates: bool = False,
    starts: NDArray[np.float64] | None = None,
) -> Options:
    """Check a time limit and a number of jobs, and return the options for a back end.

    Raises
    ------
    BadInput
        The time limit is neither None nor a finite number above 0, ``jobs`` is no whole number above 0, or
        ``certificates`` is no truth value.
    """
    if time_limit is not None and not (is_number(time_limit) and time_limit > 0):
        raise BadInput("time_limit", repr(time_limit), "a number of seconds above 0")
    if not (is_number(jobs) and isinstance(jobs, Integral) and jobs >= 1):
        raise BadInput("jobs", repr(jobs), "a whole number, 1 or more")
    if not isinstance(certificates, bool | np.bool_):
        raise BadInput("certificates", repr(certificates), "True or False")
    return Options(time_limit, certificates, starts)


def _in_order(
    found: Iterator[tuple[int, Result]], wanted: range, unreadable: Mapping[int, BadInput] | None = None
) -> Iterator[Result]:
    """The results in the order of their indices.

    Raises
    ------
    BadInput
        It is the turn of an applicant who could not be read.
    """
    waiting: dict[int, Result] = {}
    for index in wanted:
        if unreadable and index in unreadable:
            raise unreadable[index]
        while index not in waiting:
            k, result = next(found)
            waiting[k] = result
        yield waiting.pop(index)


def _run_by_name(
    chunk: tuple[list[int], list[Instance]], name: str, options: Options
) -> list[tuple[int, Result]]:
    indices, instances = chunk
    found = _run_many(instances, find_backend(name), options, indices)
    return [(indices[position], result) for position, result in found]


def _run_many(
    instances: Sequence[Instance],
    backend: Backend,
    options: Options,
    indices: Sequence[int] | None = None,
) -> Iterator[tuple[int, Result]]:
    """Solve, and certify where ``options`` ask for it: (position, result), as they are finished.

    Certificates of networks are searched for in batches, each twice as large as the one before, so that the
    first results come soon. A batch takes at most half of the applicants that are left, and at most
    :data:`CERTIFIED_TOGETHER`, so that not all results wait for one hard applicant.

    Parameters
    ----------
    indices
        Every instance's index in its population.
    """
    from milp_recourse.certificates import certificates_for, encode, reason_for_none, without_certificate

    solved = (
        (k, without_certificate(instances[k], result))
        for k, result in _solve_many(instances, backend, options)
    )
    if not options.certificates:
        yield from solved
        return
    left, most = len(instances), FIRST_CERTIFIED
    together = isinstance(backend, BatchBackend) and all(
        isinstance(i.classifier, ReluNetwork) for i in instances
    )
    while left:
        block = list(islice(solved, min(most, max(1, left // 2)) if together else 1))
        left, most = left - len(block), min(2 * most, CERTIFIED_TOGETHER)
        clock = time.perf_counter()
        certificates = certificates_for(
            [instances[k] for k, _ in block],
            [result for _, result in block],
            options.time_limit,
            None if indices is None else [indices[k] for k, _ in block],
        )
        share = (time.perf_counter() - clock) / len(block)
        for (position, result), certificate in zip(block, certificates, strict=True):
            evidence = None if certificate is None else encode(certificate)
            seconds = result.seconds + share
            found = replace(result, evidence=evidence, seconds=seconds)
            if evidence is None:
                reason = reason_for_none(instances[position], result)
                found = without_certificate(instances[position], found, reason)
            yield position, found


def _solve_many(
    instances: Sequence[Instance], backend: Backend, options: Options
) -> Iterator[tuple[int, Result]]:
    """Decide what needs no search, then search the rest (together, if the back end can)."""
    easy: list[tuple[int, Result]] = []
    hard: list[int] = []
    begun = time.perf_counter()
    good = already_good_among(instances)
    for k, instance in enumerate(instances):
        start = time.perf_counter()
        proposal = without_search(instance, good[k])
        if proposal is None:
            hard.append(k)
        else:
            if not backend.proves:
                proposal = replace(proposal, lower_bound=None, proof=None)
            easy.append((k, _finish(instance, proposal, backend, time.perf_counter() - start)))
    yield from easy
    left = [instances[k] for k in hard]
    start = time.perf_counter()
    _check([one.squared() for one in left], backend)
    # an applicant's share of the time that was spent on all of them before the search
    each = (start - begun) / max(1, len(instances)) + (time.perf_counter() - start) / max(1, len(left))
    for position, proposal, seconds in _searched(left, backend, options):
        k = hard[position]
        yield k, _finish(instances[k], proposal, backend, seconds + each)


def _searched(
    instances: list[Instance], backend: Backend, options: Options
) -> Iterator[tuple[int, Proposal, float]]:
    """(position, proposal, seconds) for each instance.

    The back end solves l2 as l2-squared; its bounds are turned into bounds of the instance's own cost.
    """
    roots = [instance.cost.is_root for instance in instances]
    watch = options.watch
    if any(roots) and watch is not None:
        watch_root = watch
        options = replace(options, watch=lambda cost, bound: watch_root(math.sqrt(cost), root_below(bound)))
    for position, proposal, seconds in _proposed([i.squared() for i in instances], backend, options):
        bound = proposal.lower_bound
        root = roots[position] and bound is not None
        yield position, replace(proposal, lower_bound=root_below(bound or 0.0)) if root else proposal, seconds


def _proposed(
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
    return conclude(instance, proposal, backend.name, seconds, repair=_near)


def _near(instance: Instance, action: Mapping[str, float]) -> dict[str, float] | None:
    if not isinstance(instance.classifier, ReluNetwork):
        return None
    from milp_recourse.engine.networks.nearby import near  # loads numba

    return near(instance, action)


def check_backend(problem: Instance, backend: Backend) -> None:
    """Raise :class:`Unsupported` where the back end cannot solve a problem, or a population's template."""
    reason = backend.why_not(problem.squared())
    if reason is not None:
        raise Unsupported(f"{problem.name or 'instance'}: backend {backend.name}: {reason}")


def _check(instances: Sequence[Instance], backend: Backend) -> None:
    """Check that the back end can solve the problems, and that no number of theirs is too large.

    Raises
    ------
    Unsupported
        It cannot solve one of them; the message says why.
    """
    for group in of_one_model(instances):
        any_too_large = too_large(*(instances[k] for k in group)) is not None
        for k in group:
            instance = instances[k]
            reason = (too_large(instance) if any_too_large else None) or backend.why_not(instance)
            if reason is not None:
                raise Unsupported(f"{instance.name or 'instance'}: backend {backend.name}: {reason}")

"""Choose a back end, run it, conclude: from a problem to a result."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import BadInput, Unsupported, is_number
from milp_recourse.formats import instance_from_dict, population_from_dict, read_instance, read_population
from milp_recourse.judge import Action, at_once, at_rest, at_rest_in_words, conclude, judge, without_search
from milp_recourse.problem.asked_model import AskedModel
from milp_recourse.problem.cost import root_below
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Classifier, Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result, Status
from milp_recourse.problem.scm import StructuralCausalModel
from milp_recourse.program.lower import of_one_model
from milp_recourse.program.magnitude import too_large
from milp_recourse.questions.workers import Workers
from milp_recourse.solvers import Backend, BatchBackend, Options, Proposal
from milp_recourse.solvers import backend as find_backend
from milp_recourse.solvers.simpler_problems import solve_relaxed

T = TypeVar("T")

DEFAULTS = ("bab", "highs")
"""The back ends tried, in this order, where none is named and the model is read."""

MANY_LEVERS = 1500
"""With more levers under one linear unit, the last of :data:`DEFAULTS` is asked first: the problem is a
knapsack, of one row, and ``bab`` would keep a row over all levers for each of them."""

ASKS = "ask"
"""The back end of models that are not read."""

FIRST_CERTIFIED, CERTIFIED_TOGETHER = 8, 128
"""The first and the largest number of results whose certificates are searched for in one batch."""

_FEW_LEVERS = 4
_TOGETHER = 256  # larger batches are little faster, and their first results come later
_TREES_TOGETHER = 16
_TO_EXPLAIN = 0.2  # seconds at least
_TO_ONE_PROCESS = 32  # it hands them back together; what it has when a run is interrupted is lost


def solve(
    problem: Instance | Mapping[str, Any] | str | Path,
    backend: str | None = None,
    time_limit: float | None = None,
    certificates: bool = False,
    index: int | None = None,
    starts: NDArray[np.float64] | None = None,
    threads: int = 1,
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
    threads
        How many search where that takes long (:class:`~milp_recourse.problem.options.Options`).

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
    options = check_options(time_limit, 1, certificates, starts, threads)
    instance = as_instance(problem)
    back_end = choose_backend(instance, backend)
    [(_, result)] = _run_many([instance], back_end, options, None if index is None else [index], strict=True)
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
    threads: int = 1,
) -> Iterator[Result]:
    """One result per applicant, in order, each yielded as soon as it and all before it are finished.

    Parameters
    ----------
    population
        A population, the JSON value of one, or the path of its file.
    backend, time_limit, certificates, starts, threads
        As for :func:`solve`; the limit and threads are per applicant.
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
    options = check_options(time_limit, jobs, certificates, starts, threads)
    options = replace(options, others=backend is None, explain=True)
    people = as_population(population)
    name = backend_for(people, backend).name
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

    For networks it is the back end's ``batch``, halved for every lever beyond :data:`_FEW_LEVERS` that others
    may move, because each doubles an applicant's configurations. It is at most :data:`_TOGETHER`. Trees are
    solved one by one within their chunk.
    """
    if not isinstance(back_end, BatchBackend):
        return 1
    if not isinstance(population.template.classifier, ReluNetwork):
        return min(back_end.batch, _TREES_TOGETHER)
    scm, levers = population.template.scm, set().union(*(p.actionable for p in population.preferences))
    moved = levers & set().union(*(scm.descendants({f}) - {f} for f in levers))
    count = len(levers if population.template.scenarios else moved)
    return max(1, min(_TOGETHER, back_end.batch >> max(0, count - _FEW_LEVERS)))


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
    found = _run_many(sharing(instances), choose_backend(instances[0], backend), options, strict=True)
    return _in_order(found, range(len(instances)))


def sharing(instances: Sequence[Instance]) -> list[Instance]:
    """The instances, equal parts of their models replaced by one shared object.

    :func:`~milp_recourse.program.lower.of_one_model` compares models by identity, so instances can only
    be lowered together after this.
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
            return other
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
    for default in _defaults(problem):
        back_end = find_backend(default)
        reason = _refusal(back_end, problem)
        if reason is None:
            return back_end
        reasons.append(f"{default}: {reason}")
    raise Unsupported("no default back end for this problem: " + "; ".join(reasons))


def backend_for(population: Population, name: str | None = None) -> Backend:
    """The back end called ``name``, or the first of :data:`DEFAULTS` that can solve some applicant's problem.

    Who else is asked changes nothing for an applicant: one whom this back end cannot solve gets an answer of
    their own (:attr:`Options.others`).

    Raises
    ------
    Unsupported
        It can solve nobody's problem, or, without a name, none of the defaults can. The message is about the
        first applicant.
    BackendUnavailable
        Unknown, or its solver is not installed.
    """
    reasons = []
    for one in _defaults(population.template) if name is None else (name,):
        back_end = find_backend(one)
        readable = (population[k] for k in range(len(population)) if k not in population.unreadable)
        why = (_refusal(back_end, instance.squared()) for instance in readable)
        first = next(why, None)
        if first is None or any(reason is None for reason in why):
            return back_end
        reasons.append(f"{one}: {first}")
    if name is not None:
        raise Unsupported(f"{population.template.name or 'instance'}: backend {reasons[0]}")
    raise Unsupported("no default back end for this problem: " + "; ".join(reasons))


def _defaults(problem: Instance) -> tuple[str, ...]:
    model = problem.classifier
    if isinstance(model, AskedModel):
        return (ASKS,)
    one_row = isinstance(model, ReluNetwork) and not model.hidden
    return DEFAULTS[::-1] if one_row and len(problem.preferences.actionable) > MANY_LEVERS else DEFAULTS


def _refusal(back_end: Backend, instance: Instance) -> str | None:
    """Why a back end cannot solve a problem, or None."""
    if isinstance(instance.classifier, AskedModel) and back_end.name != ASKS:
        return f"the model is not read, and can only be asked, by the back end {ASKS}"
    return back_end.why_not(instance)


def check_options(
    time_limit: float | None,
    jobs: int = 1,
    certificates: bool = False,
    starts: NDArray[np.float64] | None = None,
    threads: int = 1,
) -> Options:
    """Check a time limit and numbers of jobs and threads, and return the options for a back end.

    Raises
    ------
    BadInput
        The time limit is neither None nor a finite number above 0, ``jobs`` or ``threads`` is no whole number
        above 0, or ``certificates`` is no truth value.
    """
    if time_limit is not None and not (is_number(time_limit) and time_limit > 0):
        raise BadInput("time_limit", repr(time_limit), "a number of seconds above 0")
    for name, count in (("jobs", jobs), ("threads", threads)):
        if isinstance(count, bool) or not isinstance(count, Integral) or not 1 <= count <= sys.maxsize:
            raise BadInput(name, repr(count), "a whole number, 1 or more")
    if not isinstance(certificates, bool | np.bool_):
        raise BadInput("certificates", repr(certificates), "True or False")
    return Options(time_limit, certificates, starts, threads=int(threads))


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
    strict: bool = False,
) -> Iterator[tuple[int, Result]]:
    """Solve, and certify where ``options`` ask for it: (position, result), as they are finished.

    Certificates of networks are searched for in batches, each twice as large as the one before, so that the
    first results come soon. A batch takes at most half of the applicants that are left, and at most
    :data:`CERTIFIED_TOGETHER`, so that not all results wait for one hard applicant.

    Parameters
    ----------
    indices
        Every instance's index in its population.
    strict
        As for :func:`_solve_many`.
    """
    from milp_recourse.certificates import certificates_for, encode, reason_for_none, without_certificate
    from milp_recourse.certificates.produce import ready

    solved = (
        (k, without_certificate(instances[k], result))
        for k, result in _solve_many(instances, backend, options, strict)
    )
    if not options.certificates:
        yield from solved
        return
    if instances:
        ready(instances[0])
    left, most = len(instances), FIRST_CERTIFIED
    together = isinstance(backend, BatchBackend) and all(
        isinstance(i.classifier, ReluNetwork) for i in instances
    )
    # to the end of ``solved``: a search that is left in its middle loses its memory
    while block := list(islice(solved, min(most, max(1, left // 2)) if together else 1)):
        left, most = left - len(block), min(2 * most, CERTIFIED_TOGETHER)
        clock = time.perf_counter()
        certificates = certificates_for(
            [instances[k] for k, _ in block],
            [result for _, result in block],
            options.time_limit,
            None if indices is None else [indices[k] for k, _ in block],
            [result.seconds for _, result in block],
        )
        share = (time.perf_counter() - clock) / len(block)
        for (position, result), certificate in zip(block, certificates, strict=True):
            found = replace(result, seconds=result.seconds + share)
            if certificate is not None:
                found = replace(found, evidence=encode(certificate), lower_bound=certificate["lower_bound"])
            else:
                reason = reason_for_none(instances[position], found, options.time_limit)
                found = without_certificate(instances[position], found, reason)
            yield position, found


def _solve_many(
    instances: Sequence[Instance], backend: Backend, options: Options, strict: bool
) -> Iterator[tuple[int, Result]]:
    """Decide what needs no search, then search the rest (together, if the back end can).

    Parameters
    ----------
    strict
        Whether an instance that the back end cannot solve raises Unsupported. Otherwise its result is
        ``limit`` with the reason, unless another default back end can solve it (``options.others``).
    """
    begun = time.perf_counter()
    easy: list[tuple[int, Result]] = []
    words: dict[int, str | None] = {}
    refused: dict[int, str] = {}
    for k, decided in _apart(instances, partial(_without_search, backend=backend, options=options)):
        if isinstance(decided, Unsupported):
            refused[k] = str(decided)
        elif isinstance(decided, Result):
            easy.append((k, decided))
        else:
            words[k] = decided
    yield from easy
    hard = sorted(words)
    each = (time.perf_counter() - begun) / max(1, len(instances))
    more = [name for name in DEFAULTS if name != backend.name] if options.others else []
    for name in (None, *more):
        if not hard:
            break
        own = backend if name is None else find_backend(name)
        start = time.perf_counter()
        reasons = _why_not([instances[k].squared() for k in hard], own)
        reasons = {hard[position]: reason for position, reason in reasons.items()}
        able, hard = [k for k in hard if k not in reasons], list(reasons)
        refused = reasons | refused
        if strict and refused:
            break
        # an applicant's share of the time that was spent on all of them before the search
        share = each + (time.perf_counter() - start) / max(1, len(reasons) + len(able))
        solve_some = partial(_solved, backend=own, options=options, share=share)
        for position, found in _apart([instances[k] for k in able], solve_some):
            k = able[position]
            if isinstance(found, Unsupported):
                hard.append(k)
                refused[k] = str(found)
            else:
                yield k, found.noted(words[k])
    for k in [k for k in refused if k in hard or k not in words]:
        if strict:
            raise Unsupported(f"{instances[k].name or 'instance'}: {refused[k]}")
        nothing = Proposal(None, 0.0 if backend.proves else None, message=refused[k])
        yield k, _finish(instances[k], nothing, backend, each)


def _apart(
    instances: Sequence[Instance], solve_some: Callable[[list[Instance]], Iterable[tuple[int, T]]]
) -> Iterator[tuple[int, T | Unsupported]]:
    """What a function of several instances yields for each; one by one if it refuses them together, because
    one of them may be the reason. The error of an instance that it refuses alone is in place of its value.
    """
    done = set()
    try:
        for position, found in solve_some(list(instances)):
            done.add(position)
            yield position, found
    except Unsupported as error:
        if len(instances) == 1:
            yield 0, error
            return
        for k, instance in enumerate(instances):
            if k not in done:
                yield from ((k, found) for _, found in _apart([instance], solve_some))


def _without_search(
    instances: list[Instance], backend: Backend, options: Options
) -> Iterator[tuple[int, Result | str | None]]:
    """(position, result) of instances that need no search; of the others what is to be said of their factual,
    or None."""
    rests = at_rest(instances)
    for k, (instance, rest) in enumerate(zip(instances, rests, strict=True)):
        start, words = time.perf_counter(), at_rest_in_words(rest)
        proposal = at_once(instance, rest)
        if proposal is None:
            yield k, words
            continue
        if not backend.proves:
            proposal = replace(proposal, lower_bound=None, proof=None)
        found = _finish(instance, proposal, backend, time.perf_counter() - start)
        [why] = _because_of_margin([(instance, found)], backend, options)
        yield k, found.noted(words).noted(why)


def _solved(
    instances: list[Instance], backend: Backend, options: Options, share: float
) -> Iterator[tuple[int, Result]]:
    """(position, result) for instances that the back end can solve, each with a share of earlier seconds.
    Those whose margin may be all that forbids an action come last if their search was short, because one
    search says it of all of them."""
    empty: dict[int, tuple[Instance, Result]] = {}
    for position, proposal, seconds in _searched(instances, backend, options):
        instance = instances[position]
        found = _finish(instance, proposal, backend, seconds + share)
        if found.seconds < _TO_EXPLAIN and _may_be_the_margin(instance, found, backend, options):
            empty[position] = instance, found
            continue
        [why] = _because_of_margin([(instance, found)], backend, options)
        yield position, found.noted(why)
    for position, why in zip(empty, _because_of_margin([*empty.values()], backend, options), strict=True):
        yield position, empty[position][1].noted(why)


def _may_be_the_margin(instance: Instance, result: Result, backend: Backend, options: Options) -> bool:
    """Whether to ask if there is an action without the margin. Back ends that are not the default are not
    asked again."""
    asked = options.explain and backend.name in DEFAULTS
    return asked and bool(instance.accept.margin) and result.status is Status.INFEASIBLE


def _because_of_margin(
    found: Sequence[tuple[Instance, Result]], backend: Backend, options: Options
) -> list[str | None]:
    """For each a sentence if the margin is all that forbids every action; None if it is not, or if a search
    that takes as long as the first one (:data:`_TO_EXPLAIN` at least) does not find an action without it."""
    words = list[str | None]([None] * len(found))
    bare = {
        k: replace(instance, accept=replace(instance.accept, margin=0.0))
        for k, (instance, result) in enumerate(found)
        if _may_be_the_margin(instance, result, backend, options)
    }
    proposals = dict(zip(bare, without_search([*bare.values()]), strict=True))
    left = [k for k, proposal in proposals.items() if proposal is None]
    if left:
        limit = max(_TO_EXPLAIN, *(found[k][1].seconds for k in left))
        options = replace(options, time_limit=limit, watch=None)
        for position, made, _ in _searched([bare[k] for k in left], backend, options):
            proposals[left[position]] = made
    for k, proposal in proposals.items():
        if proposal is not None and proposal.action is not None and judge(bare[k], proposal.action).feasible:
            margin = f"It is the margin of {found[k][0].accept.margin:.3g}"
            said = f"{margin} that forbids it: with a smaller one there is an action."
            if not isinstance(bare[k].classifier, TreeEnsemble):
                said += " Values and bounds nearer to 0 need a smaller one, and margin can set one."
            words[k] = said
    return words


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


def _to_relax(instance: Instance, backend: Backend) -> bool:
    """Whether a back end that proves bounds does not itself keep to the steps or values of some lever."""
    keeps: Callable[[Instance], bool] | None = getattr(backend, "keeps_lattices", None)
    return backend.proves and instance.stepped and (keeps is None or not keeps(instance))


def _proposed(
    instances: list[Instance], backend: Backend, options: Options
) -> Iterator[tuple[int, Proposal, float]]:
    for instance in instances:
        if isinstance(instance.classifier, TreeEnsemble):  # all applicants share what is made of it here
            _ = instance.classifier.every_leaf
    apart = {k for k, instance in enumerate(instances) if _to_relax(instance, backend)}
    rest = [k for k in range(len(instances)) if k not in apart]
    if isinstance(backend, BatchBackend) and rest:
        for position, proposal in backend.solve_many([instances[k] for k in rest], options):
            yield rest[position], proposal, proposal.seconds or 0.0
        rest = []
    for k in sorted([*apart, *rest]):
        start = time.perf_counter()
        one = partial(solve_relaxed, solve=backend.solve) if k in apart else backend.solve
        proposal = one(instances[k], options)
        took = time.perf_counter() - start if proposal.seconds is None else proposal.seconds
        yield k, proposal, took


def _finish(instance: Instance, proposal: Proposal, backend: Backend, seconds: float) -> Result:
    return conclude(instance, proposal, backend.name, seconds, repair=_near)


def _near(instance: Instance, action: Action) -> Action | None:
    if not isinstance(instance.classifier, ReluNetwork):
        return None
    from milp_recourse.engine.networks.nearby import near  # loads numba

    return near(instance, action)


def _why_not(instances: Sequence[Instance], backend: Backend) -> dict[int, str]:
    """Why the back end cannot solve problems, or that a number of theirs is too large, by position."""
    reasons = {}
    for group in of_one_model(instances):
        any_too_large = too_large(*(instances[k] for k in group)) is not None
        for k in group:
            reason = (too_large(instances[k]) if any_too_large else None) or _refusal(backend, instances[k])
            if reason is not None:
                reasons[k] = f"backend {backend.name}: {reason}"
    return reasons

r"""A problem as a linear mixed-integer program, whose optimum is proven to be near the problem's.

Squares become tangents, curves become bands, and coefficients are rounded. What the program asks is therefore
weaker, never stronger: its optimum is at most the problem's. (Trees may be asked for a score above the
threshold by more than solvers' tolerances; what that costs is in the error.) Whatever a point of it can be
off by is bounded (:mod:`~milp_recourse.solvers.rows.drift`), so each of its points is an action of the
problem with a threshold, a density, domains and conditions loosened by so much. The least cost of that
problem, proven by the engine, bounds the program's optimum from below.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from milp_recourse.certificates import instance_digest
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.problem.conditions import All, Any, Condition, Factor, IfThen, Not, Sum, factors
from milp_recourse.problem.features import Feature
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Acceptance, Instance
from milp_recourse.problem.result import Result, Status
from milp_recourse.program.neutral_program import Program
from milp_recourse.questions.solve import solve
from milp_recourse.solvers.export import check_name, writable, write
from milp_recourse.solvers.rows import MixedInteger, bounded, encode
from milp_recourse.solvers.rows.atom_rows import narrow_parts
from milp_recourse.solvers.rows.bounds import Configuration, ProgramBounds
from milp_recourse.solvers.rows.drift import Drift, drift
from milp_recourse.solvers.rows.encode import keep_lattices
from milp_recourse.solvers.rows.piecewise import Gaps, in_units, without_squares
from milp_recourse.solvers.rows.tree_rows import score_margin

SHARES = (1e-2, 1e-3, 1e-4, 1e-5)
"""How much of a square, or of a curve's band, the pieces may leave open: tried in this order."""

USUAL_ERROR = 0.01
"""The error asked for where none is given, in shares of the cost."""

LEAST_STATED = 1e-3
"""Share of the cost that is stated at least: a solver's own tolerances and gap add to what is proven."""

SMALL_COST = 1e-3
"""Costs below are written in a unit of their own, because solvers' tolerances are absolute."""


@dataclass(frozen=True)
class LinearProgram:
    """A linear program and what is proven of it. Numbers are in the objective's terms: of the cost ``l2`` its
    square.

    Attributes
    ----------
    mips
        The program; or one for each configuration, by the levers acted on. The least of their optima is then
        the optimum.
    best, least
        What the best known action costs, None if none is known, and a proven lower bound for all actions; inf
        where none is feasible.
    error
        The program's optimum differs from the problem's by at most this. 0 if both are infeasible; None if
        nothing is proven.
    """

    mips: Mapping[tuple[str, ...] | None, MixedInteger]
    best: float | None
    least: float
    error: float | None


def linear_program(
    instance: Instance, error: float | None = None, time_limit: float | None = None, each: bool = False
) -> LinearProgram:
    """The linear program of an instance, with as few pieces as its error allows.

    Parameters
    ----------
    error
        The largest error wanted; None for a hundredth of the cost. Where no number of pieces in
        :data:`SHARES` reaches it, the smallest error found is stated.
    time_limit
        Seconds for each of the few problems that are solved.
    each
        Whether each configuration has a program of its own, but those proven to have no action as cheap as
        the best known.

    Raises
    ------
    Unsupported
        As for :func:`milp_recourse.solvers.rows.bounded`.
    """
    found = solve(instance, time_limit=time_limit)
    best = None if found.cost is None else _objective(instance, found.cost)
    most = math.inf if best is None else best * (1 + 1e-6) + 1e-300
    wanted = error if error is not None else USUAL_ERROR * (best or 0.0)
    least, made = _least(instance, found), None
    target = None if best == 0 else most
    above, margin, sign = None, 0.0, None
    if isinstance(instance.classifier, TreeEnsemble):
        margin = 2 * score_margin(instance.classifier, instance.accept.above)
        above = _cost_above(instance, margin, time_limit)
        sign = 1 if best is None or above - best <= wanted else -1
        above, margin = (above, 0.0) if sign > 0 else (None, margin)
    parts = _parts(instance, target, sign, each)
    for share in SHARES:
        cut, mips, offs, gaps = narrow_parts(share), {}, list[Drift](), list[Gaps]()
        for acted, (program, bounds) in parts.items():
            mip = mips[acted] = keep_lattices(encode(program, bounds, cut, stated=True), program)
            offs.append(drift(program, bounds, mip, cut))
            gaps.append(without_squares(mip, share, most))
            in_units(mip)
        off, gap = Drift.largest(offs), Gaps(max(g.cost for g in gaps), max(g.ball for g in gaps))
        off = replace(off, logit=off.logit + margin)
        loosened = solve(_loosened(instance, off, gap), time_limit=time_limit)
        proven = _difference(best, _least(instance, loosened), off.cost + gap.cost, above)
        if made is None or made.error is None or (proven is not None and proven < made.error):
            made = LinearProgram(mips, best, least, proven)
        if made.error is not None and made.error <= wanted:
            break
    assert made is not None
    return made


def _parts(
    instance: Instance, target: float | None, sign: int | None, each: bool
) -> dict[tuple[str, ...] | None, tuple[Program, ProgramBounds]]:
    """The program and its bounds; or each configuration's, all where none may have an action cheap enough."""
    program, bounds = bounded(instance, target, sign)
    if not each:
        return {None: (program, bounds)}
    every = {tuple(f for f in program.switched if f in a): program.fix(a) for a in program.configurations()}
    found: dict[tuple[str, ...] | None, tuple[Program, ProgramBounds]] = {}
    for acted, fixed in every.items():
        whole = Configuration(instance, fixed, scaled=False)
        own = whole.whole(math.inf if target is None else target)
        if own is not None:
            found[acted] = fixed, own.bounds
    if found:
        return found
    return {a: (p, Configuration(instance, p, scaled=False).intervals()) for a, p in every.items()}


def _cost_above(instance: Instance, margin: float, time_limit: float | None) -> float:
    """What an action costs at most whose score is higher by a margin than asked; inf if none is known."""
    accept = Acceptance(math.nextafter(instance.accept.above + margin, math.inf), strict=True)
    found = solve(replace(instance, accept=accept), time_limit=time_limit)
    return math.inf if found.cost is None else _objective(instance, found.cost)


def export_linear(
    instance: Instance,
    path: str | Path,
    error: float | None = None,
    time_limit: float | None = None,
    each: bool = False,
) -> LinearProgram:
    """Write the linear program of an instance as an LP or MPS file; the header says what is proven of it.

    With ``each`` there is a file per configuration: ``p.lp`` becomes ``p.1.lp``, ``p.2.lp``, ...

    Raises
    ------
    BadInput
        As for :func:`milp_recourse.solvers.export.export`, or the error is not above 0.
    """
    check_name(path)
    if error is not None and not 0 < error < math.inf:
        raise BadInput("--error", error, "a number above 0")
    made = linear_program(instance, error, time_limit, each)
    small = made.best is not None and 2.0**-60 < made.best < SMALL_COST
    unit = math.ldexp(1.0, math.frexp(made.best or 1.0)[1]) if small else 1.0
    for file, (acted, mip) in zip(files(made, path), made.mips.items(), strict=True):
        own = (
            [] if acted is None else [f"Acted on: {', '.join(acted) or 'nothing'}; see the other files, too."]
        )
        write(writable(mip, unit), file, instance, unit, (*_header(instance), *words(made), *own))
    return made


def files(made: LinearProgram, path: str | Path) -> list[Path]:
    """The names of the files, one for each program."""
    if None in made.mips:
        return [Path(path)]
    return [Path(path).with_suffix(f".{k}{Path(path).suffix}") for k in range(1, 1 + len(made.mips))]


def words(made: LinearProgram) -> Iterator[str]:
    """What is proven of a linear program, in sentences."""
    if made.best is None and made.error == 0:
        yield "The problem has no feasible action, and this program has no feasible point: proven."
        return
    if made.best is None:
        yield f"No action of the problem is known; each costs at least {made.least!r}."
    else:
        yield f"The problem's optimum is at least {made.least!r} and at most {made.best!r}."
    if made.error is None:
        yield "How much this program's optimum differs from it is not proven: a longer time limit may help."
    else:
        yield f"This program's optimum differs from it by at most {made.error!r}, proven."


def _header(instance: Instance) -> Iterator[str]:
    yield "A linear mixed-integer program of milp-recourse: squares are tangents, curves are bands."
    yield f"Problem (instance_sha256): {instance_digest(instance)}"


def _objective(instance: Instance, cost: float) -> float:
    """A cost as the program's objective has it."""
    return math.nextafter(cost * cost, math.inf) if instance.cost.is_root else cost


def _least(instance: Instance, result: Result) -> float:
    """The proven lower bound, as the objective has it; inf where nothing is feasible."""
    if result.status is Status.INFEASIBLE:
        return math.inf
    bound = result.lower_bound or 0.0
    return math.nextafter(bound * bound, -math.inf) if instance.cost.is_root and bound else bound


def _difference(best: float | None, least: float, too_low: float, above: float | None = None) -> float | None:
    """By how much the optima can differ: ``least`` bounds the loosened problem's; ``above`` is what the
    program's optimum costs at most, None where that is ``best``."""
    if best is None:
        return 0.0 if math.isinf(least) and math.isfinite(too_low) else None
    proven = math.nextafter(max(best - least, 0.0) + too_low, math.inf)
    if above is not None:
        proven = max(proven, math.nextafter(above - best, math.inf))
    return max(proven, LEAST_STATED * best) if math.isfinite(proven) else None


def _loosened(instance: Instance, off: Drift, gaps: Gaps) -> Instance:
    """The problem of which every point of the linear program is an action.

    Raises
    ------
    Unsupported
        No bound of what the curves leave open is known.
    """
    if not all(map(math.isfinite, (off.logit, off.ball, *off.rows.values(), *off.followed.values()))):
        raise Unsupported(
            "a tree splits on what follows from causes only up to rounding: no error can be proven"
            if isinstance(instance.classifier, TreeEnsemble)
            else "a logarithm's argument can come too near to 0 for an error to be proven: use export"
        )
    accept = instance.accept
    lower = math.nextafter(accept.threshold - off.logit, -math.inf) if off.logit else accept.threshold
    offset = instance.offset - off.ball - gaps.ball
    return replace(
        instance,
        accept=replace(accept, threshold=lower),
        features=tuple(_wider(f, off.rows.get(f"domain_{f.name}", 0.0)) for f in instance.features),
        conditions=tuple(_looser(one, instance, off.followed, 1) for one in instance.conditions),
        preferences=replace(
            instance.preferences,
            density_offset=offset if instance.plausible else None,
            conditions=tuple(
                _looser(one, instance, off.followed, 1) for one in instance.preferences.conditions
            ),
        ),
    )


def _wider(feature: Feature, room: float) -> Feature:
    """The feature with a domain that is wider by ``room`` at both ends."""
    if feature.domain is None or not room:
        return feature
    low, high = feature.domain
    return replace(
        feature, domain=(math.nextafter(low - room, -math.inf), math.nextafter(high + room, math.inf))
    )


def _off(of: Factor, instance: Instance, off: Mapping[Factor, float]) -> float:
    """What a value, or a product, can be off by. A product with a fixed factor is a multiple of the other."""
    if isinstance(of, str) or of in off:
        return off.get(of, 0.0)
    one, other = of
    return abs(instance.factual[one]) * off.get(other, 0.0) + abs(instance.factual[other]) * off.get(one, 0.0)


def _looser(one: Condition, instance: Instance, off: Mapping[Factor, float], sign: int) -> Condition:
    """A condition that holds wherever the given one does up to ``off``; with sign -1, one that holds nowhere
    else."""
    match one:
        case Sum():
            if one.of == "factual":
                return one
            error = 0.0
            for factor, c in one.terms:
                start = math.prod(instance.factual[f] for f in factors(factor))
                share = 1 / abs(start) if one.of == "relative-change" else 1.0
                error += abs(c) * _off(factor, instance, off) * share
            if not error:
                return one
            low, high = one.at_least, one.at_most
            room = sign * error * (1 + 1e-9)
            return replace(
                one,
                at_least=None if low is None else low - room - 1e-15 * abs(low) * sign,
                at_most=None if high is None else high + room + 1e-15 * abs(high) * sign,
            )
        case Not(part):
            return Not(_looser(part, instance, off, -sign))
        case IfThen(condition, then):
            return IfThen(_looser(condition, instance, off, -sign), _looser(then, instance, off, sign))
        case Any(parts) | All(parts):
            return type(one)(tuple(_looser(part, instance, off, sign) for part in parts))
    return one

"""An instance's program as an LP or MPS file, for solvers that are no back end of this package.

The file holds the whole program: switches are integer columns, squares stay quadratic. Column ``set_F`` is
the value that an action sets feature F to, and ``act_F`` is 1 if F is acted on. Comments at the top of the
file say so, and list the names that had to be changed for the format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from milp_recourse.errors import BadInput
from milp_recourse.problem.instance import Instance
from milp_recourse.solvers.rows import MixedInteger, equal_parts, whole_problem

LONGEST_NAME = 80
TERMS_PER_LINE = 3
"""Solvers that read LP files allow lines of 510 characters. A row's name, three terms and a right side fit
into one if no name is longer than :data:`LONGEST_NAME`."""


def export(instance: Instance, path: str | Path, pieces: int = 16, cost_unit: float = 1.0) -> None:
    """Write an instance's program in the format that the path's suffix names.

    Parameters
    ----------
    path
        ``.lp`` (CPLEX LP, quadratic parts in brackets) or ``.mps`` (free MPS with QUADOBJ and
        QCMATRIX, as CPLEX, Gurobi and SCIP read them).
    pieces
        The number of parts that the interval of each curve is divided into. A program without curves is
        exact; with curves its optimum is a lower bound.
    cost_unit
        The objective is the cost (of ``l2`` its square) divided by it. Solvers' tolerances are absolute, so a
        unit of about the size of the costs expected (0.01, say) keeps small costs exact.

    Raises
    ------
    BadInput
        The suffix is another, the cost unit is not above 0, or the file cannot be written.
    Unsupported
        As for :func:`milp_recourse.solvers.rows.bounded`.
    """
    check_name(path)
    if not (0 < cost_unit < np.inf):
        raise BadInput("cost_unit", cost_unit, "a number above 0")
    mip = writable(whole_problem(instance, equal_parts(pieces)), cost_unit)
    write(mip, path, instance, cost_unit)


def check_name(path: str | Path) -> None:
    """Raise :class:`BadInput` where a file's name does not end in the name of a format."""
    if Path(path).suffix not in WRITERS:
        raise BadInput("--out", Path(path).name, "a name ending in .lp or .mps")


def write(
    mip: MixedInteger, path: str | Path, instance: Instance, cost_unit: float, header: Iterable[str] = ()
) -> None:
    """Write a program that is :func:`writable`; ``header``: what is said first in the file."""
    path = Path(path)
    mark, lines_of = WRITERS[path.suffix]
    comments = (*header, *_comments(mip, names := unique_names(mip.names), instance, cost_unit))
    lines = [f"{mark} {' '.join(c.split())[:200]}" for c in comments]
    lines += lines_of(mip, names, unique_names(row.name for row in mip.rows))
    try:
        path.write_text("\n".join(lines) + "\n", encoding="ascii", errors="backslashreplace")
    except OSError as problem:
        raise BadInput("--out", str(path), f"a file that can be written ({problem.strerror})") from None


def writable(mip: MixedInteger, cost_unit: float = 1.0) -> MixedInteger:
    """Rewrite the program, in place, so that both formats can express it, and return it.

    The objective's constant becomes the coefficient of a column fixed at 1, because solvers disagree on how
    to read a constant. All of the objective is divided by ``cost_unit``. A ball without squares becomes a
    linear row.
    """
    mip.linear = {k: c / cost_unit for k, c in mip.linear.items()}
    mip.squares = {k: c / cost_unit for k, c in mip.squares.items()}
    if mip.offset or not mip.names:
        mip.linear[mip.column("constant", 1.0, 1.0)] = mip.offset / cost_unit
        mip.offset = 0.0
    if mip.ball is not None and not mip.ball.squares:
        mip.row(mip.ball.name, (dict(mip.ball.linear), 0.0), upper=mip.ball.upper)
        mip.ball = None
    return mip


def unique_names(raw: Iterable[str]) -> list[str]:
    """Distinct names of letters, digits and underscores, cut to :data:`LONGEST_NAME` characters before what
    keeps them apart is added. They begin as the given ones do: with a letter, as solvers ask."""
    names: list[str] = []
    taken: set[str] = set()
    for k, given in enumerate(raw):
        name = clean = re.sub(r"\W", "_", given, flags=re.ASCII)[:LONGEST_NAME]
        while name in taken:
            name = f"{clean}_n{k}" if name == clean else f"{name}_"
        names.append(name)
        taken.add(name)
    return names


def _comments(mip: MixedInteger, names: list[str], instance: Instance, cost_unit: float) -> Iterator[str]:
    wanted = "the square of the cost" if instance.cost.is_root else "the cost"
    unit = f" / {cost_unit!r}" if cost_unit != 1 else ""
    yield f"{instance.name or 'recourse'}: minimise {wanted}{unit}"
    for feature, k in mip.actions.items():
        yield f"{names[k]}: the value that an action sets {feature!r} to"
        if feature in mip.flags:
            yield f"{names[mip.flags[feature]]}: 1 where {feature!r} is acted on"
    for name, original in zip(names, mip.names, strict=True):
        if name != original:
            yield f"{name} stands for {original!r}"


def _sum(coefficients: Iterator[tuple[str, float]]) -> str:
    """Write terms as "c x - d y", with line breaks because programs that read LP files limit a line's
    length."""
    parts = [f"{'+' if c >= 0 else '-'} {float(abs(c))!r} {name}" for name, c in coefficients]
    return "\n  ".join(
        " ".join(parts[i : i + TERMS_PER_LINE]) for i in range(0, len(parts), TERMS_PER_LINE)
    ).removeprefix("+ ")


def _lp(mip: MixedInteger, names: list[str], row_names: list[str]) -> Iterator[str]:
    yield "Minimize"
    objective = " cost: " + (_sum((names[k], c) for k, c in mip.linear.items()) or f"0.0 {names[0]}")
    if mip.squares:
        objective += "\n  + [ " + _sum((f"{names[k]}^2", 2 * c) for k, c in mip.squares.items()) + " ] / 2"
    yield objective
    yield "Subject To"
    sign = {"E": "=", "G": ">=", "L": "<="}
    for kind, name, side, coefficients in _one_sided(mip, row_names):
        left = _sum((names[k], c) for k, c in coefficients.items()) or f"0.0 {names[0]}"
        yield f" {name}: {left} {sign[kind]} {float(side)!r}"
    if mip.ball is not None:
        linear = _sum((names[k], c) for k, c in mip.ball.linear.items())
        squares = _sum((f"{names[k]}^2", c) for k, c in mip.ball.squares.items())
        start = f"{linear}\n  + " if linear else ""
        yield f" ball: {start}[ {squares} ] <= {float(mip.ball.upper)!r}"
    yield "Bounds"
    for name, low, high in zip(names, mip.lower, mip.upper, strict=True):
        yield f" {float(low)!r} <= {name} <= {float(high)!r}"
    whole = [name for name, integer in zip(names, mip.integer, strict=True) if integer]
    if whole:
        yield "General"
        yield from (f" {name}" for name in whole)
    yield "End"


Row = tuple[str, str, float, Mapping[int, float]]
"""The letter that MPS has for the sense (E, G or L), name, right side, coefficients by column."""


def _one_sided(mip: MixedInteger, row_names: list[str]) -> Iterator[Row]:
    """The linear rows, each with one sense; a row with two different sides becomes two rows."""
    for name, row in zip(row_names, mip.rows, strict=True):
        low, high = np.isfinite(row.lower), np.isfinite(row.upper)
        if row.lower == row.upper:
            yield "E", name, row.lower, row.coefficients
            continue
        if low:
            yield "G", f"{name}.low" if high else name, row.lower, row.coefficients
        if high:
            yield "L", f"{name}.high" if low else name, row.upper, row.coefficients


def _mps(mip: MixedInteger, names: list[str], row_names: list[str]) -> Iterator[str]:
    yield "NAME recourse"
    yield "ROWS"
    yield " N cost"
    rows = list(_one_sided(mip, row_names))
    if mip.ball is not None:
        rows.append(("L", "ball", mip.ball.upper, dict(mip.ball.linear)))
    yield from (f" {kind} {row_name}" for kind, row_name, _, _ in rows)
    yield "COLUMNS"
    yield from _mps_columns(mip, names, rows)
    yield "RHS"
    yield from (f" RHS {row_name} {float(value)!r}" for _, row_name, value, _ in rows if value)
    yield "BOUNDS"
    for name, low, high in zip(names, mip.lower, mip.upper, strict=True):
        yield f" LO BND {name} {float(low)!r}"
        yield f" UP BND {name} {float(high)!r}"
    if mip.squares:  # minimise 1/2 x'Qx
        yield "QUADOBJ"
        yield from (f" {names[k]} {names[k]} {float(2 * c)!r}" for k, c in mip.squares.items())
    if mip.ball is not None:  # x'Qx
        yield "QCMATRIX ball"
        yield from (f" {names[k]} {names[k]} {float(c)!r}" for k, c in mip.ball.squares.items())
    yield "ENDATA"


def _mps_columns(mip: MixedInteger, names: list[str], rows: list[Row]) -> Iterator[str]:
    entries: list[list[tuple[str, float]]] = [[] for _ in names]
    for k, c in mip.linear.items():
        entries[k].append(("cost", c))
    for _, row, _, coefficients in rows:
        for k, c in coefficients.items():
            entries[k].append((row, c))
    marked = False
    for k, name in enumerate(names):
        if mip.integer[k] != marked:
            marked = mip.integer[k]
            yield f" MARK{k} 'MARKER' '{'INTORG' if marked else 'INTEND'}'"
        for row, c in entries[k] or [("cost", 0.0)]:
            yield f" {name} {row} {float(c)!r}"
    if marked:
        yield " MARKEND 'MARKER' 'INTEND'"


WRITERS: Mapping[str, tuple[str, Callable[[MixedInteger, list[str], list[str]], Iterator[str]]]] = {
    ".lp": ("\\", _lp),
    ".mps": ("*", _mps),
}
"""By suffix: what a comment begins with, and the function that writes the rest."""

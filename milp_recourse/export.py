"""Any instance as an LP or MPS file, for solvers this package does not speak to.

The program is written whole, switches open, quadratics native: columns ``set_F`` (the value an
action sets feature F) and ``act_F`` (1 where F is acted on) spell out the action.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from milp_recourse.bounds.program import hull
from milp_recourse.encodings import MixedInteger, encode
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.instance import Instance
from milp_recourse.program import lower


def export(instance: Instance, path: str | Path, pieces: int = 16) -> None:
    """Write an instance's program; the suffix says which format.

    Parameters
    ----------
    path
        ``.lp`` (CPLEX LP, quadratic parts in brackets) or ``.mps`` (free MPS with QUADOBJ and
        QCMATRIX, as CPLEX, Gurobi and SCIP read them).
    pieces
        Parts each curve is cut into; a program without curves is exact.

    Raises
    ------
    BadInput
        Another suffix.
    Unsupported
        A tree ensemble, or no action can be taken at all.
    """
    path = Path(path)
    writers = {".lp": _lp, ".mps": _mps}
    if path.suffix not in writers:
        raise BadInput("--out", path.name, "a name ending in .lp or .mps")
    program = lower(instance)
    if not hasattr(program.classifier, "weights"):
        raise Unsupported("only ReLU networks can be written as LP or MPS")
    bounds = hull(program) if program.actions else None
    if bounds is None:
        raise Unsupported("no action can be taken: there is no program to write")
    mip = with_constant(encode(program, bounds, pieces))
    names = _names(mip)
    text = "\n".join(writers[path.suffix](mip, names, instance.name or "recourse")) + "\n"
    path.write_text(text, encoding="utf-8")


def with_constant(mip: MixedInteger) -> MixedInteger:
    """The program with its objective's constant on a column fixed at 1: formats disagree on constants."""
    if mip.offset:
        mip.linear[mip.column("constant", 1.0, 1.0)] = mip.offset
        mip.offset = 0.0
    return mip


def _names(mip: MixedInteger) -> list[str]:
    """Column names that every reader takes: letters, digits, underscores, unique."""
    clean = [re.sub(r"\W", "_", name, flags=re.ASCII) for name in mip.names]
    return [n if clean.count(n) == 1 else f"{n}_c{k}" for k, n in enumerate(clean)]


def _sum(coefficients: Iterator[tuple[str, float]]) -> str:
    """ "+ c x - d y" over several lines: readers limit a line's length."""
    parts = [f"{'+' if c >= 0 else '-'} {float(abs(c))!r} {name}" for name, c in coefficients]
    return "\n  ".join(" ".join(parts[i : i + 8]) for i in range(0, len(parts), 8)).removeprefix("+ ")


def _lp(mip: MixedInteger, names: list[str], title: str) -> Iterator[str]:
    yield f"\\ {' '.join(title.split())}"
    yield "Minimize"
    objective = " cost: " + (_sum((names[k], c) for k, c in mip.linear.items()) or f"0.0 {names[0]}")
    if mip.squares:
        objective += " + [ " + _sum((f"{names[k]}^2", 2 * c) for k, c in mip.squares.items()) + " ] / 2"
    yield objective
    yield "Subject To"
    for j, row in enumerate(mip.rows):
        left = _sum((names[k], c) for k, c in row.coefficients.items()) or f"0.0 {names[0]}"
        if row.lower == row.upper:
            yield f" r{j}: {left} = {float(row.lower)!r}"
            continue
        if np.isfinite(row.lower):
            yield f" r{j}_low: {left} >= {float(row.lower)!r}"
        if np.isfinite(row.upper):
            yield f" r{j}_high: {left} <= {float(row.upper)!r}"
    if mip.ball is not None and mip.ball.squares:
        linear = _sum((names[k], c) for k, c in mip.ball.linear.items())
        squares = _sum((f"{names[k]}^2", c) for k, c in mip.ball.squares.items())
        yield f" plausible: {linear} {'+ ' if linear else ''}[ {squares} ] <= {float(mip.ball.upper)!r}"
    yield "Bounds"
    for name, low, high in zip(names, mip.lower, mip.upper, strict=True):
        yield f" {float(low)!r} <= {name} <= {float(high)!r}"
    whole = [name for name, integer in zip(names, mip.integer, strict=True) if integer]
    if whole:
        yield "General"
        yield from (f" {name}" for name in whole)
    yield "End"


def _mps(mip: MixedInteger, names: list[str], title: str) -> Iterator[str]:
    yield f"* {' '.join(title.split())}"
    yield f"NAME {re.sub(r'[^A-Za-z0-9_]', '_', title)}"
    yield "ROWS"
    yield " N cost"
    rows: list[tuple[str, str, float, dict[int, float]]] = []
    for j, row in enumerate(mip.rows):
        c = dict(row.coefficients)
        if row.lower == row.upper:
            rows.append(("E", f"r{j}", row.lower, c))
            continue
        if np.isfinite(row.lower):
            rows.append(("G", f"r{j}_low", row.lower, c))
        if np.isfinite(row.upper):
            rows.append(("L", f"r{j}_high", row.upper, c))
    if mip.ball is not None and mip.ball.squares:
        rows.append(("L", "plausible", mip.ball.upper, dict(mip.ball.linear)))
    yield from (f" {kind} {name}" for kind, name, _, _ in rows)
    yield "COLUMNS"
    yield from _mps_columns(mip, names, rows)
    yield "RHS"
    yield from (f" RHS {name} {float(value)!r}" for _, name, value, _ in rows if value)
    yield "BOUNDS"
    for name, low, high in zip(names, mip.lower, mip.upper, strict=True):
        yield f" LO BND {name} {float(low)!r}"
        yield f" UP BND {name} {float(high)!r}"
    if mip.squares:  # minimise 1/2 x'Qx
        yield "QUADOBJ"
        yield from (f" {names[k]} {names[k]} {float(2 * c)!r}" for k, c in mip.squares.items())
    if mip.ball is not None and mip.ball.squares:  # x'Qx
        yield "QCMATRIX plausible"
        yield from (f" {names[k]} {names[k]} {float(c)!r}" for k, c in mip.ball.squares.items())
    yield "ENDATA"


def _mps_columns(
    mip: MixedInteger, names: list[str], rows: list[tuple[str, str, float, dict[int, float]]]
) -> Iterator[str]:
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

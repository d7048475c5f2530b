"""Columns and rows of one atom: ReLU, indicator, curve, switch. Constants are derived from bounds alone."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from milp_recourse.errors import Unsupported
from milp_recourse.problem.features import Lattice
from milp_recourse.program.functions import band
from milp_recourse.solvers.rows.mixed_integer import Form, MixedInteger, Number, combine

Cut = Callable[[str, float, float], NDArray[np.float64]]
"""From a curve's name and an interval to the ends of the parts into which it is cut, ascending."""

_SHORTEST_PIECE = 1e-6
"""Least length of a part of a curve's interval, relatively: solvers cannot tell shorter parts apart."""

_MOST_PIECES = 512

_MOST_VALUES = 10_000


def equal_parts(pieces: int) -> Cut:
    """Parts of one length: so many, or fewer on a short interval."""

    def cut(function: str, low: float, high: float) -> NDArray[np.float64]:
        return np.linspace(low, high, max(1, min(pieces, int((high - low) / _shortest(low)))) + 1)

    return cut


def narrow_parts(share: float) -> Cut:
    """Parts in which the curve's band is at most so wide, as a share of its width over the whole interval:
    short where the curve bends."""

    def cut(function: str, low: float, high: float) -> NDArray[np.float64]:
        _, below, above = band(function, *(np.array([end]) for end in (low, high)))
        allowed = share * float((above - below)[0])
        ends, split = np.array([low, high]), np.array([high - low > 2 * _shortest(low)])
        while split.any() and len(ends) <= _MOST_PIECES:
            ends = np.sort(np.concatenate([ends, (ends[:-1] + ends[1:])[split] / 2]))
            _, below, above = band(function, ends[:-1], ends[1:])
            split = (above - below > allowed) & (np.diff(ends) > 2 * _shortest(low))
        return ends

    return cut


def _shortest(low: float) -> float:
    return _SHORTEST_PIECE * (1 + abs(low))


def relu_rows(
    model: MixedInteger, name: str, pre: Form, low: float, high: float, stated: bool = False
) -> Form:
    r"""y = max(0, pre), with low <= pre <= high.

    A stable unit costs nothing: y = 0 or y = pre; where it is to be ``stated``, a row asks for the sign. An
    unstable one gets a 0/1 column z and
    :math:`y \ge pre,\; y \ge 0,\; y \le high\, z,\; y \le pre - low (1 - z)`, whose continuous
    relaxation is the triangle (Tjeng et al. 2019, https://arxiv.org/abs/1711.07356).
    """
    if stated and pre[0] and (high <= 0 or low >= 0):
        model.row(f"{name}_stays", pre, *((-np.inf, 0.0) if high <= 0 else (0.0, np.inf)))
    if high <= 0:
        return {}, 0.0
    if low >= 0:
        return pre
    y = model.column(name, 0.0, high)
    z = model.column(f"{name}_on", 0.0, 1.0, integer=True)
    yf: Form = ({y: 1.0}, 0.0)
    model.row(f"{name}_above", combine((yf, 1.0), (pre, -1.0)), lower=0.0)
    model.row(f"{name}_off", ({y: 1.0, z: -high}, 0.0), upper=0.0)
    model.row(f"{name}_linear", combine((yf, 1.0), (pre, -1.0), (({z: -low}, low), 1.0)), upper=0.0)
    return yf


def indicator_rows(model: MixedInteger, name: str, form: Form, levels: dict[int, int]) -> None:
    """Add rows: exactly one indicator column is 1, and the form equals its level. ``levels``: level ->
    column."""
    model.row(f"{name}_one", (dict.fromkeys(levels.values(), 1.0), 0.0), 1.0, 1.0)
    weighted = {column: float(level) for level, column in levels.items()}
    model.row(f"{name}_level", combine((form, 1.0), ((weighted, 0.0), -1.0)), 0.0, 0.0)


def lattice_rows(model: MixedInteger, column: int, lattice: Lattice) -> None:
    """Add rows: a column is one of the values of a lattice, exactly. Equal steps between doubles take a whole
    column, other values a 0/1 column each.

    Raises
    ------
    Unsupported
        More than :data:`_MOST_VALUES` other values.
    """
    name, low, high = model.names[column], model.lower[column], model.upper[column]
    values = lattice.within(low, high)
    if not len(values):
        model.row(f"{name}_has_no_value", ({}, 1.0), upper=0.0)
        return
    spaced = lattice.spaced
    first, last = float(values[0]), float(values[-1])
    if spaced is not None and spaced.exact(first, last):
        steps = model.column(f"{name}_steps", 0.0, len(values) - 1.0, integer=True)
        model.row(f"{name}_is", ({column: 1.0, steps: -spaced.step}, 0.0), first, first)
        return
    if len(values) > _MOST_VALUES:
        raise Unsupported(
            f"{name} has {len(values)} values; at most {_MOST_VALUES} that are decimals are written"
        )
    chosen = [model.column(f"{name}_value{k}", 0.0, 1.0, integer=True) for k in range(len(values))]
    model.row(f"{name}_one", (dict.fromkeys(chosen, 1.0), 0.0), 1.0, 1.0)
    weighted: Form = (dict(zip(chosen, values.tolist(), strict=True)), 0.0)
    model.row(f"{name}_is", combine((({column: 1.0}, 0.0), 1.0), (weighted, -1.0)), 0.0, 0.0)


def curve_rows(
    model: MixedInteger,
    name: str,
    function: str,
    form: Form,
    low: float,
    high: float,
    out: tuple[float, float],
    cut: Cut,
) -> Form:
    r"""y = f(form), relaxed: on each of several parts of the interval y lies between two parallel lines.

    With 0/1 columns :math:`z_k` (part k, from :math:`l_k` to :math:`l_k + w_k`, is in use) and
    :math:`0 \le t_k \le z_k`, how far x is in it: :math:`\sum z_k = 1,\; x = \sum (l_k z_k + w_k t_k)` and
    :math:`\sum (m_k w_k t_k + (m_k l_k + c^{lo}_k) z_k) \le y`, and so from above. Measured from
    :math:`l_k`, places stay apart however short a part is. A relaxation with
    proven error (see :mod:`milp_recourse.program.functions`): lower bounds stay lower bounds.

    Parameters
    ----------
    low, high
        Bounds of the form.
    out
        Bounds of y.
    cut
        Where the parts end.
    """
    y = model.column(name, *out)
    yf: Form = ({y: 1.0}, 0.0)
    ends = cut(function, low, high)
    pieces = len(ends) - 1
    slope, below, above = band(function, ends[:-1], ends[1:])
    if pieces == 1:
        line = combine((form, float(slope[0])))
        model.row(f"{name}_below", combine((yf, 1.0), (line, -1.0)), lower=float(below[0]))
        model.row(f"{name}_above", combine((yf, 1.0), (line, -1.0)), upper=float(above[0]))
        return yf
    parts = {model.column(f"{name}_part{k}", 0.0, 1.0, integer=True): k for k in range(pieces)}
    model.row(f"{name}_one", (dict.fromkeys(parts, 1.0), 0.0), 1.0, 1.0)
    first, widths = Fraction(ends[0]), [Fraction(b) - Fraction(a) for a, b in pairwise(ends.tolist())]
    place: dict[int, Number] = {}
    lines: list[dict[int, Number]] = [{}, {}]
    starts = [Fraction(c[0]) + Fraction(slope[0]) * first for c in (below, above)]
    for z, k in parts.items():
        t, left, rise = model.column(f"{name}_t{k}", 0.0, 1.0), Fraction(ends[k]), Fraction(slope[k])
        model.row(f"{name}_t{k}_in", ({t: 1.0, z: -1.0}, 0.0), upper=0.0)
        place |= {z: left - first, t: widths[k]}
        for side, start, constants in zip(lines, starts, (below, above), strict=True):
            side |= {z: Fraction(constants[k]) + rise * left - start, t: rise * widths[k]}
    model.row(f"{name}_sum", combine(((place, first), 1.0), (form, -1.0)), 0.0, 0.0)
    model.row(f"{name}_below", combine((yf, 1.0), ((lines[0], starts[0]), -1.0)), lower=0.0)
    model.row(f"{name}_above", combine((yf, 1.0), ((lines[1], starts[1]), -1.0)), upper=0.0)
    return yf


def switch_rows(
    model: MixedInteger,
    name: str,
    flag: int,
    acted: tuple[Form, float, float],
    natural: tuple[Form, float, float],
) -> Form:
    """value = acted if flag = 1 else natural; each comes with its derived bounds.

    |value - acted| <= M (1 - flag) and |value - natural| <= M flag, the four constants M being
    what the bounds allow.
    """
    low, high = min(acted[1], natural[1]), max(acted[2], natural[2])
    value = model.column(name, low, high)
    vf: Form = ({value: 1.0}, 0.0)
    on: Form = ({flag: -1.0}, 1.0)  # 1 - flag
    off: Form = ({flag: 1.0}, 0.0)
    for label, (form, l, u), slack in (("acted", acted, on), ("natural", natural, off)):
        difference = combine((vf, 1.0), (form, -1.0))
        model.row(f"{name}_{label}_low", combine((difference, 1.0), (slack, u - low)), lower=0.0)
        model.row(f"{name}_{label}_high", combine((difference, 1.0), (slack, l - high)), upper=0.0)
    return vf

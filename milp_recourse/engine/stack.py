r"""Fixed programs of one structure, one column per applicant.

Applicants of a population differ in numbers, not in structure: with the same set of acted features
the matrices of their programs are the same, and only offsets, limits and costs are their own. A
:class:`Stack` keeps the matrices once and the rest as arrays whose last axis is the applicant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from milp_recourse.bounds.tape import Tape

Array = Any  # an array of whichever library the kernel runs on


@dataclass(frozen=True)
class Stack:
    r"""N applicants with d actions and u units each; forms are over the d actions, then the u units.

    Attributes
    ----------
    units
        Function and level of every unit, in computing order.
    unit_rows, unit_offset
        Arguments of the units, (u, d + u) and (u, N).
    first, first_offset
        First pre-activations: the first layer composed with the columns, (h, d + u) and (h, N); exact
        sums, each rounded once.
    weights, biases
        The layers behind it, (out, in) and (out, 1).
    threshold
        What the logit must reach, margin included.
    rows, row_offset, row_low, row_high
        Domain rows, (m, d + u) and (m, N).
    residuals, residual_offset, ball_weights, ball_linear, ball_offset
        The ball: sum_j w_j r_j^2 + linear + offset <= 0; (q, d + u), (q, N), (q, 1), (d + u), (N,).
    lower, upper, factual
        Bounds of the actions and the values they start from, (d, N).
    kappa, beta, omega
        cost = kappa delta^2 + beta |delta| summed over actions, plus the largest omega |delta|, plus
        ``fixed``; (d, N) and (N,). Zero for a category, whose cost is in ``jump``.
    jump, jump_largest
        What leaving the factual category costs: in the sum, and in the maximum, (d, N).
    integral, whole
        Which actions are whole numbers: per action, and as an array (d, 1).
    plausible
        Whether there is a ball.
    """

    units: tuple[tuple[str, int], ...]
    integral: tuple[bool, ...]
    plausible: bool
    threshold: float
    unit_rows: Array
    unit_offset: Array
    first: Array
    first_offset: Array
    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    rows: Array
    row_offset: Array
    row_low: Array
    row_high: Array
    residuals: Array
    residual_offset: Array
    ball_weights: Array
    ball_linear: Array
    ball_offset: Array
    lower: Array
    upper: Array
    factual: Array
    kappa: Array
    beta: Array
    omega: Array
    jump: Array
    jump_largest: Array
    fixed: Array
    whole: Array

    @property
    def size(self) -> int:
        """Number of applicants."""
        return int(self.lower.shape[1])

    @property
    def actions(self) -> int:
        """Number of actions d."""
        return int(self.lower.shape[0])


def signature(tape: Tape) -> tuple[object, ...]:
    """Equal for tapes that can share a stack."""
    return (
        tuple((unit.function, unit.level, k) for k, unit, _, _ in tape.units),
        tape.integral.tobytes(),
        tape.actions.tobytes(),
        np.concatenate([row for _, _, row, _ in tape.units]).tobytes() if tape.units else b"",
        tape.first.tobytes(),
        tape.row_forms.tobytes(),
        tape.residuals.tobytes(),
        tape.ball_weights.tobytes(),
        tape.ball_linear.tobytes(),
        tape.program.ball is None,
        tape.threshold,
        tape.network.content,
    )


def stack(tapes: Sequence[Tape], order: Sequence[int] | None = None) -> Stack:
    """Tapes of equal :func:`signature` as one stack.

    Parameters
    ----------
    order
        Which of the tapes' applicants, one after the other, become the columns; None: all as they come.
    """
    t = tapes[0]
    variables = [*t.actions.tolist(), *(k for k, _, _, _ in t.units)]
    costs = [_costs(tape) for tape in tapes]
    chosen = slice(None) if order is None else np.array(order)

    def joined(parts: list[np.ndarray]) -> np.ndarray:
        """(m,) of one applicant, (m, N) of N, (m, 1) of what N have in common: all beside each other."""
        wide = [
            np.broadcast_to(part if part.ndim > 1 else part[:, None], (len(part), *(tape.people or (1,))))
            for part, tape in zip(parts, tapes, strict=True)
        ]
        return np.ascontiguousarray(np.concatenate(wide, axis=1)[:, chosen], dtype=np.float64)

    def columns(pick: Callable[[Tape], np.ndarray]) -> np.ndarray:
        return joined([pick(tape) for tape in tapes])

    return Stack(
        units=tuple((unit.function, unit.level) for _, unit, _, _ in t.units),
        integral=tuple(bool(i) for i in t.integral),
        plausible=t.program.ball is not None,
        threshold=t.threshold,
        unit_rows=_matrix([row[0] for _, _, row, _ in t.units], variables),
        unit_offset=columns(lambda p: np.array([o[0] for _, _, _, o in p.units])),
        first=_matrix(t.first, variables),
        first_offset=columns(lambda p: p.first_offset),
        weights=tuple(t.weights[1:]),
        biases=tuple(b[:, None] for b in t.biases[1:]),
        rows=_matrix(t.row_forms, variables),
        row_offset=columns(lambda p: p.row_offset),
        row_low=columns(lambda p: p.row_low),
        row_high=columns(lambda p: p.row_high),
        residuals=_matrix(t.residuals, variables),
        residual_offset=columns(lambda p: p.residual_offset),
        ball_weights=t.ball_weights[:, None],
        ball_linear=t.ball_linear[variables],
        ball_offset=columns(lambda p: np.array([p.ball_offset]))[0],
        lower=columns(lambda p: p.lower),
        upper=columns(lambda p: p.upper),
        factual=joined([c[0] for c in costs]),
        kappa=joined([c[1] for c in costs]),
        beta=joined([c[2] for c in costs]),
        omega=joined([c[3] for c in costs]),
        jump=joined([c[4] for c in costs]),
        jump_largest=joined([c[5] for c in costs]),
        fixed=columns(lambda p: np.array([p.fixed_cost]))[0],
        whole=t.integral[:, None],
    )


def _matrix(rows: Any, order: list[int]) -> np.ndarray:
    if not len(rows):
        return np.zeros((0, len(order)))
    return np.asarray(rows, dtype=np.float64).reshape(len(rows), -1)[:, order].copy()


def _costs(tape: Tape) -> tuple[np.ndarray, ...]:
    """x, kappa, beta, omega, jump and its share in the maximum, per action."""
    c, own = tape.program.cost, (-1, *(1 for _ in tape.people))
    w, s, plain = tape.cost_weights, tape.cost_scales.reshape(own), tape.plain_terms.reshape(own)
    square, linear, largest = float(c.l2_squared) * w / s**2, float(c.l1) * w / s, float(c.linf) * w / s
    jump = float(c.l2_squared) * w / s**2 + float(c.l1) * w / s
    return (
        tape.term_factuals,
        np.where(plain, square, 0.0),
        np.where(plain, linear, 0.0),
        np.where(plain, largest, 0.0),
        np.where(plain, 0.0, jump),
        np.where(plain, 0.0, largest),
    )

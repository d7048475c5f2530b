r"""A fixed program as arrays: evaluation and back-substituted bounds for many boxes at once.

The bounds are those of CROWN/DeepPoly: every unit is replaced by a linear lower and a linear
upper function, chosen by the sign of its coefficient, from the last layer back to the actions,
and the linear form that is left takes its extreme at a corner of the box.

References
----------
Zhang et al. (2018), https://arxiv.org/abs/1811.00866;
Singh et al. (2019), https://doi.org/10.1145/3290354
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from milp_recourse.bounds.rounding import compose, slack
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.program.affine import Affine
from milp_recourse.program.functions import band, evaluate, value_range, within_domain
from milp_recourse.program.model import Action, Elementary, Program, Switch

Array = NDArray[np.float64]


@dataclass
class Bounds:
    """Lower and upper bounds for a batch of B boxes.

    Attributes
    ----------
    atoms_low, atoms_high
        Shape (B, atoms).
    arguments_low, arguments_high
        What each unit is applied to, shape (B, atoms); nan for actions.
    hidden_low, hidden_high
        Pre-activations, one array (B, width) per hidden layer.
    logit_low, logit_high
        Shape (B,).
    slope, offset
        On the whole box, logit <= slope a + offset; shapes (B, d) and (B,).
    """

    atoms_low: Array
    atoms_high: Array
    arguments_low: Array
    arguments_high: Array
    hidden_low: list[Array]
    hidden_high: list[Array]
    logit_low: Array
    logit_high: Array
    slope: Array
    offset: Array

    def unstable(self) -> NDArray[np.int64]:
        """Number of hidden ReLUs whose sign is open, shape (B,)."""
        count = np.zeros(len(self.logit_low), dtype=np.int64)
        for low, high in zip(self.hidden_low, self.hidden_high, strict=True):
            count += ((low < 0) & (high > 0)).sum(axis=1)
        return count


class Tape:
    """A program without switches, compiled to float64 arrays.

    Parameters
    ----------
    program
        From :meth:`Program.fix`; its classifier is a ReLU network.
    """

    def __init__(self, program: Program) -> None:
        if not isinstance(program.classifier, ReluNetwork):
            raise TypeError("a tape needs a ReLU network")
        if any(isinstance(a, Switch) for a in program.atoms):
            raise TypeError("a tape needs a fixed program")
        self.program = program
        self.atoms = len(program.atoms)
        self.actions = np.array([k for k, a in enumerate(program.atoms) if isinstance(a, Action)], dtype=int)
        self.lower = np.array([a.lower for a in program.actions])
        self.upper = np.array([a.upper for a in program.actions])
        self.integral = np.array([a.integral for a in program.actions], dtype=bool)
        self.units: list[tuple[int, Elementary, Array, Array]] = [
            (k, a, *self.dense([a.argument]))
            for k, a in enumerate(program.atoms)
            if isinstance(a, Elementary)
        ]
        self.network = network = program.classifier
        self.weights = list(network.weights)
        self.biases = list(network.biases)
        # The first layer composed with the columns: affine in atoms.
        self.first, self.first_offset = compose(
            self.weights[0], self.biases[0], program.columns, len(program.atoms)
        )
        # the most products that a number of bounds() sums up, and 8 roundings for every unit and layer
        steps = len(self.units) + len(self.weights) + 1
        self.rounding = slack(self.atoms * (1 + len(self.units)) + sum(map(len, self.biases)) + 8 * steps)
        self.threshold = float(program.accept.threshold) + float(program.accept.margin)
        self.row_forms, self.row_offset = self.dense([r.form for r in program.rows])
        self.row_low = np.array([r.lower for r in program.rows])
        self.row_high = np.array([r.upper for r in program.rows])
        squares = program.ball.squares if program.ball else ()
        self.residuals, self.residual_offset = self.dense([f for _, f in squares])
        self.ball_weights = np.array([float(w) for w, _ in squares])
        linear, offset = self.dense([program.ball.linear] if program.ball else [Affine()])
        self.ball_linear, self.ball_offset = linear[0], offset[0]
        self.deltas, self.delta_offset = self.dense([t.delta for t in program.cost_terms])
        self.cost_weights = np.array([float(t.weight) for t in program.cost_terms])
        self.cost_scales = np.array([float(t.scale) for t in program.cost_terms])
        self.term_factuals = np.array([program.factual[t.feature] for t in program.cost_terms])
        self.plain_terms = np.array(
            [
                t.quantiles is None
                and not any(isinstance(program.atoms[k], Elementary) for k in t.delta.terms)
                for t in program.cost_terms
            ],
            dtype=bool,
        )
        self.quantiles = [(j, t.quantiles) for j, t in enumerate(program.cost_terms) if t.quantiles]
        self.cost_lengths = self.cost_scales.copy()
        for j, quantiles in self.quantiles:  # in percentiles: from the lowest to the highest
            self.cost_lengths[j] = quantiles.values[-1] - quantiles.values[0]
        if tuple(t.feature for t in program.cost_terms) != tuple(a.feature for a in program.actions):
            raise TypeError("a tape needs one cost term per action, in the actions' order")
        # units that nothing but the cost refers to
        self.cost_only = frozenset(k for k, *_ in self.units) - program.behind(program.constrained())

    def dense(self, forms: list[Affine] | tuple[Affine, ...]) -> tuple[Array, Array]:
        """Forms as a matrix over atoms, shape (len, atoms), and their constants, (len,)."""
        matrix = np.zeros((len(forms), len(self.program.atoms)))
        for row, form in zip(matrix, forms, strict=True):
            for k, c in form.terms.items():
                row[k] = float(c)
        return matrix, np.array([float(f.constant) for f in forms])

    # -- evaluation ----------------------------------------------------------------------

    def evaluate(self, a: Array) -> Array:
        """Atom values (n, atoms) for action values (n, d)."""
        v = np.zeros((len(a), self.atoms))
        v[:, self.actions] = a
        with np.errstate(all="ignore"):  # nan outside a curve's domain, infinite at its edge: never feasible
            for k, unit, row, offset in self.units:
                v[:, k] = evaluate(unit.function, v @ row[0] + offset[0], unit.level)
        return v

    @property
    def fixed_cost(self) -> float:
        """What acting costs whatever the values: the l0 part."""
        return float(self.program.cost.l0) * float(self.cost_weights.sum())

    # -- bounds --------------------------------------------------------------------------

    def bounds(self, low: Array, high: Array, known: Bounds | None = None) -> Bounds:
        """Back-substituted bounds on boxes [low, high], shape (B, d), rounding included.

        Parameters
        ----------
        known
            Bounds proven before for boxes that contain these. Those of units' arguments and of hidden neurons
            are intersected with the new ones; the logit's are not.
        """
        batch = len(low)
        shape = (batch, self.atoms)
        al, ah = np.zeros(shape), np.zeros(shape)
        ul, uh = np.full(shape, np.nan), np.full(shape, np.nan)
        al[:, self.actions], ah[:, self.actions] = low, high
        lines = _Lines(al, ah)
        size = np.zeros(shape)  # sums of absolute values behind each number: what rounding is proportional to
        size[:, self.actions] = np.maximum(np.abs(low), np.abs(high))
        for k, unit, row, offset in self.units:
            rows, constant = np.broadcast_to(row, (batch, 1, self.atoms)), np.broadcast_to(offset, (batch, 1))
            l, h = (lines.concretise(*lines.reduce(rows, constant, sign), sign) for sign in (-1.0, 1.0))
            argument = size @ np.abs(row[0]) + abs(offset[0])
            error = self.rounding * argument
            l, h = l[:, 0] - error, h[:, 0] + error
            if known is not None:
                l, h = np.maximum(l, known.arguments_low[:, k]), np.minimum(h, known.arguments_high[:, k])
            l, h = within_domain(unit.function, l, h)
            ul[:, k], uh[:, k] = l, h
            al[:, k], ah[:, k] = value_range(unit.function, l, h, unit.level)
            lines.add(k, unit, row[0], float(offset[0]), l, h)
            size[:, k] = lines.size(argument)
        size = size @ np.abs(self.first).T + np.abs(self.first_offset)
        hidden_low: list[Array] = []
        hidden_high: list[Array] = []
        relaxed: list[tuple[Array, Array, Array]] = []
        for layer in range(len(self.weights)):
            w, b = self.weights[layer], self.biases[layer]
            if layer > 0:  # an open ReLU's upper line has an intercept of at most |low|
                last = np.abs(hidden_low[-1]) * ((hidden_low[-1] < 0) & (hidden_high[-1] > 0))
                size = (size + last) @ np.abs(w).T + np.abs(b)
            error = self.rounding * size
            l, h, line = self._layer_bounds(w, b, layer, relaxed, lines, hidden_low, hidden_high)
            l, h = l - error, h + error
            if layer == len(self.weights) - 1:
                slope, offset = line[0][:, 0][:, self.actions], line[1][:, 0]
                return Bounds(
                    al,
                    ah,
                    ul,
                    uh,
                    hidden_low,
                    hidden_high,
                    l[:, 0],
                    h[:, 0],
                    slope,
                    offset + error[:, 0],
                )
            if known is not None:
                l, h = np.maximum(l, known.hidden_low[layer]), np.minimum(h, known.hidden_high[layer])
            h = np.maximum(l, h)
            hidden_low.append(l)
            hidden_high.append(h)
            relaxed.append(relu_lines(l, h))
        raise AssertionError("a network has a last layer")

    def _layer_bounds(
        self,
        w: Array,
        b: Array,
        layer: int,
        relaxed: list[tuple[Array, Array, Array]],
        lines: _Lines,
        hidden_low: list[Array],
        hidden_high: list[Array],
    ) -> tuple[Array, Array, tuple[Array, Array]]:
        """Bounds of one layer, and the upper linear functions of the actions behind them."""
        batch = len(lines.low)
        sides = []
        line = np.zeros(0), np.zeros(0)
        for sign in (-1.0, 1.0):  # lower, upper
            coefficients = np.broadcast_to(w, (batch, *w.shape))
            constant = np.broadcast_to(b, (batch, len(b)))
            for k in range(layer - 1, -1, -1):
                coefficients, constant = _through_relu(coefficients, constant, relaxed[k], sign)
                if k > 0:
                    constant = constant + coefficients @ self.biases[k]
                    coefficients = coefficients @ self.weights[k]
            if layer > 0:
                constant = constant + coefficients @ self.first_offset
                coefficients = coefficients @ self.first
            else:
                coefficients = np.broadcast_to(self.first, (batch, *self.first.shape))
                constant = np.broadcast_to(self.first_offset, (batch, len(b)))
            line = lines.reduce(coefficients, constant, sign)
            sides.append(lines.concretise(*line, sign))
        low, high = sides
        if layer > 0:  # interval arithmetic is sometimes tighter
            pl, ph = np.maximum(hidden_low[-1], 0.0), np.maximum(hidden_high[-1], 0.0)
            positive, negative = np.maximum(w, 0.0), np.minimum(w, 0.0)
            low = np.maximum(low, pl @ positive.T + ph @ negative.T + b)
            high = np.minimum(high, ph @ positive.T + pl @ negative.T + b)
        return low, high, line


class _Lines:
    """Linear lower and upper functions of the units found so far, for back-substitution."""

    def __init__(self, low: Array, high: Array) -> None:
        self.low, self.high = low, high
        self.entries: list[tuple[int, Array, float, Array, Array, Array, Array]] = []

    def add(self, k: int, unit: Elementary, row: Array, offset: float, l: Array, h: Array) -> None:
        """Add the lines of unit k = f(row v + offset), whose argument is in [l, h]."""
        if unit.function == "relu":
            alpha, slope, intercept = (x[:, 0] for x in relu_lines(l[:, None], h[:, None]))
            self.entries.append((k, row, offset, alpha, np.zeros_like(l), slope, intercept))
        elif unit.function == "indicator":
            zero = np.zeros_like(l)
            self.entries.append((k, row, offset, zero, self.low[:, k], zero, self.high[:, k]))
        else:
            m, lo, hi = band(unit.function, l, h)
            self.entries.append((k, row, offset, m, lo, m, hi))

    def size(self, argument: Array) -> Array:
        """For the unit added last, a bound on the sum of absolute values behind its value, shape (B,).

        ``argument`` is such a bound for the unit's argument.
        """
        *_, sl, il, sh, ih = self.entries[-1]
        return np.maximum(np.abs(sl), np.abs(sh)) * argument + np.maximum(np.abs(il), np.abs(ih))

    def reduce(self, coefficients: Array, constant: Array, sign: float) -> tuple[Array, Array]:
        """Forms over actions alone that bound forms over atoms from below (sign -1) or above (+1).

        The results have zeros as the coefficients of units; shapes (B, rows, atoms) and (B, rows).
        """
        c = np.array(coefficients, dtype=np.float64)
        total = np.array(constant, dtype=np.float64)
        for k, row, offset, sl, il, sh, ih in reversed(self.entries):
            ck = c[:, :, k].copy()
            if not ck.any():
                continue
            upward = (ck * sign) >= 0
            slope = np.where(upward, sh[:, None], sl[:, None]) * ck
            total += np.where(upward, ih[:, None], il[:, None]) * ck + slope * offset
            c[:, :, k] = 0.0
            c += slope[:, :, None] * row
        return c, total

    def concretise(self, c: Array, total: Array, sign: float) -> Array:
        """Smallest (sign -1) or largest (+1) value of forms over actions on the boxes, shape (B, rows)."""
        middle, radius = (self.low + self.high) / 2, (self.high - self.low) / 2
        return total + (c @ middle[:, :, None])[:, :, 0] + sign * (np.abs(c) @ radius[:, :, None])[:, :, 0]


def relu_lines(low: Array, high: Array) -> tuple[Array, Array, Array]:
    """ReLU on [low, high]: alpha x <= relu(x) <= slope x + intercept."""
    on, off = low >= 0, high <= 0
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = high / (high - low)
    slope = np.where(on, 1.0, np.where(off, 0.0, slope))
    intercept = np.where(on | off, 0.0, -slope * low)
    alpha = np.where(on, 1.0, np.where(off, 0.0, (high > -low).astype(np.float64)))
    return alpha, slope, intercept


def _through_relu(
    coefficients: Array, constant: Array, relaxed: tuple[Array, Array, Array], sign: float
) -> tuple[Array, Array]:
    """Replace a layer's ReLUs in forms by their lines: by the upper one where coefficient times sign is not
    negative, else by the lower one."""
    alpha, slope, intercept = relaxed
    upper = coefficients * sign >= 0
    constant = constant + np.where(upper, coefficients * intercept[:, None, :], 0.0).sum(axis=2)
    return coefficients * np.where(upper, slope[:, None, :], alpha[:, None, :]), constant

r"""ReLU networks: evaluated in exact rational arithmetic, and as deployed.

A network with layers :math:`(W_k, b_k)` is :math:`z_1 = W_1 x + b_1`,
:math:`z_{k+1} = W_{k+1} \max(0, z_k) + b_{k+1}`; the last :math:`z` is one number, the logit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from milp_recourse.problem.enclosure import Dyadic, Enclosure, Rounded, gamma

DType = Literal["float32", "float64"]
FloatArray = NDArray[np.float64]
Objects = NDArray[np.object_]
_Float = TypeVar("_Float", bound=np.floating[Any])

MOST_ROUNDINGS = 1 << 20
"""With more roundings than this, the bound on float32's error would be useless, so none is given."""

_GRID = 200  # bits behind the binary point to which ends that are no dyadic rationals are rounded outward


@dataclass(frozen=True, eq=False)
class ReluNetwork:
    """A fully connected ReLU network.

    Parameters
    ----------
    weights
        One array per layer, shape (outputs, inputs), float64; with ``dtype`` float32 every
        entry is a float32 value.
    biases
        One array per layer, shape (outputs,).
    dtype
        The precision the deployed predictor computes in.
    """

    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]
    dtype: DType = "float64"

    def __repr__(self) -> str:
        """Widths and dtype: ``ReluNetwork(7-57-31-1, float32)``."""
        widths = [self.weights[0].shape[1], *(len(b) for b in self.biases)] if self.weights else []
        return f"ReluNetwork({'-'.join(map(str, widths))}, {self.dtype})"

    @staticmethod
    def from_layers(
        layers: Sequence[tuple[Sequence[Sequence[float]] | FloatArray, Sequence[float] | FloatArray]],
        dtype: DType = "float64",
    ) -> ReluNetwork:
        """Build from ``(weight, bias)`` pairs, checking that the shapes chain.

        Raises
        ------
        ValueError
            A shape does not fit, a number is not finite, or ``dtype`` is float32 and a number is no float32
            value; the message names the layer.
        """
        weights: list[FloatArray] = []
        biases: list[FloatArray] = []
        for k, (weight, bias) in enumerate(layers):
            w, b = np.array(weight, dtype=np.float64), np.array(bias, dtype=np.float64)
            if w.ndim != 2 or b.shape != (w.shape[0],) or 0 in w.shape:
                raise ValueError(f"layers.{k}: weight {w.shape} and bias {b.shape} do not fit")
            if weights and w.shape[1] != weights[-1].shape[0]:
                raise ValueError(
                    f"layers.{k}.weight: {w.shape[1]} inputs after a layer of {weights[-1].shape[0]} outputs"
                )
            if not (np.isfinite(w).all() and np.isfinite(b).all()):
                raise ValueError(f"layers.{k}: a number is not finite")
            if dtype == "float32" and not (_is_float32(w) and _is_float32(b)):
                raise ValueError(f"layers.{k}: dtype is float32 but a number is not a float32 value")
            w.setflags(write=False)
            b.setflags(write=False)
            weights.append(w)
            biases.append(b)
        if not weights:
            raise ValueError("layers: at least one is needed")
        return ReluNetwork(tuple(weights), tuple(biases), dtype)

    @property
    def inputs(self) -> int:
        """Number of input columns."""
        columns: int = self.weights[0].shape[1]
        return columns

    @property
    def outputs(self) -> int:
        """Number of outputs; 1 for a classifier."""
        return len(self.weights[-1])

    @property
    def hidden(self) -> int:
        """Number of ReLU units."""
        return sum(len(b) for b in self.biases[:-1])

    @property
    def head(self) -> ReluNetwork:
        """The layers after the last curves; without curves the network itself."""
        return self

    @cached_property
    def digest(self) -> bytes:
        """The SHA-256 of the layers' shapes and bits (0.0 and -0.0 differ) and of ``dtype``."""
        made = sha256(self.dtype.encode())
        for array in (*self.weights, *self.biases):
            made.update(repr(array.shape).encode() + array.tobytes())
        return made.digest()

    @property
    def written(self) -> dict[str, Any]:
        """As files state it: doubles are read back unchanged, and every float32 value is a double."""
        pairs = zip(self.weights, self.biases, strict=True)
        layers = [{"weight": weight.tolist(), "bias": bias.tolist()} for weight, bias in pairs]
        return {"kind": "relu-network", "dtype": self.dtype, "layers": layers}

    def evaluate(self, x: FloatArray) -> FloatArray:
        """Outputs in float64, shape (..., outputs), for inputs of shape (..., inputs).

        For searches, statistics and iCARMA's scores; a :class:`~milp_recourse.problem.result.Result` never
        rests on these numbers.
        """
        z = np.asarray(x, dtype=np.float64)
        last = len(self.weights) - 1
        for k, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            z = z @ w.T + b
            if k < last:
                z = self.bent(k, z)
        return z

    def bent(self, layer: int, z: NDArray[_Float]) -> NDArray[_Float]:
        """A hidden layer's ReLUs of its arguments, (..., units), in their precision."""
        positive: NDArray[_Float] = np.maximum(z, z.dtype.type(0))
        return positive

    def scores(self, x: FloatArray) -> FloatArray:
        """The logits of rows (..., inputs) in float64, by :meth:`evaluate`."""
        return self.evaluate(x)[..., 0]

    def deployed_logit(self, x: FloatArray) -> float:
        """The logit of one input row, shape (inputs,), computed in ``dtype`` and summed in
        numpy's order; a deployed library may sum in another."""
        with np.errstate(over="ignore"):
            z = np.asarray(x, dtype=np.float64).astype(self.dtype)
        last = len(self.weights) - 1
        with np.errstate(over="ignore", invalid="ignore"):  # overflow: inf, or nan, which accepts nothing
            for k, (w, b) in enumerate(zip(self._deployed_weights, self._deployed_biases, strict=True)):
                z = w @ z + b
                if k < last:
                    z = self.bent(k, z)
        return float(z[0])

    def deploys_at_least(self, x: FloatArray, threshold: float) -> bool:
        """Whether the deployed logit of one input row is at least a threshold, in two orders of summation.

        The first is that of :meth:`deployed_logit`, which depends on numpy and on the machine. The second is
        the one of the certificate document, which anybody can repeat: every product and every sum is rounded
        to ``dtype``, from left to right, the bias last.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            z = np.asarray(x, dtype=np.float64).astype(self.dtype)
            for k, (w, b) in enumerate(zip(self._deployed_weights, self._deployed_biases, strict=True)):
                if k:
                    z = self.bent(k - 1, z)
                z = np.cumsum(w * z, axis=1, dtype=z.dtype)[:, -1] + b
        return float(z[0]) >= threshold and self.deployed_logit(x) >= threshold

    def enclose(self, x: Sequence[Enclosure]) -> tuple[Enclosure, ...]:
        """Outputs in exact arithmetic: points if all inputs are :class:`Dyadic`, else proven intervals.

        Doubles are integers times a power of two, so the network is evaluated in integer arithmetic.
        """
        dyadic = [e for e in x if isinstance(e, Dyadic)]
        if len(dyadic) == len(x):
            exponent = max((e.bits for e in dyadic), default=0)
            lower = upper = [e.numerator << (exponent - e.bits) for e in dyadic]
        else:
            exponent = max((_dyadic_exponent(end) for e in x for end in (e.lower, e.upper)), default=0)
            lower = [_floor_scaled(e.lower, exponent) for e in x]
            upper = [_ceil_scaled(e.upper, exponent) for e in x]
        last = len(self._integer_layers) - 1
        for k, (matrix, positive, negative, bias, bits) in enumerate(self._integer_layers):
            shifted = [b << exponent for b in bias]
            exponent += bits
            point = upper is lower or upper == lower
            if point:
                reached = [j for j, v in enumerate(lower) if v]  # half of a layer's ReLUs are off
                lower = upper = _plus(matrix[:, reached] @ _objects([lower[j] for j in reached]), shifted)
            else:
                lo, hi = _objects(lower), _objects(upper)
                lower = _plus(positive @ lo + negative @ hi, shifted)
                upper = _plus(positive @ hi + negative @ lo, shifted)
            if k < last:
                lower = [max(0, v) for v in lower]
                upper = lower if point else [max(0, v) for v in upper]
        if upper is lower:
            return tuple(Dyadic(a, exponent) for a in lower)
        scale = 1 << exponent
        low = [Fraction(a, scale) for a in lower]
        high = [Fraction(b, scale) for b in upper]
        return tuple(Enclosure(a, b) for a, b in zip(low, high, strict=True))

    def arguments(self, x: Sequence[Fraction], active: Sequence[NDArray[np.bool_]]) -> Iterator[Objects]:
        """The arguments of every layer's units, and the logit, exactly, at one input row, where exactly these
        units are taken to be active (a mask for every hidden layer), whatever their arguments."""
        unit = math.lcm(*(v.denominator for v in x))
        values = _objects([v.numerator * (unit // v.denominator) for v in x])  # times 1 / unit
        for k, (matrix, _, _, bias, bits) in enumerate(self._integer_layers):
            if k:
                values = np.where(active[k - 1], values, 0)
            values, unit = matrix @ values + _objects([v * unit for v in bias]), unit << bits
            yield _objects([Fraction(int(v), unit) for v in values])

    def piece(
        self, active: Sequence[NDArray[np.bool_]], layer: int = -1, unit: int = 0
    ) -> tuple[list[Fraction], Fraction]:
        """The logit, or the argument of another unit, where exactly these units are active: the coefficients
        of the inputs and the constant, exactly."""
        layers = self._integer_layers[: layer % len(self.weights) + 1]
        matrix, _, _, bias, exponent = layers[-1]
        row, constant = matrix[unit], int(bias[unit])
        for (matrix, _, _, bias, bits), on in zip(
            layers[-2::-1], active[len(layers) - 2 :: -1], strict=False
        ):
            row = np.where(on, row, 0)
            constant = (constant << bits) + int(row @ _objects([*bias]))
            row, exponent = row @ matrix, exponent + bits
        return [Fraction(int(v), 1 << exponent) for v in row], Fraction(constant, 1 << exponent)

    def nearly(self, x: FloatArray) -> list[tuple[Rounded, float] | None]:
        r"""The logit of input rows (n, columns) in float64, with a bound on its rounding error.

        A term of the logit is rounded once as an input and, in every layer of n inputs, in one product and at
        most n additions, in whatever order. A ReLU does not enlarge an error. So with N = 1 + the sum of
        n + 1 over the layers, the error is at most :math:`\gamma_N` times the logit of the network with
        absolute values for inputs, weights and biases. :func:`~milp_recourse.problem.enclosure.gamma` also
        covers the rounding in that logit. Units whose ReLU is 0 despite all rounding are left out of it. A
        bound on what underflow loses is added.

        Returns
        -------
        (logit, error)
            Per row, an enclosure of the exact logit of any inputs that round to it, and a bound on how far
            the deployed logit is from its middle. None if a number might overflow.
        """
        scales, operations, lost, growth = self._rounding
        z = np.asarray(x, dtype=np.float64)
        size = np.abs(z)
        coarse = gamma(operations, 2.0**-24 if self.dtype == "float32" else 2.0**-53)
        with np.errstate(over="ignore", invalid="ignore"):
            small = size.sum(axis=1) * growth[0] + growth[1] < growth[2]  # false for nan
            for k, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
                if k:
                    size *= z + coarse * size >= -lost[1]  # below, the ReLU is 0 in every precision
                    z = np.maximum(z, 0.0)
                z, size = products(z, w), products(size, scales[k][0])
                z += b
                size += scales[k][1]
        found: list[tuple[Rounded, float] | None] = []
        for fits, value, most in zip(small.tolist(), z[:, 0].tolist(), size[:, 0].tolist(), strict=True):
            error = gamma(operations) * most + lost[0]
            deployed = error + coarse * most + lost[1]
            found.append((Rounded(value, error), deployed * (1.0 + 2.0**-50)) if fits else None)
        return found

    @cached_property
    def _rounding(
        self,
    ) -> tuple[list[tuple[FloatArray, FloatArray]], int, tuple[float, float], tuple[float, float, float]]:
        """The constants of :meth:`nearly`.

        Absolute weights and biases; the number N of roundings; bounds on what underflow loses in float64 and
        as deployed; and (s, t, limit): no number exceeds s sum abs(x) + t, which must stay below the limit.
        """
        scales = [(np.abs(w), np.abs(b)) for w, b in zip(self.weights, self.biases, strict=True)]
        narrow = self.dtype == "float32"
        losses = 2.0**-1000, 2.0**-120 if narrow else 2.0**-1000  # far above what one underflow loses
        lost, most, s, t = list(losses), (1.0, 0.0), 1.0, 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            for w, b in scales:
                across, n = float(w.sum(axis=1).max()), w.shape[1]
                lost = [2.0 * (across * v + (n + 1) * loss) for v, loss in zip(lost, losses, strict=True)]
                s, t = 2.0 * across * s, 2.0 * (across * t + float(b.max()))
                most = max(most[0], s), max(most[1], t)
        operations = 1 + sum(w.shape[1] + 1 for w in self.weights)
        limit = 0.0 if operations > MOST_ROUNDINGS else 2.0**100 if narrow else 2.0**1000
        return scales, operations, (lost[0], lost[1]), (*most, limit)

    @cached_property
    def _deployed_weights(self) -> tuple[NDArray[np.floating[Any]], ...]:
        return tuple(w.astype(self.dtype) for w in self.weights)

    @cached_property
    def _deployed_biases(self) -> tuple[NDArray[np.floating[Any]], ...]:
        return tuple(b.astype(self.dtype) for b in self.biases)

    @cached_property
    def _integer_layers(self) -> list[tuple[Objects, Objects, Objects, list[int], int]]:
        """Per layer: weights, their positive and negative part, bias as integers times 2**-bits."""
        layers = []
        for w, b in zip(self.weights, self.biases, strict=True):
            mantissa, exponent = np.frexp(np.concatenate([w.ravel(), b]))
            whole = np.ldexp(mantissa, 53).astype(np.int64)
            zeros = np.frexp((whole & -whole).astype(np.float64))[1] - 1  # behind the last 1
            whole, exponent = whole >> np.maximum(zeros, 0), np.where(whole == 0, 0, exponent - 53 + zeros)
            bits = max(0, -int(exponent.min()))
            scaled = [v << (e + bits) for v, e in zip(whole.tolist(), exponent.tolist(), strict=True)]
            matrix = np.array(scaled[: w.size], dtype=object).reshape(w.shape)
            zero = np.zeros_like(matrix)
            positive, negative = np.where(matrix > 0, matrix, zero), np.where(matrix < 0, matrix, zero)
            layers.append((matrix, positive, negative, scaled[w.size :], bits))
        return layers


def products(rows: FloatArray, weight: FloatArray) -> FloatArray:
    """rows weight^T, (n, outputs). BLAS would sum in an order that depends on the number of rows, so that
    last digits would depend on who else is judged."""
    if weight.size < _DENSE:
        made: FloatArray = np.einsum("nj,kj->nk", rows, weight)
        return made
    alone, column, value = single_entries(weight)
    made = np.empty((len(rows), len(weight)))
    made[:, alone] = rows[:, column] * value
    made[:, ~alone] = np.einsum("nj,kj->nk", rows, weight[~alone])
    return made


def single_entries(weight: FloatArray) -> tuple[NDArray[np.bool_], NDArray[np.int64], FloatArray]:
    """Which rows of a matrix have at most one number that is not 0, in which column it is, and the number."""
    alone = np.count_nonzero(weight, axis=1) <= 1
    column = (weight[alone] != 0.0).argmax(axis=1)
    return alone, column, weight[alone, column]


_DENSE = 2**16
"""A matrix of fewer numbers is not searched for rows of one."""


def _is_float32(values: FloatArray) -> bool:
    with np.errstate(over="ignore"):
        return bool((values.astype(np.float32).astype(np.float64) == values).all())


def _objects(values: list[Any]) -> Objects:
    """An array of Python integers; without a dtype numpy would make floats of [2**63, -1]."""
    return np.array(values, dtype=object)


def _plus(values: Objects, shift: list[int]) -> list[int]:
    return [v + s for v, s in zip(values.tolist(), shift, strict=True)]


def _dyadic_exponent(x: Fraction) -> int:
    """Bits behind the binary point of x; :data:`_GRID` if x is no dyadic rational."""
    denominator = x.denominator
    return denominator.bit_length() - 1 if denominator & (denominator - 1) == 0 else _GRID


def _floor_scaled(x: Fraction, exponent: int) -> int:
    return (x.numerator << exponent) // x.denominator


def _ceil_scaled(x: Fraction, exponent: int) -> int:
    return -((-x.numerator << exponent) // x.denominator)

"""The affine maps and functions of a model, and the network that they make.

:class:`Layers` holds a list of segments. A segment is a list of affine maps (:class:`Map`), applied one after
another; ReLUs, or other functions, follow each segment but the last. Layer k of the network is the product of
segment k's maps. Further functions are rewritten with these, which changes nothing in real arithmetic:

====================  =================================================================
LeakyReLU, slope s    relu(z) - s relu(-z)
Hardtanh, l <= u      l + relu(z - l) - relu(z - u)
the smaller of a, b   a - relu(a - b)
the larger of a, b    a + relu(b - a)
a unchanged           relu(a) - relu(-a)
tanh                  2 sigmoid(2 z) - 1
====================  =================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from milp_recourse.errors import Unsupported
from milp_recourse.problem.derived_networks import (
    Bends,
    along_the_diagonal,
    extreme_of_each,
    pairwise_log_sum,
    with_bends,
)
from milp_recourse.problem.network import DType, ReluNetwork, single_entries
from milp_recourse.readers.refusal import refuse

FloatArray = NDArray[np.float64]

UNIT: dict[str, float] = {"float16": 2.0**-11, "float32": 2.0**-24, "float64": 2.0**-53}
"""Unit roundoff of each precision."""

LIBRARY = 64
"""More units of roundoff than any library's sigmoid or tanh is off."""


@dataclass(frozen=True, eq=False)
class Map:
    r"""z -> W z + b, one affine map of the model.

    Attributes
    ----------
    weight, bias
        Shapes (outputs, inputs) and (outputs,), as doubles.
    unit
        Unit roundoff with which the model computes the map; 0 for a map that comes from rewriting a function
        and that the model does not compute.
    size
        Magnitude, at least :math:`|b|`, to which the rounding of the bias is proportional; shape (outputs,).
    choice
        Whether the map takes differences of logits that the model itself only compares.
    off
        How far the number that the model computes can be from the map's, where the map ends a piecewise
        linear function in the place of another one; shape (outputs,) or (1,).
    """

    weight: FloatArray
    bias: FloatArray
    unit: float = 0.0
    size: FloatArray = field(default_factory=lambda: np.zeros(1))  # the bias' own where it is not 0
    choice: bool = False
    off: FloatArray = field(default_factory=lambda: np.zeros(1))


class Layers:
    """Affine maps and activations, appended in the order in which the model applies them.

    Parameters
    ----------
    inputs
        Number of input columns; None to take it from the first affine map.
    """

    def __init__(self, inputs: int | None = None) -> None:
        self.inputs = inputs
        self.segments: list[list[Map]] = [[]]
        self.bends: list[Bends] = []  # what follows each segment but the last
        self.slack = 0.0  # how far a logit may be above 0 while the closing function ties the classes
        self._closed = ""
        self._last = "", 0.0  # the place and unit roundoff of a sigmoid that may close the network

    @property
    def outputs(self) -> int | None:
        """Number of outputs so far; ``inputs`` before the first affine map."""
        for segment in reversed(self.segments):
            if segment:
                return len(segment[-1].bias)
        return self.inputs

    def affine(
        self,
        weight: ArrayLike,
        bias: ArrayLike,
        where: str,
        unit: float = 0.0,
        size: FloatArray | None = None,
        choice: bool = False,
        off: FloatArray | None = None,
    ) -> None:
        """Append z -> W z + b, with shapes (outputs, inputs) and (outputs,); for the others see :class:`Map`.

        Raises
        ------
        Unsupported
            Shapes do not fit, a number is not finite, or a closing function came before.
        """
        w, b = np.array(weight, dtype=np.float64), np.array(bias, dtype=np.float64)
        self._go_on()
        if self._closed:
            raise refuse(where, f"an affine map right after {self._closed}", f"nothing after {self._closed}")
        if w.ndim != 2 or b.shape != (len(w),):
            raise refuse(where, f"weight {w.shape}, bias {b.shape}", "shapes (outputs, inputs), (outputs,)")
        if self.outputs is not None and w.shape[1] != self.outputs:
            raise refuse(where, f"{w.shape[1]} inputs", f"{self.outputs}, as many as come out before it")
        if not (np.isfinite(w).all() and np.isfinite(b).all()):
            raise refuse(where, "a number that is not finite", "finite weights and biases")
        if self.inputs is None:
            self.inputs = w.shape[1]
        magnitude = np.abs(b) if size is None else np.maximum(np.abs(b), size)
        self.segments[-1].append(Map(w, b, unit, magnitude, choice, np.zeros(1) if off is None else off))

    def rescale(self, factor: ArrayLike, shift: ArrayLike, where: str, unit: float, size: FloatArray) -> None:
        """Append z -> factor z + shift, elementwise."""
        self.affine(np.diag(np.asarray(factor, dtype=np.float64)), shift, where, unit, size)

    def normalise(
        self,
        mean: FloatArray,
        variance: FloatArray,
        epsilon: float,
        weight: FloatArray,
        bias: FloatArray,
        where: str,
        unit: float,
    ) -> None:
        r"""Append batch normalisation, :math:`(z - \mu) / \sqrt{v + \epsilon} \cdot w + b`, elementwise."""
        with np.errstate(invalid="ignore", divide="ignore"):
            factor = weight / np.sqrt(variance + epsilon)
            shift = mean * factor
        self.rescale(factor, bias - shift, where, unit, np.abs(shift) + np.abs(bias))

    def shift(self, constant: ArrayLike, where: str, dtype: DType) -> None:
        """Add a constant of shape (outputs,) to the affine map just appended, rounded to ``dtype``."""
        if self._closed or not self.segments[-1]:
            raise refuse(
                where, f"a shift right after {self._closed or 'a ReLU'}", "a shift right after an affine map"
            )
        last, added = self.segments[-1].pop(), np.asarray(constant, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            bias = (last.bias + added).astype(dtype).astype(np.float64)
        self.affine(last.weight, bias, where, last.unit, last.size + np.abs(added), off=last.off)

    def relu(self, where: str) -> None:
        """Append max(0, z). A ReLU directly after another one is dropped."""
        count = self._count(where, "a ReLU")
        if not self.segments[-1] and self.bends and self.bends[-1] is None:
            return
        self.bend(None, where, count)

    def bend(self, functions: Bends, where: str, count: int = 0) -> None:
        """Append a function for each output, ReLUs if None."""
        count = count or self._count(where, "a function")
        if not self.segments[-1]:
            self.segments[-1].append(_unchanged(count))
        self.segments.append([])
        self.bends.append(functions)

    def curve(self, name: Literal["sigmoid", "tanh"], where: str, unit: float) -> None:
        """Append a sigmoid or tanh of each output."""
        count = self._count(where, f"a {name}")
        steep, shift = (2.0, -1.0) if name == "tanh" else (1.0, 0.0)
        eye = np.eye(count)
        if steep != 1.0:
            self.affine(steep * eye, np.zeros(count), where)
        self.bend(("sigmoid",) * count, where)
        self.affine(steep * eye, np.full(count, shift), where, off=np.full(count, LIBRARY * unit))

    def leaky(self, slope: float, where: str, unit: float) -> None:
        """Append max(0, z) + slope min(0, z)."""
        count = self._count(where, "a LeakyReLU")
        eye, zero = np.eye(count), np.zeros(count)
        self.affine(np.vstack([eye, -eye]), np.zeros(2 * count), where)
        self.relu(where)
        self.affine(np.hstack([eye, -slope * eye]), zero, where, unit)

    def clamp(self, low: float, high: float, where: str) -> None:
        """Append min(max(z, low), high)."""
        if not (np.isfinite([low, high]).all() and low <= high):
            raise refuse(where, f"limits {low} and {high}", "finite limits, the lower first")
        count = self._count(where, "a Hardtanh")
        eye = np.eye(count)
        self.affine(np.vstack([eye, eye]), np.repeat([-low, -high], count), where)
        self.relu(where)
        self.affine(np.hstack([eye, -eye]), np.full(count, low), where)

    def close(self, what: str, slack: float) -> None:
        """End with a sigmoid or softmax, which is dropped since it keeps the order of logits.

        Only :meth:`choose` may follow.

        Parameters
        ----------
        what
            Name of the function, for messages.
        slack
            Added to :attr:`slack`.
        """
        if self._closed or not self.segments[-1]:
            raise refuse("last layer", f"{what} right after {self._closed or 'a ReLU'}", f"{what} at the end")
        self._closed = what
        self.slack += slack

    def sigmoid(self, where: str, unit: float) -> None:
        """Append a sigmoid, which ends a network of one logit unless something follows."""
        self._go_on()
        self._last = where, unit
        self.close(_SIGMOID, 0.0)

    def _go_on(self) -> None:
        """A sigmoid that something follows is a function like others."""
        if self._closed == _SIGMOID:
            self._closed = ""
            self.curve("sigmoid", *self._last)

    def _end(self) -> None:
        """End the network: a sigmoid of several outputs would round the large ones to 1 and so tie classes
        whose logits differ."""
        if self._closed == _SIGMOID and (self.outputs or 1) > 1:
            got = f"a sigmoid of {self.outputs} outputs, whose order is lost where it rounds to 1"
            raise refuse(self._last[0], got, "a softmax, or nothing, after several outputs")
        self._closed = ""

    def softmax(self, where: str) -> None:
        """End with a softmax of several logits, or its logarithm; of one it is a constant."""
        if self.outputs == 1:
            got = "a softmax of one output, which is the same for all inputs"
            raise refuse(where, got, "a sigmoid, or nothing, after one output")
        self.close("a softmax", 0.0)

    def choose(self, terms: Sequence[tuple[ArrayLike, ArrayLike]]) -> None:
        r"""Turn the outputs z into one logit, :math:`\max_j \min_k (w_{jk} z - t_{jk})`.

        Parameters
        ----------
        terms
            Per j the matrix of the rows :math:`w_{jk}`, which are differences of outputs, and the thresholds.
        """
        self._end()
        rows = np.vstack([np.asarray(row, dtype=np.float64) for row, _ in terms])
        thresholds = np.concatenate([np.asarray(t, dtype=np.float64) for _, t in terms])
        self.affine(rows, 0.0 - thresholds, "class", choice=True)
        sizes = [len(np.asarray(t)) for _, t in terms]
        for counts, largest in ((sizes, False), ([len(sizes)], True)):
            for before, after in extreme_of_each(counts, largest):
                self.affine(before, np.zeros(len(before)), "class")
                self.relu("class")
                self.affine(after, np.zeros(len(after)), "class")

    def append(self, step: Map | Bends, where: str) -> None:
        """Append a map of another network, or its functions (None: ReLUs)."""
        if not isinstance(step, Map):
            self.bend(step, where)
            return
        if self.outputs is not None and step.weight.shape[1] != self.outputs:
            got = f"{step.weight.shape[1]} inputs"
            raise refuse(where, got, f"{self.outputs}, as many as come out before it")
        self.inputs = step.weight.shape[1] if self.inputs is None else self.inputs
        self.segments[-1].append(step)

    def extend(self, other: Layers) -> None:
        """Append the maps and ReLUs of another network."""
        for k, segment in enumerate(other.segments):
            if k:
                self.bend(other.bends[k - 1], "model")
            for step in segment:
                self.append(step, "model")
        self.slack += other.slack

    @staticmethod
    def beside(networks: Sequence[Layers]) -> Layers:
        """One network of other inputs and outputs for each; shorter ones are lengthened by
        :math:`z = relu(z) - relu(-z)`."""
        length = max(len(one.segments) for one in networks)
        even = [one.lengthened(length) for one in networks]
        together = Layers(sum(one.inputs or 0 for one in networks))
        for k in range(length):
            if k:
                together.bend(_side_by_side(even, k - 1), "model")
            for step in zip(*_of_one_length([one.segments[k] for one in even]), strict=True):
                weight = along_the_diagonal([one.weight for one in step])
                bias = np.concatenate([one.bias for one in step])
                size = np.concatenate([np.broadcast_to(one.size, one.bias.shape) for one in step])
                off = np.concatenate([np.broadcast_to(one.off, one.bias.shape) for one in step])
                chosen = len(step) == 1 and step[0].choice
                together.affine(weight, bias, "model", max(one.unit for one in step), size, chosen, off)
        together.slack = max(one.slack for one in networks)
        return together

    def lengthened(self, segments: int) -> Layers:
        """The same outputs after at least so many segments."""
        longer = Layers(self.inputs)
        longer.segments, longer.bends = [list(segment) for segment in self.segments], list(self.bends)
        longer.slack = self.slack
        while len(longer.segments) < segments:
            longer.leaky(1.0, "model", 0.0)
        return longer

    @property
    def chosen(self) -> bool:
        """Whether differences of outputs have been taken."""
        return any(step.choice for segment in self.segments for step in segment)

    def choose_odds(self, weight: ArrayLike) -> None:
        """Turn the outputs z into a number that is at most, and nearly, -log(sum of e^(weight @ z)).

        Parameters
        ----------
        weight
            One row per difference between another class's logit and the wanted one's.
        """
        self._end()
        rows = np.asarray(weight, dtype=np.float64)
        self.affine(rows, np.zeros(len(rows)), "class", choice=True)
        for before, shift, after, constant in pairwise_log_sum(len(rows)):
            self.affine(before, shift, "class")
            self.relu("class")
            self.affine(after, constant, "class")
        self.affine([[-1.0]], [0.0], "class")

    def network(self, dtype: DType) -> ReluNetwork:
        """The network: each segment's maps multiplied into one layer.

        Products are rounded to doubles; a segment of one map is taken bit for bit. The network is float32 if
        ``dtype`` is float32 and every number of it is a float32 value.

        Raises
        ------
        Unsupported
            A ReLU comes last, there is more than one output, or a product is not finite.
        """
        if not self.segments[-1]:
            last = "a ReLU" if len(self.segments) > 1 else "the input"
            raise refuse("last layer", last, "an affine map with one output, the logit")
        layers = []
        for segment in self.segments:
            weight, bias = segment[0].weight, segment[0].bias
            with np.errstate(over="ignore", invalid="ignore", under="ignore"):
                for after in segment[1:]:
                    weight, bias = _times(after.weight, weight), after.weight @ bias + after.bias
            layers.append((weight, bias))
        if len(layers[-1][1]) != 1:
            raise refuse("last layer", f"{len(layers[-1][1])} outputs", "1, the logit, or one per class")
        with np.errstate(over="ignore"):
            same = all((a.astype(np.float32) == a).all() for layer in layers for a in layer)
        try:
            made = ReluNetwork.from_layers(layers, "float32" if dtype == "float32" and same else "float64")
            return with_bends(made, self.bends)
        except ValueError as error:
            raise Unsupported(str(error)) from error

    def _count(self, where: str, what: str) -> int:
        self._go_on()
        if self._closed or self.outputs is None:
            raise refuse(
                where, f"{what} right after {self._closed or 'the input'}", f"{what} after an affine map"
            )
        return self.outputs


_SIGMOID = "a sigmoid"


def _side_by_side(networks: Sequence[Layers], k: int) -> Bends:
    """The functions of several networks' layers k together."""
    if not any(one.bends[k] for one in networks):
        return None
    relus = (one.bends[k] or ("relu",) * len(one.segments[k][-1].bias) for one in networks)
    return tuple(name for names in relus for name in names)


def _times(after: FloatArray, before: FloatArray) -> FloatArray:
    """The product of two matrices; rows of the first with one number only pick a row of the second."""
    alone, column, value = single_entries(after)
    made = np.empty((len(after), before.shape[1]))
    made[alone] = value[:, None] * before[column]
    made[~alone] = after[~alone] @ before
    return made


def _of_one_length(segments: Sequence[list[Map]]) -> list[list[Map]]:
    """The segments, with maps added to the shorter ones that change nothing."""
    length = max(len(segment) for segment in segments)
    return [segment + [_unchanged(len(segment[-1].bias))] * (length - len(segment)) for segment in segments]


def _unchanged(count: int) -> Map:
    return Map(np.eye(count), np.zeros(count), size=np.zeros(count))

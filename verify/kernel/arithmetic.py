"""How boxes of one configuration are bounded: what the rules ask, and the kernel's own answer."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

from verify.kernel.box import Box, Signs
from verify.kernel.configuration import Configuration
from verify.kernel.forms import Form
from verify.kernel.prices import Prices
from verify.kernel.problem import Interval


class Bounds(Protocol):
    """What the rules ask of a box."""

    @property
    def empty(self) -> bool:
        """Whether some neuron's argument has nowhere to lie."""

    def interval(self, form: Form) -> Interval:
        """A form's interval, neurons apart: from below and from above."""

    def least(self, form: Form) -> Fraction:
        """The first of these alone."""

    def above(
        self, form: Form, slopes: str, logit: Fraction, signs: Sequence[tuple[tuple[int, int], Fraction]]
    ) -> Form:
        """A form in the actions alone, nowhere below form + logit times the logit + sum m argument.

        Parameters
        ----------
        slopes
            The neurons' lower lines, a character 0 or 1 each.
        signs
            Neurons and what their arguments are multiplied with.
        """


class PriceBounds(Protocol):
    """What the rules ask of tables of prices (section 7.3); what is gone is of a kind of their own."""

    def start(self) -> Any:
        """Nothing is gone."""

    def bound(self, k: int, ends: Sequence[Interval], gone: Any) -> Fraction | None:
        """What actions in what is left of a box cost at least by table k; None: there are none."""

    def taken_out(self, k: int, ends: Sequence[Interval], gone: Any, target: Fraction) -> Any:
        """What is gone once table k has taken out what reaches the target."""

    def merged(self, ends: Sequence[Interval], gone: Any) -> Any:
        """What is gone once cheaper cells stand for others."""


class Arithmetic(Protocol):
    """How boxes of one configuration are bounded: plainly (:class:`Exact`) or fast (verify/fast)."""

    def box(self, ends: Sequence[Interval], slopes: str, signs: Signs) -> Bounds:
        """The bounds on a box; ``slopes`` for the neurons' intervals."""

    def prices(self, listed: Any, where: str) -> PriceBounds:
        """The bounds by a configuration's tables of prices."""


class Exact:
    """The kernel's own arithmetic."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration

    def box(self, ends: Sequence[Interval], slopes: str, signs: Signs) -> Box:
        """The bounds on a box."""
        box = Box(self.configuration.moved, ends, slopes, signs)
        box.look_at_logarithms()
        return box

    def prices(self, listed: Any, where: str) -> Prices:
        """The bounds by tables of prices."""
        return Prices(self.configuration, listed, where)

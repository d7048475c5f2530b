"""What a solve returns; a status never claims more than is proven."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from typing import Any, Literal

Proof = Literal["rigorous", "solver", "asked"]

RELATIVE_GAP = 1e-6
_DOWN = 1 - 2.0**-50  # rounds a product and a sum downward


def gap_tolerance(cost: float, allowance: float = 0.0) -> float:
    """The gap up to which a cost counts as optimal: 1e-6 cost + allowance, rounded down.

    Parameters
    ----------
    cost
        Cost of the action, at least 0.
    allowance
        The instance's part, :attr:`milp_recourse.problem.instance.Instance.gap_allowance`: the cost of moving
        every lever by 1e-12 of its interval. With the default 0 the tolerance is stricter.
    """
    return _DOWN * (RELATIVE_GAP * cost + allowance)


def is_closed(cost: float, lower_bound: float, allowance: float = 0.0) -> bool:
    """Whether cost - lower_bound <= :func:`gap_tolerance`, the difference taken exactly."""
    gap, most = cost - lower_bound, gap_tolerance(cost, allowance)
    if abs(gap - most) > 2.0**-50 * abs(gap):  # the difference is larger than its rounding error
        return gap < most
    return Fraction(cost) - Fraction(lower_bound) <= most


class Status(str, Enum):
    """How a solve ended; :attr:`sentence` says in words what each status means."""

    sentence: str

    def __new__(cls, value: str, sentence: str) -> Status:
        """A member that equals the string ``value`` and has the attribute ``sentence``."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.sentence = sentence
        return member

    OPTIMAL = "optimal", "The action is feasible and no feasible action is cheaper by more than the gap."
    INFEASIBLE = (
        "infeasible",
        "Proven: no feasible action exists. Relax mask, ranges, bounds, domains, conditions or plausibility.",
    )
    LIMIT = (
        "limit",
        "Stopped before the proof was complete: the bound is proven, and an action, if one is given, works.",
    )
    FOUND = "found", "A feasible action, without any claim that it is the cheapest."
    NOT_FOUND = "not-found", "The search found no feasible action; one may exist all the same."


@dataclass(frozen=True)
class Result:
    """The outcome for one applicant. Only :func:`milp_recourse.judge.conclude` makes one.

    Attributes
    ----------
    status
        See :class:`Status`.
    cost
        Cost of ``action``; None without one.
    lower_bound
        No feasible action costs less; None when infeasible or when nothing is claimed.
    proof
        ``rigorous`` (a certificate can be had), ``solver`` (rests on what a solver or search says), ``asked``
        (the model was asked about every cheaper action), or None.
    action
        Value per feature acted on (labels as labels); None without one, {} when the factual
        is accepted as it is.
    counterfactual
        Value of every feature after the action, the doubles on which the deployed model was evaluated; None
        where a value is missing and stays missing.
    logit, score
        The network's logit, computed with a proven error and rounded to a double; the deployed score of
        trees.
    accepted_exact, accepted_deployed
        Whether the classifier accepts exactly and as deployed; both true whenever there is an action.
    backend
        Name of the back end that proposed it.
    seconds
        Wall time.
    nodes
        The number of nodes that the back end counted; comparable within one back end only, see
        docs/formats.md.
    certificate
        Path of the file that ``evidence`` was written to.
    message
        Why the search stopped, or which restrictions to relax.
    evidence
        The certificate itself, gzipped JSON; None unless one was asked for and could be made.
    gap_allowance
        The instance's part of the tolerance for ``optimal``, see :func:`gap_tolerance`.
    rests_on
        Positions of the conditions that the bound rests on: it holds without the others, too. None: all.
    """

    status: Status
    cost: float | None = None
    lower_bound: float | None = None
    proof: Proof | None = None
    action: Mapping[str, float | int | str] | None = None
    counterfactual: Mapping[str, float | int | str | None] | None = None
    logit: float | None = None
    score: float | None = None
    accepted_exact: bool = False
    accepted_deployed: bool = False
    backend: str = ""
    seconds: float = 0.0
    nodes: int | None = None
    certificate: str | None = None
    message: str | None = None
    evidence: bytes | None = field(default=None, repr=False, compare=False)
    gap_allowance: float = field(default=0.0, repr=False, compare=False)
    rests_on: frozenset[int] | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        """Status, numbers and action; the counterfactual and the rest are attributes."""
        parts = [repr(self.status.value)]
        parts += [f"{key}={value!r}" for key in ("cost", "lower_bound", "proof", "action", "message")
                  if (value := getattr(self, key)) is not None]  # fmt: skip
        return f"Result({', '.join(parts)})"

    @property
    def gap(self) -> float | None:
        """cost - lower_bound; None where either is missing."""
        if self.cost is None or self.lower_bound is None:
            return None
        return max(0.0, self.cost - self.lower_bound)

    @property
    def tolerance(self) -> float | None:
        """The gap up to which the cost counts as optimal; None without a cost."""
        return None if self.cost is None else gap_tolerance(self.cost, self.gap_allowance)

    def noted(self, note: str | None, **changes: Any) -> Result:
        """The result with a sentence added to its message (None: none), and other fields as given."""
        message = note if self.message is None else f"{self.message} {note}"
        return replace(self, **changes) if note is None else replace(self, message=message, **changes)

    def __post_init__(self) -> None:
        cost, bound, s = self.cost, self.lower_bound, self.status
        closed = cost is not None and bound is not None and is_closed(cost, bound, self.gap_allowance)
        allowed = {
            Status.OPTIMAL: closed,
            Status.INFEASIBLE: cost is None and bound is None,
            Status.LIMIT: bound is not None,
            Status.FOUND: cost is not None and bound is None,
            Status.NOT_FOUND: cost is None and bound is None,
        }
        if not allowed[s]:
            raise ValueError(f"a result cannot be {s.value!r} with cost {cost!r} and lower bound {bound!r}")
        if (cost is None) != (self.action is None):
            raise ValueError("cost and action come together")
        if self.action is not None and not (self.accepted_exact and self.accepted_deployed):
            raise ValueError("a returned action must be accepted exactly and as deployed")
        if (s in (Status.OPTIMAL, Status.INFEASIBLE)) and self.proof is None:
            raise ValueError(f"{s.value!r} needs a proof")

"""Reads a certificate's file and checks its shape (section 4); the kernel checks what it proves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from verify.certain.outcomes import Scenario, Withstood
from verify.files.cells import reader
from verify.files.classifier import MOST_WEIGHTS
from verify.files.shapes import Reading, anything, conform, maybe, not_negative, refuse
from verify.kernel.certificate import Proof, Stated
from verify.kernel.checks import Rejected


def _object(shape: dict[str, Any]) -> Callable[[Any, str], dict[str, Any]]:
    """A reader of objects of a shape; what it returns has no entry for a key that is absent."""
    return lambda value, where: {k: v for k, v in conform(value, shape, where).items() if v is not None}


NUMBERS = [float]
TERM = _object(
    {"s?": str, "g?": float, "n?": NUMBERS, "r?": {str: (float, float)}, "q?": NUMBERS, "b?": NUMBERS}
)
NODES: dict[str, tuple[Any, ...]] = {
    **{kind: (str, float, float) for kind in "asn"},
    "c": (str, str, float),
    **{kind: (str, float) for kind in "pt"},
    **{kind: (str,) for kind in "oem"},
    "d": (str, str, [TERM], NUMBERS, NUMBERS),
    "x": (str, {str: (float, float)}),
}
MOST_TERMS = 64
"""Most terms in a leaf, so that no leaf takes long to check."""

FEWEST = 3
"""The least number of entries of a leaf ``["d", slopes, terms]``; shares and thetas may follow."""

TREE = {"tree": list, "prices?": list}
PROOF = {"tree?": list, "prices?": list, "cases?": [TREE]}
WITHSTANDS = {
    "missed": {str: not_negative},
    "threshold": maybe(float),
    "noise": {str: (float, float)},
    "scenarios": [{"missed": {str: float}, "noise": {str: float}}],
    "outcomes": maybe(PROOF),
}
SHAPE = {
    "format": {"milp-recourse/certificate-1"},
    "claim": {"optimal", "infeasible", "bounds"},
    "instance_sha256": str,
    "index?": float,
    "action": maybe({str: anything}),
    "cost": maybe(not_negative),
    "lower_bound": maybe(not_negative),
    "conditions?": NUMBERS,
    "configurations": [{"acted": [str], "scenarios?": NUMBERS, **PROOF}],
    "withstands?": WITHSTANDS,
}


class Certificate(Stated):
    """What a file states, with the digest and index of its instance, and the action as the file has it.

    Attributes
    ----------
    says, withstood
        What a certain action withstands, as the file has it and as it is checked; None for claims about
        actions as planned.
    """

    def __init__(self, data: Any) -> None:
        given = conform(data, SHAPE, "certificate")
        self.digest, self.index, self.action = (given[key] for key in ("instance_sha256", "index", "action"))
        self.index = None if self.index is None else self.index + 0.0  # -0.0 is 0
        for key in ("action", "cost", "lower_bound"):
            if (given[key] is None) != (given["claim"] == "infeasible"):
                refuse(key, given[key], "null where the claim is infeasible, and only there")
        self.reading = Reading()
        proofs = []
        for k, one in enumerate(given["configurations"]):
            proofs.append(Proof(one["acted"], trees_of(one, f"configurations.{k}", self.reading)))
        super().__init__(given["claim"], given["cost"], given["lower_bound"], proofs, given["conditions"])
        chosen = [one["scenarios"] or [] for one in given["configurations"]]
        self.says, self.withstood = given["withstands"], None
        if self.says is not None:
            if self.conditions is not None:
                raise Rejected("conditions: allowed: only in a certificate without the key withstands")
            self.withstood = self._withstood(self.says, chosen)
        elif any(chosen):
            raise Rejected("scenarios: allowed: only in a certificate with the key withstands (section 12)")

    def _withstood(self, given: dict[str, Any], chosen: list[list[float]]) -> Withstood:
        """What a certain action withstands (section 12.1), and the proof that it does."""
        if given["outcomes"] is not None and self.action is None:
            refuse("withstands.outcomes", given["outcomes"], "null where there is no action")
        proof = given["outcomes"] and trees_of(given["outcomes"], "withstands.outcomes", self.reading)
        scenarios = [
            Scenario(*(exact(one[key]) for key in ("missed", "noise"))) for one in given["scenarios"]
        ]
        noise = {f: (Fraction(low), Fraction(high)) for f, (low, high) in given["noise"].items()}
        return Withstood(given["threshold"], exact(given["missed"]), noise, scenarios, chosen, proof)


def exact(numbers: dict[str, float]) -> dict[str, Fraction]:
    """Numbers by feature as fractions."""
    return {f: Fraction(value) for f, value in numbers.items()}


def trees_of(given: dict[str, Any], where: str, reading: Reading) -> list[tuple[int | None, Any, Any]]:
    """The trees of a configuration, or of the action's outcomes: one, or one for each case, that is, for each
    part of the ensemble (section 7.4)."""
    cases = given["cases"]
    if (given["tree"] is None) == (cases is None) or (cases is not None and given["prices"] is not None):
        raise Rejected(f"{where}: allowed: a tree, with prices or without, or cases alone")
    parts = [(None, where, given)] if cases is None else [
        (k, f"{where}.cases.{k}", one) for k, one in enumerate(cases)
    ]  # fmt: skip
    return [
        (
            part,
            Nodes(one["tree"], f"{here}.tree", one["prices"] is not None, reading),
            None if one["prices"] is None else reader(one["prices"], f"{here}.prices", reading),
        )
        for part, here, one in parts
    ]


def written_out(thetas: list[float], where: str) -> list[float]:
    """Replace every whole number -n below zero in a list of thetas by n zeros. Rejected are other numbers
    below zero, and lists that become longer than two entries per weight of the largest network allowed."""
    found: list[float] = []
    for value in thetas:
        if value < 0 and (value != int(value) or len(found) - value > 2 * MOST_WEIGHTS):
            refuse(f"{where}.thetas", value, f"at least 0, or -n for n zeros, up to {2 * MOST_WEIGHTS}")
        found += [value] if value >= 0 else [0.0] * -int(value)
    return found


class Nodes:
    """A tree's nodes in preorder; the shape of each is checked when the iteration reaches it."""

    def __init__(self, listed: list[Any], where: str, priced: bool, reading: Reading) -> None:
        self.listed, self.where, self.priced, self.reading = listed, where, priced, reading

    def __len__(self) -> int:
        return len(self.listed)

    def __iter__(self) -> Iterator[Any]:
        yield from map(self.__getitem__, range(len(self)))
        self.reading.place = self.where

    def __getitem__(self, k: int) -> Any:
        node, here, self.reading.place = self.listed[k], f"{self.where}.{k}", ""
        kind = conform(node[0] if conform(node, list, here) else None, set(NODES), here)
        found = conform(node, NODES[kind][: max(len(node), FEWEST)], here)
        if kind in ("p", "t", "m") and not self.priced:
            raise Rejected(f"{here}: got {kind!r}, which needs prices, in a configuration without prices")
        if kind == "d" and len(found[2]) > MOST_TERMS:
            raise Rejected(f"{here}: more than {MOST_TERMS} terms (section 9)")
        if len(found) > FEWEST + 1:
            found = *found[:-1], written_out(found[-1], here)
        self.reading.place = here
        return found

"""A certificate's file: its shape, node by node (section 4). What it proves is the kernel's matter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from verify.files.cells import reader
from verify.files.shapes import anything, conform, maybe, not_negative, refuse
from verify.kernel.certificate import Proof, Stated
from verify.kernel.checks import Rejected


def _object(shape: dict[str, Any]) -> Callable[[Any, str], dict[str, Any]]:
    """An object of a shape, without the keys that are absent."""
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
}
FEWEST = 3
"""Parts of a leaf ``["d", slopes, terms]``; shares and thetas may be left out."""

TREE = {"tree": list, "prices?": list}
SHAPE = {
    "format": {"milp-recourse/certificate-1"},
    "claim": {"optimal", "infeasible", "bounds"},
    "instance_sha256": str,
    "index?": float,
    "action": maybe({str: anything}),
    "cost": maybe(not_negative),
    "lower_bound": maybe(not_negative),
    "configurations": [{"acted": [str], "tree?": list, "prices?": list, "cases?": [TREE]}],
}


class Certificate(Stated):
    """What a file states, about which instance, and the action as it is written."""

    def __init__(self, data: Any) -> None:
        given = conform(data, SHAPE, "certificate")
        self.digest, self.index, self.action = (given[key] for key in ("instance_sha256", "index", "action"))
        for key in ("action", "cost", "lower_bound"):
            if (given[key] is None) != (given["claim"] == "infeasible"):
                refuse(key, given[key], "null where the claim is infeasible, and only there")
        proofs = [_proof(one, f"configurations.{k}") for k, one in enumerate(given["configurations"])]
        super().__init__(given["claim"], given["cost"], given["lower_bound"], proofs)


def _proof(given: dict[str, Any], where: str) -> Proof:
    """One configuration's."""
    cases = given["cases"]
    if (given["tree"] is None) == (cases is None) or (cases is not None and given["prices"] is not None):
        raise Rejected(f"{where}: allowed: a tree with its prices, or cases")
    places = [where] if cases is None else [f"{where}.cases.{k}" for k in range(len(cases))]
    trees = [
        (
            Nodes(one["tree"], f"{here}.tree"),
            None if one["prices"] is None else reader(one["prices"], f"{here}.prices"),
        )
        for here, one in zip(places, [given] if cases is None else cases, strict=True)
    ]
    return Proof(given["acted"], trees, cases is not None)


class Nodes:
    """A tree's nodes, each looked at when it is its turn."""

    def __init__(self, listed: list[Any], where: str) -> None:
        self.listed, self.where = listed, where

    def __len__(self) -> int:
        return len(self.listed)

    def __iter__(self) -> Iterator[Any]:
        for k, node in enumerate(self.listed):
            here = f"{self.where}.{k}"
            kind = conform(node[0] if conform(node, list, here) else None, set(NODES), here)
            yield conform(node, NODES[kind][: max(len(node), FEWEST)], here)

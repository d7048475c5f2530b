"""Boxes of small problems, whose actions can all be listed, and what the checker says of them."""

from __future__ import annotations

import json
from dataclasses import replace
from gzip import decompress
from itertools import product

import numpy as np
import pytest

from milp_recourse import solve
from milp_recourse.formats import instance_from_dict
from milp_recourse.judge import judge
from milp_recourse.problem.features import Values
from milp_recourse.problem.instance import Acceptance, Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.questions.regions import Region, region
from tests.properties.regions import verdict
from tests.questions.robust.problems import draw


def drawn(seed: int) -> Instance | None:
    """A problem of which about half of all actions are accepted; every second one allows some values only."""
    instance = instance_from_dict(draw(seed).instance)
    rng = np.random.default_rng([seed, 6])
    features = tuple(
        replace(
            f,
            only=Values(
                tuple(sorted({f.bounds[0], *rng.choice(np.arange(f.bounds[0], f.bounds[1] + 1), 2)}))
            ),
        )
        if f.kind == "integer" and f.bounds and seed % 2
        else f
        for f in instance.features
    )
    instance = replace(instance, features=features)
    axes = [values(instance, name, *instance.levers[name]) for name in instance.levers]
    outputs = set()
    for point in product(*axes):
        judged = judge(instance, dict(zip(instance.levers, point, strict=True)))
        outputs.add(judged.score if judged.logit is None else float(judged.logit.midpoint))
    ascending = sorted(outputs)
    if len(ascending) < 2:
        return None
    at = ascending[int(rng.integers(len(ascending) - 1))]
    network = isinstance(instance.classifier, ReluNetwork)
    accept = Acceptance(float(np.float32(at + 1e-3)), 2.0**-20) if network else Acceptance(at, strict=True)
    return replace(instance, accept=accept)


def values(instance: Instance, name: str, low: float, high: float) -> list[float]:
    """What an action may set between two values."""
    return instance.by_name[name].lattice.within(low, high).tolist()


def refused(instance: Instance, axes: dict[str, list[float]]) -> bool:
    """Whether some action on these levers with these values is refused."""
    points = (dict(zip(axes, point, strict=True)) for point in product(*axes.values()))
    return not all(judge(instance, point).accepted_exact for point in points)


def wrong_in(found: Region) -> str | None:
    """What listing all actions says against a box; None if nothing."""
    instance, box = found.instance, found.box
    inside = {name: values(instance, name, *ends) for name, ends in box.ends.items()}
    inside |= {name: list(map(float, labels)) for name, labels in box.labels.items()}
    if not found.proven or found.message:
        return f"not proven: {found.message}"
    if any(value not in inside[name] for name, value in found.action.items()):
        return "the action is not inside"
    if refused(instance, inside):
        return "something inside is refused"
    for name, (low, high) in box.ends.items():
        outside = values(instance, name, *instance.levers[name])
        nearest = [v for v in outside if v < low][-1:], [v for v in outside if v > high][:1]
        for end, beyond in zip(("low", "high"), nearest, strict=True):
            if bool(beyond) != (found.held_by((name, end)) == "refused"):
                return f"{name}, {end}: held by {found.held_by((name, end))}"
            if beyond and not refused(instance, {**inside, name: beyond}):
                return f"{name}, {end}: can be moved out"
    for name, labels in box.labels.items():
        for label in values(instance, name, *instance.levers[name]):
            if label not in labels and not refused(instance, {**inside, name: [label]}):
                return f"{name}: label {label} can be added"
    return None


def check(seed: int) -> str | None:
    """What is wrong with the box of a seed's problem: None if nothing, also where there is no action."""
    instance = drawn(seed)
    result = None if instance is None else solve(instance)
    if instance is None or result is None or not result.action:
        return None
    found = region(instance, instance.numbers(result.action))
    if wrong := wrong_in(found):
        return wrong
    line = verdict(json.loads(decompress(found.evidence or b"")), instance)
    return None if line.startswith("VERIFIED region") else line


@pytest.mark.parametrize("seed", range(12))
def test_listing_all_actions_contradicts_no_box(seed: int) -> None:
    """Nothing inside is refused, no side or label can be added, and the checker accepts the proof."""
    assert check(seed) is None

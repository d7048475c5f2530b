"""Certificates about the new costs and offsets, forged: the checker says no to each, for the reason named."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from milp_recourse.certificates import instance_digest
from milp_recourse.formats import instance_from_dict
from milp_recourse.questions.solve import solve
from tests.costs.test_cost_files import said
from verify.__main__ import examine

Data = dict[str, Any]
Edit = Callable[[Data, Data], object]

TREE = {
    "kind": "tree-ensemble",
    "dtype": "float64",
    "trees": [
        {
            "feature": [0, -2, 1, -2, -2],
            "threshold": [2.5, 0, 1.5, 0, 0],
            "left": [1, -1, 3, -1, -1],
            "right": [2, -1, 4, -1, -1],
            "value": [0.5, 0.1, 0.5, 0.2, 0.9],
        }
    ],
}
DENSITY = {"kind": "scm-density", "at_least": "factual", "offset": -3.0}
PROBLEMS: dict[str, Data] = {
    "l2": said(cost={"kind": "l2", "scale": {"a": 1, "b": 2}}),
    "relative": said(cost={"kind": "l1", "scale": {"a": "factual", "b": "factual"}}),
    "offset": said(cost={"kind": "l2-squared", "scale": {"a": 1, "b": 1}}, plausibility=DENSITY),
    "own offset": said(
        plausibility=DENSITY | {"offset": 9.0},
        preferences={"actionable": ["a", "b"], "density_offset": -4.0},
    ),
    "two scales": said(
        classifier=TREE,
        factual={"a": 1, "b": -2, "c": "x"},
        cost={"kind": "l2-squared", "scale": {"a": {"increase": 1, "decrease": 9}, "b": 1}},
    ),
    "two scales, falling": said(
        classifier=TREE,
        factual={"a": 9, "b": -2, "c": "x"},
        cost={"kind": "l1", "scale": {"a": 1, "b": {"increase": 0.5, "decrease": 9}}},
    ),
    "two scales of a network": said(
        cost={
            "kind": "l1",
            "scale": {"a": {"increase": 1, "decrease": 3}, "b": {"increase": 2, "decrease": 0.5}},
        },
    ),
    "log-percentile": said(
        classifier=TREE,
        cost={"kind": "log-percentile", "quantiles": {k: [[-4, 0], [0, 0.3], [4, 5.0]] for k in "ab"}},
    ),
}


def verdict(problem: Data, certificate: Data, folder: Path) -> str:
    """The checker's line."""
    files = folder / "instance.json", folder / "certificate.json"
    for file, data in zip(files, (problem, certificate), strict=True):
        file.write_text(json.dumps(data))
    return examine(files[1], files[0], 60).line


def certified(name: str) -> tuple[Data, Data]:
    """A problem and its certificate."""
    problem = copy.deepcopy(PROBLEMS[name])
    result = solve(instance_from_dict(problem), certificates=True)
    assert result.evidence is not None, result.message
    return problem, json.loads(gzip.decompress(result.evidence))


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_was_proven_is_accepted(name: str, tmp_path: Path) -> None:
    """As it is."""
    assert verdict(*certified(name), tmp_path).startswith("VERIFIED optimal")


def squared_bound(_: Data, c: Data) -> None:
    """The bound and cost of the square instead of the root's."""
    c["cost"], c["lower_bound"] = c["cost"] ** 2, c["lower_bound"] ** 2


def raised(_: Data, c: Data) -> None:
    """A bound above what the trees prove."""
    c["lower_bound"] = c["cost"]


def cheaper(_: Data, c: Data) -> None:
    """A cost that is understated."""
    c["cost"] *= 1 - 1e-9
    c["lower_bound"] = min(c["lower_bound"], c["cost"])


def dearer(_: Data, c: Data) -> None:
    """A cost that is overstated."""
    c["cost"] *= 1 + 1e-9


def set_in(*path: str, to: Any) -> Edit:
    """The problem says something else at a path."""

    def edit(problem: Data, _: Data) -> None:
        for key in path[:-1]:
            problem = problem[key]
        problem[path[-1]] = to

    return edit


def moved(feature: str, value: float) -> Edit:
    """The action sets something else."""
    return lambda _, c: c["action"].__setitem__(feature, value)


def priced(**scale: float) -> Edit:
    """Other scales of a network's levers, and the certificate is said to be of that problem."""

    def edit(problem: Data, c: Data) -> None:
        for key, value in scale.items():
            name, direction = key.split("_")
            problem["cost"]["scale"][name][direction] = value
        c["instance_sha256"] = instance_digest(instance_from_dict(problem))

    return edit


ATTACKS: dict[str, tuple[str, Edit, str]] = {
    "squares for roots": ("l2", squared_bound, "cost"),
    "root's bound raised": ("l2", raised, "proves less than is claimed"),
    "root understated": ("l2", cheaper, "cost"),
    "root overstated": ("l2", dearer, "cost"),
    "root called a square": ("l2", set_in("cost", "kind", to="l2-squared"), "sha256"),
    "root's scale": ("l2", set_in("cost", "scale", "a", to=2.0), "sha256"),
    "relative called absolute": ("relative", set_in("cost", "scale", "b", to=1.0), "sha256"),
    "relative to another factual": ("relative", set_in("factual", "b", to=-2.5), "sha256"),
    "relative to nothing": ("relative", set_in("factual", "b", to=0), "factual value of 0"),
    "relative label": ("relative", set_in("cost", "scale", "c", to="factual"), "cost.scale.c"),
    "relative in other words": ("relative", set_in("cost", "scale", "a", to="own"), "cost.scale.a"),
    "relative understated": ("relative", cheaper, "cost"),
    "offset edited": ("offset", set_in("plausibility", "offset", to=-2.0), "sha256"),
    "offset dropped": ("offset", set_in("plausibility", "offset", to=None), "sha256"),
    "offset as text": ("offset", set_in("plausibility", "offset", to="-3"), "offset"),
    "offset of one person": (
        "offset",
        set_in("preferences", to={"actionable": ["a", "b"], "density_offset": -1.0}),
        "sha256",
    ),
    "offset without plausibility": ("own offset", set_in("plausibility", to=None), "density_offset"),
    "own offset edited": ("own offset", set_in("preferences", "density_offset", to=-4.5), "sha256"),
    "own offset dropped": ("own offset", set_in("preferences", "density_offset", to=None), "sha256"),
    "action beyond the offset": ("offset", moved("a", 9.0), "action"),
    "offset's bound raised": ("offset", raised, "proves less than is claimed"),
    "scales swapped": (
        "two scales",
        set_in("cost", "scale", "a", to={"increase": 9, "decrease": 1}),
        "sha256",
    ),
    "one scale for both": ("two scales", set_in("cost", "scale", "a", to=1.0), "sha256"),
    "half of two scales": ("two scales", set_in("cost", "scale", "a", to={"increase": 1}), "decrease"),
    "scale of nothing": (
        "two scales",
        set_in("cost", "scale", "a", to={"increase": 1, "decrease": 0}),
        "decrease",
    ),
    "two scales of a label": (
        "two scales",
        set_in("cost", "scale", "c", to={"increase": 1, "decrease": 2}),
        "cost.scale.c",
    ),
    "rise at the price of a fall": ("two scales, falling", cheaper, "cost"),
    "two scales understated": ("two scales", cheaper, "cost"),
    "prices of a network swapped": (
        "two scales of a network",
        set_in("cost", "scale", "b", to={"increase": 0.5, "decrease": 2}),
        "sha256",
    ),
    "a network's cheaper way": ("two scales of a network", cheaper, "cost"),
    "a network's bound raised": ("two scales of a network", raised, "proves less than is claimed"),
    "proven where rises are dearer": (
        "two scales of a network",
        priced(a_increase=9.0),
        "proves less than is claimed",
    ),
    "proven of the other direction": (
        "two scales of a network",
        priced(b_increase=0.5, b_decrease=2.0),
        "cost",
    ),
    "logarithms that fall": (
        "log-percentile",
        set_in("cost", "quantiles", "a", to=[[-4, 5], [4, 0.3]]),
        "cost.quantiles.a",
    ),
    "logarithm below 0": (
        "log-percentile",
        set_in("cost", "quantiles", "a", to=[[-4, -1], [4, 0.3]]),
        "quantiles.a",
    ),
    "logarithms called shares": ("log-percentile", set_in("cost", "kind", to="percentile"), "quantiles"),
    "largest for the sum": ("log-percentile", set_in("cost", "kind", to="log-percentile-max"), "sha256"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_forgeries_are_rejected(attack: str, tmp_path: Path) -> None:
    """For the reason that is named."""
    name, edit, reason = ATTACKS[attack]
    problem, certificate = certified(name)
    edit(problem, certificate)
    line = verdict(problem, certificate, tmp_path)
    assert line.startswith("REJECTED") and reason in line, line

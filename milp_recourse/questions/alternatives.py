"""Several recourses to choose from: one per accepting leaf of a tree, or one per set of features acted on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from milp_recourse.engine.forests.axes import separable
from milp_recourse.engine.forests.single import leaf_recourses
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.judge import judge
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.result import Status
from milp_recourse.questions.choices import choices
from milp_recourse.questions.solve import as_instance, check_options

By = Literal["leaf", "features"]


@dataclass(frozen=True)
class Alternative:
    """One of several recourses.

    Attributes
    ----------
    cost
        The exact cost, rounded to a double.
    action, counterfactual
        As in a result: labels as labels.
    score
        The deployed score; None for networks.
    leaf
        Position of the leaf in its tree's arrays; None unless there is one recourse per leaf.
    """

    cost: float
    action: Mapping[str, float | int | str]
    counterfactual: Mapping[str, float | int | str | None]
    score: float | None
    leaf: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """As a JSON value."""
        return asdict(self)


def alternatives(
    problem: Instance | Mapping[str, Any] | str | Path,
    count: int = 15,
    by: By = "leaf",
    backend: str | None = None,
    time_limit: float | None = None,
    apart: int = 0,
) -> list[Alternative]:
    """The ``count`` cheapest distinct recourses, cheapest first; each is judged like a result's action.

    With ``leaf`` there is one recourse per accepting leaf of a decision tree: the cheapest action that leads
    to the leaf. With ``features`` there is one per set of features: the cheapest action on features of the
    set, listed if it acts on all of them. It is proven by ``backend``, for any classifier
    (:func:`milp_recourse.questions.choices.choices`).

    Parameters
    ----------
    problem
        An instance, the JSON value of one, or the path of its file.
    backend, time_limit
        For ``features`` as for :func:`milp_recourse.solve`; the limit is for all sets together. Not used for
        ``leaf``.
    apart
        The least number of features in which any two recourses' sets differ (features of one set that are
        not in the other).

    Raises
    ------
    BadInput
        The file breaks the format, the count is below 1, or ``apart`` below 0.
    Unsupported
        ``leaf`` is asked for although the classifier is no single tree, features cause others, or
        plausibility or conditions are demanded; ``features`` is asked for and one of the searches stopped
        without a proof.
    """
    check_options(time_limit)
    if count < 1:
        raise BadInput("count", count, "a whole number, 1 or more")
    if apart < 0:
        raise BadInput("apart", apart, "a whole number, 0 or more")
    instance = as_instance(problem)
    if by == "features":
        return _by_features(instance, count, backend, time_limit, apart)
    listed = []
    for action, leaf in _by_leaf(instance):
        verdict = judge(instance, action)
        if not verdict.feasible:
            continue
        shown = {n: instance.by_name[n].show(v) for n, v in action.items()}
        after = {f.name: f.shown(verdict.counterfactual[f.name]) for f in instance.features}
        listed.append(Alternative(float(verdict.cost), shown, after, verdict.score, leaf))
    chosen: list[Alternative] = []
    for one in sorted(listed, key=lambda a: a.cost):
        if all(len(one.action.keys() ^ other.action.keys()) >= apart for other in chosen):
            chosen.append(one)
    return chosen[:count]


def _by_leaf(instance: Instance) -> Iterator[tuple[dict[str, float], int]]:
    forest = instance.classifier
    if not isinstance(forest, TreeEnsemble) or len(forest.trees) != 1 or not separable(instance):
        raise Unsupported(
            "one recourse per leaf: one tree, without causes, plausibility or conditions; else by features"
        )
    yield from ((one.action, one.node) for one in leaf_recourses(instance))


def _by_features(
    instance: Instance, count: int, backend: str | None, time_limit: float | None, apart: int
) -> list[Alternative]:
    found = choices(instance, count, "features", max(apart, 1), None, backend, time_limit)
    if not found.proven:
        left = (one.result for one in found.choices if one.result.status is not Status.OPTIMAL)
        open_ = next((one.message for one in left), found.message)
        raise Unsupported(f"one recourse per set of features: one stayed open: {open_}")
    results = [one.result for one in found.choices]
    return [Alternative(r.cost or 0.0, r.action or {}, r.counterfactual or {}, r.score) for r in results]

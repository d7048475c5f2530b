"""From the package's own types to what a page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from milp_recourse.domain.cost import KINDS
from milp_recourse.domain.features import Feature
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.errors import BadInput
from milp_recourse.formats.schema_result import ResultModel
from milp_recourse.instance import Classifier, Instance, Population
from milp_recourse.judge import deltas
from milp_recourse.reports.pages.person import Cause, Change, Person, Reason, Reasons
from milp_recourse.reports.pages.values import plain, shown
from milp_recourse.reports.why_words import restriction_in_words
from milp_recourse.result import Result, Status
from milp_recourse.why import Why

Value = float | int | str
MANY_LABELS = 12
"""More labels than this are counted instead of listed, and do not make groups."""


def persons_of(
    population: Population,
    results: Sequence[Result],
    ids: Sequence[str] | None = None,
    confirmed: Sequence[bool | None] | None = None,
) -> list[Person]:
    """What the pages show about a population, or about its first ``len(results)`` applicants.

    Parameters
    ----------
    results
        In the applicants' order.
    ids
        How to call each; default: the position, from 0.
    confirmed
        What the model's own ``predict`` says about each answer; None where it was not asked.

    Raises
    ------
    BadInput
        More results than applicants, or lists of other lengths.
    """
    count = len(results)
    if count > len(population):
        raise BadInput("results", f"{count}", f"at most {len(population)}, one per applicant")
    for name, given in (("ids", ids), ("confirmed", confirmed)):
        if given is not None and len(given) != count:
            raise BadInput(name, f"{len(given)} entries", f"{count}, one per result")
    names, words = ids or list(map(str, range(count))), confirmed or [None] * count
    return [
        person_of(population[k], name, result, word)
        for k, (result, name, word) in enumerate(zip(results, names, words, strict=True))
    ]


def person_of(
    instance: Instance, id: str, result: Result | ResultModel, confirmed: bool | None = None
) -> Person:
    """What a page shows about one applicant's result, in hand or read from a file."""
    status = result.status.value if isinstance(result, Result) else result.status
    return Person(
        id=id,
        status=status,
        cost=result.cost,
        lower_bound=result.lower_bound,
        gap=result.gap,
        proof=result.proof,
        confirmed=confirmed,
        message=own_message(status, result.message),
        seconds=result.seconds,
        features=changes_of(instance, result.action, result.counterfactual),
        group=group_of(instance),
    )


def reasons_of(found: Why) -> Reasons:
    """Why, as a page shows it."""
    said = partial(restriction_in_words, found.instance)
    open_ = "" if found.complete else " Not everything was settled in time."
    if found.result.status is Status.OPTIMAL:
        costs = {id: one.cost for id, one in found.prices.items()}
        if not found.restrictions:
            return Reasons("Nothing restricts this person but the bounds.", [])
        prices = [Reason([said(id)], costs.get(id)) for id in found.restrictions]
        return Reasons(f"What each restriction costs: the cheapest way without it.{open_}", prices)
    if found.result.status is not Status.INFEASIBLE:
        return Reasons("What stands in the way is not known: whether there is a way stayed open.", [])
    if not found.minimal:
        return Reasons(f"Whatever is lifted, the bounds leave nothing that is accepted.{open_}", [])
    reasons = [Reason([said(id) for id in one.lift], one.result.cost) for one in found.minimal]
    for one in found.smallest:
        moved = f"{said(one.id)}: its {one.end} end moved from {shown(one.start)} to {shown(one.to)}"
        reasons.append(Reason([moved], one.result.cost))
    return Reasons(f"Each of these, lifted or moved, makes a way possible.{open_}", reasons)


def changes_of(
    instance: Instance, action: Mapping[str, Value] | None, counterfactual: Mapping[str, Value | None] | None
) -> list[Change]:
    """One change per feature.

    Parameters
    ----------
    action, counterfactual
        As in a result; None where there is no action.
    """
    action, after = action or {}, counterfactual or {}
    shares = _shares(instance, action)
    changes = []
    for f in instance.features:
        before = f.shown(instance.factual[f.name])
        value = after.get(f.name, before)
        cause: Cause = "unchanged" if plain(value) == plain(before) else "effect"
        if f.name in action:
            value = action[f.name]
            cause = "held" if plain(value) == plain(before) else "action"
        lever = f.name in instance.levers
        limits = _allowed(instance, f) if lever else None
        changes.append(Change(f.name, before, value, cause, lever, limits, shares.get(f.name)))
    return changes


def group_of(instance: Instance) -> dict[str, str]:
    """The applicant's value of every feature with few labels, and of every binary one."""
    few = {
        f.name: f
        for f in instance.features
        if f.kind == "binary" or 0 < len(f.categories or ()) <= MANY_LABELS
    }
    return {name: shown(f.shown(instance.factual[name])) for name, f in few.items()}


def own_message(status: str, message: str | None) -> str | None:
    """A result's message; None where it only repeats the sentence of its status."""
    sentences = {member.value: member.sentence for member in Status}
    return message if message and message != sentences.get(status) else None


def facts_of(problem: Instance | Population) -> dict[str, str]:
    """What the answers rest on: model, threshold, causal model, cost, plausibility."""
    instance = problem.template if isinstance(problem, Population) else problem
    accept, effects = instance.accept, len(instance.scm.edges)
    output = "logit" if isinstance(instance.classifier, ReluNetwork) else "score"
    margin = f"; a margin of {accept.margin!r} is part of what is proven" if accept.margin else ""
    facts = {"Model": _model(instance.classifier)}
    facts["Accepted when"] = f"{output} {'>' if accept.strict else '≥'} {accept.threshold!r}{margin}"
    facts["Causal model"] = (
        f"{instance.scm.name}: {effects} direct effects between {len(instance.features)} features"
        if effects
        else f"{instance.scm.name}: no feature moves another"
    )
    facts["Cost"] = _formula(instance)
    facts["Plausibility"] = (
        "the changed person must be as likely as before, by the causal model's density"
        if instance.plausible
        else "not demanded"
    )
    return facts


def _model(classifier: Classifier) -> str:
    if isinstance(classifier, ReluNetwork):
        hidden = [len(bias) for bias in classifier.biases[:-1]]
        layers = f"hidden layers of {' and '.join(map(str, hidden))}" if hidden else "no hidden layer: linear"
        return f"ReLU network, {layers}, {classifier.dtype}"
    trees = len(classifier.trees)
    return f"{trees} decision tree{'' if trees == 1 else 's'}, {classifier.dtype} comparisons"


def _formula(instance: Instance) -> str:
    cost = instance.cost
    if cost.kind in KINDS:
        return f"{cost.kind}: {KINDS[cost.kind].says}"
    coefficients = {"l0": cost.l0, "l1": cost.l1, "l2-squared": cost.l2_squared, "linf": cost.linf}
    return "mixture: " + " + ".join(f"{c:g} × {part}" for part, c in coefficients.items() if c)


def _shares(instance: Instance, action: Mapping[str, Value]) -> dict[str, float]:
    """The cost of each action alone over the whole cost, exact until the last division."""
    moved = deltas(instance, instance.numbers(action))
    whole = instance.cost.exact(moved, instance.weights)
    if not whole:
        return {}
    return {
        name: float(instance.cost.exact({name: delta}, instance.weights) / whole)
        for name, delta in moved.items()
    }


def _allowed(instance: Instance, f: Feature) -> str:
    low, high = instance.levers[f.name]
    monotone = {"increase": ", only up", "decrease": ", only down"}.get(f.monotone or "", "")
    if f.categories is not None:
        labels = f.categories[int(low) : int(high) + 1]
        if len(labels) > MANY_LABELS:
            joined = f"{labels[0]} to {labels[-1]}" if f.kind == "ordinal" else ", ".join(labels[:4])
            return f"{joined} ({len(labels)} labels){monotone}"
        return ("only " if len(labels) == 1 else "") + ", ".join(labels) + monotone
    if low == high:
        return f"only {shown(low)}"
    if f.kind == "binary":
        return "0 or 1"
    return f"{shown(low)} to {shown(high)}{monotone}"

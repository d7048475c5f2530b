"""Makes the objects that pages show from instances, results and answers of ``why``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from milp_recourse.errors import BadInput
from milp_recourse.judge.as_printed import as_printed
from milp_recourse.problem.asked_model import AskedModel
from milp_recourse.problem.cost import KINDS
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Classifier, Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.why import Why
from milp_recourse.reports.pages.values import shown
from milp_recourse.reports.view import Person, Reason, Reasons, person_of
from milp_recourse.reports.why_words import restriction_in_words

MANY_LABELS = 12
"""If a feature has more labels than this, a page shows some of them and how many there are, and does not
group people by the feature."""


def persons_of(
    population: Population,
    results: Sequence[Result],
    ids: Sequence[str] | None = None,
    confirmed: Sequence[bool | None] | None = None,
) -> list[Person]:
    """The people of a population, or its first ``len(results)`` applicants, for a page.

    Parameters
    ----------
    results
        Results in the applicants' order.
    ids
        Names of the applicants; by default their positions, from 0.
    confirmed
        Whether the model's own ``predict`` confirms each answer; None if it was not called.

    Raises
    ------
    BadInput
        There are more results than applicants, or another number of names or confirmations than results.
    """
    count = len(results)
    if count > len(population):
        raise BadInput("results", f"{count}", f"at most {len(population)}, one per applicant")
    for name, given in (("ids", ids), ("confirmed", confirmed)):
        if given is not None and len(given) != count:
            raise BadInput(name, f"{len(given)} entries", f"{count}, one per result")
    names, words = ids or list(map(str, range(count))), confirmed or [None] * count
    return [
        detailed(person_of(result, instance, name, word), instance)
        for result, instance, name, word in zip(results, population, names, words, strict=False)
    ]


def detailed(person: Person, instance: Instance, said: Mapping[str, float] | None = None) -> Person:
    """A person with what pages and letters show beside: of each feature whether it is a lever, what it can be
    set to, its share of the cost and the value to say; and the groups.

    Parameters
    ----------
    said
        The values to say of features that change; None: those that :func:`as_printed` finds.
    """
    numbers = instance.numbers(person.action)
    if said is None:
        said = as_printed([(instance, numbers)])[0].counterfactual if numbers else {}
    whole, features = instance.cost_of(numbers), []
    for f, change in zip(instance.features, person.features, strict=True):
        name, lever = f.name, f.name in instance.levers
        limits = _allowed(instance, f) if lever else None
        alone = instance.cost_of({name: numbers[name]}) if name in numbers else None
        share = float(alone / whole) if whole and alone is not None else None
        printed = f.show(said[name]) if name in said else None
        features.append(replace(change, lever=lever, allowed=limits, share=share, printed=printed))
    return replace(person, features=features, group=group_of(instance))


def reasons_of(found: Why) -> Reasons:
    """The answer of ``why`` for a page."""
    words = partial(restriction_in_words, found.instance)
    open_ = "" if found.complete else " Not everything was settled in time."
    if found.result.status is Status.OPTIMAL:
        costs = {id: one.cost for id, one in found.prices.items()}
        if not found.restrictions:
            return Reasons("Nothing restricts this person but the bounds.", [])
        prices = [Reason([words(id)], costs.get(id)) for id in found.restrictions]
        return Reasons(f"What each restriction costs: the cheapest way without it.{open_}", prices)
    if found.result.status is not Status.INFEASIBLE:
        return Reasons("What stands in the way is not known: whether there is a way stayed open.", [])
    if not found.minimal:
        return Reasons(f"Whatever is lifted, the bounds leave nothing that is accepted.{open_}", [])
    reasons = [Reason([words(id) for id in one.lift], one.result.cost) for one in found.minimal]
    for one in found.smallest:
        moved = f"{words(one.id)}: its {one.end} end moved from {shown(one.start)} to {shown(one.to)}"
        reasons.append(Reason([moved], one.result.cost))
    return Reasons(f"Each of these, lifted or moved, makes a way possible.{open_}", reasons)


def group_of(instance: Instance) -> dict[str, str]:
    """The applicant's values of binary features and of those with few labels, which can form groups."""
    few = {
        f.name: f
        for f in instance.features
        if f.kind == "binary" or 0 < len(f.categories or ()) <= MANY_LABELS
    }
    return {name: shown(f.shown(instance.factual[name])) for name, f in few.items()}


def facts_of(problem: Instance | Population) -> dict[str, str]:
    """The facts that a page lists about a problem: model, threshold, causal model, cost, plausibility."""
    instance = problem.template if isinstance(problem, Population) else problem
    accept, effects = instance.accept, len(instance.scm.edges)
    output = "logit" if isinstance(instance.classifier, ReluNetwork) else "score"
    margin = f"; a margin of {accept.margin!r} is part of what is proven" if accept.margin else ""
    if isinstance(problem, Population) and problem.margins is not None:
        margin = "; each person's own margin is part of what is proven"
    facts = {"Model": _model(instance.classifier)}
    facts["Accepted when"] = f"{output} {'>' if accept.strict else '≥'} {accept.threshold!r}{margin}"
    facts["Causal model"] = (
        f"{instance.scm.name}: {effects} direct effects between {len(instance.features)} features"
        if effects
        else f"{instance.scm.name}: no feature moves another"
    )
    facts["Cost"] = _formula(instance)
    facts["Plausibility"] = _plausibility(problem)
    return facts


def _plausibility(problem: Instance | Population) -> str:
    instance = problem.template if isinstance(problem, Population) else problem
    if not instance.plausible:
        return "not demanded"
    people = problem.preferences if isinstance(problem, Population) else [problem.preferences]
    offsets = {instance.density_offset if p.density_offset is None else p.density_offset for p in people}
    if offsets == {0.0}:
        return "the changed person must be as likely as before, by the causal model's density"
    more = f"{min(offsets):+g} nats" if len(offsets) == 1 else "each person's own number of nats"
    return f"the changed person's log density must be at least that before, {more}, by the causal model"


def _model(classifier: Classifier) -> str:
    if isinstance(classifier, ReluNetwork):
        hidden = [len(bias) for bias in classifier.biases[:-1]]
        layers = f"hidden layers of {' and '.join(map(str, hidden))}" if hidden else "no hidden layer: linear"
        return f"ReLU network, {layers}, {classifier.dtype}"
    if isinstance(classifier, AskedModel):
        return "a function that is asked"
    trees = len(classifier.trees)
    return f"{trees} decision tree{'' if trees == 1 else 's'}, {classifier.dtype} comparisons"


def _formula(instance: Instance) -> str:
    cost = instance.cost
    if cost.kind in KINDS:
        return f"{cost.kind}: {KINDS[cost.kind].says}"
    return "mixture: " + " + ".join(f"{c:g} × {part}" for part, c in cost.written_parts.items() if c)


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

"""Offers: what an institution may do for a person, at its own price, before the person acts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from milp_recourse.errors import BadInput
from milp_recourse.formats.schema_answers import OFFERS_FORMAT, OfferModel, OffersModel
from milp_recourse.formats.stated import validate
from milp_recourse.formats.strict_json import read_json
from milp_recourse.problem.asked_model import AskedModel
from milp_recourse.problem.decimals import as_written, written_above
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.moved import moved
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.population import Population


@dataclass(frozen=True)
class Offer:
    """One offer. Its numbers are taken as they are written: ten times 0.1 are 1.

    Attributes
    ----------
    name
        None for no offer at all.
    price
        What it costs the institution.
    lower
        By how much the threshold is lowered.
    give
        By how much features are raised before the person acts. Their effects follow as after any action, and
        the person starts from there; the outcome must be as dense as without the offer.
    cheaper
        By what the person's weights are multiplied.
    """

    name: str | None = None
    price: Fraction = Fraction(0)
    lower: Fraction = Fraction(0)
    give: Mapping[str, Fraction] = field(default_factory=dict)
    cheaper: Mapping[str, float] = field(default_factory=dict)

    def applied(self, instance: Instance) -> Instance | None:
        """The person's problem under the offer, an ordinary one; None if a value to be raised is missing, or
        the raised values are impossible.

        The new threshold is the nearest double (of a float32 network: number in float32) that is not lower
        than what is offered.

        Raises
        ------
        BadInput
            A value that must be whole would not be.
        """
        if instance.missing & self.give.keys():
            return None
        given = moved(instance, self._raised(instance), self.give) if self.give else instance
        if given is None:
            return None
        own = given.preferences
        weights = {name: instance.weight(name) * by for name, by in self.cheaper.items()}
        threshold = _lowered(instance, self.lower) if self.lower else instance.accept.threshold
        return replace(
            given,
            accept=replace(instance.accept, threshold=threshold),
            preferences=replace(own, weights={**own.weights, **weights}),
            reference=None,
        )

    def of_people(self, people: Population) -> Population:
        """Everybody's problem under the offer; those whose value is missing keep their own."""
        found = [
            None if k in people.unreadable else self.applied(people[k]) or people[k]
            for k in range(len(people))
        ]
        first = next(one for one in found if one is not None)
        return replace(
            people,
            template=replace(first, accept=replace(first.accept, margin=people.template.accept.margin)),
            factuals=[people.factuals[k] if one is None else one.factual for k, one in enumerate(found)],
            preferences=tuple(
                people.preferences[k] if one is None else one.preferences for k, one in enumerate(found)
            ),
        )

    def _raised(self, instance: Instance) -> dict[str, float]:
        """The factual once the features are raised and their effects have followed."""
        given = {name: float(as_written(instance.factual[name]) + by) for name, by in self.give.items()}
        known = {name: 0.0 if math.isnan(x) else x for name, x in instance.factual.items()}
        moved = instance.scm.counterfactual_exact(known, given)
        values = {name: x if math.isnan(x) else moved[name].nearest for name, x in instance.factual.items()}
        for f in instance.features:
            if f.integral and not math.isnan(values[f.name]) and not values[f.name].is_integer():
                raise BadInput(f"{self.name}: give", f"{f.name} = {values[f.name]!r}", "a whole number")
        return values


NO_OFFER = Offer()


def _lowered(instance: Instance, by: Fraction) -> float:
    exact = as_written(instance.accept.threshold) - by
    threshold = written_above(exact)
    if isinstance(instance.classifier, ReluNetwork) and instance.classifier.dtype == "float32":
        near = np.float32(threshold)
        threshold = float(near if float(near) >= threshold else np.nextafter(near, np.float32(np.inf)))
    return threshold


def read_offers(
    given: Sequence[Mapping[str, Any] | Offer] | Mapping[str, Any] | str | Path, model: Instance
) -> list[Offer]:
    """Offers from an ``offers-1`` document, its file, or the list in it; by price, no offer first. What this
    function has returned is returned as it is.

    Raises
    ------
    BadInput
        The document breaks the format, names an unknown feature, raises one that has labels, lowers the
        threshold of a model that is only asked, or multiplies what has no steps.
    """
    if isinstance(given, Sequence) and given and given[0] is NO_OFFER:
        return [one for one in given if isinstance(one, Offer)]
    file = str(given) if isinstance(given, str | Path) else None
    data = read_json(given) if isinstance(given, str | Path) else given
    if isinstance(data, Sequence) and not isinstance(data, str):
        data = {"format": OFFERS_FORMAT, "offers": list(data)}
    try:
        found = [
            offer
            for k, one in enumerate(validate(OffersModel, data).offers)
            for offer in _offers_of(one, f"offers.{k}", model)
        ]
        names = [offer.name for offer in found]
        for name in names:
            if names.count(name) > 1:
                raise BadInput("offers", f"two called {name}", "names that differ")
    except BadInput as error:
        raise error if file is None else error.in_file(file) from None
    return [NO_OFFER, *sorted(found, key=lambda offer: offer.price)]


def _offers_of(one: OfferModel, path: str, model: Instance) -> list[Offer]:
    numeric = [f.name for f in model.features if f.kind in ("continuous", "integer")]
    levers = [f.name for f in model.features if f.actionable]
    for key, names, allowed in (("give", one.give, numeric), ("cheaper", one.cheaper, levers)):
        for name in names:
            if name not in allowed:
                raise BadInput(f"{path}.{key}", name, ", ".join(allowed) or "nothing")
    if one.lower and isinstance(model.classifier, AskedModel):
        raise BadInput(f"{path}.lower", one.lower, "0: the model is only asked for labels")
    if one.times > 1 and (one.cheaper or not (one.lower or one.give)):
        raise BadInput(f"{path}.times", one.times, "1, unless with lower or give alone")
    name = one.name or path
    return [
        Offer(
            name if one.times == 1 else f"{name} x{k}",
            k * as_written(one.price),
            k * as_written(one.lower),
            {f: k * as_written(by) for f, by in one.give.items()},
            one.cheaper,
        )
        for k in range(1, one.times + 1)
    ]

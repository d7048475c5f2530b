"""Instances, populations and results as JSON values and files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from milp_recourse.formats.schema import INSTANCE_FORMAT, POPULATION_FORMAT, PlausibilityModel, cost_to_dict
from milp_recourse.formats.schema_classifiers import accept_to_dict
from milp_recourse.formats.schema_conditions import condition_to_dict
from milp_recourse.formats.schema_features import feature_to_dict, preferences_to_dict
from milp_recourse.formats.schema_scm import scm_to_dict
from milp_recourse.formats.stated import document
from milp_recourse.formats.strict_json import write_json
from milp_recourse.problem.instance import Instance, Preferences
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result


def instance_to_dict(instance: Instance) -> dict[str, Any]:
    """The instance as JSON, with the classifier in it; reading it gives the same problem."""
    written = {"format": INSTANCE_FORMAT, **_shared(instance)}
    written["factual"] = _factual(instance, instance.factual)
    written["preferences"] = preferences_to_dict(instance.preferences, instance.features)
    if instance.reference is not None:
        written["reference"] = asdict(instance.reference)
    return written


def population_to_dict(
    population: Population, as_given: Mapping[int, Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """The population as JSON, with the applicants, their identifiers and the classifier in it.

    Parameters
    ----------
    as_given
        For applicants who could not be read, their original values, by index.

    Raises
    ------
    BadInput
        An applicant could not be read and is not in ``as_given``; the error is the applicant's.
    """
    given = as_given or {}
    for k, fault in population.unreadable.items():
        if k not in given:
            raise fault
    template = population.template
    preferences: Any = [preferences_to_dict(one, template.features) for one in population.preferences]
    if all(one == preferences[0] for one in preferences):
        preferences = preferences[0]
    return {
        "format": POPULATION_FORMAT,
        **_shared(template),
        "factuals": [
            dict(given[k]) if k in population.unreadable else _factual(template, one)
            for k, one in enumerate(population.factuals)
        ],
        "preferences": preferences,
        **({} if population.ids is None else {"ids": list(population.ids)}),
        **({} if population.margins is None else {"margins": _margins(population)}),
    }


def _margins(population: Population) -> list[float | None]:
    """Each applicant's margin; None for those who could not be read."""
    margins = population.margins or ()
    return [None if k in population.unreadable else margin for k, margin in enumerate(margins)]


def population_digest(population: Population) -> str:
    """SHA-256 of the population's content, which does not depend on how it is spread over files."""
    digest = hashlib.sha256(json.dumps(_shared(population.template), sort_keys=True).encode())
    if population.ids is not None:
        digest.update(json.dumps(population.ids).encode())
    if population.margins is not None:
        digest.update(json.dumps(_margins(population)).encode())
    last: Preferences | None = None
    for k, (factual, preferences) in enumerate(zip(population.factuals, population.preferences, strict=True)):
        if preferences is not last:
            written = preferences_to_dict(preferences, population.template.features)
            digest.update(json.dumps(written, sort_keys=True).encode())
            last = preferences
        if k in population.unreadable:
            digest.update(json.dumps(str(population.unreadable[k])).encode())
        else:
            digest.update(json.dumps(list(_factual(population.template, factual).values())).encode())
    return digest.hexdigest()


def result_to_dict(result: Result) -> dict[str, Any]:
    """The result as JSON with every key of the format; missing values are null."""
    from milp_recourse.formats.schema_answers import RESULT_FORMAT, ResultModel  # who only solves needs none

    names = [name for name in ResultModel.model_fields if name not in ("format", "status")]
    return {"format": RESULT_FORMAT, **result_part(result, *names)}


def result_part(result: Result, *names: str) -> dict[str, Any]:
    """The status of a result, and the attributes named, by name."""
    return {"status": result.status.value, **{name: getattr(result, name) for name in names}}


def write_instance(instance: Instance, path: str | Path) -> None:
    """Write an instance, gzipped where the name ends in ``.gz``."""
    write_json(instance_to_dict(instance), path)


def write_population(population: Population, path: str | Path) -> None:
    """Write a population, gzipped where the name ends in ``.gz``."""
    write_json(population_to_dict(population), path)


def write_result(result: Result, path: str | Path) -> None:
    """Write a result, gzipped where the name ends in ``.gz``."""
    write_json(result_to_dict(result), path)


def _shared(instance: Instance) -> dict[str, Any]:
    named = {"name": instance.name, "description": instance.description}
    conditions = [condition_to_dict(one, instance.features) for one in instance.conditions]
    return {
        **{key: text for key, text in named.items() if text is not None},
        "features": [feature_to_dict(one) for one in instance.features],
        "scm": scm_to_dict(instance.scm),
        "classifier": instance.classifier.written,
        "accept": accept_to_dict(instance),
        "cost": cost_to_dict(instance.cost),
        "plausibility": _plausibility(instance),
        **({"conditions": conditions} if conditions else {}),
    }


def _plausibility(instance: Instance) -> dict[str, Any] | None:
    offset = instance.density_offset or None
    return document(PlausibilityModel, instance, offset=offset) if instance.plausible else None


def _factual(instance: Instance, values: Mapping[str, float]) -> dict[str, float | int | str | None]:
    return {f.name: f.shown(values[f.name]) for f in instance.features}

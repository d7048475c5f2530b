"""Instances and populations from files and JSON values; every rule of the format is checked."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from milp_recourse.errors import BadInput, dotted, shown
from milp_recourse.formats import schema
from milp_recourse.formats.applicant_json import build_conditions, build_cost, build_preferences, check_scale
from milp_recourse.formats.classifier_json import build_accept, build_classifier
from milp_recourse.formats.feature_json import build_features, build_scm
from milp_recourse.formats.strict_json import LARGEST_TABLE, read_bytes, read_json
from milp_recourse.formats.validate import validate
from milp_recourse.problem.factuals import (
    ID,
    FactualTable,
    Person,
    as_number,
    as_table,
    build_factual,
    check_abduction,
    undefined_values,
)
from milp_recourse.problem.features import Feature, input_columns
from milp_recourse.problem.instance import Instance, Preferences, Reference, check_density
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.population import Population

_JSON_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def read_instance(path: str | Path) -> Instance:
    """The instance in a ``.json`` or ``.json.gz`` file.

    Raises
    ------
    BadInput
        The file breaks the format. The error is one line with file, field, what was got and what is allowed.
    """
    return _read(path, (schema.INSTANCE_FORMAT,))  # type: ignore[return-value]


def read_action(path: str | Path, instance: Instance) -> dict[str, float]:
    """An action from a file: an object {feature: value}, or a result with such an object under ``action``.

    Raises
    ------
    BadInput
        The file has neither, names a feature or label that does not exist, or has a value of another kind.
    """
    data = read_json(path)
    place = ""
    if isinstance(data, dict) and isinstance(data.get("action"), dict):
        data, place = data["action"], "action"
    try:
        if not isinstance(data, dict):
            raise BadInput("top level", shown(data), "an object {feature: value}, or a result with an action")
        names = [f.name for f in instance.features]
        action = {}
        for name, value in data.items():
            where = dotted(place, name)
            if name not in names:
                raise BadInput(where, "an unknown feature", ", ".join(names))
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                raise BadInput(where, shown(value), "a number or a label")
            action[name] = as_number(value, instance.by_name[name], where)
        return action
    except BadInput as error:
        raise error.in_file(str(path)) from None


def read_population(path: str | Path) -> Population:
    """The population in a ``.json`` or ``.json.gz`` file; its classifier is read once.

    Raises
    ------
    BadInput
        As :func:`read_instance`.
    """
    return _read(path, (schema.POPULATION_FORMAT,))  # type: ignore[return-value]


def read_any(path: str | Path) -> Instance | Population:
    """The instance or the population in a file, as its ``format`` says.

    Raises
    ------
    BadInput
        As :func:`read_instance`.
    """
    return _read(path, (schema.INSTANCE_FORMAT, schema.POPULATION_FORMAT))


def instance_from_dict(data: Any, folder: str | Path = ".") -> Instance:
    """An instance from its JSON value.

    Parameters
    ----------
    folder
        The folder to which the path of a classifier's own file is relative.

    Raises
    ------
    BadInput
        The value breaks the format.
    """
    model = validate(schema.InstanceModel, data)
    features, shared = _shared(model, Path(folder))
    preferences = build_preferences(model.preferences, features)
    check_scale(shared["cost"], preferences)
    reference = model.reference
    factual = build_factual(model.factual, features, "factual")
    instance = Instance(
        **shared,
        factual=factual,
        preferences=preferences,
        reference=None if reference is None else Reference(**reference.model_dump()),
        conditions=build_conditions(model.conditions, features),
    )
    check_abduction(instance, factual)
    _check_offset(instance.preferences, instance.plausible, "preferences")
    return instance


def population_from_dict(data: Any, folder: str | Path = ".") -> Population:
    """A population from its JSON value; ``folder`` as in :func:`instance_from_dict`.

    The error of an applicant whose values cannot be read is kept in ``Population.unreadable``.

    Raises
    ------
    BadInput
        The model side breaks the format, or no applicant can be read (then the error is the first one's).
    """
    model = validate(schema.PopulationModel, data)
    features, shared = _shared(model, Path(folder))
    conditions = build_conditions(model.conditions, features)
    problem = Instance(**shared, factual={}, preferences=Preferences(), conditions=conditions)
    factuals, unreadable, ids = _factuals(model, problem, Path(folder))
    preferences = _preferences(model, features, len(factuals))
    for k, one in enumerate(preferences):
        where = f"preferences.{k}" if isinstance(model.preferences, list) else "preferences"
        check_scale(shared["cost"], one, where)
        _check_offset(one, shared["plausible"], where)
    unreadable |= undefined_values(features, conditions, factuals, preferences, unreadable, shared["cost"])
    margins = _margins(model.margins, problem, len(factuals))
    return Population.of(problem, factuals, preferences, unreadable, ids, margins)


def _read(path: str | Path, formats: Sequence[str]) -> Instance | Population:
    file = Path(path)
    data = read_json(file)
    try:
        if not isinstance(data, dict):
            raise BadInput("top level", shown(data), "an object")
        form = data.get("format")
        if form not in formats:
            got = shown(form) if "format" in data else "nothing"
            raise BadInput("format", got, " or ".join(formats))
        build = instance_from_dict if form == schema.INSTANCE_FORMAT else population_from_dict
        return build(data, file.parent)  # type: ignore[no-any-return, operator]
    except BadInput as error:
        raise error.in_file(str(path)) from None


def _shared(model: schema.Problem, folder: Path) -> tuple[tuple[Feature, ...], dict[str, Any]]:
    """What all applicants have in common: the features, and fields of :class:`Instance` by name."""
    features = build_features(model.features)
    scm = build_scm(model.scm, features)
    classifier = build_classifier(model.classifier, len(input_columns(features)), folder)
    if model.plausibility is not None:
        check_density(scm)
    return features, {
        "features": features,
        "scm": scm,
        "classifier": classifier,
        "accept": build_accept(model.accept, classifier),
        "cost": build_cost(model.cost, features),
        "plausible": model.plausibility is not None,
        "density_offset": 0.0 if model.plausibility is None else model.plausibility.offset,
        "name": model.name,
        "description": model.description,
    }


def _check_offset(preferences: Preferences, plausible: bool, path: str) -> None:
    """Check that there is no density offset without plausibility, where it would mean nothing."""
    if not plausible and preferences.density_offset is not None:
        offset = preferences.density_offset
        raise BadInput(f"{path}.density_offset", offset, "nothing: plausibility is not asked for")


def _preferences(model: schema.PopulationModel, features: Sequence[Feature], count: int) -> list[Preferences]:
    if not isinstance(model.preferences, list):
        return [build_preferences(model.preferences, features)] * count
    if len(model.preferences) != count:
        allowed = f"{count}, one per applicant, or one object for all"
        raise BadInput("preferences", f"a list of {len(model.preferences)}", allowed)
    return [build_preferences(one, features, f"preferences.{k}") for k, one in enumerate(model.preferences)]


def _margins(given: list[float | None] | None, problem: Instance, count: int) -> list[float] | None:
    """Each applicant's margin; None if all have that of ``accept``."""
    if given is None:
        return None
    if not isinstance(problem.classifier, ReluNetwork):
        raise BadInput("margins", f"a list of {len(given)}", "nothing: margins are for a network")
    if len(given) != count:
        raise BadInput("margins", f"a list of {len(given)}", f"{count}, one per applicant")
    return [problem.accept.margin if margin is None else margin for margin in given]


def _factuals(
    model: schema.PopulationModel, problem: Instance, folder: Path
) -> tuple[FactualTable, dict[int, BadInput], tuple[str, ...] | None]:
    """The applicants' numbers, the errors of those who could not be read, and identifiers or None.

    Parameters
    ----------
    problem
        What all applicants have in common; its factual is ignored.
    """
    if not isinstance(model.factuals, schema.CsvModel):
        people = ((f"factuals.{k}", one) for k, one in enumerate(model.factuals))
        if model.ids is not None and len(model.ids) != len(model.factuals):
            raise BadInput("ids", f"a list of {len(model.ids)}", f"{len(model.factuals)}, one per applicant")
        return *as_table(people, problem), None if model.ids is None else tuple(model.ids)
    if model.ids is not None:
        raise BadInput("ids", "a list beside a CSV file", f"a column {ID!r} of that file")
    file, ids = folder / model.factuals.csv, list[str]()
    try:
        table, unreadable = as_table(_rows(file, problem.features, ids), problem, str(file))
    except BadInput as error:
        raise error.in_file(str(file)) from None
    return table, unreadable, tuple(ids) if ids else None


def _check_header(header: Sequence[str], names: Sequence[str]) -> None:
    """Check that a CSV file's columns are the features, each once, in any order, and perhaps ``id``."""
    if not header:
        raise BadInput("header", "nothing", "the features: " + ",".join(names))
    known, counts = {*names, ID}, Counter(header)
    twice = [name for name, count in counts.items() if count > 1]
    missing = [name for name in names if name not in counts]
    unknown = [name for name in counts if name not in known]
    faults = (("columns twice", twice), ("no column", missing), ("unknown columns", unknown))
    wrong = "; ".join(f"{what} {', '.join(map(repr, found))}" for what, found in faults if found)
    if wrong:
        raise BadInput("header", wrong, "the features, each once, and 'id'")


def _rows(file: Path, features: Sequence[Feature], ids: list[str]) -> Iterator[tuple[str, Person]]:
    """Applicants from a CSV file: for each its row, counted from 1, and its values by feature.

    Parameters
    ----------
    ids
        The applicants' identifiers are appended to it, if there is a column of them.
    """
    names = [f.name for f in features]
    raw = io.BytesIO(read_bytes(file, "a CSV file, .csv or .csv.gz", LARGEST_TABLE))
    content = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
    count = 0
    try:
        filled = (row for row in csv.reader(content) if row)
        header = next(filled, [])
        _check_header(header, names)
        for count, row in enumerate(filled, start=1):
            if len(row) != len(header):
                raise BadInput(f"row {count}", f"{len(row)} cells", f"{len(header)}, one per column")
            cells = dict(zip(header, row, strict=True))
            if ID in cells and ID not in names:
                ids.append(cells[ID])
            yield f"row {count}", {f.name: _cell(cells[f.name], f) for f in features}
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadInput("file", f"an error: {error}", "a table in CSV, UTF-8") from None
    if not count:
        raise BadInput("file", "no rows", "at least one applicant")


def _cell(text: str, feature: Feature) -> float | str | None:
    """A cell's value: None if it is empty, text for labels and for what is no number, else a number."""
    number = text.strip()
    if not number:
        return None
    if feature.labelled:
        return text
    value = float(number) if _JSON_NUMBER.fullmatch(number) else math.inf
    return text if math.isinf(value) else value

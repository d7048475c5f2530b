"""Instances and populations from files and JSON values; every rule of the format is checked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from milp_recourse.errors import BadInput, dotted, shown
from milp_recourse.formats.schema import (
    INSTANCE_FORMAT,
    POPULATION_FORMAT,
    StatedInstance,
    StatedPopulation,
)
from milp_recourse.formats.strict_json import read_json
from milp_recourse.formats.validate import Known, validate
from milp_recourse.problem.factuals import as_number
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import Population


def read_instance(path: str | Path) -> Instance:
    """The instance in a ``.json`` or ``.json.gz`` file.

    Raises
    ------
    BadInput
        The file breaks the format. The error is one line with file, field, what was got and what is allowed.
    """
    return _read(path, (INSTANCE_FORMAT,))  # type: ignore[return-value]


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
    return _read(path, (POPULATION_FORMAT,))  # type: ignore[return-value]


def read_any(path: str | Path) -> Instance | Population:
    """The instance or the population in a file, as its ``format`` says.

    Raises
    ------
    BadInput
        As :func:`read_instance`.
    """
    return _read(path, (INSTANCE_FORMAT, POPULATION_FORMAT))


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
    return validate(StatedInstance, data, known=Known(folder=folder))


def population_from_dict(data: Any, folder: str | Path = ".") -> Population:
    """A population from its JSON value; ``folder`` as in :func:`instance_from_dict`.

    The error of an applicant whose values cannot be read is kept in ``Population.unreadable``.

    Raises
    ------
    BadInput
        The model side breaks the format, or no applicant can be read (then the error is the first one's).
    """
    return validate(StatedPopulation, data, known=Known(folder=folder))


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
        build = instance_from_dict if form == INSTANCE_FORMAT else population_from_dict
        return build(data, file.parent)  # type: ignore[operator]
    except BadInput as error:
        raise error.in_file(str(path)) from None

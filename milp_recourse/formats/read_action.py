"""An action that somebody wrote down."""

from __future__ import annotations

from pathlib import Path

from milp_recourse.errors import BadInput, dotted, got_text
from milp_recourse.formats.strict_json import read_json
from milp_recourse.problem.instance import Instance


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
            raise BadInput(
                "top level", got_text(data), "an object {feature: value}, or a result with an action"
            )
        names = [f.name for f in instance.features]
        action = {}
        for name, value in data.items():
            where = dotted(place, name)
            if name not in names:
                raise BadInput(where, "an unknown feature", ", ".join(names))
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                raise BadInput(where, got_text(value), "a number or a label")
            action[name] = instance.by_name[name].read(value, where)
        return action
    except BadInput as error:
        raise error.in_file(str(path)) from None

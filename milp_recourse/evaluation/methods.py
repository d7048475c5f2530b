"""Reading a method's actions: from a CSV file, or from a Python function of a DataFrame."""

from __future__ import annotations

import csv
import inspect
import math
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from numbers import Real
from pathlib import Path
from typing import Any

from milp_recourse.errors import BadInput, RecourseError
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import Population

Action = Mapping[str, float]
Method = Callable[..., Any]

PREFIX = "action_"


def load(name: str) -> Method:
    """Import ``module:function``; the module may be in the working directory, as may be what it imports.

    A file there is never imported in place of a module of the same name that is installed, unless it is the
    one asked for.

    Raises
    ------
    BadInput
        There is no such module or function, or it cannot be called.
    RecourseError
        Importing the module raised another error.
    """
    module, _, function = name.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), function)):
        raise BadInput("METHOD", name, "a .csv file or module:function")
    try:
        _load_from_here(module.partition(".")[0])
        found: object = getattr(import_module(module), function, None)
    except ImportError as error:
        raise BadInput("METHOD", name, f"a .csv file or module:function ({error})") from None
    except (Exception, SystemExit) as error:  # the module's own
        raise RecourseError(f"METHOD {name}: importing it raised {_said(error)}") from error
    if found is None:
        raise BadInput("METHOD", name, f"a function of the module {module}")
    if not callable(found):
        raise BadInput("METHOD", name, "something that can be called")
    return found


def _load_from_here(module: str) -> None:
    """Import a module or package of the working directory, if it is there and its name is not taken; the
    directory becomes the last on the path of modules."""
    here = Path.cwd()
    if str(here) not in sys.path:
        sys.path.append(str(here))
    places = here / f"{module}.py", here / module / "__init__.py"
    file = next((place for place in places if place.is_file()), None)
    spec = None if file is None or module in sys.modules else spec_from_file_location(module, file)
    if spec is not None and spec.loader is not None:
        sys.modules[module] = module_from_spec(spec)
        try:
            spec.loader.exec_module(sys.modules[module])
        except BaseException:
            del sys.modules[module]
            raise


def _said(error: BaseException) -> str:
    """An error's kind and message in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def ask(method: Method, population: Population) -> list[Action | None]:
    """Call a method once for everybody's action.

    Parameters
    ----------
    method
        A function that takes a DataFrame of factuals, one row per applicant (labels as labels), and returns
        one with the same index and a column per feature that it acts on, NaN where it does not act. Rows may
        be missing. If it requires a second parameter, it is given the population: model, masks, weights.

    Returns
    -------
    list
        An action per applicant; None for a missing row or one without any value.

    Raises
    ------
    BadInput
        The method returns something else.
    RecourseError
        The method raised an error.
    """
    import pandas as pd

    template = population.template
    frame = pd.DataFrame(
        [{f.name: f.show(one[f.name]) for f in template.features} for one in population.factuals]
    )
    try:
        wants = [
            p
            for p in inspect.signature(method).parameters.values()
            if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        answer = method(frame.copy(), population) if len(wants) > 1 else method(frame.copy())
    except (Exception, SystemExit) as error:  # the method's own
        whose = getattr(method, "__name__", type(method).__name__)
        raise RecourseError(f"METHOD {whose}: it raised {_said(error)}") from error
    if not isinstance(answer, pd.DataFrame):
        raise BadInput("METHOD", type(answer).__name__, "a DataFrame of actions")
    if not answer.columns.is_unique:
        raise BadInput("METHOD", "two columns of the same name", "one column per feature acted on")
    rows = {index: dict(row) for index, row in zip(answer.index, answer.to_dict("records"), strict=True)}
    if len(rows) != len(answer) or not set(rows) <= set(frame.index):
        raise BadInput("METHOD", "an index of its own", "rows with the index of the DataFrame it got")
    return [_action(rows.get(k), template, f"METHOD row {k}") for k in frame.index]


def read_actions(path: Path, population: Population) -> list[Action | None]:
    """Actions from a CSV file.

    There is one row per applicant, in order or with the applicant's number in a column ``index``, and one
    column per feature (``income`` or ``action_income``), empty where the feature is not acted on. Other
    columns are ignored, so that the results of ``certify`` can be read.

    Raises
    ------
    BadInput
        The file cannot be read or has no column of a feature, a value is no number or label of its feature,
        or an applicant does not exist or comes twice.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput("METHOD", str(path), f"a CSV file ({error})") from None
    names = [f.name for f in population.template.features]
    columns = list(rows[0]) if rows else []
    prefixed = any(column.startswith(PREFIX) for column in columns)
    if rows and not any((c.removeprefix(PREFIX) if prefixed else c) in names for c in columns):
        raise BadInput(f"{path.name}: columns", ", ".join(columns), "features: " + ", ".join(names))
    actions: list[Action | None] = [None] * len(population)
    seen: set[int] = set()
    for number, row in enumerate(rows):
        where = f"{path.name}: row {number + 1}"
        text = row.get("index") or str(number)
        k = int(text) if text.isdecimal() else -1
        if not 0 <= k < len(population) or k in seen:
            raise BadInput(where, f"applicant {text}", f"each of 0..{len(population) - 1} at most once")
        seen.add(k)
        values = {
            column.removeprefix(PREFIX): value
            for column, value in row.items()
            if column is not None
            and (not prefixed or column.startswith(PREFIX))
            and column.removeprefix(PREFIX) in names
        }
        actions[k] = _action(values, population.template, where)
    return actions


def from_counterfactuals(actions: list[Action | None], population: Population) -> list[Action | None]:
    """Counterfactual values as actions: every feature whose value differs from the factual is acted on."""
    return [
        None
        if action is None
        else {name: v for name, v in action.items() if v != population.factuals[k][name]} or None
        for k, action in enumerate(actions)
    ]


def _action(row: Mapping[Any, Any] | None, template: Instance, where: str) -> Action | None:
    """The action in a row, from cells that are not empty; None if all are empty."""
    names = [f.name for f in template.features]
    action: dict[str, float] = {}
    for name, value in (row or {}).items():
        if name not in names:
            raise BadInput(where, f"column {name}", ", ".join(names))
        if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
            continue
        feature = template.by_name[name]
        plain = value.item() if hasattr(value, "item") else value
        if not isinstance(plain, str | Real):
            raise BadInput(f"{where}: {name}", f"a {type(plain).__name__}", "a number or a label")
        if isinstance(plain, str) and not feature.labelled:
            try:
                plain = float(plain)
            except ValueError:
                raise BadInput(f"{where}: {name}", plain, "a number") from None
        if isinstance(plain, float) and not math.isfinite(plain):
            raise BadInput(f"{where}: {name}", plain, "a finite number")
        action[name] = feature.read(plain, f"{where}: {name}")
    return action or None

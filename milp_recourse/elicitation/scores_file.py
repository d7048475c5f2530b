"""Files of actionability scores, so that preferences are sampled once and used in several runs.

The iCARMA paper (appendix C.1) takes the preferences of its test set from such files. Here they are JSON:
``{"format": "milp-recourse/scores-1", "features": [...], "smax": 5, "scores": [[1, 5, 2, 3], ...]}``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from milp_recourse.elicitation.schemes import CostProfile, Scores, named_weights
from milp_recourse.errors import BadInput
from milp_recourse.formats.stated import Strict, validate
from milp_recourse.formats.strict_json import read_json, write_json
from milp_recourse.problem.instance import Preferences
from milp_recourse.problem.population import Population

SCORES_FORMAT = "milp-recourse/scores-1"


class ScoresModel(Strict):
    """A file of scores: a row per applicant, a whole number from 1 to ``smax`` per feature."""

    format: Literal["milp-recourse/scores-1"]
    features: list[str]
    smax: int
    scores: Annotated[list[list[int]], Field(min_length=1)]


def write_scores(scores: Scores, path: str | Path) -> None:
    """Write scores, one row per applicant; gzipped where the name ends in ``.gz``."""
    content = {
        "format": SCORES_FORMAT,
        "features": list(scores.features),
        "smax": scores.smax,
        "scores": np.atleast_2d(scores.values).tolist(),
    }
    write_json(content, path)


def read_scores(path: str | Path) -> Scores:
    """Read what :func:`write_scores` wrote.

    Raises
    ------
    BadInput
        The file breaks the format, or a score is outside 1..smax.
    """
    content = read_json(path)
    try:
        model = validate(ScoresModel, content)
        for k, row in enumerate(model.scores):
            if len(row) != len(model.features):
                raise BadInput(
                    f"scores.{k}", f"{len(row)} numbers", f"{len(model.features)}, one per feature"
                )
        return Scores(tuple(model.features), np.array(model.scores, dtype=np.int64), model.smax)
    except BadInput as error:
        raise error.in_file(str(path)) from None


def preferences_of(scores: Scores, profile: CostProfile) -> tuple[Preferences, ...]:
    """The preferences of every applicant: mask and weights that follow from the scores."""
    rows = named_weights(scores, profile.weights(scores))
    return tuple(Preferences(actionable=tuple(row), weights=row) for row in rows)


def with_scores(population: Population, scores: Scores, profile: CostProfile) -> Population:
    """The same applicants with the mask and weights that follow from the scores.

    Their ranges, conditions and density offsets are dropped; identifiers and errors of those who could not be
    read are kept.

    Raises
    ------
    BadInput
        There are not as many rows as applicants, or a feature is not globally actionable.
    """
    preferences = preferences_of(scores, profile)
    if len(preferences) != len(population):
        raise BadInput("scores", f"{len(preferences)} rows", f"one per applicant: {len(population)}")
    can = [f.name for f in population.template.features if f.actionable]
    for name in scores.features:
        if name not in can:
            raise BadInput("scores.features", name, ", ".join(can))
    return replace(population, preferences=preferences)

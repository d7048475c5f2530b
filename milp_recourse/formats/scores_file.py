"""Preferences sampled once and kept: actionability scores as a file, for test time.

The iCARMA paper (appendix C.1) supplies test preferences from pre-sampled files. Ours is JSON:
``{"format": "milp-recourse/scores-1", "features": [...], "smax": 5, "scores": [[1, 5, 2, 3], ...]}``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from milp_recourse.domain.elicitation import CostProfile, Scores, named_weights
from milp_recourse.errors import BadInput
from milp_recourse.formats.strict_json import read_json, write_json
from milp_recourse.instance import Population, Preferences

SCORES_FORMAT = "milp-recourse/scores-1"
_KEYS = {"format", "features", "smax", "scores"}


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
        Another format, a missing or unknown key, or a score that is none.
    """
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != SCORES_FORMAT:
        raise BadInput(f"{path}: format", "another file", SCORES_FORMAT)
    if set(content) != _KEYS:
        raise BadInput(f"{path}: keys", sorted(set(content) ^ _KEYS), ", ".join(sorted(_KEYS)))
    features, smax, rows = content["features"], content["smax"], content["scores"]
    if not (isinstance(features, list) and all(isinstance(f, str) for f in features)):
        raise BadInput(f"{path}: features", features, "names")
    if not isinstance(smax, int) or isinstance(smax, bool):
        raise BadInput(f"{path}: smax", smax, "a whole number, at least 2")
    whole = isinstance(rows, list) and all(
        isinstance(row, list)
        and len(row) == len(features)
        and all(isinstance(s, int) and not isinstance(s, bool) for s in row)
        for row in rows
    )
    if not whole or not rows:
        raise BadInput(f"{path}: scores", "something else", f"rows of {len(features)} whole numbers")
    return Scores(tuple(features), np.array(rows, dtype=np.int64), smax)


def preferences_of(scores: Scores, profile: CostProfile) -> tuple[Preferences, ...]:
    """Mask and weights of every applicant."""
    rows = named_weights(scores, profile.weights(scores))
    return tuple(Preferences(actionable=tuple(row), weights=row) for row in rows)


def with_scores(population: Population, scores: Scores, profile: CostProfile) -> Population:
    """The same applicants with these preferences.

    Raises
    ------
    BadInput
        Not as many rows as applicants, or a feature that nobody can act on.
    """
    preferences = preferences_of(scores, profile)
    if len(preferences) != len(population):
        raise BadInput("scores", f"{len(preferences)} rows", f"one per applicant: {len(population)}")
    can = [f.name for f in population.template.features if f.actionable]
    for name in scores.features:
        if name not in can:
            raise BadInput("scores.features", name, ", ".join(can))
    return Population(population.template, population.factuals, preferences)

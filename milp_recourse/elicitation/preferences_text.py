"""An applicant's own preferences from a few lines of text.

One of three kinds of answers (iCARMA paper, section 3.3), then optionally a profile and ranges::

    rank: savings, amount, income        # easiest first; features left out are not actionable
    profile: linear                      # constant, linear, convex or concave
    range income: -4 to 2.5              # values this applicant can reach

``can: savings, amount`` names the features that are actionable. ``scores: savings 1, amount 3, income 5,
duration 2 of 5`` rates them on a scale whose last number means not actionable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from milp_recourse.elicitation import schemes
from milp_recourse.errors import BadInput
from milp_recourse.problem.instance import Instance, Preferences

ANSWERS = ("can", "rank", "scores")


def preferences_from_text(text: str, instance: Instance) -> Preferences:
    """Mask, weights and ranges for one applicant; ranges of features that are not in the mask are left out.

    Parameters
    ----------
    text
        Lines as in the module's example; ``#`` begins a comment.
    instance
        The instance whose globally actionable features can be named.

    Raises
    ------
    BadInput
        A line is of none of these forms, names another feature or has a value that is not allowed, or there
        is not exactly one answer.
    """
    features = [f.name for f in instance.features if f.actionable]
    scores: schemes.Scores | None = None
    profile, default, ranges = None, schemes.CostProfile.named("constant"), {}
    for number, line in enumerate(text.splitlines(), start=1):
        key, colon, value = (part.strip() for part in line.partition("#")[0].partition(":"))
        if not key and not value:
            continue
        where = f"line {number}"
        if key in ANSWERS and colon:
            if scores is not None:
                raise BadInput(where, line.strip(), "one answer: can, rank or scores")
            scores = _scores(where, key, value, features)
            if key != "can":
                default = schemes.CostProfile.named("linear")
        elif key == "profile" and colon:
            profile = schemes.CostProfile.named(cast(schemes.ProfileName, value))
        elif key.startswith("range ") and colon:
            name = key.removeprefix("range ").strip()
            if name not in features:
                raise BadInput(where, name, ", ".join(features))
            ranges[name] = _range(where, value)
        else:
            raise BadInput(where, line.strip(), "can:, rank:, scores:, profile: or range NAME:")
    if scores is None:
        raise BadInput("preferences", "no answer", "a line can:, rank: or scores:")
    (weights,) = schemes.named_weights(scores, (profile or default).weights(scores))
    return Preferences(tuple(weights), weights, {n: r for n, r in ranges.items() if n in weights})


def _scores(where: str, key: str, value: str, features: Sequence[str]) -> schemes.Scores:
    names = [name.strip() for name in value.split(",") if name.strip()]
    if key == "can":
        return schemes.group(features, names)
    if key == "rank":
        return schemes.rank(features, names)
    rated, of, scale = value.partition(" of ")
    ratings: dict[str, int] = {}
    for entry in rated.split(","):
        name, _, score = entry.strip().rpartition(" ")
        ratings[name.strip()] = _whole(where, score)
    return schemes.likert(features, ratings, _whole(where, scale.strip()) if of else 5)


def _whole(where: str, text: str) -> int:
    if not text.isdecimal():
        raise BadInput(where, text, "NAME NUMBER, ... of NUMBER")
    return int(text)


def _range(where: str, value: str) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in value.split(" to "))
    except ValueError:
        raise BadInput(where, value, "LOW to HIGH") from None
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise BadInput(where, value, "LOW to HIGH, finite, LOW <= HIGH")
    return low, high

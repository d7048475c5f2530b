"""The data of the table of people on a population's page, which population.js draws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from milp_recourse.reports.answer_kinds import Outcome
from milp_recourse.reports.pages import wording
from milp_recourse.reports.pages.overview import Answers
from milp_recourse.reports.pages.shell import tone
from milp_recourse.reports.view import Change, plain


def table_data(answers: Answers) -> dict[str, Any]:
    """The table's data for JSON: people as rows, with texts given by their positions in a list of them."""
    texts: dict[str | None, int] = {}
    limits: dict[tuple[Any, ...], int] = {}
    features = list(dict.fromkeys(change.feature for person, _ in answers for change in person.features))
    called = {c.feature: (c.called, c.unit) for person, _ in answers for c in person.features}
    groups = list(dict.fromkeys(name for person, _ in answers for name in person.group))
    place = {name: k for k, name in enumerate(features)}

    def text(given: str | None) -> int:
        return texts.setdefault(given, len(texts))

    people = []
    for person, kind in answers:
        changes = {change.feature: change for change in person.features}
        own = tuple(_limit(changes.get(name), text) for name in features)
        people.append(
            [
                person.id,
                list(Outcome).index(kind),
                person.status,
                person.cost,
                person.lower_bound,
                person.gap,
                text(person.proof),
                person.confirmed,
                text(person.note),
                person.seconds,
                text(wording.headline(person)),
                text(wording.assurance(person)),
                [plain(changes[name].before) if name in changes else None for name in features],
                _changed_features(person.features, place),
                limits.setdefault(own, len(limits)),
                [text(person.group.get(name)) for name in groups],
            ]
        )
    return {
        "features": features,
        "names": [called[name][0] for name in features],
        "units": [called[name][1] for name in features],
        "groups": groups,
        "outcomes": [[kind.value, tone(kind), kind.sentence] for kind in Outcome],
        "texts": list(texts),
        "limits": list(limits),
        "people": people,
    }


def _limit(change: Change | None, text: Any) -> int | None:
    """The text of the values that an action can set; None if the feature is no lever of the person."""
    return text(change.allowed) if change is not None and change.lever else None


def _changed_features(features: Iterable[Change], place: Mapping[str, int]) -> list[list[Any]]:
    return [
        [place[c.feature], plain(c.after), c.cause, c.share, plain(c.said)]
        for c in features
        if c.cause != "unchanged"
    ]

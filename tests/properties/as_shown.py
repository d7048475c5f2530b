"""Does the model accept the values as they are shown? ``python -m tests.properties.as_shown --people 1000``.

The models and tables are those of ``docs/dataframes.md``: a network on German Credit, a forest on Adult,
boosted trees on raw Give Me Some Credit. Every shown value is set in the person's raw row, and the deployed
model is asked. Exits with 1 if one row is refused.
"""

from __future__ import annotations

import sys
from typing import Any

import pandas as pd

from tests.docs.test_dataframes import FILES, run
from tests.properties.repeated import options, told


def measured(name: str, people: int) -> dict[str, Any]:
    """How many rows with shown values the model accepts, and what these cost beside the optimum."""
    found = run(name, people)
    answers, model, recourse = found["answers"], found["model"], found["recourse"]
    changes = answers.changes
    rows = found["people"].loc[changes.index.unique()].astype(object)
    for person, change in changes.iterrows():
        rows.loc[person, change["feature"]] = change["shown"]
    typed = pd.DataFrame({key: rows[key].astype(answers.counterfactuals[key].dtype) for key in rows})
    accepted = [recourse._word.wants(label) for label in model.predict(typed)]
    ratio = (answers.table["shown_cost"] / answers.table["cost"]).loc[rows.index]
    ratio = ratio[answers.table["cost"].loc[rows.index] > 0]
    return {
        "people": len(found["people"]),
        "with an action": len(rows),
        "accepted as shown": sum(accepted),
        "shown cost over cost, median": round(float(ratio.median()), 6),
        "shown cost over cost, largest": round(float(ratio.max()), 6),
        "median digits shown": float(changes["shown"].map(digits).median()),
    }


def digits(value: object) -> int:
    """How many significant digits are shown; 0 for a label."""
    if isinstance(value, str):
        return 0
    return len(repr(value).split("e")[0].replace(".", "").strip("-0")) or 1


def main() -> int:
    """The command."""
    given = options(__doc__, people=1000)
    found = {name: measured(name, given.people) for name in FILES}
    told(found, given.json)
    return int(any(one["accepted as shown"] < one["with an action"] for one in found.values()))


if __name__ == "__main__":
    sys.exit(main())

"""One page of all comparisons, written by ``python -m tests.properties.agreement_table`` from their files.

A line per kind and family of classifiers: how many random draws, of how many two exact back ends settled the
answer, about how many brute force was asked, and how many answers were contradicted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.properties.agreement import BRUTE, TWO

RESULTS = Path(__file__).parents[2] / "docs" / "results"
PAGE = RESULTS / "agreement" / "README.md"

GROUPS = {
    "Conditions": ("conditions/networks.json", "conditions/trees.json"),
    "Costs and plausibility": ("costs/networks.json", "costs/trees.json"),
    "Fronts": ("choices/fronts_networks.json", "choices/fronts_trees.json"),
    "Why not": ("why/networks.json", "why/trees.json"),
    "Choices and certainty": ("choices/networks.json", "choices/trees.json"),
}

HEAD = """# Every kind of question, compared

Random problems: two exact back ends against each other and against brute force. Written by
`python -m tests.properties.agreement_table` from the results files, which name the commands' arguments.

Which brute force:

- conditions, costs and plausibility: of networks a grid over every set of features, of 7 to 4001 points per
  feature, zoomed in for costs; of trees whose levers move nothing else both sides of every threshold of every
  lever, which is exhaustive for conditions on one feature and for costs; of other trees a grid besides;
- fronts and why-not: these grids at every point, and under every set of restrictions lifted;
- least total: every set of features solved by itself, and every pair of them tried;
- certainty: 10 000 sampled outcomes of each answer, and grid points below its bound refuted one by one.

What is independent of the engines: points are made, priced and sent through the models in float64 by code
of the tests, conditions are read from their JSON by the tests' own reader, and the tests' own code decides
whether two choices differ. What is not: whether a point that looks feasible is feasible is decided by the
package's exact judgement (`milp_recourse/judge.py`). No search uses it for its bounds;
[judging](../../judging.md) checks it by hand.

`two` counts the draws that two back ends settled; in the others one stopped at its time limit, or refuses
the problem in one line. Older rows did not count this; they show the least number that their statuses
allow. Brute force was not asked where a draw has no lever, or where none of twenty seeds has a problem of
its kind.
"""


def settled(row: dict[str, Any], name: str) -> int:
    """How many answers a back end settled."""
    old = row.get("happened", {})
    whole = sum(row.get(f"{name} {status}", 0) for status in ("optimal", "infeasible"))
    return whole + sum(
        n for said, n in old.items() if f"{name} optimal" in said or f"{name} infeasible" in said
    )


def decided(row: dict[str, Any], backends: list[str]) -> int:
    """How many draws two back ends settled, or at least did."""
    if TWO in row:
        return int(row[TWO])
    asked = sum(row["happened"].values()) if "happened" in row else row.get(BRUTE, row["draws"])
    own = sorted((settled(row, name) for name in backends), reverse=True)
    return max(0, own[0] + own[1] - asked)


def lines() -> Iterator[str]:
    """The page."""
    yield from HEAD.splitlines()
    for title, files in GROUPS.items():
        yield from (
            "",
            f"## {title}",
            "",
            "| kind | classifiers | back ends | draws | two | brute force | wrong |",
        )
        yield "|---|---|---|---|---|---|---|"
        for file in files:
            known = json.loads((RESULTS / file).read_text())
            for kind, row in known["kinds"].items():
                asked = row["asked"]
                which = "trees" if "trees" in file else "networks"
                names = asked["backends"].split(",")
                force = row.get(BRUTE, sum(row.get("happened", {}).values()))
                cells = (
                    kind,
                    which,
                    ", ".join(names),
                    row["draws"],
                    decided(row, names),
                    force,
                    len(row["wrong"]),
                )
                yield "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    """Write the page."""
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text("\n".join(lines()) + "\n")


if __name__ == "__main__":
    main()

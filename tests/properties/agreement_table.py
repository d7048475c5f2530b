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

Is any answer wrong? On random problems of every kind two exact back ends are compared with each other and
with brute force. The page is written by `python -m tests.properties.agreement_table` from the results files,
which name the commands' arguments.

How to read the tables: `draws` is the number of random draws. `two` counts those that two back ends settled;
in the others one stopped at its time limit, or refuses the problem in one line. (Older results did not count
this; for these the least number is shown that their statuses allow.) `brute force` counts the draws about
which brute force was asked. It was not asked where a draw has no lever, or where none of twenty seeds gave a
problem of the kind. `wrong` counts the answers that were contradicted.

What brute force does:

- Conditions, costs and plausibility, networks: it tries a grid over every set of features, with 7 to 4001
  points per feature, and for costs it zooms in.
- The same, trees whose levers move nothing else: it tries both sides of every threshold of every lever. This
  is exhaustive for costs and for conditions on one feature. Other trees get a grid as well.
- Fronts and why-not: it tries these grids for every point of a front, and for every set of restrictions that
  is lifted.
- Least total: every set of features is solved by itself, and every pair of these answers is tried.
- Certainty: 10 000 outcomes of each answer are sampled, and grid points that cost less than its bound are
  shown to fail, one by one.

The comparison is independent of the engines: code of the tests makes the points, computes their cost,
evaluates the models in float64, reads the conditions from their JSON and decides whether two choices differ.
One part is not independent. Whether a point that looks feasible is feasible is decided by the package's exact
judgement (`milp_recourse/judge/judgement.py`). No search uses that for its bounds, and [judging](../../judging.md)
checks it by hand.
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

"""Is any sentence false? Every action is tried: ``python -m tests.properties.adversary --people 500``.

Each kind of question is asked about so many people. Their lenders are fitted models of scikit-learn, XGBoost
and LightGBM, mostly pipelines, over tables of few whole numbers and labels
(:mod:`tests.helpers.whole_lenders`). So everything that anybody could do is enumerated
(:mod:`tests.helpers.every_action`) and asked of the model's own ``predict``. What is said is compared with it
(:mod:`tests.properties.adversary_checks`). Exits with 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from milp_recourse import Recourse
from milp_recourse.errors import RecourseError, Unsupported
from milp_recourse.reports.progress import progress_bar
from milp_recourse.tables.answers import Answers
from milp_recourse.tables.columns import TableColumn
from tests.helpers.every_action import Array, Everything, level, movable
from tests.helpers.many_actions import many_actions
from tests.helpers.random_conditions import random_conditions
from tests.helpers.whole_lenders import Lender, lender, wanted
from tests.properties.adversary_checks import (
    LIMIT,
    Case,
    Check,
    check_asked,
    check_certificate,
    check_certify,
    check_density_front,
    check_front,
    check_leaves,
    check_why,
)
from tests.properties.adversary_choices import check_far, check_features, check_together

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Kind:
    """A kind of question: what is compared, about what plausibility, of which model (None: any)."""

    check: Check
    plausibility: str | None = "any"
    final: str | None = None
    plain: bool = False
    """Whether nobody has conditions, and nothing causes anything."""
    tight: bool = False
    whole: bool = True
    """Whether every action can be tried; else some are."""
    each: int = 6
    """So many people of each lender are asked about."""


KINDS: dict[str, Kind] = {
    "answers": Kind(check_certify),
    "near data": Kind(check_certify, "near-data"),
    "domain": Kind(check_certify, "domain"),
    "density": Kind(check_certify, "scm-density"),
    "why": Kind(check_why, tight=True),
    "features": Kind(check_features),
    "together": Kind(check_together),
    "distance": Kind(check_far("distance")),
    "effect": Kind(check_far("effect")),
    "front": Kind(check_front),
    "certificates": Kind(check_certificate),
    "leaves": Kind(check_leaves, None, "tree", plain=True),
    "density front": Kind(check_density_front, "scm-density"),
    "asked": Kind(check_asked, final="unread", each=1),
    "why, asked": Kind(check_why, final="unread", tight=True),
    "features, asked": Kind(check_features, final="unread"),
    "front, asked": Kind(check_front, final="unread"),
    "answers, any numbers": Kind(check_certify, whole=False),
    "near data, any numbers": Kind(check_certify, "near-data", whole=False),
    "density, any numbers": Kind(check_certify, "scm-density", whole=False),
    "why, any numbers": Kind(check_why, tight=True, whole=False),
    "effect, any numbers": Kind(check_far("effect"), whole=False),
    "front, any numbers": Kind(check_front, whole=False),
    "density front, any numbers": Kind(check_density_front, "scm-density", whole=False),
}
ACTIONS = 1200
"""How many actions are drawn at random where not all can be tried, besides those made of them."""

CONDITIONS = ("count", "feature", "feature", "sum", "sum", "label", "if", "any", "not", "mixed")


def cases(seed: int, kind: Kind, counts: Counter[str], wrong: list[str]) -> Iterator[Case]:
    """The people of one drawn lender who can be asked about; the others are counted."""
    drawn = lender(seed, kind.plausibility, kind.each, kind.final, kind.plain, kind.tight, kind.whole)
    rng = np.random.default_rng([seed, 5])
    model, X, desired, people = drawn.model, drawn.X, drawn.desired, drawn.people
    try:
        plain = Recourse(model, X, desired, **drawn.arguments)
        read = {c.name for c in plain.columns}
        for one in drawn.preferences:
            if "actionable" in one:
                one["actionable"] = [name for name in one["actionable"] if name in read]
            one["weights"] = {name: w for name, w in one["weights"].items() if name in read}
            one["ranges"] = {name: ends for name, ends in one["ranges"].items() if name in read}
        first = plain.certify(people, preferences=drawn.preferences, time_limit=LIMIT)
        shared, own = said_conditions(rng, first, 0.0 if kind.plain else 1.0)
        drawn.arguments["conditions"] = [at_the_door(c, plain.columns) for c in shared]
        recourse = Recourse(model, X, desired, **drawn.arguments)
        preferences = [
            {**p, "conditions": [at_the_door(c, plain.columns) for c in some]}
            for p, some in zip(drawn.preferences, own, strict=True)
        ]
        answers = certified(recourse, people, preferences, drawn.backend)
    except RecourseError as error:
        counts["lenders refused"] += 1
        counts[f"refused: {error}"] += 1
        return
    except Exception as error:
        wrong.append(f"{type(error).__name__}: {error}")
        return
    near = neighbours(drawn, recourse, answers, wrong)
    levers = sum(c.name not in drawn.arguments["immutable"] for c in recourse.columns)
    for at in range(len(people)):
        if answers.problem is None or at in answers.rows.faults:
            counts["bad input"] += 1
            continue
        instance, own_rng = answers.problem[at], np.random.default_rng([seed, at])
        x = {c.name: number(c, people.iloc[at][c.key]) for c in recourse.columns}
        every = Everything(
            lender=drawn,
            columns=recourse.columns,
            x=x,
            person=people.iloc[at],
            own=drawn.preferences[at],
            shared=shared,
            conditions=own[at],
            near=near,
            level=level(drawn, recourse.columns, x),
            margin=instance.accept.margin,
            actions=None if kind.whole else np.full((1, levers), np.nan),
        )
        if not kind.whole:
            result = answers.results[at]
            found = [] if result is None or result.action is None else [instance.numbers(result.action)]
            every = every.these(many_actions(every, found, ACTIONS, own_rng))
        if kind.whole and every.doubtful:
            counts["too close to call"] += 1
            continue
        yield Case(every, instance, answers, at, own_rng)


def certified(recourse: Recourse, people: pd.DataFrame, own: Sequence[Json], backend: str | None) -> Answers:
    """The answers of a back end, or of the default one if it refuses."""
    try:
        return recourse.certify(people, preferences=own, time_limit=LIMIT, backend=backend)
    except Unsupported:
        return recourse.certify(people, preferences=own, time_limit=LIMIT)


def said_conditions(
    rng: np.random.Generator, first: Answers, share: float
) -> tuple[list[Json], list[list[Json]]]:
    """Conditions of everybody, and each person's own."""
    readable = [k for k in range(len(first)) if k not in first.rows.faults]
    drawn: list[list[Json]] = []
    for k in (-1, *range(len(first))):
        at = readable[0] if k < 0 and readable else k
        drawn.append([])
        if at in readable and rng.random() < share * (0.25 if k < 0 else 0.4):
            assert first.problem is not None
            seed, kind = int(rng.integers(10**6)), str(rng.choice(CONDITIONS))
            drawn[-1] = list(random_conditions(seed, first.problem[at], kind)[:2])
    return drawn[0], drawn[1:]


def at_the_door(condition: Any, columns: Sequence[TableColumn]) -> Any:
    """A condition with the table's own labels in place of their texts and indices."""
    if isinstance(condition, list):
        return [at_the_door(part, columns) for part in condition]
    if not isinstance(condition, Mapping):
        return condition
    made = {key: at_the_door(value, columns) for key, value in condition.items()}
    column = next((c for c in columns if c.name == made.get("feature")), None)
    if column is None or column.feature.categories is None:
        return made
    texts = list(column.feature.categories)

    def own(said: Any) -> Any:
        k = texts.index(said) if isinstance(said, str) else said
        return texts[k] if pd.isna(column.value(k)) else column.value(k)

    for key, value in made.items():
        if key == "in":
            made[key] = [own(v) for v in value]
        elif key in ("at_least", "at_most") and isinstance(value, str):
            made[key] = own(value)
    return made


def neighbours(drawn: Lender, recourse: Recourse, answers: Answers, wrong: list[str]) -> Array | None:
    """The rows that an outcome must be near to, in the compared features: those that the model accepts.

    Of prototypes it is only checked that each is one of them, and that there are as many as were asked for.
    """
    said = drawn.arguments.get("plausibility")
    if not isinstance(said, Mapping) or said["kind"] != "near-data":
        return None
    rows = said.get("rows", drawn.X)
    accepted = rows[wanted(drawn.model, drawn.desired, rows)]
    columns = [
        c for c in recourse.columns if c.name in (said.get("features") or movable(drawn, recourse.columns))
    ]
    known = np.array([[number(c, v) for v in accepted[c.key]] for c in columns], dtype=float).T
    known = np.unique(known[~np.isnan(known).any(axis=1)], axis=0)
    if "prototypes" not in said or answers.problem is None:
        return known
    condition = answers.population()["conditions"][-1]
    chosen = np.array(
        [[center(part, columns) for part in one["all"]] for one in condition.get("any", [condition])]
    )
    if len(chosen) != min(said["prototypes"], len(known)):
        wrong.append(f"{len(chosen)} prototypes of {len(known)} rows, asked for {said['prototypes']}")
    wrong += [f"prototype {row}" for row in chosen if not np.isclose(known, row).all(axis=1).any()]
    return chosen


def center(part: Json, columns: Sequence[TableColumn]) -> float:
    """The value of a prototype in the condition about one feature."""
    column = next(c for c in columns if c.name == part["feature"])
    if "in" in part:
        return float((column.feature.categories or ()).index(part["in"][0]))
    middle = (part["at_least"] + part["at_most"]) / 2
    return round(middle * 64) / 64


def number(column: TableColumn, value: object) -> float:
    """The feature's number of a table's value; what the imputer puts in for a missing one."""
    code = column.code(value)
    return column.imputed if np.isnan(code) and column.imputed is not None else code


@threadpool_limits.wrap(limits=1)
def run(kind: str, people: int, seed: int, advance: Any = None) -> tuple[Counter[str], list[str]]:
    """What happened to so many people, and what was wrong."""
    counts = Counter[str]()
    return counts, list(wrong_lines(kind, people, seed, counts, advance))


def wrong_lines(
    kind: str, people: int, seed: int, counts: Counter[str], advance: Any = None
) -> Iterator[str]:
    """What is wrong about so many people, one after the other; what happened to them is added to counts."""
    while counts["people"] < people:
        lines: list[str] = []
        for case in cases(seed, KINDS[kind], counts, lines):
            if counts["people"] == people:
                break
            try:
                lines += [f"{case.person}: {line}" for line in KINDS[kind].check(case, counts)]
            except Unsupported:
                counts["refused by the back end"] += 1
            except Exception as error:  # a long run goes on, and says so
                lines.append(f"{case.person}: {type(error).__name__}: {error}")
            counts["people"] += 1
            if advance is not None:
                advance()
            yield from (f"{kind}, lender {seed}, {line}" for line in lines)
            lines.clear()
        yield from (f"{kind}, lender {seed}, {line}" for line in lines)
        seed += 1
    counts["lenders up to"] = seed


def main() -> int:
    """Ask, and write what came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default="; ".join(KINDS), help="separated by semicolons")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    rows = {}
    for kind in asked.kinds.split("; "):
        begun = time.process_time()
        with progress_bar(kind, asked.people) as bar:
            counts, wrong = run(kind, asked.people, asked.seed, bar.advance)
        spent = round(time.process_time() - begun, 1)
        rows[kind] = {"seed": asked.seed, **counts, "processor seconds": spent, "wrong": wrong}
        print(kind, json.dumps(rows[kind], indent=1), flush=True)
        if asked.out is not None:
            asked.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return int(any(row["wrong"] for row in rows.values()))


if __name__ == "__main__":
    raise SystemExit(main())

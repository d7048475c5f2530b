"""Which choices make HARE's gains what they are: one change at a time to the reading of :mod:`.hare_people`.

The tournaments are those of :mod:`.hare_tables`, of networks and growing spheres. The last row of each data
set is of the package itself: an ``Interview`` asks the person about recourses of a pipeline, with whole
labels, only the ways of change that ``real_columns.csv`` allows, and each recourse confirmed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from milp_recourse.lab.interviews.hare_people import Setting, study
from milp_recourse.lab.interviews.hare_tables import BUDGET, DATA, MAIN, METHODS, published, rows_of
from milp_recourse.lab.recipe.real import SETS
from milp_recourse.lab.run_table import Key, Row, filled
from milp_recourse.preferences import Interview
from milp_recourse.preferences.hare import FloatArray, boundary_points
from milp_recourse.preferences.hare_dialogue import base_recourse
from milp_recourse.preferences.lever_space import LeverSpace
from milp_recourse.problem.result import Result
from milp_recourse.tables.recourse import Recourse

CHANGES: Mapping[str, Mapping[str, Any]] = {
    "the paper, as read here": {},
    "wishes on a random ray": {"wish": "ray"},
    "values stay in the data's range": {"boxed": True},
    "outliers capped": {"capped": True},
    "binary labels move": {"labels": "binary"},
    "each label has a coordinate": {"labels": "all"},
    "all of these": {"wish": "ray", "boxed": True, "capped": True, "labels": "all"},
}
ASKED = "all of these, asked by the package"

COLUMNS = (
    *("data", "change", "seed", "people", "levers", "gtp", "gtp_hare", "gtp_multi", "gtp_kept"),
    *("gtd", "gtd_hare", "gtd_multi", "gtd_kept"),
)


def moot(data: str, change: Mapping[str, Any]) -> bool:
    """Whether a change alone changes nothing: only Credit has outliers, and it has no labels."""
    return (set(change) == {"labels"} and data == "gmsc") or (set(change) == {"capped"} and data != "gmsc")


def pipeline(data: str, seed: int, folder: Path, rows: int = 8000) -> tuple[Recourse, pd.DataFrame]:
    """A fitted pipeline of whole columns as a ``Recourse``, and the refused ones of the rows after."""
    from sklearn.compose import make_column_transformer
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

    chosen = SETS[data]
    frame, wanted = chosen.read(folder / chosen.file)
    order = np.random.default_rng([seed, 2]).permutation(len(frame))[:rows]
    x, y = frame[list(chosen.columns)].iloc[order], wanted.iloc[order].astype(int)
    x, y = x.reset_index(drop=True), y.reset_index(drop=True)
    labels = [name for name, column in chosen.columns.items() if column.kind == "categorical"]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    numbers = [name for name in chosen.columns if name not in labels]
    first = make_column_transformer((encoder, labels), (MinMaxScaler(), numbers))
    seen = y.iloc[: rows * 3 // 4]
    if data == "gmsc":  # as in hare_people
        seen = seen.groupby(seen).sample(seen.value_counts().max(), replace=True, random_state=seed)
    network = MLPClassifier((18, 9), early_stopping=data != "compas", random_state=seed)
    pipe = make_pipeline(first, network).fit(x.loc[seen.index], seen)
    up, down = ([n for n, c in chosen.columns.items() if c.monotone == w] for w in ("increase", "decrease"))
    still = [name for name, column in chosen.columns.items() if not column.actionable]
    later = x.iloc[rows * 3 // 4 :]
    return Recourse(pipe, x, immutable=still, increase=up, decrease=down), later[pipe.predict(later) == 0]


def wish(space: LeverSpace, rng: np.random.Generator) -> FloatArray | None:
    """Where a random ray of length 1 crosses the boundary; None if 4000 of them end refused."""
    way = rng.normal(size=(4000, space.size))
    ends = space.inside(space.start + way / np.linalg.norm(way, axis=1, keepdims=True))
    good = ends[space.score(ends) > 0]
    return boundary_points(space, good[:1], 1e-6)[0] if len(good) else None


def asked(recourse: Recourse, row: pd.DataFrame, person: int) -> list[float] | None:
    """GTP, then GTD of the methods of table 1 but the last; None without a wish or a base recourse."""
    instance = recourse.one_person(row).instance
    space = LeverSpace(instance)
    goal = wish(space, np.random.default_rng([person, 150])) if space.size else None
    found = [base_recourse(instance, "growing-spheres", np.random.default_rng([person, 7]))]
    if goal is None or not found[0]:
        return None
    for method in METHODS[1:3]:
        interview = Interview(recourse, row, method, BUDGET, person)  # type: ignore[arg-type]
        chosen = answered(interview, space, goal).action
        found.append(dict(instance.numbers(chosen)) if chosen else found[0])
    ends = [space.at(action or {}) for action in found]
    change, own = [end - space.start for end in ends], goal - space.start
    lengths = [float(np.linalg.norm(one) * np.linalg.norm(own)) for one in change]
    gtd = [1 - float(one @ own) / max(size, 1e-12) for one, size in zip(change, lengths, strict=True)]
    return [*(float(np.linalg.norm(end - goal)) for end in ends), *gtd]


def answered(interview: Interview, space: LeverSpace, goal: FloatArray) -> Result:
    """What is recommended to somebody who prefers what is nearer to a goal, and for whom nothing will do."""
    while (question := interview.ask()) is not None:
        if question.kind == "one":
            interview.tell("no")
            continue
        assert question.left is not None and question.right is not None
        far = [np.linalg.norm(space.at(o.numbers) - goal) for o in (question.left, question.right)]
        interview.tell("left" if far[0] <= far[1] else "right")
    return interview.recommend()


def run(
    folder: Path, out: Path, people: int, seeds: int, advance: Callable[[], None] = lambda: None
) -> list[Row]:
    """OUT/hare_causes.csv: a row of means per data set, change and seed, of ``people`` refused people; a
    tenth as many are asked by the package."""

    def solved(cell: tuple[int, str, str], done: set[Key]) -> Iterator[Row]:
        seed, data, name = cell
        advance()
        if (data, name, str(seed)) in done or moot(data, CHANGES.get(name, {})):
            return
        row: Row = {"data": data, "change": name, "seed": seed}
        if name == ASKED:
            recourse, refused = pipeline(data, seed, folder)
            those = [refused.iloc[[k]] for k in range(min(-(-people // 10), len(refused)))]
            measured = [asked(recourse, one, k) for k, one in enumerate(those)]
            sure = np.array([values for values in measured if values])
            values = [*sure.mean(axis=0)] if len(sure) else [float("nan")] * 6
            values[3:3], values[7:] = [""], [""]
            row |= {"people": len(sure), "levers": ""}
        else:
            how = replace(Setting(data, "network", seed), **CHANGES[name])
            found = study(how, folder, people)
            made = list(rows_of(how, found, "growing-spheres", MAIN))
            values = [one[measure] for measure in ("gtp", "gtd") for one in made]
            row |= {"people": made[0]["people"], "levers": int(found.crowd.free.sum())}
        shown = (v if isinstance(v, str) else f"{v:.5f}" for v in values)
        yield row | dict(zip(COLUMNS[5:], shown, strict=True))

    cells = product(range(seeds), DATA, (*CHANGES, ASKED))
    return filled(out / "hare_causes.csv", COLUMNS, {}, 3, dict(enumerate(cells)), solved)


def summary(rows: list[Row]) -> list[Row]:
    """By data set and change: means over seeds, and the shares of the base's GTD that HARE, Multi-HARE and
    Multi-HARE with the winner kept take away; first the printed shares."""
    found = []
    for data in DATA:
        said = published()
        far = (data, "network", "growing-spheres", "far")
        printed = [said[(*far, p.method, str(p.budget), str(p.rounds))] for p in MAIN[:3]]
        found.append(_gains(data, "printed", "", [float(one[m]) for m in ("gtp", "gtd") for one in printed]))
        for change in (*CHANGES, ASKED):
            own = [
                row for row in rows if (row["data"], row["change"]) == (data, change) and int(row["people"])
            ]
            if own:
                names = [n for n in COLUMNS[5:] if own[0][n] != ""]
                means = [float(np.mean([float(one[n]) for one in own])) for n in names]
                people = sum(int(one["people"]) for one in own)
                found.append(_gains(data, change, people, means) | {"levers": own[0]["levers"]})
    return found


def _gains(data: str, change: str, people: int | str, means: list[float]) -> Row:
    gtp, gtd = means[: len(means) // 2], means[len(means) // 2 :]
    row: Row = {"data": data, "change": change, "levers": "", "people": people, "gtp": gtp[0], "gtd": gtd[0]}
    for measure, own in (("gtp", gtp), ("gtd", gtd)):
        for name, value in zip(("hare", "multi", "kept"), own[1:], strict=False):
            row[f"{measure}_gain_{name}"] = 1 - value / own[0]
    return row

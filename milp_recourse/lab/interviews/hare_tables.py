"""HARE and Multi-HARE beside their base recourse and exact candidates, after table 1 of their paper.

The person is HARE's: there is a boundary point that they want, a random one among those they can reach, and
of two recourses they prefer the one nearer to it. GTP is the distance of the final recourse to that point,
GTD is 1 minus the cosine of the angle between the two changes, both in coordinates from 0 to 1. The
absolute question is answered no, so that all of the budget is used. Not as in the paper: the networks are
scikit-learn's, what people can act on is ``real_columns.csv``, and recourses are rounded to labels and
confirmed by the model before they are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from milp_recourse.lab.means import bootstrap, interval
from milp_recourse.lab.recipe.real import SETS
from milp_recourse.lab.run_table import grown
from milp_recourse.preferences import Interview
from milp_recourse.preferences.hare import FloatArray, boundary_points
from milp_recourse.preferences.hare_dialogue import base_recourse
from milp_recourse.preferences.lever_space import LeverSpace
from milp_recourse.reports.drawing import panels, save
from milp_recourse.tables.recourse import Recourse

Row = dict[str, Any]

COLUMNS = (
    *("data", "model", "seed", "person", "base", "method"),
    *("gtp", "gtd", "proximity", "sparsity", "asked"),
)

DATA, MODELS, BASES = ("adult", "compas", "gmsc"), ("network", "logistic"), ("wachter", "growing-spheres")
METHODS, BUDGET = ("base", "hare", "multi-hare", "exact-hare"), 30

PUBLISHED = {
    ("adult", "network", "wachter"): (0.93, 0.69, 0.58, 0.87, 0.09, 0.08),
    ("adult", "network", "growing-spheres"): (0.92, 0.71, 0.56, 0.82, 0.10, 0.08),
    ("adult", "logistic", "wachter"): (0.94, 0.63, 0.39, 0.80, 0.10, 0.07),
    ("adult", "logistic", "growing-spheres"): (0.91, 0.64, 0.39, 0.72, 0.12, 0.05),
    ("compas", "network", "wachter"): (0.39, 0.27, 0.27, 0.75, 0.27, 0.26),
    ("compas", "network", "growing-spheres"): (0.40, 0.26, 0.25, 0.80, 0.21, 0.21),
    ("compas", "logistic", "wachter"): (0.25, 0.16, 0.15, 0.58, 0.14, 0.13),
    ("compas", "logistic", "growing-spheres"): (0.28, 0.17, 0.16, 0.89, 0.15, 0.17),
    ("gmsc", "network", "wachter"): (1.07, 0.89, 0.90, 0.97, 0.37, 0.38),
    ("gmsc", "network", "growing-spheres"): (1.06, 0.89, 0.83, 1.06, 0.40, 0.30),
    ("gmsc", "logistic", "wachter"): (0.90, 0.72, 0.65, 0.73, 0.30, 0.21),
    ("gmsc", "logistic", "growing-spheres"): (0.93, 0.73, 0.63, 0.87, 0.29, 0.19),
}
"""GTP of base, HARE and Multi-HARE, then GTD of the three."""


FIXED = {
    "adult": ("age", "sex", "race"),
    "compas": ("age", "race", "sex"),
    "gmsc": ("age", "NumberOfDependents"),
}
"""The columns that the paper calls immutable, of those that are read here."""

BALANCED = ("gmsc",)
"""Rows are drawn as often of either outcome: 93% have the wanted one, and the network would refuse nobody."""


def fitted(
    data: str,
    model: str,
    seed: int,
    folder: Path,
    rows: int = 6000,
    their_levers: bool = False,
    binary: bool = False,
) -> tuple[Recourse, pd.DataFrame]:
    """A pipeline trained on the first rows of a shuffled data set, and the refused ones of the rows after.

    Parameters
    ----------
    their_levers
        All columns but those of :data:`FIXED` can be changed, in both directions, as in the paper.
    binary
        Of each column with labels only the commonest label is told from the others, as in the paper.
    """
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, OneHotEncoder

    chosen = SETS[data]
    frame, wanted = chosen.read(folder / chosen.file)
    order = np.random.default_rng([seed, 2]).permutation(len(frame))[: rows + 2000]
    x, y = frame[list(chosen.columns)].iloc[order], wanted.iloc[order].astype(int)
    x, y = x.reset_index(drop=True), y.reset_index(drop=True)
    labels = [name for name, column in chosen.columns.items() if column.kind == "categorical"]
    numbers = [name for name in chosen.columns if name not in labels]
    for name in labels if binary else ():
        x[name] = x[name].where(x[name] == x[name].mode()[0], "other")
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    first = make_column_transformer((encoder, labels), (MinMaxScaler(), numbers))
    network = MLPClassifier((16, 8), early_stopping=True, random_state=seed)
    last = LogisticRegression(max_iter=1000) if model == "logistic" else network
    cut = len(x) * 3 // 4
    seen = y.iloc[:cut]
    if data in BALANCED:
        seen = seen.groupby(seen).sample(seen.value_counts().max(), replace=True, random_state=seed)
    pipe = make_pipeline(first, last).fit(x.loc[seen.index], seen)
    ways = ("increase", "decrease")
    moved = {way: [n for n, c in chosen.columns.items() if c.monotone == way] for way in ways}
    still = [name for name, column in chosen.columns.items() if not column.actionable]
    up, down = moved["increase"], moved["decrease"]
    if their_levers:
        still, up, down = list(FIXED[data]), [], []
    recourse = Recourse(pipe, x.iloc[:cut], immutable=still, increase=up, decrease=down)
    later = x.iloc[cut:]
    return recourse, later[pipe.predict(later) == 0]


def wish(space: LeverSpace, rng: np.random.Generator) -> FloatArray | None:
    """A random boundary point that the person can reach; None if 4000 random points are all refused."""
    way = rng.normal(size=(4000, space.size))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    ends = space.inside(space.start + way * np.sqrt(space.size))
    good = ends[space.score(ends) > 0]
    return boundary_points(space, good[:1], 1e-6)[0] if len(good) else None


def one_person(recourse: Recourse, row: pd.DataFrame, base: str, person: int) -> list[Row]:
    """The measures of each method; [] for someone without a wish or a base recourse."""
    model = recourse.one_person(row)
    instance, rng = model.instance, np.random.default_rng([person, 150])
    space = LeverSpace(instance)
    goal = wish(space, rng)
    begin = base_recourse(instance, base, np.random.default_rng([person, 7])) if goal is not None else None
    if goal is None or not begin:
        return []
    found = [_measures("base", space, goal, begin, 0)]
    for method in METHODS[1:]:
        options: dict[str, Any] = {} if method == "exact-hare" else {"base": base}
        interview = Interview(recourse, row, method, BUDGET, person, **options)  # type: ignore[arg-type]
        while (question := interview.ask()) is not None:
            if question.kind == "one":
                interview.tell("no")
                continue
            assert question.left is not None and question.right is not None
            far = [np.linalg.norm(space.at(o.numbers) - goal) for o in (question.left, question.right)]
            interview.tell("left" if far[0] <= far[1] else "right")
        chosen = interview.recommend().action
        end = instance.numbers(chosen) if chosen else begin
        found.append(_measures(method, space, goal, end, len(interview.answers)))
    return found


def _measures(
    method: str, space: LeverSpace, goal: FloatArray, action: Mapping[str, float], asked: int
) -> Row:
    end, x = space.at(action), space.start
    size = float(np.linalg.norm(end - x) * np.linalg.norm(goal - x))
    return {
        "method": method,
        "gtp": f"{np.linalg.norm(end - goal):.5f}",
        "gtd": f"{1 - float((end - x) @ (goal - x)) / max(size, 1e-12):.5f}",
        "proximity": f"{np.linalg.norm(end - x):.5f}",
        "sparsity": len(action),
        "asked": asked,
    }


def run(
    folder: Path, out: Path, people: int, seeds: int, advance: Callable[[], None] = lambda: None
) -> list[Row]:
    """OUT/hare.csv, row by row: ``people`` refused test people per data set, model and seed."""
    with grown(out / "hare.csv", COLUMNS, {}) as (rows, write):
        done = {(r["data"], r["model"], r["seed"]) for r in rows}
        for seed in range(seeds):
            for data in DATA:
                for model in MODELS:
                    if (data, model, str(seed)) in done:
                        continue
                    recourse, refused = fitted(data, model, seed, folder)
                    made: list[Row] = []
                    for person in range(min(people, len(refused))):
                        for base in BASES:
                            for row in one_person(recourse, refused.iloc[[person]], base, person):
                                own = {"data": data, "model": model, "seed": seed, "person": person}
                                made.append({**own, "base": base, **row})
                        advance()
                    for one in made:
                        write(one)
                    rows.extend(made)
    return rows


def summary(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Means by data set, model, base and method, with intervals over people, beside the published means."""
    groups: dict[tuple[str, str, str, str], list[Mapping[str, Any]]] = {}
    for one in rows:
        groups.setdefault((one["data"], one["model"], one["base"], one["method"]), []).append(one)
    found = []
    for (data, model, base, method), own in groups.items():
        row: Row = {"data": data, "model": model, "base": base, "method": method, "people": len(own)}
        said = PUBLISHED.get((data, model, base))
        for k, name in enumerate(("gtp", "gtd")):
            values = np.array([float(r[name]) for r in own])
            low, high = interval(bootstrap(values, np.random.default_rng(0)))
            row |= {name: float(values.mean()), f"{name}_low": low, f"{name}_high": high}
            place = METHODS.index(method)
            row[f"{name}_published"] = said[3 * k + place] if said and place < 3 else None
        for name in ("proximity", "sparsity", "asked"):
            row[name] = float(np.mean([float(r[name]) for r in own]))
        found.append(row)
    return found


def draw(table: Sequence[Row], *paths: Path) -> Path:
    """GTP and GTD of each method, as a share of the base's, beside the published ones."""
    figure, axes = panels((11, 4.4), 1, 2)
    for axis, name in zip(axes, ("gtp", "gtd"), strict=True):
        for k, data in enumerate(DATA):
            for model, line in zip(MODELS, ("-", "--"), strict=True):
                cell = (data, model, BASES[1])
                own = {r["method"]: r for r in table if (r["data"], r["model"], r["base"]) == cell}
                if len(own) < len(METHODS):
                    continue
                shares = [own[m][name] / own["base"][name] for m in METHODS]
                axis.plot(METHODS, shares, "o" + line, color=f"C{k}", label=f"{data}, {model}")
                known = [own[m][f"{name}_published"] for m in METHODS[:3]]
                said = [value / known[0] for value in known]
                axis.plot(METHODS[:3], said, "*", color=f"C{k}", fillstyle="full" if line == "-" else "none")
        axis.set_ylim(bottom=0)
        axis.set_title(
            f"{name.upper()} as a share of the base's (growing spheres); stars: published", fontsize=9
        )
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8)
    return save(figure, *paths)

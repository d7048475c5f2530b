"""Does the Bradley-Terry model find known weights, and how many choices does that take?

Choices are between random recourses on two levers each, sizes are exponential, errors
logistic with a scale that is a share of the mean cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from milp_recourse.elicitation.bradley_terry import Outcome, feature_level, fit
from milp_recourse.elicitation.weight_samples import FloatArray
from milp_recourse.lab.means import bootstrap, interval
from milp_recourse.lab.run_table import Row
from milp_recourse.reports.drawing import panels, save

TENTH = 10
"""Intervals are drawn for one person in ten."""

CHOICES, NOISES = (5, 10, 20, 40, 80, 160), (0.05, 0.2, 0.5)


def random_choices(
    rng: np.random.Generator, weights: FloatArray, count: int, noise: float
) -> tuple[FloatArray, FloatArray, list[Outcome]]:
    """phi of both recourses of each pair, and what someone with the weights answers."""
    k = len(weights)
    shown = rng.exponential(size=(2, count, k)) * (rng.random((2, count, k)).argsort(axis=2) < 2)
    first, second = shown @ weights
    error = rng.logistic(size=count) * noise * float((first + second).mean() / 2)
    outcomes: list[Outcome] = ["first" if left else "second" for left in first + error < second]
    return shown[0], shown[1], outcomes


def run(people: int, levers: int = 4) -> list[Row]:
    """By noise and number of choices: the mean error of the fits, and how many intervals hold the weight.

    The error is half the sum of absolute differences of the shares of the weights, from 0 to 1.
    """
    found = []
    for noise in NOISES:
        for count in CHOICES:
            errors, held = np.zeros((people, 3)), []
            for person in range(people):
                rng = np.random.default_rng([person, 200])
                weights = rng.dirichlet(np.ones(levers)) * levers
                choices = random_choices(rng, weights, count, noise)
                drawn = person % TENTH == 0
                got = fit(*choices, level=0.9 if drawn else None, seed=person)
                for k, one in enumerate((got.weights, feature_level(*choices), np.ones(levers))):
                    errors[person, k] = np.abs(one - weights).sum() / levers / 2
                if drawn:
                    held.append(((got.low <= weights) & (weights <= got.high)).mean())
            row: Row = {"noise": noise, "choices": count, "people": people}
            for k, name in enumerate(("fit", "feature_level", "equal")):
                row[name] = float(errors[:, k].mean())
                ends = interval(bootstrap(errors[:, k], np.random.default_rng(0)))
                row[f"{name}_low"], row[f"{name}_high"] = ends
            row["in_90%_interval"] = float(np.mean(held))
            found.append(row)
    return found


def draw(rows: Sequence[Row], *paths: Path) -> Path:
    """The error of the fits by the number of choices."""
    figure, axis = panels((6.4, 4))
    for k, noise in enumerate(NOISES):
        own = [row for row in rows if row["noise"] == noise]
        x = [row["choices"] for row in own]
        for name, line in (("fit", "-"), ("feature_level", "--")):
            words = "recourses compared" if name == "fit" else "features compared, w = 1 - beta"
            axis.plot(x, [r[name] for r in own], line, color=f"C{k}", label=f"{words}, noise {noise:g}")
            low, high = ([r[f"{name}_{end}"] for r in own] for end in ("low", "high"))
            axis.fill_between(x, low, high, color=f"C{k}", alpha=0.15)
    axis.plot(x, [r["equal"] for r in own], ":", color="grey", label="equal weights")
    axis.set_xscale("log")
    axis.set_xticks(x, [str(n) for n in x])
    axis.set_ylim(bottom=0)
    axis.set_xlabel("choices")
    axis.set_ylabel("share of weight in the wrong place")
    figure.legend(loc="outside lower center", ncols=2, fontsize=7)
    return save(figure, *paths)

"""What the recommended recourse costs people beyond the one they want, by the number of questions asked.

The people are simulated, so that their weights are known. Both costs are certified: that of the recommended
recourse under the person's weights, and the least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from milp_recourse.formats import read_instance
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.lab.interviews.random_problems import random_problem
from milp_recourse.lab.interviews.simulated_people import Person, random_weights
from milp_recourse.lab.means import BOOTSTRAP, interval
from milp_recourse.lab.run_table import Key, Row, filled
from milp_recourse.preferences import Interview
from milp_recourse.preferences.cost_parts import levers
from milp_recourse.problem.instance import Instance
from milp_recourse.questions.solve import solve
from milp_recourse.reports.drawing import panels, save

COLUMNS = ("problem", "person", "method", "questions", "regret")

PROBLEMS: dict[str, tuple[int, tuple[int, ...]]] = {
    "loan network, 4 levers": (0, (0, 1, 2, 3, 5, 7, 10)),
    "credit trees, 4 levers": (0, (0, 1, 2, 3, 5, 7, 10)),
    "random network, 10 levers": (7000, (0, 2, 5, 8, 12, 18, 25)),
}
"""The number of the first person, and after how many questions the regret is taken. No setting was chosen by
what happens to these people with random networks."""

COMPARED = 12
"""People whom every method interviews; the others are for the first one alone."""

RATED = ("group", "rank", "likert")
METHODS = ("regret", *RATED, "random", "information", "minimax", "margin", "pear")


def problem_of(name: str, person: int) -> Instance | None:
    """A person's problem; None for a number for which there is none."""
    if name.startswith("random"):
        return random_problem(10, person)
    folder = "loan" if name.startswith("loan") else "credit_trees"
    file = instances_path() / folder / f"{folder.removesuffix('_trees')}_{person:03d}.json"
    return read_instance(file) if file.is_file() else None


def methods_for(name: str) -> tuple[str, ...]:
    """The methods that are compared: pairs by each strategy, and what is asked about levers."""
    few = ("regret", "information", "random", *RATED)
    return few if name.startswith("random") else METHODS


def people_of(name: str, most: int) -> Iterator[int]:
    """Of ``most`` people those who have a recourse, and at least four levers for it, by number."""
    first, _ = PROBLEMS[name]
    for person in range(first, first + most):
        instance = problem_of(name, person)
        if instance is not None and len(levers(instance)) >= 4 and solve(instance).action:
            yield person


def one_person(name: str, person: int, method: str) -> list[Row]:
    """The person's regret after each number of questions."""
    instance = problem_of(name, person)
    assert instance is not None
    someone = Person(instance, random_weights(instance, np.random.default_rng([person, 46])))
    best = solve(someone.problem())
    assert best.action is not None
    least = someone.cost(instance.numbers(best.action))
    _, at = PROBLEMS[name]
    own: dict[str, Any] = {"method": method} if method in RATED else {"strategy": method}
    interview = Interview(instance, budget=at[-1], seed=person, **own)
    rows: list[Row] = []

    def note(questions: Sequence[int]) -> None:
        result = interview.recommend()
        assert result.action is not None
        regret = float(someone.cost(instance.numbers(result.action)) / least - 1)
        rows.extend(_row(name, person, method, number, max(0.0, regret)) for number in questions)

    while (question := interview.ask()) is not None:
        if len(interview.answers) in at and method not in RATED:
            note([len(interview.answers)])
        rated = method == "likert"
        interview.tell(_rating(someone, question.levers[0]) if rated else someone.answer(question))
    asked = len(interview.answers)  # where nothing is left to ask, the regret stays as it is
    note([number for number in at if number >= asked] if method not in RATED else [asked])
    return rows


def _row(name: str, person: int, method: str, questions: int, regret: float) -> Row:
    return {
        "problem": name, "person": person, "method": method, "questions": questions, "regret": f"{regret:.6g}"
    }  # fmt: skip


def _rating(someone: Person, lever: str) -> str:
    """1 to 4 in proportion to the lever's weight; 5 would mean "not for me"."""
    low, high = min(someone.weights.values()), max(someone.weights.values())
    return str(1 + min(3, int(4 * (someone.weights[lever] - low) / ((high - low) or 1.0))))


def run(out: Path, people: int, advance: Callable[[], None] = lambda: None) -> list[Row]:
    """Interview the first ``people`` of each problem by each method; OUT/regret.csv grows row by row."""
    numbers = {name: people_of(name, 3 * people) for name in PROBLEMS}

    def solved(cell: tuple[int, str], done: set[Key]) -> Iterator[Row]:
        number, name = cell
        person = next(numbers[name], None)
        for method in methods_for(name) if number < COMPARED else METHODS[:1]:
            if person is not None and (name, str(person), method) not in done:
                yield from one_person(name, person, method)
        advance()

    cells = product(range(people), PROBLEMS)
    return filled(out / "regret.csv", COLUMNS, {}, 3, dict(enumerate(cells)), solved)


def summary(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Median regret with its interval (95%, bootstrap over people), by problem, method and questions."""
    groups: dict[tuple[str, str, int], list[float]] = {}
    for row in rows:
        questions = -1 if row["method"] in RATED else int(row["questions"])
        groups.setdefault((row["problem"], row["method"], questions), []).append(float(row["regret"]))
    found = []
    for (problem, method, questions), regrets in groups.items():
        values = np.array(regrets)
        drawn = np.random.default_rng(0).choice(values, (BOOTSTRAP, len(values)))
        low, high = interval(np.median(drawn, axis=1))
        asked = [int(r["questions"]) for r in rows if (r["problem"], r["method"]) == (problem, method)]
        found.append(
            {
                "problem": problem,
                "method": method,
                "people": len(values),
                "questions": max(asked) if questions < 0 else questions,
                "median": f"{np.median(values):.4f}",
                "low": f"{low:.4f}",
                "high": f"{high:.4f}",
            }
        )
    return found


def draw(rows: Sequence[Mapping[str, Any]], *paths: Path) -> Path:
    """The median regret by the number of questions, one panel per problem."""
    table = summary(rows)
    figure, axes = panels((12, 4.2), 1, len(PROBLEMS))
    for axis, problem in zip(axes, PROBLEMS, strict=True):
        for k, method in enumerate(METHODS):
            own = [r for r in table if r["problem"] == problem and r["method"] == method]
            x, y = [r["questions"] for r in own], [100 * float(r["median"]) for r in own]
            style = {"marker": "x", "linestyle": ""} if method in RATED else {"marker": "o", "markersize": 3}
            axis.plot(x, y, color=f"C{k}", label=method, **style)
        axis.set_yscale("symlog", linthresh=0.1)
        axis.set_ylim(bottom=0)
        axis.set_title(problem, fontsize=10)
        axis.set_xlabel("questions asked")
    axes[0].set_ylabel("median regret, % of the least cost")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=9)
    return save(figure, *paths)

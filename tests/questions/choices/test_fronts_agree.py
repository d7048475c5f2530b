"""A slice of ``compare_fronts.py``, and fronts against the number of actions over a population."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from milp_recourse.cli import main
from milp_recourse.formats import read_any
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.problem.conditions import AtMostActions
from milp_recourse.questions import front as fronts_of_actions
from milp_recourse.questions.front import average_of_actions, front
from milp_recourse.questions.solve import solve
from tests.questions.choices import compare_fronts as run

PEOPLE = instances_path() / "loan" / "population.json"


@pytest.mark.parametrize(("trees", "second"), [(False, "highs"), (True, "cpsat")])
@pytest.mark.parametrize("kind", run.KINDS)
def test_fronts_agree(trees, second, kind):
    """Every point by another back end and by a grid."""
    seen = [run.check(seed, kind, trees, ("bab", second), 30.0) for seed in range(300, 303)]
    assert [line for _, lines in seen for line in lines] == []
    assert sum(counts[run.TWO] for counts, _ in seen) >= 2


def test_a_point_that_is_too_dear_is_seen(monkeypatch):
    """A front whose sets of features are one too small."""
    own = fronts_of_actions._at_most
    monkeypatch.setattr(
        fronts_of_actions, "_at_most", lambda instance, count: own(instance, max(1, count - 1))
    )
    lines = [
        line for seed in range(8) for line in run.check(seed, "actions", False, ("bab", "highs"), 30.0)[1]
    ]
    assert any("actions" in line for line in lines)


def test_fronts_of_a_population_are_everybodys_own(tmp_path, capsys):
    """The command writes each person's front; with so many actions nobody's cost is below a solve's."""
    out = tmp_path / "fronts"
    assert main(["front", str(PEOPLE), "--count", "2", "--out", str(out)]) == 0
    assert capsys.readouterr().out.startswith("2 fronts, ")
    written = json.loads((out / "fronts.json").read_text())
    population, own = read_any(PEOPLE), []
    assert len(written) == 2 and (out / "front.png").stat().st_size > 1000
    for k, one in enumerate(written):
        own.append(front(population[k]))
        assert one == own[k].to_dict()
        person = population[k]
        for point in one["points"]:
            limited = replace(
                person, conditions=(*person.conditions, AtMostActions(point["actions"])), reference=None
            )
            assert solve(limited, "highs").cost == pytest.approx(point["cost"], rel=3e-6)
    rows = json.loads((out / "average.json").read_text())
    shares = [row["share with an action"] for row in rows]
    assert shares == sorted(shares) and rows == average_of_actions(own)

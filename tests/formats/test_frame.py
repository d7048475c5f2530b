"""A population from a DataFrame: the same people as from a file, whoever cannot be read set aside."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from milp_recourse.errors import BadInput
from milp_recourse.formats import read_instance, read_population
from milp_recourse.problem.instance import Preferences
from milp_recourse.problem.population import Population
from milp_recourse.tables.from_data import at_level, known_rows

pd = pytest.importorskip("pandas")
LOAN = Path(__file__).resolve().parents[2] / "instances" / "loan"
PEOPLE = read_population(LOAN / "population.json")
FRAME = pd.read_csv(LOAN / "refused.csv").head(5)


def test_the_same_people_as_from_the_file() -> None:
    """Columns in any order, further ones ignored, identifiers kept."""
    shuffled = FRAME[FRAME.columns[::-1]].assign(note="x", id=list("abcde"))
    made = Population.from_frame(shuffled, PEOPLE)
    assert len(made) == 5 and made.ids == tuple("abcde") and not made.unreadable
    assert [made[k].factual for k in range(5)] == [PEOPLE[k].factual for k in range(5)]
    assert made[2].preferences == PEOPLE.template.preferences
    own = [Preferences(("income",)), *[Preferences(("savings",))] * 4]
    assert Population.from_frame(FRAME, PEOPLE[0], own)[0].preferences == own[0]
    assert Population.from_frame(shuffled, PEOPLE, id="note").ids == ("x",) * 5


def test_factual_values_may_come_in_any_order() -> None:
    """Rows are in the features' order all the same, and with them densities and scales."""
    turned = [dict(reversed(one.items())) for one in PEOPLE.factuals[:4]]
    made = Population(PEOPLE.template, turned, PEOPLE.preferences[:4])
    assert (made.rows == PEOPLE[:4].rows).all() and (known_rows(made) == made.rows).all()
    offsets = [one.density_offset for one in at_level(made, -20.0).preferences]
    assert offsets == [one.density_offset for one in at_level(PEOPLE[:4], -20.0).preferences]


def test_labels_and_truth_values() -> None:
    """Text is a label, True is 1; categories of pandas are text too."""
    instance = read_instance(LOAN.parent / "smoke" / "categorical.json")
    row = {f.name: f.show(instance.factual[f.name]) for f in instance.features}
    frame = pd.DataFrame([row]).astype({f.name: "category" for f in instance.features if f.categories})
    assert Population.from_frame(frame, instance)[0].factual == instance.factual
    loan = FRAME.assign(gender=FRAME["gender"].astype(bool))
    assert Population.from_frame(loan, PEOPLE)[0].factual == PEOPLE[0].factual


def test_who_cannot_be_read_is_set_aside_with_the_reason() -> None:
    """By position, named by the row's label."""
    broken = FRAME.astype({"income": object}).set_index(pd.Index(list("vwxyz")))
    broken.loc["w", "income"] = "much"
    broken.loc["y", "income"] = np.nan
    made = Population.from_frame(broken, PEOPLE)
    assert set(made.unreadable) == {1, 3}
    with pytest.raises(BadInput, match=r"row 'w'\.income: got 'much'; allowed: a number"):
        made[1]
    with pytest.raises(BadInput, match=r"row 'y'\.income: got null"):
        made[3]


@pytest.mark.parametrize(
    ("frame", "more", "said"),
    [
        (FRAME.drop(columns="age"), {}, "frame: got no column 'age'"),
        (FRAME.head(0), {}, "frame: got no rows"),
        (FRAME, {"id": "name"}, "id: got name"),
        (FRAME, {"preferences": [Preferences()] * 2}, "preferences: got 2"),
        (pd.concat([FRAME, FRAME["age"]], axis=1), {}, "columns twice 'age'"),
    ],
)
def test_mistakes_are_one_clear_line(frame, more, said) -> None:
    """Before anything is solved."""
    with pytest.raises(BadInput, match=said):
        Population.from_frame(frame, PEOPLE, **more)

"""The gap: what is compared with what, and what must never happen."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("zuko")

from milp_recourse.elicitation.schemes import LOAN_ACTIONABLE, sample_rankings
from milp_recourse.judge import judge
from milp_recourse.lab.gap.compared import compare, kind_of
from milp_recourse.lab.gap.gap import plan, write
from milp_recourse.lab.gap.paper_settings import SETTINGS, draw
from milp_recourse.lab.icarma.exact import Certified
from milp_recourse.lab.icarma.score import score
from milp_recourse.problem.population import Population

HERE = 8


@pytest.fixture(scope="module")
def few(people):
    """The first applicants."""
    return Population(people.template, people.factuals[:HERE], people.preferences[:HERE])


@pytest.fixture(scope="module")
def compared(few, model, tmp_path_factory):
    """Table 1 for them, with and without the demand for plausibility."""
    return compare(few, {"rank": model}, tmp_path_factory.mktemp("gap"), plan((1,)), ("optimum", "mask"))


def test_settings_have_unique_names_and_all_published_rows() -> None:
    """5, 8, 8 and 10 rows of tables 1, 2, 3 and 5."""
    assert len({s.key for s in SETTINGS}) == len(SETTINGS)
    assert [sum(s.table == t for s in SETTINGS) for t in (1, 2, 3, 5)] == [5, 8, 8, 10]
    assert len(plan((1, 2))) == 5 + 8 + 5


def test_rankings_and_scores_are_the_recorded_ones() -> None:
    """The seeds behind the recorded optima: a ranking of everybody, cut where the setting says."""
    of = {s.key: draw(s, 200, 4) for s in SETTINGS}
    ranks = sample_rankings("uniform", 200, np.random.default_rng([4, 0]))
    counts = np.random.default_rng([4, 1]).integers(1, 5, 200)
    assert (of["table 1: 2"].actionable == (ranks <= 2)).all()
    assert (of["table 1: random"].actionable == (ranks <= counts[:, None])).all()
    causal = sample_rankings("causal", 200, np.random.default_rng([4, 0]))
    assert (of["table 5: causal 1"].actionable == (causal <= 1)).all()
    hard = np.random.default_rng([4, 3]).integers(1, 6, (200, 4))
    assert (of["table 3: hard, linear"].actionable == (hard < 5)).all()


def test_scores_agree_with_exact_judgement(people, model) -> None:
    """Served means: judge() finds no fault; costs are the exact ones."""
    rows = people[:60].rows
    wishes = draw(SETTINGS[7], 60, 3)
    action, _ = model.recommend(rows, wishes)
    scored = score(people.template, model, rows, wishes, action)
    template = replace(people.template, plausible=True)
    judged = []
    for i, given in enumerate(wishes.preferences(model.levers)):
        instance = replace(template, factual=people.factuals[i], preferences=given)
        values = {f: float(v) for f, v in zip(model.flow.features, action[i], strict=True) if not np.isnan(v)}
        verdict = judge(instance, values)
        judged.append(verdict.feasible)
        assert scored.cost[i] == pytest.approx(float(verdict.cost))
        assert scored.valid_deployed[i] == verdict.accepted_deployed
    assert scored.serves(True).tolist() == judged
    assert 0 < sum(judged) < 60


def test_everybody_is_in_one_box(compared) -> None:
    """Served by both, missed, or impossible (no limit here); nobody impossible is served."""
    assert len(compared) == 10
    for one in compared:
        assert (one.both.astype(int) + one.missed + one.optimum.impossible == 1).all()
        assert not one.contradicted.any()
        assert (one.ratio >= 1 - 1e-6).all()
    assert sum(one.both.sum() for one in compared) > 0
    assert sum(one.optimum.impossible.sum() for one in compared) > 0


def test_polishing_stands_between(compared) -> None:
    """Within the networks' mask: never cheaper than the optimum, never dearer than the recommendation."""
    dearer = 0
    for one in compared:
        assert (one.mask_ratio >= 1 - 1e-6).all()
        within = one.exact["mask"]
        assert within.served[one.both].all()
        assert (within.cost[one.both] <= one.scored.cost[one.both] * (1 + 1e-6)).all()
        dearer += (one.scored.cost[one.both] > 1.01 * within.cost[one.both]).sum()
        assert not (within.served & one.optimum.impossible).any()
    assert dearer, "or the comparison says nothing"


def saying(compared, scored):
    """The same with other recommendations."""
    return replace(compared, recommended=replace(compared.recommended, scored=scored))


def test_a_recommendation_that_refutes_a_proof_is_seen(compared) -> None:
    """Cheaper than the optimum, or for somebody who was proven to have none."""
    one = next(c for c in compared if c.both.any() and c.optimum.impossible.any())
    cheap = saying(one, replace(one.scored, cost=0.9 * one.optimum.cost))
    assert cheap.contradicted.sum() == one.both.sum()
    served = np.ones(HERE, dtype=bool)
    wonder = replace(one.scored, sure=served, plausible=served)
    miracle = saying(one, wonder)
    assert (miracle.contradicted & one.optimum.impossible).sum() == one.optimum.impossible.sum()


def test_nothing_is_solved_twice(few, compared, tmp_path) -> None:
    """A mask that comes again in another setting, or in another run, is not missing."""
    wishes = [draw(s, HERE, 0) for s in SETTINGS if s.table == 1]
    first = Certified(few, LOAN_ACTIONABLE, tmp_path, 60.0)
    todo = first.missing(wishes)
    assert len(todo) == len({one.key for one in todo})
    assert HERE < len(todo) < 5 * HERE
    first.solve(wishes)
    again = Certified(few, LOAN_ACTIONABLE, tmp_path, 60.0)
    assert again.missing(wishes) == []
    for one, wanted in zip(compared[:5], wishes, strict=True):
        assert again.of(wanted).cost == pytest.approx(one.optimum.cost, rel=1e-6, nan_ok=True)
    assert Certified(few, LOAN_ACTIONABLE, tmp_path, 30.0).missing(wishes), "another limit, another file"


def test_what_is_written(compared, few, model, tmp_path) -> None:
    """A row per setting and one per applicant, shares that add up."""
    rows = write(compared, few, model, tmp_path)
    with (tmp_path / "gap.csv").open(encoding="utf-8") as file:
        read = list(csv.DictReader(file))
    assert len(read) == len(rows) == 10
    for row in read:
        parts = [float(row[name]) for name in ("served", "missed", "impossible")]
        assert sum(parts) == pytest.approx(1)
        assert float(row["recourse_exists"]) == pytest.approx(parts[0] + parts[1])
    with (tmp_path / "applicants.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 10 * HERE


def test_which_networks_a_setting_asks_for() -> None:
    """Constant weights have their own; every profile of ranks shares one, and of scores."""
    assert {kind_of(s) for s in SETTINGS if s.table in (1, 5)} == {"constant"}
    assert {(s.cell.elicitation, kind_of(s)) for s in SETTINGS if s.cell.profile != "constant"} == {
        ("rank", "rank"),
        ("score", "score"),
    }


def test_figures(compared, tmp_path) -> None:
    """Written, and not empty."""
    pytest.importorskip("matplotlib")
    from milp_recourse.lab.gap.gap_plots import plot

    plot(compared, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["gap.png"]
    assert (tmp_path / "gap.png").stat().st_size > 10_000

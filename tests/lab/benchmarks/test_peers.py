"""``bench peers``: what tools are asked, how their answers are judged, and which Pythons are refused."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from milp_recourse.errors import BadInput
from milp_recourse.lab.benchmarks import bench_peers as bench
from milp_recourse.lab.benchmarks import peer_questions as asking
from milp_recourse.lab.benchmarks.fitted import Fitted, fit_trees
from milp_recourse.lab.recipe.real import Table, numeric

pytest.importorskip("xgboost")

FAKE = """
import itertools, json, sys, time

folder, tool = sys.argv[1:]
if tool == "reachml":
    print(json.dumps({"refused": "it is not here"}), flush=True)
    sys.exit()
import numpy as np
from xgboost import XGBClassifier

model = XGBClassifier()
model.load_model(folder + "/model.json")
print(json.dumps({"version": "1", "refused": None}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    ends = [range(int(low), int(high) + 1) for low, high in zip(asked["low"], asked["high"])]
    points = np.array(list(itertools.product(*ends)), dtype=float)
    good = points[model.predict(points) == 1]
    answer = {"seconds": 0.5}
    if tool == "dice" and not len(good):
        time.sleep(60)
    elif tool == "dice":
        answer |= {"status": "limit", "row": asked["row"]}
    elif len(good):
        costs = abs(good - asked["row"]).sum(axis=1)
        best = costs.argmin()
        answer |= {"status": "optimal", "row": good[best].tolist(), "claimed_cost": costs[best]}
    else:
        answer |= {"status": "infeasible"}
    print(json.dumps(answer), flush=True)
"""
"""treecf tries every point, dice does nothing and has no time limit, reachml is not installed."""


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    """A small model that refuses some whom one step does not help."""
    rng = np.random.default_rng(3)
    columns = ("duration", "amount", "savings", "age")
    values = rng.integers(0, (7, 6, 5, 4), size=(400, 4)).astype(np.float64)
    values[:, 1] *= asking.AMOUNT
    labels = 2 * values[:, 2] - values[:, 0] - values[:, 1] / asking.AMOUNT + values[:, 3] > 0
    features = tuple(numeric(name, "integer", values[:, k]) for k, name in enumerate(columns))
    table = asking.whole(Table("small", features, values, labels.astype(np.int64)))
    return fit_trees(table, "xgboost", 8, 2)


@pytest.fixture
def fake(tmp_path: Path) -> str:
    """The script of the three tools."""
    script = tmp_path / "fake.py"
    script.write_text(FAKE, encoding="utf-8")
    return str(script)


def plan(*tools: str, **changed: Any) -> bench.Plan:
    """Three people with recourse and two without."""
    given: dict[str, Any] = {"people": 3, "without": 2, "time_limit": 20.0}
    return bench.Plan(dict.fromkeys(tools, sys.executable), **(given | changed))


def test_tools_answer_the_same_questions_once(fitted: Fitted, fake: str, tmp_path: Path) -> None:
    """An exhaustive search agrees with what is certified; a second run asks nothing again."""
    rows = bench.answered(fitted, plan("treecf"), tmp_path, script=fake)
    assert [row["tool"] for row in rows] == ["bab"] * 5 + ["treecf"] * 5
    assert [row["kind"] for row in rows[:5]] == ["recourse"] * 3 + ["none"] * 2
    assert [row["least"] for row in rows[:5]] == [row["least"] for row in rows[5:]]
    report = bench.write(rows, tmp_path, plan("treecf"))
    for line in report["tools"]:
        assert (line["answered"], line["valid"], line["proven"], line["none_said"]) == (3, 3, 3, 2)
        assert (line["ratio_median"], line["ratio_max"], line["wrong"]) == (1.0, 1.0, 0)
    assert report["left_out"] == ["ocean", "dice", "alibi", "reachml"] and report["wrong"] == []
    asked: list[str] = []
    assert bench.answered(fitted, plan("treecf"), tmp_path, asked.append, fake) == rows
    assert len(asked) == 10


def test_directions_and_steps_are_in_every_question(fitted: Fitted) -> None:
    """What may only rise does not fall, what is no lever is fixed; narrowed, nothing moves by more than 1."""
    assert fitted.table.values[:, 1].max() == 5.0
    for narrow in (False, True):
        row = int(fitted.refused[0])
        one = asking.asked(asking.problem(fitted, row, narrow), row, _solved)
        assert one is not None
        duration, amount, savings, age = zip(one.low, one.row, one.high, strict=True)
        assert duration[1] == duration[2] and amount[1] == amount[2] and savings[0] == savings[1]
        assert age[0] == age[1] == age[2]
        assert savings[2] == (min(4.0, savings[1] + 1.0) if narrow else 4.0)
        assert duration[0] == (max(0.0, duration[1] - 1.0) if narrow else 0.0)
    assert asking.asked(asking.problem(fitted, row), row, lambda _: _solved(_) | {"verified": False}) is None


def _solved(_: object) -> dict[str, Any]:
    return {"status": "optimal", "verified": True, "cost": 1.0, "action": {"savings": 4.0}}


def test_a_tool_that_does_not_end_is_ended(fitted: Fitted, fake: str, tmp_path: Path) -> None:
    """It said nothing, and is started again; an action that the model refuses is found, and not accepted."""
    bench._hand_over(fitted, tmp_path)
    row = tuple(fitted.table.values[fitted.refused[0]].tolist())
    stuck = asking.Question(0, row, row, row, None, {})
    free = asking.Question(0, row, (0.0, 0.0, 0.0, row[3]), (6.0, 5.0, 4.0, row[3]), 1.0, {})
    with bench.Worker("dice", sys.executable, tmp_path, fake) as worker:
        answer = worker.ask(stuck, 1.0)
        assert answer == {"status": "nothing", "message": "ended after the time limit", "seconds": 1.0}
        told = asking.judged(fitted, free, worker.ask(free, 60.0))
    assert (told["status"], told["accepted"], told["within"], told["cost"]) == ("found", False, True, 0.0)


def test_a_python_without_the_tool_is_refused(fitted: Fitted, fake: str, tmp_path: Path) -> None:
    """Before anybody is asked, in one line that says what to install."""
    with pytest.raises(BadInput, match=r"reachml: it is not here; .* scikit-learn and reachml"):
        bench.answered(fitted, plan("reachml", "treecf"), tmp_path, script=fake)
    with pytest.raises(BadInput, match="No such file"):
        bench.answered(fitted, bench.Plan({"dice": str(tmp_path / "nothing")}), tmp_path)
    if find_spec("alibi") is None:
        with pytest.raises(BadInput, match=r"alibi: PackageNotFoundError"):
            bench.answered(fitted, plan("alibi"), tmp_path)
    assert not (tmp_path / "peers.csv").exists()


def row(**changed: Any) -> dict[str, str]:
    """A row as it is read from the table."""
    plain = {
        "tool": "x",
        "applicant": "7",
        "kind": "recourse",
        "version": "1",
        "least": "2.0",
        "seconds": "1",
    }
    said = {"status": "optimal", "claimed_cost": "2.0", "cost": "2.0", "accepted": "True", "within": "True"}
    return plain | said | {k: str(v) for k, v in changed.items()}


NONE = {"kind": "none", "least": ""}
NOTHING = {"status": "nothing", "claimed_cost": "", "cost": "", "accepted": "", "within": ""}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, None),
        ({"status": "found", "cost": "5.0", "claimed_cost": ""}, None),
        ({"status": "found", "accepted": "False"}, None),
        (NOTHING, None),
        (NONE | NOTHING, None),
        (NONE | NOTHING | {"status": "infeasible"}, None),
        ({"cost": "3.0", "claimed_cost": "3.0"}, "says optimal at 3.0, 2.0 is"),
        ({"claimed_cost": "1.0"}, "says optimal at 1.0"),
        ({"within": "False"}, "not valid"),
        (NOTHING | {"status": "infeasible"}, "says that none exists"),
        (NONE | NOTHING | {"status": "exists"}, "says exists, none exists"),
        (NONE | {"status": "found"}, "says found, none exists"),
    ],
)
def test_wrong_claims_are_told_from_poor_answers(changed: dict[str, str], said: str | None) -> None:
    """An expensive action, or none, claims nothing; a proof of what is not so does."""
    found = asking.wrong(row(**changed))
    assert found is None if said is None else said in str(found)
    assert bench.summarise([row(**changed)])["tools"][0]["wrong"] == (said is not None)


def test_a_tool_that_only_says_whether_recourse_exists_has_no_costs() -> None:
    """So no share of valid actions either."""
    [line] = bench.summarise([row(**NOTHING | {"status": "exists"}), row(**NONE | NOTHING)])["tools"]
    assert line["answered"] == 1 and line["valid"] is line["proven"] is line["ratio_median"] is None


@pytest.mark.parametrize("text", ["treecf", "treecf=", "other=python"])
def test_a_python_is_named_with_its_tool(text: str) -> None:
    """One line that names the option."""
    assert bench.pythons(["ocean=a=b"]) == {"ocean": "a=b"}
    with pytest.raises(BadInput, match="--python"):
        bench.pythons([text])


def test_too_few_people_are_told(fitted: Fitted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the number that there are; nobody without a certificate is skipped; the owner's file is needed."""
    with pytest.raises(BadInput, match=r"--people: got 10000; allowed: at most \d+"):
        asking.questions(fitted, 10000, 2, 20.0)
    with pytest.raises(BadInput, match=r"german\.data"):
        bench.run(plan(data=tmp_path), tmp_path)
    monkeypatch.setattr(asking, "asked", lambda *_: None)
    with pytest.raises(BadInput, match=r"--time-limit: got 20.0; allowed: more: row \d+ has no certificate"):
        asking.questions(fitted, 3, 2, 20.0)

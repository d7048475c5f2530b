"""Costs and offsets in files: what is read, what is written, what is refused in one line."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import milp_recourse
from milp_recourse.errors import BadInput
from milp_recourse.formats import instance_from_dict, instance_to_dict, population_from_dict
from milp_recourse.problem.cost import Cost, root_above, root_below
from milp_recourse.problem.lever_cost import exact_cost, lever_costs

BASE: dict[str, Any] = {
    "format": "milp-recourse/instance-1",
    "features": [
        {"name": "a", "kind": "continuous", "actionable": True, "bounds": [-10, 10]},
        {"name": "b", "kind": "continuous", "actionable": True, "bounds": [-10, 10]},
        {"name": "c", "kind": "categorical", "actionable": True, "categories": ["x", "y"]},
    ],
    "scm": {
        "name": "explicit",
        "mechanisms": {n: {"equation": 0, "noise": {"kind": "normal", "sd": 1}} for n in ("a", "b")}
        | {"c": {"equation": 0, "noise": {"kind": "bernoulli", "p": 0.5}}},
    },
    "classifier": {
        "kind": "relu-network",
        "dtype": "float64",
        "layers": [{"weight": [[1, 1, 0, 0]], "bias": [-3]}],
    },
    "factual": {"a": 1, "b": -2, "c": "x"},
    "preferences": {"actionable": ["a", "b"]},
    "cost": {"kind": "l1", "scale": {"a": 1, "b": 1}},
}


def said(**changes: Any) -> dict[str, Any]:
    """The problem with other keys."""
    return copy.deepcopy(BASE) | changes


@pytest.mark.parametrize(
    ("scale", "action", "expected"),
    [
        ({"a": 1, "b": 1}, {"a": 3.0, "b": -4.0}, 4),
        ({"a": {"increase": 4, "decrease": 0.5}, "b": 1}, {"a": 3.0}, Fraction(1, 2)),
        ({"a": {"increase": 4, "decrease": 0.5}, "b": 1}, {"a": -1.0}, 4),
        ({"a": 1, "b": "factual"}, {"b": 4.0}, 3),
    ],
)
def test_the_cost_is_the_formula(scale: Any, action: dict[str, float], expected: Any) -> None:
    """By hand: distances over the scale of their direction, or over the size of the factual."""
    from milp_recourse.judge import judge

    instance = instance_from_dict(said(cost={"kind": "l1", "scale": scale}))
    assert judge(instance, action).cost == expected


def test_the_root_is_of_the_sum_and_is_rounded_outward() -> None:
    """3-4-5, and roots on both sides of what is irrational."""
    costs = lever_costs(
        Cost.pure("l2", {"a": 1.0, "b": 1.0}), {"a": False, "b": False}, {"a": 1.0, "b": 1.0}, {}
    )
    paid = exact_cost([(costs["a"], 4.0), (costs["b"], -3.0)], root=True)
    assert 0 <= paid - 5 < Fraction(1, 2**90)
    for value in (Fraction(2), Fraction(1, 3**200), Fraction(7**90), Fraction(10**-9)):
        above = root_above(value)
        assert above**2 >= value
        assert (above * (1 - Fraction(1, 2**99))) ** 2 < value
        if 1e-300 < value < 1e300:
            assert Fraction(root_below(float(value))) ** 2 <= Fraction(float(value))
    assert root_above(Fraction(0)) == 0


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"cost": {"kind": "l1", "scale": {"a": 0, "b": 1}}}, "cost.scale.a"),
        ({"cost": {"kind": "l1", "scale": {"a": "own", "b": 1}}}, "cost.scale.a"),
        ({"cost": {"kind": "l1", "scale": {"a": {"increase": 1}, "b": 1}}}, "cost.scale.a"),
        ({"cost": {"kind": "l1", "scale": {"a": {"increase": 1, "decrease": -1}, "b": 1}}}, "decrease"),
        ({"cost": {"kind": "l1", "scale": {"a": 1, "b": 1, "c": "factual"}}}, "cost.scale.c"),
        (
            {"cost": {"kind": "l1", "scale": {"a": 1, "b": 1, "c": {"increase": 1, "decrease": 2}}}},
            "cost.scale.c",
        ),
        ({"cost": {"kind": "l3", "scale": {}}}, "cost"),
        ({"cost": {"kind": "log-percentile", "quantiles": {"a": [[0, -1], [1, 2]]}}}, "cost.quantiles.a.0"),
        ({"cost": {"kind": "log-percentile", "quantiles": {"a": [[0, 2], [1, 1]]}}}, "cost.quantiles.a.1"),
        (
            {
                "cost": {"kind": "l1", "scale": {"a": "factual", "b": 1}},
                "factual": {"a": 0, "b": 1, "c": "x"},
            },
            "factual 0",
        ),
        ({"preferences": {"actionable": ["a", "b"], "density_offset": 1}}, "density_offset"),
        ({"plausibility": {"kind": "scm-density", "at_least": "factual", "offset": "much"}}, "offset"),
        ({"plausibility": {"kind": "scm-density", "at_least": -3}}, "at_least"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(changes: dict[str, Any], line: str) -> None:
    """The line names the field."""
    with pytest.raises(BadInput) as refused:
        instance_from_dict(said(**changes))
    assert line in str(refused.value) and "\n" not in str(refused.value)


def test_files_say_what_was_read() -> None:
    """Scales and offsets survive a round trip; equal scales are one."""
    scale = {"a": {"increase": 2.0, "decrease": 3.0}, "b": "factual", "c": {"increase": 1, "decrease": 1}}
    scale["c"] = 1.0
    plausible = {"kind": "scm-density", "at_least": "factual", "offset": -1.5}
    own = {"actionable": ["a", "b", "c"], "density_offset": 0.25}
    made = instance_from_dict(
        said(cost={"kind": "l2", "scale": scale}, plausibility=plausible, preferences=own)
    )
    written = json.loads(json.dumps(instance_to_dict(made)))
    assert written["cost"] == {"kind": "l2", "scale": scale}
    assert written["plausibility"] == plausible
    assert written["preferences"]["density_offset"] == 0.25
    again = instance_from_dict(written)
    assert again.cost == made.cost and again.offset == made.offset == 0.25
    same = said(cost={"kind": "l1", "scale": {"a": {"increase": 2, "decrease": 2}, "b": 1}})
    own = instance_from_dict(same).cost.measures.values()
    assert all(one.rise == one.fall for one in own)


def test_a_person_at_zero_is_bad_input_and_holds_up_nobody() -> None:
    """Relative changes of a value that is 0; the others' scales are their own."""
    data = said(format="milp-recourse/population-1", cost={"kind": "l1", "scale": {"a": "factual", "b": 1}})
    del data["factual"]
    data["factuals"] = [{"a": a, "b": 0, "c": "x"} for a in (0, 2, -4)]
    people = population_from_dict(data)
    assert list(people.unreadable) == [0]
    assert [people[k].cost.lengths["a"] for k in (1, 2)] == [2.0, 4.0]


def test_examples_of_the_schemas_hold(tmp_path: Path) -> None:
    """The JSON Schema that is shipped takes what the reader takes."""
    jsonschema = pytest.importorskip("jsonschema")
    from milp_recourse.formats.json_schemas import FOLDER

    schema = json.loads((FOLDER / "instance-1.schema.json").read_text())
    scale = {"a": {"increase": 2.0, "decrease": 3.0}, "b": "factual"}
    jsonschema.validate(said(cost={"kind": "l2", "scale": scale}), schema)


NEW_LINES = {
    "milp_recourse/problem/cost.py": (
        "KINDS: dict[str, CostKind] = {\n",
        """    "both": CostKind("twice the sum of changes, and each", {"l1": 2.0, "l0": 0.5}),\n"""
        """    "list": CostKind("prices from a list", {"l1": 1.0, "l2_squared": 0.1}, "log-percentile"),\n""",
    ),
    "verify/files/costs.py": (
        "for part in PARTS} | {\n",
        """    "both": ({"l1": 2.0, "l0": 0.5}, {}),\n"""
        """    "list": ({"l1": 1.0, "l2-squared": 0.1}, {"ranks": not_negative}),\n""",
    ),
}
WORDS = """
from milp_recourse.formats import read_instance
from milp_recourse.reports.pages.gather import facts_of

print(facts_of(read_instance("both.json"))["Cost"])
"""
BY_TABLES = """
import json
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from milp_recourse import Recourse
from milp_recourse.errors import BadInput

X = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 2)), columns=["a", "b"])
model = LogisticRegression().fit(X, (X["a"] + X["b"] > 1).to_numpy())
own = json.load(open("plain.json"))["cost"]["scale"]
print(Recourse(model, X, scale=own).certify(X[:9], out="people", certificates=True))
for wrong in ({"beyond": 0.5}, {"beyond": 1.0}, {"knee": -1}):
    try:
        Recourse(model, X, scale={"a": own["a"] | wrong})
    except BadInput as refused:
        print(refused)
"""


BY_HIGHS = """
import sys
from milp_recourse.formats import read_instance
from milp_recourse.questions.solve import solve

print(solve(read_instance(sys.argv[1]), "highs", 60).cost)
"""
SOLVED = "from milp_recourse.cli import main"
SOLVE = "['solve', f'{kind}.json', '--certificate', f'{kind}_certificate.json']"
CHECKED = "from verify.__main__ import main"
CHECK = "[f'{kind}_certificate.json', f'{kind}.json']"


KNEED = {
    "milp_recourse/problem/cost.py": {
        "...] = Distance, Relative": "...] = Kneed, Distance, Relative",
        "@dataclass(frozen=True)\nclass Relative(": '''@dataclass(frozen=True)
class Kneed(Measure):
    """The distance over a scale of its direction, counted several times beyond some distance."""

    up: Positive
    down: Positive
    knee: Positive
    times_beyond: Positive
    keys = {"up": "increase", "down": "decrease", "times_beyond": "beyond"}
    strict = True

    def __post_init__(self):
        if self.times_beyond < 1:
            raise ValueError(str(self.times_beyond), "1 or more", "times_beyond")
        if self.times_beyond == 1:
            raise ValueError("a distance", "its scales alone")

    def pieces(self, x):
        rates, ends = (inverse(self.down), inverse(self.up)), (x - self.knee, x + self.knee)
        start = [abs(Fraction(end) - Fraction(x)) * rate for end, rate in zip(ends, rates)]
        below, above = (rate * Fraction(self.times_beyond) for rate in rates)
        return (
            Piece(-math.inf, ends[0], below, ends[0], start[0]),
            Piece(ends[0], x, rates[0], x, NOTHING),
            Piece(x, ends[1], rates[1], x, NOTHING),
            Piece(ends[1], math.inf, above, ends[1], start[1]),
        )

    def times(self, factor):
        return Kneed(self.up * factor, self.down * factor, self.knee, self.times_beyond)


@dataclass(frozen=True)
class Relative(''',
    },
    "verify/files/costs.py": {
        "MEASURES: dict[": """def _kneed_pieces(x, increase, decrease, knee, beyond):
    low, high = (Fraction(float(x) + way * float(knee)) for way in (-1, 1))
    below, above = (x - low) * (beyond - 1) / decrease, (high - x) * (beyond - 1) / increase
    return [
        Piece(-inf, low, -beyond / decrease, beyond * x / decrease - below),
        Piece(low, x, -1 / decrease, x / decrease),
        Piece(x, high, 1 / increase, -x / increase),
        Piece(high, inf, beyond / increase, -beyond * x / increase - above),
    ]


KNEED = dict.fromkeys(("increase", "decrease", "knee", "beyond"), positive)
MEASURES: dict[""",
        '    ("increase", "decrease"): (_two, _two_pieces),\n': """    (*KNEED,): (KNEED, _kneed_pieces),
    ("increase", "decrease"): (_two, _two_pieces),
""",
    },
}
"""Another way to measure a change: what is added to one file of the package and to one of the checker."""


def copied(folder: Path, changes: dict[str, dict[str, str]]) -> None:
    """A copy of package and checker with texts replaced."""
    ignored = shutil.ignore_patterns("__pycache__", "checkpoints")
    for part in ("milp_recourse", "verify"):
        shutil.copytree(Path(milp_recourse.__file__).parents[1] / part, folder / part, ignore=ignored)
    for name, texts in changes.items():
        source = (folder / name).read_text(encoding="utf-8")
        for before, after in texts.items():
            assert source.count(before) == 1, before
            source = source.replace(before, after)
        (folder / name).write_text(source, encoding="utf-8")


def said_by(folder: Path, *command: str) -> str:
    """What Python prints there."""
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True, cwd=folder)
    return done.stdout


def solved_and_checked(folder: Path, problems: dict[str, dict[str, Any]]) -> dict[str, float]:
    """The costs of problems by name, all certified and verified in the copy."""
    for kind, problem in problems.items():
        (folder / f"{kind}.json").write_text(json.dumps(problem))
    solved = said_by(folder, "-c", f"{SOLVED}\nfor kind in {tuple(problems)!r}: main({SOLVE})")
    assert [line[:7] for line in solved.splitlines()].count("optimal") == len(problems), solved
    checked = said_by(folder, "-c", f"{CHECKED}\nfor kind in {tuple(problems)!r}: main({CHECK})")
    assert [line[:16] for line in checked.splitlines()].count("VERIFIED optimal") == len(problems), checked
    return {kind: json.loads((folder / f"{kind}_certificate.json").read_text())["cost"] for kind in problems}


@pytest.mark.long
def test_a_new_way_to_measure_is_in_one_file_and_one_of_the_checker(tmp_path: Path) -> None:
    """In a copy with a measure of four numbers, two of them called like those of another, files and tables
    state it, all back ends agree about it, certificates prove it and the checker verifies them; errors name
    its keys."""
    copied(tmp_path, KNEED)
    two = {"increase": 1, "decrease": 2}
    kneed = {"scale": {"a": {**two, "knee": 1.5, "beyond": 4}, "b": {**two, "knee": 3, "beyond": 2}}}
    squared = said(cost={"kind": "l2-squared", **kneed})
    causal = said(cost={"kind": "l1", **kneed})
    causal["scm"]["mechanisms"]["b"]["equation"] = {"product": [0.25, "a"]}
    problems = {"plain": said(cost={"kind": "l1", **kneed}), "squared": squared, "causal": causal}
    problems["two"] = said(cost={"kind": "l1", "scale": {"a": two, "b": {**two, "knee": 3, "beyond": 2}}})
    ends = {"a": {**two, "knee": 1e308, "beyond": 40}, "b": {**two, "knee": 1e-300, "beyond": 2}}
    problems["ends"] = said(cost={"kind": "l1", "scale": ends})  # no double is between b and b + 1e-300
    costs = solved_and_checked(tmp_path, problems)
    assert costs["plain"] == pytest.approx(4, abs=1e-5) and costs["ends"] == pytest.approx(4, abs=1e-5)
    found = [float(said_by(tmp_path, "-c", BY_HIGHS, f"{kind}.json")) for kind in costs]
    assert found == pytest.approx([*costs.values()], rel=1e-5)
    (tmp_path / "wrong.json").write_text(json.dumps(said(cost={"kind": "l1", "scale": {"a": {"knee": 1}}})))
    for command, line in (
        (SOLVED + "\nmain(['solve', 'wrong.json'])", "cost.scale.a.increase: got nothing"),
        (CHECKED + "\nmain(['plain_certificate.json', 'wrong.json'])", "decrease, knee, beyond, 'increase'"),
    ):
        assert line in said_by(tmp_path, "-c", "import sys\nsys.stderr = sys.stdout\n" + command)
    by_tables = said_by(tmp_path, "-c", BY_TABLES).splitlines()
    people = said_by(tmp_path, "-m", "verify", "people/certificates", "people/population.json")
    assert people.startswith("VERIFIED 9 of 9"), people
    assert by_tables == [
        "Answers(9 people: 9 optimal)",
        "scale.a.beyond: got 0.5; allowed: 1 or more",
        "scale.a: got a distance; allowed: its scales alone",
        "scale.a.knee: got -1.0; allowed: a number above 0",
    ]


@pytest.mark.long
def test_a_new_name_for_a_cost_is_one_line_in_each_of_two_tables(tmp_path: Path) -> None:
    """In a copy with those lines, which are no new way to measure a change, files, back ends, pages,
    certificates and the checker know the name."""
    copied(tmp_path, {name: {start: start + line} for name, (start, line) in NEW_LINES.items()})
    scale, prices = {"scale": BASE["cost"]["scale"]}, [[-10, 0], [0, 2.0], [3, 9.0], [10, 9.5]]
    made = {
        "both": {"kind": "both", **scale},
        "mixture": {"kind": "mixture", "l1": 2, "l0": 0.5, **scale},
        "list": {"kind": "list", "quantiles": dict.fromkeys("ab", prices)},
    }
    costs = solved_and_checked(tmp_path, {kind: said(cost=cost) for kind, cost in made.items()})
    assert costs["both"] == costs["mixture"] > 0
    change = 2 + 2 * 7 / 3 - 0.2 * 8  # of b alone, up to 2; a and b share it, because of the squares
    assert costs["list"] == pytest.approx(change + 0.1 * change**2 / 2, rel=2e-6)
    assert said_by(tmp_path, "-c", WORDS).startswith("both: twice the sum of changes")

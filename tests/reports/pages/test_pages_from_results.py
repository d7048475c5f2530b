"""Pages of the package's own results, from memory and from the folder that certify wrote."""

import csv
import json
import shutil
from dataclasses import replace

import pytest

from milp_recourse.cli import main
from milp_recourse.errors import BadInput
from milp_recourse.formats import instance_from_dict, read_instance, read_population
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.judge import judge
from milp_recourse.problem.cost import Cost
from milp_recourse.problem.instance import Preferences
from milp_recourse.problem.population import Population
from milp_recourse.questions.solve import solve, solve_population
from milp_recourse.reports.answer_kinds import Outcome, outcome
from milp_recourse.reports.pages import detailed, facts_of, persons_of
from milp_recourse.reports.pages.folder import people_in, person_in
from milp_recourse.reports.view import Person, changes_of, person_of
from tests.helpers.format_samples import tree_instance
from tests.helpers.page_samples import Reader

LOAN = instances_path() / "loan" / "population.json"
PEOPLE = 40


@pytest.fixture(scope="module")
def population():
    """The shipped Loan population; its first forty have effects and impossible people among them."""
    return read_population(LOAN)


@pytest.fixture(scope="module")
def results(population):
    """Their certified answers."""
    return list(solve_population(population, last=PEOPLE))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same as files, with the page of all."""
    out = tmp_path_factory.mktemp("run") / "out"
    options = ["--out", str(out), "--limit", str(PEOPLE), "--no-certificates", "--report"]
    assert main(["certify", str(LOAN), *options]) == 0
    return out


def test_people_show_what_the_results_say(population, results):
    """Numbers as they are; actions, effects and what stays, in the user's values."""
    people = persons_of(population, results)
    causes = set()
    for k, (person, result) in enumerate(zip(people, results, strict=True)):
        assert (person.id, person.status) == (str(k), result.status.value)
        assert (person.cost, person.lower_bound, person.gap) == (result.cost, result.lower_bound, result.gap)
        assert [c.feature for c in person.features] == [f.name for f in population.template.features]
        for change in person.features:
            assert change.before == population.factuals[k][change.feature]
            after = (result.counterfactual or population.factuals[k])[change.feature]
            assert change.after == after
            acted = change.feature in (result.action or {})
            assert acted == (change.cause in ("action", "held"))
            assert (change.cause in ("held", "unchanged")) == (after == change.before)
            assert change.lever == (change.feature in population[k].levers)
            causes.add(change.cause)
        shares = [c.share for c in person.features if c.share is not None]
        assert len(shares) == len(result.action or {})
        assert result.action is None or sum(shares) == pytest.approx(1, abs=1e-12)
    assert {"action", "effect", "unchanged"} <= causes


def test_ids_and_the_models_word_can_be_given(population, results):
    """One per result, or a line that says so."""
    people = persons_of(population, results[:2], ids=["a", "b"], confirmed=[True, None])
    assert [(p.id, p.confirmed) for p in people] == [("a", True), ("b", None)]
    with pytest.raises(BadInput, match="ids: got 1 entries; allowed: 2, one per result"):
        persons_of(population, results[:2], ids=["a"])
    few = Population(population.template, population.factuals[:1], population.preferences[:1])
    with pytest.raises(BadInput, match="results: got 2; allowed: at most 1"):
        persons_of(few, results[:2])


def test_a_held_feature_is_called_held():
    """The smoke instance whose answer holds one."""
    instance = read_instance(instances_path() / "smoke" / "hold.json")
    person = detailed(person_of(solve(instance), instance), instance)
    assert [c.feature for c in person.caused("held")]
    assert all(c.share == 0 for c in person.caused("held"))


@pytest.mark.parametrize("kind", ["l1", "l2-squared", "linf", "l0"])
def test_a_share_is_the_cost_of_the_change_alone(kind):
    """Over the whole cost; the shares of a sum add up to 1, the largest of a maximum is 1."""
    instance = instance_from_dict(tree_instance())
    own = Preferences(("income", "cards", "degree"), {"cards": 3.0})
    scale = {"income": 10.0, "cards": 2.0, "degree": 1.0}
    instance = replace(instance, cost=Cost.pure(kind, scale), preferences=own)
    action = {"income": instance.factual["income"] + 5, "cards": instance.factual["cards"] + 1}
    names = {n: instance.by_name[n].show(v) for n, v in action.items()}
    whole = judge(instance, action).cost
    person = detailed(Person("", "found", features=changes_of(instance, names)), instance)
    shares = {c.feature: c.share for c in person.features if c.share is not None}
    for name, value in action.items():
        assert shares[name] == float(judge(instance, {name: value}).cost / whole)
    assert max(shares.values()) == 1 if kind == "linf" else sum(shares.values()) == pytest.approx(1)


def test_what_an_action_may_set_is_said_in_the_users_words():
    """Ranges, one-way features, labels; nothing for what is no lever."""
    instance = instance_from_dict(tree_instance())
    everything = tuple(f.name for f in instance.features if f.actionable)
    instance = replace(instance, preferences=Preferences(everything))
    person = detailed(Person("", "not-reached", features=changes_of(instance)), instance)
    limits = {c.feature: c.allowed for c in person.features}
    assert limits["income"] == "0 to 100"
    assert limits["cards"].endswith("to 5, only up")
    assert limits["owner"] is None
    for label in instance.by_name["degree"].categories:
        assert label in limits["degree"]


def test_the_facts_state_the_density_that_is_demanded():
    """With its offset, also where people have offsets of their own."""
    people = read_population(LOAN)[:2]
    told = facts_of(people)["Plausibility"]
    assert told == "the changed person must be as likely as before, by the causal model's density"
    lower = replace(people, template=replace(people.template, density_offset=-1.5))
    assert "-1.5 nats" in facts_of(lower)["Plausibility"]
    assert "-1.5 nats" in facts_of(lower[0])["Plausibility"]
    first, second = people.preferences
    own = replace(people, preferences=(replace(first, density_offset=0.5), second))
    assert "each person's own number of nats" in facts_of(own)["Plausibility"]
    assert (
        facts_of(replace(people, template=replace(people.template, plausible=False)))["Plausibility"]
        == "not demanded"
    )


def test_a_folder_gives_the_same_people_as_the_results(population, results, folder):
    """Read back from results.csv: every value, bit for bit."""
    read, made = people_in(folder, population), persons_of(population, results)
    unread = {"seconds": None, "nodes": None}
    assert [replace(p, **unread) for p in read] == [replace(p, **unread) for p in made]


def test_certify_writes_the_page(folder, population):
    """With --report, about everybody."""
    read = Reader((folder / "report.html").read_text(encoding="utf-8"))
    assert len(read.data["people"]) == PEOPLE
    for fact, text in facts_of(population).items():
        assert fact in read.text
        assert text in read.text
    assert "bab" in read.text


def test_the_command_writes_pages_of_all_or_of_one(folder, tmp_path, capsys):
    """Where it is told to, or in the folder."""
    assert main(["report", str(folder), str(LOAN), "--out", str(tmp_path / "all.html")]) == 0
    assert (tmp_path / "all.html").read_bytes() == (folder / "report.html").read_bytes()
    assert main(["report", str(folder), str(LOAN), "--index", "7"]) == 0
    assert "· 7" in Reader((folder / "person-7.html").read_text(encoding="utf-8")).text
    assert capsys.readouterr().out.count("written: ") == 2


def test_an_instance_has_a_page_of_its_own(tmp_path, capsys):
    """Certified with --report, or later."""
    file = instances_path() / "credit_trees" / "credit_003.json"
    assert main(["certify", str(file), "--out", str(tmp_path), "--report"]) == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert main(["report", str(tmp_path), str(file), "--out", str(tmp_path / "again.html")]) == 0
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page
    person = person_in(tmp_path, read_instance(file), "credit_003")
    assert outcome(person) is Outcome.PROVEN
    assert person.id in Reader(page).text
    capsys.readouterr()


def gaps():
    """Two people, each with a missing value, and a tree that has a rule for it."""
    tree = {
        "feature": [0, 1, -1, -1, -1],
        "threshold": [10.0, 50.0, 0.0, 0.0, 0.0],
        "left": [1, 2, -1, -1, -1],
        "right": [4, 3, -1, -1, -1],
        "value": [0.5, 0.5, 0.0, 0.0, 1.0],
        "missing_left": [True, True, True, True, True],
    }
    features = [
        {"name": "income", "kind": "continuous", "actionable": True, "bounds": [0, 20]},
        {"name": "age", "kind": "continuous", "actionable": False},
    ]
    return {
        "format": "milp-recourse/population-1",
        "features": features,
        "scm": {"name": "independent"},
        "classifier": {"kind": "tree-ensemble", "dtype": "float32", "trees": [tree]},
        "accept": {"above": 0.5},
        "factuals": [{"income": None, "age": 30.0}, {"income": 4.0, "age": None}],
        "preferences": {"actionable": ["income"], "weights": {"income": 2.0}},
        "cost": {"kind": "l1", "scale": {"income": 5.0}},
        "plausibility": None,
    }


def test_missing_values_are_called_missing(tmp_path):
    """A missing lever may be set; what is missing and not set stays so, in memory and from the folder."""
    file = tmp_path / "gaps.json"
    file.write_text(json.dumps(gaps()), encoding="utf-8")
    population = read_population(file)
    results = list(solve_population(population))
    assert main(["certify", str(file), "--out", str(tmp_path / "out"), "--report", "--no-certificates"]) == 0
    for people in (persons_of(population, results), people_in(tmp_path / "out", population)):
        (income, _), (raised, age) = (person.features for person in people)
        assert (income.before, income.cause, income.share) == (None, "action", 1.0)
        assert income.after > 10
        assert (raised.before, raised.cause) == (4.0, "action")
        assert (age.before, age.after, age.cause) == (None, None, "unchanged")
    page = Reader((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert [row[12] for row in page.data["people"]] == [[None, 30], [4, None]]


def damaged(folder, target, change):
    """A copy of the folder whose rows are changed by a function of the list of rows."""
    shutil.copytree(folder, target)
    with (target / "results.csv").open(newline="", encoding="utf-8") as stream:
        rows = list(csv.reader(stream))
    rows = change(rows)
    with (target / "results.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)
    return target


def test_columns_are_found_by_name(folder, tmp_path, population, results):
    """id and confirmed where they are there; counterfactuals and messages may be left out."""

    def change(rows):
        kept = [k for k, name in enumerate(rows[0]) if not name.startswith(("counterfactual_", "message"))]
        rows = [[row[k] for k in kept] for row in rows]
        rows[0] = [*rows[0], "id", "confirmed", "message"]
        for k, row in enumerate(rows[1:]):
            row += [f"A{k}", "True" if results[k].action else "", "a remark, with a comma"]
        return rows

    read = people_in(damaged(folder, tmp_path / "other", change), population)
    made = persons_of(population, results, ids=[f"A{k}" for k in range(PEOPLE)])
    for mine, theirs in zip(read, made, strict=True):
        assert mine.features == theirs.features
        assert (mine.id, mine.message) == (theirs.id, "a remark, with a comma")
        assert mine.confirmed is (True if mine.cost is not None else None)


def test_an_unfinished_row_is_left_out(folder, tmp_path, population):
    """A run that was stopped shows whoever is done."""
    target = shutil.copytree(folder, tmp_path / "cut")
    text = (target / "results.csv").read_text(encoding="utf-8")
    (target / "results.csv").write_text(text[:-5], encoding="utf-8")
    assert len(people_in(target, population)) == PEOPLE - 1


def test_rows_may_come_in_any_order_and_say_who_could_not_be_read(folder, tmp_path, population):
    """As a run over many processes leaves them; a row that is no answer needs no applicant."""

    def mix(rows):
        rows = [rows[0], *reversed(rows[2:30])]
        place = rows[0].index
        rows[1] = ["" for _ in rows[0]]
        rows[1][place("index")], rows[1][place("status")] = "28", "bad-input"
        return rows

    read = people_in(damaged(folder, tmp_path / "mixed", mix), population)
    assert [p.id for p in read] == [str(k) for k in range(1, 29)]
    assert read[:-1] == people_in(folder, population)[1:28]
    assert (read[-1].status, read[-1].features) == ("bad-input", ())


def cell(row, column, value):
    def change(rows):
        rows[row][rows[0].index(column)] = value
        return rows

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            cell(2, "index", "5"),
            "row 6.index: got 5; allowed: each applicant's position once, from 0 to 2416",
        ),
        (cell(1, "status", "solved"), "row 1.status: got solved; allowed: optimal, infeasible, limit"),
        (cell(3, "cost", "cheap"), "row 3.cost: got cheap; allowed: a number, or nothing"),
        (
            cell(1, "action_age", "1"),
            "row 1.action_age: got 1; allowed: nothing: not this person's to change",
        ),
        (cell(1, "action_income", "inf"), "row 1.action_income: got inf; allowed: a number, or nothing"),
        (lambda rows: [*rows[:2], rows[2][:-1]], " cells; allowed: "),
        (
            lambda rows: [["index", "x"]],
            "header: got no column status; allowed: the columns that certify writes",
        ),
        (lambda rows: rows[:1], "results: got no complete row; allowed: one at least"),
    ],
)
def test_a_damaged_table_is_refused_in_one_line(folder, tmp_path, population, change, said):
    """With the row and the column."""
    with pytest.raises(BadInput) as caught:
        people_in(damaged(folder, tmp_path / "bad", change), population)
    assert said in str(caught.value)


def test_mistakes_are_one_line_each(folder, tmp_path, capsys):
    """Exit code 2, and nothing is written."""
    loan = instances_path() / "loan" / "loan_000.json"
    other = json.loads(LOAN.read_text(encoding="utf-8"))
    other["classifier"]["path"] = str(LOAN.parent / other["classifier"]["path"])
    other["factuals"] = {"csv": str(LOAN.parent / "refused.csv")}
    other["preferences"] = {"actionable": ["amount"]}
    (tmp_path / "other.json").write_text(json.dumps(other), encoding="utf-8")
    place = str(folder)
    cases = [
        (
            ["report", str(tmp_path / "none"), str(LOAN)],
            "allowed: a folder that certify --out wrote",
        ),
        (
            ["report", place, str(tmp_path / "other.json")],
            "results: got those of another population; allowed: those of this one",
        ),
        (["report", place, str(loan)], "results: got none of loan_000; allowed: those of this instance"),
        (["report", place, str(loan), "--index", "0"], "--index: got 0; allowed: nothing"),
        (["report", place, str(LOAN), "--index", "40"], "--index: got 40, which has no complete row"),
        (["report", place, str(LOAN), "--index", "-1"], "--index"),
        (["report", place, str(LOAN), "--out", str(tmp_path)], "--out: got"),
        (["certify", "--report"], "--report: got no FILE"),
    ]
    before = sorted(tmp_path.iterdir())
    for arguments, said in cases:
        assert main(arguments) == 2, arguments
        line = capsys.readouterr().err
        assert line.count("\n") == 1
        assert said in line
    assert sorted(tmp_path.iterdir()) == before


def test_the_page_of_a_part_says_how_many_it_leaves_out(folder, population):
    """Forty of the population were asked for."""
    left = len(population) - PEOPLE
    text = Reader((folder / "report.html").read_text(encoding="utf-8")).text
    assert f"{left} of {len(population)} people: this page is about those who are done" in text

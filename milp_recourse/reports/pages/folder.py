"""Pages about the results in a folder that ``certify --out`` wrote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from milp_recourse.errors import BadInput
from milp_recourse.formats.schema_answers import ResultsModel
from milp_recourse.formats.stated import validate
from milp_recourse.formats.strict_json import read_json, write_whole
from milp_recourse.formats.write import population_digest
from milp_recourse.judge import known_factual
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import Population
from milp_recourse.questions.why import why
from milp_recourse.reports.own_words import words_in
from milp_recourse.reports.pages.gather import detailed, facts_of, reasons_of
from milp_recourse.reports.pages.whole_pages import person_page, population_page
from milp_recourse.reports.result_rows import TRUTH, number_in, rows_of, values_in
from milp_recourse.reports.view import BAD_INPUT, NUMBERS, STATUSES, Person, changes_of, person_of, unread

Problem = Instance | Population


def write_report(
    folder: Path,
    problem: Problem,
    name: str,
    out: Path | None = None,
    index: int | None = None,
    with_why: bool = False,
    time_limit: float | None = None,
) -> Path:
    """Write the page of a run's results and return its path.

    Parameters
    ----------
    folder
        The folder that ``certify --out`` wrote for ``problem``.
    name
        The title if the problem has no name.
    out
        The file; by default ``report.html`` in the folder, or ``person-INDEX.html`` with an index.
    index
        One applicant of a population, by position from 0; None for the whole population.
    with_why
        Whether one person's page also has the answer of :func:`milp_recourse.questions.why.why`, which is
        computed now.
    time_limit
        Seconds for this answer; None for no limit.

    Raises
    ------
    BadInput
        The folder does not hold the problem's results, or the population has no applicant of that index.
    """
    title = (problem.template if isinstance(problem, Population) else problem).name or name
    facts, words = facts_of(problem) | _run_facts(folder), words_in(folder)
    if isinstance(problem, Instance):
        if index is not None:
            raise BadInput("--index", index, "nothing: an instance is one person")
        person = words.of(person_in(folder, problem, name))
        if with_why:
            person = replace(person, why=reasons_of(why(problem, time_limit=time_limit)))
        page = person_page(person, title, facts)
    else:
        people = [words.of(one) for one in people_in(folder, problem, index)]
        single = index is not None
        if with_why:
            if index is None:
                raise BadInput("--why", "a population", "--index with it: why is for one person's page")
            reasons = reasons_of(why(problem[index], time_limit=time_limit))
            people = [replace(people[0], why=reasons)]
        left = len(problem) - len(people)
        if left and not single:
            facts["Not reached"] = f"{left} of {len(problem)} people: this page is about those who are done"
        page = person_page(people[0], title, facts) if single else population_page(people, title, facts)
    target = out or folder / ("report.html" if index is None else f"person-{index}.html")
    if target.is_dir():
        raise BadInput("--out", f"{target}, a directory", "the name of a file")
    write_whole(page.encode("utf-8"), target)
    return target


def people_in(folder: Path, population: Population, index: int | None = None) -> list[Person]:
    """The people with complete rows in ``results.csv``, in order, or only the one at ``index``.

    Raises
    ------
    BadInput
        The folder has no results, or those of another population; a row is wrong, or there is no row for
        ``index``.
    """
    claim, file = folder / "run.json", folder / "results.csv"
    if not (file.is_file() and claim.is_file()):
        raise BadInput("results", "nothing", "what certify --out wrote for a population", str(folder))
    run = read_json(claim)
    if not isinstance(run, dict) or run.get("population_sha256") != population_digest(population):
        raise BadInput("results", "those of another population", "those of this one", str(folder))
    found: dict[int, Person] = {}
    try:
        for number, row in enumerate(rows_of(file), 1):
            where = f"row {number}"
            k = int(row["index"]) if row["index"].isdecimal() else -1
            if not 0 <= k < len(population) or k in found:
                allowed = f"each applicant's position once, from 0 to {len(population) - 1}"
                raise BadInput(f"{where}.index", row["index"] or "nothing", allowed)
            if index is None or k == index:
                found[k] = _person(population, k, row, where)
    except BadInput as error:
        raise error.in_file(str(file)) from None
    people = [found[k] for k in sorted(found)]
    if not people:
        if index is None:
            raise BadInput("results", "no complete row", "one at least", str(file))
        raise BadInput("--index", f"{index}, which has no complete row", "a row of results.csv", str(folder))
    return people


def person_in(folder: Path, instance: Instance, name: str) -> Person:
    """The result of an instance in ``results.json``.

    Parameters
    ----------
    name
        The name of the instance's file without its suffix, by which an instance without a name is found.

    Raises
    ------
    BadInput
        The folder has no results, results in another form, none of this instance, or one that
        does not fit it.
    """
    file = folder / "results.json"
    if not file.is_file():
        raise BadInput("results", "nothing", "what certify --out wrote for an instance", str(folder))
    try:
        results = validate(ResultsModel, read_json(file)).results or []
    except BadInput as error:
        raise error.in_file(str(file)) from None
    wanted = instance.name or name
    found = [one.result for one in results if one.name == wanted and one.result is not None]
    if not found:
        raise BadInput("results", f"none of {wanted}", "those of this instance", str(folder))
    try:
        return detailed(person_of(found[0], instance, wanted), instance)
    except (KeyError, ValueError):
        got = f"a result that is not {wanted}'s"
        raise BadInput("results", got, "what certify wrote", str(file)) from None


def _person(population: Population, k: int, row: Mapping[str, str], where: str) -> Person:
    status, id = row["status"], row.get("id") or str(k)
    if status not in STATUSES:
        raise BadInput(f"{where}.status", status, ", ".join(STATUSES))
    message = row.get("message") or None
    if status == BAD_INPUT:
        return unread(message, id)
    instance = population[k]
    numbers: dict[str, Any] = {key: number_in(row, key, where) for key in NUMBERS}
    action = after = None
    if numbers["cost"] is not None:
        action = values_in(instance, row, "action_", where)
        for name in action:
            if name not in instance.preferences.actionable:
                got, allowed = row[f"action_{name}"], "nothing: not this person's to change"
                raise BadInput(f"{where}.action_{name}", got, allowed)
        after = values_in(instance, row, "counterfactual_", where) or _follow(instance, action)
    copied: dict[str, Any] = {key: row.get(key) or None for key in ("proof", "backend", "certificate")}
    confirmed = TRUTH.get(row.get("confirmed", "").lower())
    changes = changes_of(instance, action, after)
    person = Person(id, status, **numbers, **copied, confirmed=confirmed, message=message, features=changes)
    return detailed(person, instance)


def _follow(
    instance: Instance, action: Mapping[str, float | int | str]
) -> dict[str, float | int | str | None]:
    """Every feature's value after the action, by the causal model, where a row has no values in the columns
    ``counterfactual_<feature>``."""
    exact = instance.scm.counterfactual_exact(known_factual(instance), instance.numbers(action))
    missing = instance.missing - set(action)
    return {
        f.name: None if f.name in missing else f.show(float(exact[f.name].midpoint))
        for f in instance.features
    }


def _run_facts(folder: Path) -> dict[str, str]:
    """Facts about the run: its options, and how to check its proofs."""
    facts = {}
    if (folder / "run.json").is_file():
        run = read_json(folder / "run.json")
        if isinstance(run, dict) and isinstance(run.get("backend"), str):
            facts["Back end"] = run["backend"]
        if isinstance(run, dict) and isinstance(run.get("time_limit"), int | float):
            facts["Time limit"] = f"{run['time_limit']:g} s per person"
    if (folder / "certificates").is_dir():
        facts["Certificates"] = "in the results' folder; python -m verify checks them and needs nothing else"
    return facts

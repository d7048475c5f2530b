"""``milp-recourse interview``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from milp_recourse.cli.exit_codes import DONE, LIMIT
from milp_recourse.cli.shared import (
    Backend,
    Certificate,
    Index,
    Json,
    Problem,
    TimeLimit,
    a_file,
    read_one,
    write_certificate,
)
from milp_recourse.errors import BadInput

if TYPE_CHECKING:
    from milp_recourse.preferences import Interview

Answers = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="answers to give: an earlier --out, or one word per line"),
]
Out = Annotated[
    Path | None,
    typer.Option(metavar="FILE.json", help="write questions and answers, to go on later", callback=a_file),
]
Proof = Annotated[
    Path | None,
    typer.Option(metavar="REGRET.json", help="write the proof of the regret, for verify", callback=a_file),
]


def interview(
    instance: Problem,
    index: Index = None,
    method: Annotated[
        str, typer.Option(help="choices, awp, group, rank, likert, hare, multi-hare or exact-hare")
    ] = "choices",
    budget: Annotated[int, typer.Option(help="the most questions")] = 10,
    seed: Annotated[int, typer.Option(help="of everything random")] = 0,
    strategy: Annotated[
        str,
        typer.Option(help="how the next pair is chosen: regret, information, pear, minimax, margin, random"),
    ] = "regret",
    noise: Annotated[
        float, typer.Option(help="scale of errors, as a share of the least cost; 0: answers are as meant")
    ] = 0.0,
    base: Annotated[
        str, typer.Option(help="where hare begins: growing-spheres, wachter or exact")
    ] = "growing-spheres",
    answers: Answers = None,
    out: Out = None,
    json: Json = None,
    certificate: Certificate = None,
    regret: Proof = None,
    backend: Backend = None,
    time_limit: TimeLimit = None,
) -> None:
    """Ask a person which recourses they prefer, and recommend the certified best one for them.

    Answers come from --answers FILE, then from the terminal. With --out FILE.json every answer is kept, and
    --answers FILE.json goes on there. With --certificate CERT.json and --regret REGRET.json the problem that
    they belong to is written beside them: verify CERT.json CERT.instance.json."""
    from milp_recourse.formats import write_result
    from milp_recourse.preferences import Interview
    from milp_recourse.problem.result import Status
    from milp_recourse.reports.interview_words import regret_in_words
    from milp_recourse.reports.view import describe, person_of

    problem = read_one(instance, index)
    dialogue = Interview(
        problem, None, cast(Any, method), budget, seed, strategy=cast(Any, strategy), noise=noise, base=base,
        backend=backend, time_limit=time_limit,
    )  # fmt: skip
    _answer(dialogue, answers, out)
    learned = dialogue.problem()
    result = dialogue.recommend(certificate is not None)
    if certificate is not None:
        result = write_certificate(learned, result, certificate, "what was learned")
    if json is not None:
        write_result(result, json)
    typer.echo(
        f"{len(dialogue.answers)} answers" + ("" if dialogue.ask() is None else "; questions are left")
    )
    typer.echo(describe(person_of(result, learned)))
    if result.action is None:
        _say_why(dialogue)
    else:
        typer.echo(regret_in_words(dialogue, dialogue.regret(result)))
        if regret is not None:
            _write_proof(dialogue, regret)
    raise typer.Exit(LIMIT if result.status is Status.LIMIT else DONE)


def _answer(dialogue: Interview, answers: Path | None, out: Path | None) -> None:
    """Give the answers in a file, then those that are typed, and keep them all in ``out``."""
    given = _given(answers)
    try:
        for word in given:
            if dialogue.ask() is None:
                break
            dialogue.tell(word)
    except BadInput as error:
        raise error.in_file(str(answers)) from None
    if answers is None or (sys.stdin.isatty() and dialogue.ask() is not None):
        _converse(dialogue, out)
    if out is not None:
        dialogue.save(out)


def _given(file: Path | None) -> list[str]:
    """The answers in a file: an interview's, or a word per line."""
    if file is None:
        return []
    from milp_recourse.formats.schema_answers import InterviewModel
    from milp_recourse.formats.stated import validate
    from milp_recourse.formats.strict_json import read_bytes, read_json

    if file.name.endswith((".json", ".json.gz")):
        try:
            return [one.answer for one in validate(InterviewModel, read_json(file)).answers]
        except BadInput as error:
            raise error.in_file(str(file)) from None
    lines = read_bytes(file, "a file with one answer per line").decode("utf-8", "replace").splitlines()
    return [word for line in lines if (word := line.partition("#")[0].strip())]


def _converse(dialogue: Interview, out: Path | None) -> None:
    """Ask until nothing is left to ask, or the input ends."""
    from milp_recourse.reports.interview_words import meant, question_in_words

    words = _typed()
    while (question := dialogue.ask()) is not None:
        number = len(dialogue.answers) + 1
        typer.echo(f"{number}: {question_in_words(dialogue.instance, question)}")
        for word in words:
            answer = meant(word, question.answers)
            if answer is not None:
                dialogue.tell(answer)
                break
            typer.echo(f"got {word.strip()!r}; allowed: {', '.join(question.answers)}", err=True)
        else:
            return
        if out is not None:
            dialogue.save(out)


def _typed() -> Iterator[str]:
    """What is typed, line by line, until the input ends or an empty line."""
    while True:
        typer.echo("> ", nl=False)
        line = sys.stdin.readline()
        if not line.strip():
            typer.echo()
            return
        yield line


def _say_why(dialogue: Interview) -> None:
    """Say what stands in the way of recourse, limits that the person stated among it."""
    from milp_recourse.cli.shared import console_of_stdout
    from milp_recourse.reports.why_words import headline, why_table

    found = dialogue.why()
    typer.echo(headline(found))
    if found.minimal:
        console_of_stdout().print(why_table(found), markup=False)


def _write_proof(dialogue: Interview, file: Path) -> None:
    """Write the proven regret, and the instance that it is verified with."""
    from milp_recourse.cli.shared import instance_beside
    from milp_recourse.formats import write_instance
    from milp_recourse.formats.strict_json import write_json

    document, problem = dialogue.proof()
    write_json(document, file)
    write_instance(problem, instance_beside(file))
    typer.echo(f"verify {file} {instance_beside(file)} checks the regret")

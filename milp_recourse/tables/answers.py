"""Answers: tables, questions about each person, files, pages and letters."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from datetime import date
from os import path
from pathlib import Path
from subprocess import DEVNULL, run
from tempfile import TemporaryDirectory
from typing import Any

from milp_recourse.errors import BadInput, MachineFailed
from milp_recourse.formats.strict_json import write_whole
from milp_recourse.questions.why import why as ask_why
from milp_recourse.reports.audit import Asked, write_audit
from milp_recourse.reports.letters import letter
from milp_recourse.reports.pages import (
    detailed,
    person_page,
    population_fragment,
    population_page,
    reasons_of,
)
from milp_recourse.reports.view import Change, Person
from milp_recourse.solvers.processes import python
from milp_recourse.tables.arguments import check_path, written_to
from milp_recourse.tables.person_questions import PersonQuestions
from milp_recourse.tables.run_folder import document_of, opened


class Interrupted(KeyboardInterrupt):
    """Raised on Ctrl-C; ``answers`` holds the people who were finished."""

    def __init__(self, answers: Answers) -> None:
        done = sum(result is not None for result in answers.results)
        super().__init__(f"interrupted; {done} of {len(answers)} people are in this exception's .answers")
        self.answers = answers


class Answers(PersonQuestions):
    """One answer per person, in the order of the people's table.

    Its attributes are those of :class:`~milp_recourse.tables.answered.AnsweredPeople`; the questions about
    one person are those of :class:`~milp_recourse.tables.person_questions.PersonQuestions`.
    """

    def population(self) -> dict[str, Any]:
        """The problem as a ``population-1`` document, which ``milp-recourse certify`` and ``verify`` read.

        People who could not be read are in it with their values in the table.

        Raises
        ------
        BadInput
            Nobody could be read.
        """
        if self.problem is None:
            raise next(iter(self.rows.faults.values()), BadInput("people", "nobody", "at least one person"))
        return document_of(self.problem, self.rows, self.columns)

    def save(self, folder: str | Path) -> None:
        """Write what ``milp-recourse certify --out DIR`` writes, and ``population.json``, the problem itself.

        ``milp-recourse verify DIR`` checks the certificates, if there are any, and ``milp-recourse report
        DIR`` makes the page. People have the names of the table's index. Those who were not reached have no
        row: ``certify DIR/population.json --out DIR`` with the same options solves them, too.

        Raises
        ------
        BadInput
            The folder cannot be written or holds results already, or nobody could be read.
        MachineFailed
            The disk is full or broken, or another process writes the folder.
        """
        check_path("folder", folder, "the path of a folder")
        where = Path(folder)
        if path.exists(where / "results.csv"):
            raise BadInput("folder", f"{where}, which holds results", "a new folder")
        written = self.population()
        confirmed = any(word is not None for word in self.confirmed)
        with opened("folder", where, written, self.options, confirmed, self.words, self.sources) as run:
            for index in run.left(range(len(self))):
                result = self.results[index]
                if result is not None:
                    run.add(index, result, self.confirmed[index])

    def verify(self) -> str:
        """The verdict of the independent checker ``verify/`` on these answers' certificates.

        The same as :meth:`save` into a new folder DIR and ``milp-recourse verify DIR``: the checker reads the
        files and uses no code of this package. It runs in a process of its own, in which nothing that this
        one has imported or changed plays a part.

        Returns
        -------
        str
            One line, ``VERIFIED ...``, if every certificate was accepted; else the reasons, and ``REJECTED
            ...`` as the last line. ``NOTHING TO CHECK`` if certificates were asked for and none could be
            made; the column ``message`` says why.

        Raises
        ------
        BadInput
            The answers have no certificates, or nobody could be read.
        MachineFailed
            The checker did not come to a verdict.
        """
        proofs = {result.proof for result in self.results if result is not None}
        if proofs == {"asked"}:
            return "NOTHING TO CHECK: the model was asked about every cheaper action, not read"
        if not self.options.get("certificates"):
            raise BadInput("certificates", "none", "answers of certify(people, certificates=True)")
        if not any(result is not None and result.evidence for result in self.results):
            return f"NOTHING TO CHECK: none of {len(self)} answers has a certificate"
        check = python("import sys; from verify.__main__ import run; sys.exit(run())", "verify")
        with TemporaryDirectory() as folder:
            where = str(Path(folder) / "answers")
            self.save(where)
            command = [*check, where, "--jobs=1"]
            done = run(command, stdin=DEVNULL, capture_output=True, encoding="utf-8", check=False)
        if done.returncode not in (0, 4):
            raise MachineFailed(f"the checker ended with {done.returncode}: {done.stderr.strip()[-300:]}")
        return done.stdout.strip()

    def page(self, person: Hashable | None = None, why: bool = False, time_limit: float | None = None) -> str:
        """The text of a self-contained HTML file, about everybody or about one person.

        Parameters
        ----------
        person
            The person's label in the table's index; None for everybody.
        why
            Whether one person's page also has the answer of :meth:`why`.
        time_limit
            Seconds for this answer; None for no limit.

        Raises
        ------
        BadInput
            No person, or more than one, has this label; there is nobody; or ``why`` is asked for without a
            person.
        """
        if not isinstance(why, bool):
            raise BadInput("why", repr(why), "True or False")
        if person is None and why:
            raise BadInput("why", why, "False, or a person: why is for one person's page")
        if person is None:
            if not len(self):
                raise BadInput("people", "nobody", "at least one person")
            everybody = self._people(range(len(self)))
            return population_page(everybody, f"{len(self)} people", self.facts)
        [shown] = self._people([self._position(person)])
        if why:
            found = ask_why(self._problem_of(person), self.asked, time_limit)
            shown = replace(shown, why=reasons_of(found))
        return person_page(shown, "Recourse", self.facts)

    def save_page(
        self,
        file: str | Path,
        person: Hashable | None = None,
        why: bool = False,
        time_limit: float | None = None,
    ) -> None:
        """Write :meth:`page` to a file."""
        write_whole(self.page(person, why, time_limit).encode(), Path(file))

    def letter(
        self,
        person: Hashable,
        template: str | Path | None = None,
        language: str = "en",
        day: date | None = None,
    ) -> str:
        """One page of HTML for the person: what to change, to what and by how much, what follows, and what
        is not promised. The values are those of ``shown`` in :attr:`changes`.

        Parameters
        ----------
        person
            The person's label in the table's index.
        template, language, day
            As for :func:`milp_recourse.reports.letters.letter`.

        Raises
        ------
        BadInput
            No person, or more than one, has this label; there is no such language; or the template has an
            error.
        """
        [shown] = self._people([self._position(person)])
        return letter(shown, template, language, day)

    def audit(
        self, out: str | Path, reasons: int = 1, why: bool = True, day: date | None = None, jobs: int = 1
    ) -> str:
        """Write the file for an auditor: answers, proofs, reasons, assumptions, groups, how to check them.

        Its bytes are the same whenever the same people are solved again, but for the date.
        ``milp-recourse verify OUT`` checks it.

        Parameters
        ----------
        out
            A new folder, or a file whose name ends in ``.zip``.
        reasons
            The most levers of a set in the table of reasons (:meth:`reasons`); 0: no such table.
        why
            Whether to say what stands in the way of those without recourse (:meth:`why`).
        day
            The date to state; None: today.
        jobs
            Processes that look for reasons.

        Returns
        -------
        str
            The SHA-256 of its ``manifest.json``, to be kept elsewhere.

        Raises
        ------
        BadInput
            ``out`` exists, an argument is not what is allowed, or not everybody has an answer.
        BackendUnavailable
            openpyxl is not installed.
        """
        check_path("out", out, "the path of a new folder or zip")
        asked, left = Asked(reasons, why), self._not_reached
        if left:
            allowed = "everybody's: certify them again; certify(people, out=DIR) goes on where it stopped"
            raise BadInput("people", f"answers for {len(self) - left} of {len(self)}", allowed)
        with TemporaryDirectory() as folder:
            self.save(folder)
            with written_to("out"):
                return write_audit(Path(folder), Path(out), None, asked, day, jobs)

    def _people(self, positions: Iterable[int]) -> list[Person]:
        return [self.words.of(self._person(i)) for i in positions]

    def _person(self, i: int) -> Person:
        """The person at a position of the rows, as pages and letters show them."""
        problem = None if self.problem is None or i in self.rows.faults else self.problem[i]
        person, printed = self._answer(i, str(self.rows.frame.index[i]), problem), self.printed[i]
        if problem is None:
            return person
        person = detailed(person, problem, None if printed is None else printed.counterfactual)
        gone = self.rows.missing[i]
        features = [_as_missing(c) if no else c for c, no in zip(person.features, gone, strict=True)]
        return replace(person, features=features)

    def _repr_html_(self) -> str:
        return population_fragment(self._people(range(len(self)))) if len(self) else self.table.to_html()


def _as_missing(change: Change) -> Change:
    """The change of a feature whose value was missing: None before, and None after if nothing changed it."""
    stays = change.cause in ("unchanged", "held")
    return replace(change, before=None, after=None if stays else change.after)

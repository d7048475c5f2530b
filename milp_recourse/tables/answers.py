"""Answers as tables: what was proven for each person, and whether the model's own ``predict`` agrees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from os import PathLike
from pathlib import Path
from subprocess import DEVNULL, run
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from milp_recourse.errors import BadInput, MachineFailed, is_number
from milp_recourse.formats.strict_json import write_gzipped, write_whole
from milp_recourse.formats.write import result_part
from milp_recourse.judge.as_printed import AsPrinted
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result, Status
from milp_recourse.questions.choices import Differ, choices
from milp_recourse.questions.front import front
from milp_recourse.questions.reasons import reasons
from milp_recourse.questions.regions import region
from milp_recourse.questions.robust import robust
from milp_recourse.questions.share import share
from milp_recourse.questions.why import why as ask_why
from milp_recourse.reports.audit import Asked, write_audit
from milp_recourse.reports.checked import checked, checked_region, with_certificate
from milp_recourse.reports.letters import letter
from milp_recourse.reports.own_words import OwnWords
from milp_recourse.reports.pages import Person, person_page, population_fragment, population_page, reasons_of
from milp_recourse.reports.result_rows import BAD_INPUT
from milp_recourse.solvers.processes import python
from milp_recourse.tables.against_model import changed_values, rows_after
from milp_recourse.tables.arguments import by_column
from milp_recourse.tables.columns import TableColumn, position, shown
from milp_recourse.tables.people_rows import Rows
from milp_recourse.tables.reasons_table import counted, reasons_table
from milp_recourse.tables.regions_table import refused_corner, region_table
from milp_recourse.tables.run_folder import document_of, opened
from milp_recourse.tables.said_values import Accepts, said_values
from milp_recourse.tables.show import person_at

T = TypeVar("T")

_COLUMNS = (
    "status",
    "cost",
    "lower_bound",
    "gap",
    "proof",
    "confirmed",
    "message",
    "seconds",
    "margin",
    "shown_cost",
)


class Interrupted(KeyboardInterrupt):
    """Raised on Ctrl-C; ``answers`` holds the people who were finished."""

    def __init__(self, answers: Answers) -> None:
        done = sum(result is not None for result in answers.results)
        super().__init__(f"interrupted; {done} of {len(answers)} people are in this exception's .answers")
        self.answers = answers


@dataclass(frozen=True, repr=False)
class Answers:
    """One answer per person, in the order of the people's table.

    Attributes
    ----------
    rows
        The people.
    columns
        The features, and how values of the table become numbers.
    problem
        The population that was solved; None if nobody could be read.
    results
        A result per person; None for a person who could not be read or was not reached.
    confirmed
        Whether the model's own ``predict`` confirms the action; None if there is no action, or if ``predict``
        was not called.
    facts
        Lines of the summary about model, cost and margin.
    options
        Back end, time limit and whether certificates were asked for.
    compare
        :func:`~milp_recourse.tables.against_model.compared_with_model` as a function of ``rows``, ``results``
        and ``population``.
    unit
        How much of the classifier's score one unit of the margin is.
    asked
        The back end that was asked for; None: the default, which may be another one for somebody.
    accepts
        What the model itself says of rows, each asked alone; None if it cannot be asked.
    words
        The user's words for columns, and their units.
    sources
        Where the problem's assumptions come from, for an auditor's file.
    """

    rows: Rows
    columns: Sequence[TableColumn]
    problem: Population | None
    results: Sequence[Result | None]
    confirmed: Sequence[bool | None]
    facts: Mapping[str, str]
    options: Mapping[str, Any]
    compare: Callable[..., tuple[list[Result | None], list[bool | None]]]
    unit: float = 1.0
    asked: str | None = None
    accepts: Accepts | None = None
    words: OwnWords = field(default_factory=OwnWords)
    sources: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def table(self) -> pd.DataFrame:
        """status, cost, lower_bound, gap, proof, confirmed, message, seconds, margin and shown_cost, indexed
        as people.

        ``margin`` is how far the person's logit must pass the threshold (of trees, the score); nan for people
        who could not be read. ``shown_cost`` is what the values in :attr:`changes` as shown cost, where
        ``cost`` is what the exact ones do.
        """
        rows = [self._row(i, result) for i, result in enumerate(self.results)]
        for row, printed in zip(rows, self.printed, strict=True):
            row["shown_cost"] = None if printed is None else float(printed.cost)
        frame = pd.DataFrame(rows, index=self.rows.frame.index, columns=list(_COLUMNS))
        for name in ("cost", "lower_bound", "gap", "seconds", "margin", "shown_cost"):
            frame[name] = frame[name].astype(np.float64)
        frame["confirmed"] = pd.array([row.get("confirmed") for row in rows], dtype="boolean")
        for name in ("proof", "message"):  # else the dtype would depend on whether all are None
            frame[name] = pd.Series([row.get(name) for row in rows], index=frame.index, dtype=object)
        return frame

    @cached_property
    def counterfactuals(self) -> pd.DataFrame:
        """The people's rows after their actions; a person without an action keeps their row."""
        return rows_after(self.rows, self.columns, self.results)

    @cached_property
    def printed(self) -> list[AsPrinted | None]:
        """For each person with an action the values to say: the shortest decimals that the model accepts when
        they are set together (:func:`~milp_recourse.tables.said_values.said_values`)."""
        return said_values(self.rows, self.columns, self.problem, self.results, self.confirmed, self.accepts)

    @cached_property
    def changes(self) -> pd.DataFrame:
        """A row per change, indexed as people: feature, before, after, shown, and cause (``action`` or
        ``effect``).

        ``shown`` is the value to say (:attr:`printed`): shorter than ``after``, and accepted by the model. A
        feature that an action holds is listed too, with ``after`` equal to ``before``.
        """
        rows, people = [], []
        by_name = {c.name: c for c in self.columns}
        for i, result in enumerate(self.results):
            action = {} if result is None else result.action or {}
            listed = action.keys() | (changed_values(self.rows, self.columns, i, result) or {}).keys()
            for name in (c.name for c in self.columns if c.name in listed):
                key = by_name[name].key
                cause = "action" if name in action else "effect"
                values = (frame[key].iloc[i] for frame in (self.rows.frame, self.counterfactuals))
                printed = self.printed[i]
                assert printed is not None
                rows.append((key, *values, by_name[name].value(printed.counterfactual[name]), cause))
                people.append(i)
        frame = pd.DataFrame(rows, columns=["feature", "before", "after", "shown", "cause"], dtype=object)
        return frame.set_axis(self.rows.frame.index[people], axis=0)

    @cached_property
    def directions(self) -> pd.DataFrame:
        """How often each lever's value was raised, lowered or given another label, and what would forbid it.

        Which direction makes sense is not known from a model: where people are told to do what nobody should
        be, the argument of :class:`~milp_recourse.tables.recourse.Recourse` in the last column forbids it.
        """
        rows = {}
        acted = self.changes[self.changes["cause"] == "action"]
        levers = () if self.problem is None else self.problem.template.preferences.actionable
        for column in (c for c in self.columns if c.name in levers or (acted["feature"] == c.key).any()):
            own = acted[acted["feature"] == column.key]
            up = down = other = 0
            for before, after in zip(own["before"], own["after"], strict=True):
                if column.feature.kind == "categorical" or pd.isna(before):
                    other += before != after
                else:
                    up += column.code(after) > column.code(before)
                    down += column.code(after) < column.code(before)
            key, forbid = column.key, []
            forbid += [f"decrease=[{key!r}]"] if up else []
            forbid += [f"increase=[{key!r}]"] if down else []
            forbid += [f"immutable=[{key!r}]"] if other else []
            rows[key] = {
                "raised": up,
                "lowered": down,
                "relabelled": other,
                "to forbid it": " or ".join(forbid),
            }
        names = ["raised", "lowered", "relabelled", "to forbid it"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=names)

    def front(self, person: Hashable, time_limit: float | None = None) -> pd.DataFrame:
        """Cost against the number of actions: the cheapest action on at most k features, for every k.

        Parameters
        ----------
        person
            The person's label in the table's index.
        time_limit
            Seconds for all points together; None for no limit.

        Returns
        -------
        pandas.DataFrame
            Indexed by the number of actions: status, cost, lower_bound, and the columns acted on.

        Raises
        ------
        BadInput
            No person, or more than one, has this label, or the person could not be read.
        """
        found = front(self._problem_of(person), self.asked, time_limit)
        keys = {c.name: c.key for c in self.columns}
        rows = [
            (one.status.value, one.cost, one.lower_bound, [keys[name] for name in one.action or ()])
            for one in (point.result for point in found.points)
        ]
        index = pd.Index([point.actions for point in found.points], name="actions")
        return pd.DataFrame(rows, index, columns=["status", "cost", "lower_bound", "acted"])

    def why(self, person: Hashable, time_limit: float | None = None) -> dict[str, Any]:
        """Which restrictions make recourse impossible, or what each one costs, as a ``why-1`` document.

        Parameters
        ----------
        person
            The person's label in the table's index.
        time_limit
            Seconds for everything together; None for no limit.

        Raises
        ------
        BadInput
            No person, or more than one, has this label, or the person could not be read.
        """
        return ask_why(self._problem_of(person), self.asked, time_limit).to_dict()

    def reasons(self, person: Hashable, most: int = 2, time_limit: float | None = None) -> pd.DataFrame:
        """What suffices by itself: for each lever, and each set of at most ``most`` levers, the least change
        that acts on these alone, or the proof that there is none.

        Parameters
        ----------
        person
            The person's label in the table's index.
        most
            The most levers of a set, 1 or more.
        time_limit
            Seconds for all sets together; None for no limit.

        Returns
        -------
        pandas.DataFrame
            A row per set, cheapest first, from 1: levers (a tuple of columns), status, cost, lower_bound,
            proof, confirmed, and values as column -> the value to say. A set that cannot suffice is
            ``infeasible``. The optimum of a set may act on fewer levers.

        Raises
        ------
        BadInput
            No person, or more than one, has this label, the person could not be read, or ``most`` is no whole
            number above 0.
        """
        problem, i = self._problem_of(person), self._position(person)
        found = reasons(problem, most, self.asked, time_limit)
        return reasons_table(found, i, problem, self.rows, self.columns, self.compare, self.accepts)

    def reasons_table(self, most: int = 2, time_limit: float | None = None) -> pd.DataFrame:
        """:meth:`reasons` of everybody who is refused and could be read, counted.

        Parameters
        ----------
        most
            The most levers of a set, 1 or more.
        time_limit
            Seconds for each person; None for no limit.

        Returns
        -------
        pandas.DataFrame
            A row per set of levers, first the one that suffices for most people: people who can act on it,
            and of these for how many it suffices, for how many it is proven not to, and for how many no other
            set is cheaper; and the median cost where it suffices.

        Raises
        ------
        BadInput
            ``most`` is no whole number above 0.
        """
        tables = []
        for i, result in enumerate(self.results):
            if self.problem is not None and result is not None and result.action != {}:
                found = reasons(self.problem[i], most, self.asked, time_limit)
                own = (found, i, self.problem[i], self.rows, self.columns, self.compare, self.accepts)
                tables.append(reasons_table(*own))
        return counted(tables)

    def choices(
        self,
        person: Hashable,
        count: int = 3,
        differ: Differ = "features",
        apart: float | None = None,
        scale: Mapping[Hashable, float] | None = None,
        time_limit: float | None = None,
        together: bool = False,
    ) -> pd.DataFrame:
        """The cheapest recourses of one person that differ, each proven given those before it.

        Parameters
        ----------
        person
            The person's label in the table's index.
        count, differ, apart, together
            As for :func:`milp_recourse.questions.choices.choices`.
        scale
            Column -> the change that counts as 1.
        time_limit
            Seconds for all of them together; None for no limit.

        Returns
        -------
        pandas.DataFrame
            A row per choice, from 1: status, cost, lower_bound, and the action as column -> value. In
            ``attrs``: ``exhausted``, ``lower_bound``, ``message`` and ``total`` (its cost and its lower
            bound, or None) as in a ``choices-1`` document.

        Raises
        ------
        BadInput
            No person, or more than one, has this label, the person could not be read, or an argument is not
            what is allowed.
        Unsupported
            ``together`` is asked for with another ``differ`` than features.
        """
        scales = self._named("scale", scale)
        problem, backend = self._problem_of(person), self.asked
        found = choices(problem, count, differ, apart, scales, backend, time_limit, together)
        rows = [
            (one.status.value, one.cost, one.lower_bound, self._in_own_values(one.action or {}))
            for one in (choice.result for choice in found.choices)
        ]
        index = pd.RangeIndex(1, 1 + len(rows), name="choice")
        frame = pd.DataFrame(rows, index, columns=["status", "cost", "lower_bound", "action"])
        frame.attrs |= {
            name: getattr(found, name) for name in ("exhausted", "lower_bound", "message", "total")
        }
        return frame

    def share(
        self,
        offers: Sequence[Mapping[str, Any]],
        budget: float | None = None,
        weight: float | None = None,
        most_cost: float | None = None,
        time_limit: float | None = None,
    ) -> pd.DataFrame:
        """The cheapest joint plans of people and an institution, of each by themselves or within a budget.

        Parameters
        ----------
        offers
            What the institution may do for a person, as in an ``offers-1`` document: ``give`` and ``cheaper``
            name columns, ``lower`` is in the unit of ``margin`` in :attr:`table`.
        budget, weight, most_cost, time_limit
            As for :func:`milp_recourse.questions.share.share`.

        Returns
        -------
        pandas.DataFrame
            A row per person who could be read: served, offer, price, status, cost, lower_bound, and the
            action as column -> value. ``attrs["document"]`` is the ``share-1`` document.

        Raises
        ------
        BadInput
            Nobody could be read, or an argument is not what is allowed.
        """
        if self.problem is None:
            raise BadInput("people", "nobody who could be read", "at least one")
        if not isinstance(offers, list | tuple):
            raise BadInput("offers", shown(offers), "a list of offers")
        named = [self._named_offer(one) if isinstance(one, Mapping) else one for one in offers]
        found = share(self.problem, named, budget, weight, most_cost, self.asked, time_limit)
        rows, places = [], list(found.fronts)
        for i, points in found.fronts.items():
            k = found.chosen[i]
            point = points[0 if k is None else k]
            own = result_part(point.result, "status", "cost", "lower_bound")
            action = self._in_own_values(point.result.action or {})
            asked = {"served": k is not None, "offer": point.offer.name, "price": float(point.offer.price)}
            rows.append({**asked, **own, "action": action})
        frame = pd.DataFrame(rows, self.rows.frame.index[places])
        frame.attrs["document"] = found.to_dict()
        return frame

    def robust(
        self,
        person: Hashable,
        missed: Mapping[Hashable, float] | None = None,
        threshold: float | None = None,
        noise: Mapping[Hashable, float | Sequence[float]] | None = None,
        time_limit: float | None = None,
        certificate: str | Path | None = None,
    ) -> dict[str, Any]:
        """One person's cheapest action that is accepted even if not everything turns out as planned.

        Its ``proof`` is ``rigorous`` only if the checker ``verify/`` has accepted its certificate.

        Parameters
        ----------
        person
            The person's label in the table's index.
        missed, threshold, noise
            As for :func:`milp_recourse.questions.robust.robust`, by column.
        time_limit
            Seconds for everything but the check; None for no limit.
        certificate
            A file to write the certificate to, if there is one. ``verify`` checks it against the file of
            :meth:`population`.

        Returns
        -------
        dict
            A ``robust-1`` document. If the model's own ``predict`` refuses the counterfactual, or the worst
            outcome found, its status is ``limit``, and the message says so.

        Raises
        ------
        BadInput
            No person, or more than one, has this label, the person could not be read, or the uncertainty does
            not fit the problem.
        """
        away, wide = self._named("missed", missed), self._named("noise", noise)
        if not isinstance(certificate, str | PathLike | None):
            raise BadInput("certificate", shown(certificate), "the path of a file")
        problem, backend, index = (
            self._problem_of(person),
            self.asked,
            self._position(person),
        )
        found = checked(robust(problem, away, threshold, wide, backend, time_limit, index=index))
        result = found.result
        for outcome in (result, replace(result, counterfactual=found.worst_counterfactual)):
            mine = [outcome if i == index else None for i in range(len(self))]
            compared, _ = self.compare(rows=self.rows, results=mine, population=self.problem)
            contradicted = compared[index]
            if contradicted is not None and contradicted is not outcome:
                own = replace(contradicted, proof="solver", counterfactual=result.counterfactual)
                found = replace(found, result=own)
        return with_certificate(found, certificate).to_dict()

    def regions(
        self, person: Hashable, time_limit: float | None = None, certificate: str | Path | None = None
    ) -> pd.DataFrame:
        """The box around one person's action in which everything is accepted, effects included.

        Every action on the same columns with values in the box that may be set is accepted, whatever else it
        breaks (conditions, plausibility, domains of what follows). No side can be moved out alone, unless a
        refused point gets in or the side is at its limit.

        Parameters
        ----------
        person
            The person's label in the table's index.
        time_limit
            Seconds for everything but the check; None for no limit.
        certificate
            A file to write the certificate to, if there is one. ``verify`` checks it against the file of
            :meth:`population`.

        Returns
        -------
        pandas.DataFrame
            A row per column that is acted on, none for a person who is accepted as they are: feature, low,
            high; labels in place of low and high for a column without an order; shown_low and shown_high, the
            ends rounded inward to few digits; held_low and held_high: ``refused``, the limit that the side
            has reached, or None where the search stopped before. In ``attrs``: ``proven`` (only if the
            checker has accepted the certificate, and the model itself refuses no corner that it was asked
            about), ``message``, and ``document``, a ``regions-1`` document.

        Raises
        ------
        BadInput
            No person, or more than one, has this label, or the person could not be read or has no action.
        Unsupported
            The model is asked, not read.
        """
        if not isinstance(certificate, str | PathLike | None):
            raise BadInput("certificate", shown(certificate), "the path of a file")
        problem, i = self._problem_of(person), self._position(person)
        result, printed = self.results[i], self.printed[i]
        if result is None or result.action is None:
            got = "nobody reached" if result is None else result.status.value
            raise BadInput("person", got, "a person who has an action")
        action = problem.numbers(result.action)
        found = checked_region(region(problem, action, time_limit=time_limit, index=i))
        corner = refused_corner(found, i, self.rows, self.columns, self.accepts)
        if corner is not None:
            found = found.alone(f"the model itself refuses {corner}")
        if certificate is not None and found.evidence is not None:
            write_gzipped(found.evidence, certificate)
        return region_table(found, self.columns, {} if printed is None else printed.action)

    def _named(self, argument: str, given: Mapping[Hashable, T] | None) -> dict[str, T]:
        """A mapping from columns as a mapping from features.

        Raises
        ------
        BadInput
            A column does not exist.
        """
        names = {c.key: c.name for c in self.columns}
        return {names[key]: value for key, value in by_column(argument, given, list(names)).items()}

    def _named_offer(self, offer: Mapping[str, Any]) -> dict[str, Any]:
        """An offer about columns as one about features, and its ``lower`` in units of the classifier."""
        lower = offer.get("lower")
        own = {"lower": lower * self.unit} if is_number(lower) else {}
        return {
            **offer,
            **own,
            **{key: self._named(key, offer[key]) for key in ("give", "cheaper") if key in offer},
        }

    def _in_own_values(self, action: Mapping[str, float | int | str]) -> dict[Hashable, object]:
        """An action as a mapping from columns to the table's own values."""
        found: dict[Hashable, object] = {}
        for column in self.columns:
            if column.name in action:
                found[column.key] = column.value(column.feature.number(action[column.name]))
        return found

    def _problem_of(self, person: Hashable) -> Instance:
        position = self._position(person)
        fault = self.rows.faults.get(position)
        if fault is not None or self.problem is None:
            raise fault or BadInput("person", repr(person), "somebody who could be read")
        return self.problem[position]

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
        if not isinstance(folder, str | PathLike):
            raise BadInput("folder", shown(folder), "the path of a folder")
        where = Path(folder)
        if (where / "results.csv").exists():
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
        if not isinstance(out, str | PathLike):
            raise BadInput("out", shown(out), "the path of a new folder or zip")
        asked = Asked(reasons, why)
        with TemporaryDirectory() as folder:
            self.save(folder)
            return write_audit(Path(folder), Path(out), None, asked, day, jobs)

    def _people(self, positions: Iterable[int]) -> list[Person]:
        rows, problem = self.rows, self.problem
        found = (
            person_at(i, rows, problem, self.results[i], self.confirmed[i], self.printed[i])
            for i in positions
        )
        return [self.words.of(person) for person in found]

    def _position(self, person: Hashable) -> int:
        labels = self.rows.frame.index.tolist() if isinstance(person, Hashable) else []
        found = [k for k, label in enumerate(labels) if position([label], person) is not None]
        if len(found) != 1:
            raise BadInput("person", shown(person), "a label of the people's index that one person has")
        return found[0]

    def _repr_html_(self) -> str:
        return population_fragment(self._people(range(len(self)))) if len(self) else self.table.to_html()

    def summary(self) -> str:
        """A few lines: counts per status, the confirmed actions, costs, and what was proven."""
        table = self.table
        counts = Counter(table["status"])
        not_reached = sum(r is None and i not in self.rows.faults for i, r in enumerate(self.results))
        counts[Status.LIMIT.value] -= not_reached
        counts["not reached"] = not_reached
        known = ", ".join(f"{n} {status}" for status, n in counts.items() if n)
        lines = [f"{len(self)} people: {known or 'none'}"]
        acted = table["cost"].notna()
        if acted.any():
            checked = table["confirmed"][acted].dropna()
            share = f"{int(checked.sum())} of {len(checked)} actions"
            confirmed = f"{share} are confirmed by the model's own predict"
            lines.append(confirmed if len(checked) else "the model itself was not asked: give predict")
            lines.append(
                f"cost: median {table['cost'][acted].median():.6g}, mean {table['cost'][acted].mean():.6g}"
            )
        proven = (r for r in self.results if r is not None and r.status is Status.OPTIMAL)
        already = sum(not r.action for r in proven)  # a cost of 0 is not enough: some actions are free
        if already:
            lines.append(f"{already} of them are accepted without any action")
        lines += [f"{name}: {text}" for name, text in self.facts.items()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Answers({self.summary().splitlines()[0]})"

    def _row(self, i: int, result: Result | None) -> dict[str, Any]:
        """A row of :attr:`table`."""
        if i in self.rows.faults:
            return {"status": BAD_INPUT, "message": str(self.rows.faults[i]), "seconds": 0.0}
        margin = {} if self.problem is None else {"margin": self.problem.margin_of(i) / self.unit}
        if result is not None:
            own = result_part(result, "cost", "lower_bound", "gap", "proof", "message", "seconds")
            return own | margin | {"confirmed": self.confirmed[i]}
        message = "interrupted before this person's turn"
        return margin | {
            "status": Status.LIMIT.value,
            "lower_bound": 0.0,
            "message": message,
            "seconds": 0.0,
        }

"""What can be asked about one person of a table: fronts, reasons, choices, what withstands what."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from milp_recourse.errors import BadInput, is_number
from milp_recourse.formats.strict_json import write_gzipped
from milp_recourse.formats.write import result_part
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.population import Population
from milp_recourse.problem.result import Result
from milp_recourse.questions.choices import Differ, choices
from milp_recourse.questions.front import front
from milp_recourse.questions.reasons import reasons
from milp_recourse.questions.regions import region
from milp_recourse.questions.robust import robust
from milp_recourse.questions.share import share
from milp_recourse.questions.why import why as ask_why
from milp_recourse.reports.certificate_files import checked, checked_region, with_certificate
from milp_recourse.reports.robust_words import robust_lines, robust_rows
from milp_recourse.reports.why_words import headline, why_rows
from milp_recourse.tables.answered import AnsweredPeople
from milp_recourse.tables.arguments import by_column, check_path
from milp_recourse.tables.columns import got_repr
from milp_recourse.tables.people_rows import chosen
from milp_recourse.tables.question_tables import (
    compared_plans,
    counted,
    reasons_table,
    refused_corner,
    region_table,
)
from milp_recourse.tables.shown_document import ShownDocument

T = TypeVar("T")


class PersonQuestions(AnsweredPeople):
    """What can be asked about one person of the table, by their label in its index, or about all."""

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
            Indexed by the number of actions: status, cost, lower_bound, the columns acted on, and confirmed:
            whether the model's own ``predict`` accepts the row after the action. What it refuses is a
            ``limit``.

        Raises
        ------
        BadInput
            No person, or more than one, has this label, or the person could not be read.
        """
        problem = self._problem_of(person)
        found = front(problem, self.asked, time_limit).points
        keys = {c.name: c.key for c in self.columns}
        compared = self._compared(person, [point.result for point in found], [problem] * len(found))
        rows = [
            (one.status.value, one.cost, one.lower_bound, [keys[name] for name in one.action or ()], word)
            for one, word in compared
        ]
        index = pd.Index([point.actions for point in found], name="actions")
        frame = pd.DataFrame(rows, index, columns=["status", "cost", "lower_bound", "acted", "confirmed"])
        return frame.astype({"confirmed": "boolean"})

    def why(self, person: Hashable, time_limit: float | None = None) -> ShownDocument:
        """Which restrictions make recourse impossible, or what each one costs, as a ``why-1`` document.

        It shows itself as a table, which is its ``table``; ``to_json`` gives the text of its file.

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
        found = ask_why(self._problem_of(person), self.asked, time_limit)
        return ShownDocument(found.to_dict(), [headline(found)], why_rows(found))

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
        return self._reasons_of(self._position(person), self._problem_of(person), most, time_limit)

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
        refused = [i for i, one in enumerate(self.results) if one is not None and one.action != {}]
        problem = self.problem
        return counted(
            [self._reasons_of(i, problem[i], most, time_limit) for i in refused if problem is not None]
        )

    def _reasons_of(self, i: int, problem: Instance, most: int, time_limit: float | None) -> pd.DataFrame:
        found = reasons(problem, most, self.asked, time_limit)
        return reasons_table(found, i, problem, self.rows, self.columns, self.compare, self.accepts)

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
            A row per choice, from 1: status, cost, lower_bound, the action as column -> value, and confirmed
            as in :meth:`front`. In ``attrs``: ``exhausted``, ``lower_bound``, ``message`` and ``total`` (its
            cost and its lower bound, or None) as in the ``choices-1`` document, which is ``document``; if
            ``predict`` refuses a choice, nothing of this is claimed.

        Raises
        ------
        BadInput
            No person, or more than one, has this label, the person could not be read, or an argument is not
            what is allowed.
        Unsupported
            ``together`` is asked for with another ``differ`` than features.
        """
        scales, problem = self._named("scale", scale), self._problem_of(person)
        found = choices(problem, count, differ, apart, scales, self.asked, time_limit, together)
        results = [choice.result for choice in found.choices]
        compared = self._compared(person, results, [found.problem(k) for k in range(len(results))])
        wrong = [one.message for (one, _), own in zip(compared, results, strict=True) if one is not own]
        if wrong:
            total = found.total and (found.total[0], 0.0)
            found = replace(found, exhausted=False, lower_bound=0.0, message=wrong[0], total=total)
        own = zip(found.choices, compared, strict=True)
        found = replace(found, choices=tuple(replace(choice, result=one) for choice, (one, _) in own))
        rows = [
            (one.status.value, one.cost, one.lower_bound, self._in_own_values(one.action or {}), word)
            for one, word in compared
        ]
        index = pd.RangeIndex(1, 1 + len(rows), name="choice")
        frame = pd.DataFrame(rows, index, columns=["status", "cost", "lower_bound", "action", "confirmed"])
        told = ("exhausted", "lower_bound", "message", "total")
        frame.attrs |= {name: getattr(found, name) for name in told} | {"document": found.to_dict()}
        return frame.astype({"confirmed": "boolean"})

    def _compared(
        self, person: Hashable, results: Sequence[Result], problems: Sequence[Instance]
    ) -> list[tuple[Result, bool | None]]:
        """One person's results, each of a problem of its own, compared with the model's own word."""
        if not results:
            return []
        own = [one.preferences for one in problems]
        people = Population.of(problems[0], [one.factual for one in problems], own, {})
        rows = chosen(self.rows, [self._position(person)] * len(results))
        compared, words = self.compare(rows=rows, results=results, population=people)
        return [(one, word) for one, word in zip(compared, words, strict=True) if one is not None]

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
            A row per person who could be read: served, offer, price, status, cost, lower_bound, confirmed,
            and the action as column -> value. ``confirmed``: whether the model's own ``predict`` accepts the
            row once it has what is given and the action; NA without an action, or where the offer lowers the
            threshold, which ``predict`` does not know of. A plan that it refuses has the status ``limit``.
            ``attrs["document"]`` is the ``share-1`` document.

        Raises
        ------
        BadInput
            Nobody could be read, or an argument is not what is allowed.
        """
        if self.problem is None:
            raise BadInput("people", "nobody who could be read", "at least one")
        if not isinstance(offers, list | tuple):
            raise BadInput("offers", got_repr(offers), "a list of offers")
        named = [self._named_offer(one) if isinstance(one, Mapping) else one for one in offers]
        plans = share(self.problem, named, budget, weight, most_cost, self.asked, time_limit)
        found, confirmed = compared_plans(plans, self.problem, self.rows, self.columns, self.compare)
        rows, places = [], list(found.fronts)
        for i, points in found.fronts.items():
            k = found.chosen[i]
            point, word = points[k or 0], confirmed[i][k or 0]
            own = result_part(point.result, "cost", "lower_bound") | {"confirmed": word}
            action = self._in_own_values(point.result.action or {})
            asked = {"served": k is not None, "offer": point.offer.name, "price": float(point.offer.price)}
            rows.append({**asked, **own, "action": action})
        frame = pd.DataFrame(rows, self.rows.frame.index[places])
        frame["confirmed"] = frame["confirmed"].astype("boolean")
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
    ) -> ShownDocument:
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
        ShownDocument
            A ``robust-1`` document that shows itself as a table, which is its ``table``: each feature that
            changes, with its value before, after, and in the worst outcome found. If the model's own
            ``predict`` refuses the counterfactual, or the worst outcome found, its status is ``limit``, and
            the message says so.

        Raises
        ------
        BadInput
            No person, or more than one, has this label, the person could not be read, or the uncertainty does
            not fit the problem.
        """
        away, wide = self._named("missed", missed), self._named("noise", noise)
        if certificate is not None:
            check_path("certificate", certificate, "the path of a file")
        problem, index = self._problem_of(person), self._position(person)
        found = checked(robust(problem, away, threshold, wide, self.asked, time_limit, index=index))
        result = found.result
        for outcome in (result, replace(result, counterfactual=found.worst_counterfactual)):
            mine = [outcome if i == index else None for i in range(len(self))]
            compared, _ = self.compare(rows=self.rows, results=mine, population=self.problem)
            contradicted = compared[index]
            if contradicted is not None and contradicted is not outcome:
                own = replace(contradicted, proof="solver", counterfactual=result.counterfactual)
                found = replace(found, result=own)
        found = with_certificate(found, certificate)
        return ShownDocument(found.to_dict(), robust_lines(found), robust_rows(found))

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
        if certificate is not None:
            check_path("certificate", certificate, "the path of a file")
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
        acted = (c for c in self.columns if c.name in action)
        return {c.key: c.value(c.feature.number(action[c.name])) for c in acted}

    def _problem_of(self, person: Hashable) -> Instance:
        position = self._position(person)
        fault = self.rows.faults.get(position)
        if fault is not None or self.problem is None:
            raise fault or BadInput("person", repr(person), "somebody who could be read")
        return self.problem[position]

"""``Recourse``: a fitted model and a table in, proven answers as tables out.

>>> recourse = Recourse(model, X, immutable=["age"])           # doctest: +SKIP
>>> answers = recourse.certify(X[model.predict(X) == 0])       # doctest: +SKIP
>>> answers.table, answers.counterfactuals, answers.changes    # doctest: +SKIP
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pandas as pd

from milp_recourse.errors import BadInput, Unsupported, is_number
from milp_recourse.formats.schema import cost_to_dict
from milp_recourse.formats.schema_features import feature_to_dict
from milp_recourse.problem.asked_model import AskedModel
from milp_recourse.problem.instance import Instance, Preferences, check_density, check_person
from milp_recourse.problem.population import FactualTable, Population, undefined_values
from milp_recourse.problem.result import Result
from milp_recourse.problem.scm import StructuralCausalModel
from milp_recourse.questions.solve import backend_for, check_options, solve_as_finished
from milp_recourse.questions.workers import Workers
from milp_recourse.readers.classes import Target
from milp_recourse.readers.refusal import OR_ASK
from milp_recourse.readers.steps_before import check_frame
from milp_recourse.reports.progress import progress_bar
from milp_recourse.solvers.in_order import endless_levers
from milp_recourse.tables.against_model import Compare, KnownRows, ask_model, compared_with_model
from milp_recourse.tables.answers import Answers, Interrupted
from milp_recourse.tables.arguments import (
    by_column,
    cost_in_words,
    cost_of,
    intervals,
    outlying_scales,
    own_words,
    positive,
    some_columns,
)
from milp_recourse.tables.asked_table import AskedTable, read_or_ask
from milp_recourse.tables.conditions_argument import conditions_of, followers, split_ties, with_ties
from milp_recourse.tables.features_of_columns import (
    ColumnArguments,
    classifier_over,
    table_columns,
    with_codes,
)
from milp_recourse.tables.inferred import facts_of_answers, inferred, sources_of
from milp_recourse.tables.one_person import OnePerson
from milp_recourse.tables.own_margins import own_margins, without_unbounded
from milp_recourse.tables.people_rows import Rows, chosen, own_names, people_preferences, read_rows
from milp_recourse.tables.plausibility_argument import Plausibility, causal_model, cause_columns
from milp_recourse.tables.run_folder import kept
from milp_recourse.tables.verdict import (
    Desired,
    OwnWord,
    Predict,
    as_frame,
    asked_with,
    desires,
    in_types_of,
    is_polars,
    own_predict,
    own_probability,
)


class Recourse:
    """The least that refused people must change for a fitted model to accept them, with proof.

    The problem is defined in :class:`~milp_recourse.problem.instance.Instance`; this class makes one for each
    row of a table.

    Parameters
    ----------
    model
        A fitted classifier or a whole Pipeline (:func:`milp_recourse.readers.read_model` lists what is read).
        Any other model with ``predict``, and any function from a DataFrame like X to labels, is asked, if
        every lever takes finitely many values (:mod:`milp_recourse.solvers.ask`).
    X
        The DataFrame it was fitted on, of pandas or polars (answers are pandas'): kinds, labels, bounds and
        scales come from it.
    desired
        The class people want: a label, or ``{"not": label}``; default ``classes_[1]``. For a regression the
        numbers that they want it to predict: (low, high), None for an open end.
    immutable
        Columns nobody can act on. Of the others, those that the model reads are levers.
    increase, decrease
        Columns that an action may only raise, or only lower.
    kinds
        Column -> ``continuous``, ``integer``, ``binary``, ``categorical`` or ``ordinal``. Of columns that are
        not named, those of labels are categorical, those of numbers binary if all in X are 0 or 1, integer if
        all are whole, else continuous.
    categories
        Column -> its labels in order; makes it ordinal.
    bounds
        Column -> (lowest, highest) value an action may set. Default: the least and the largest in X.
    ranges
        Column -> (lowest, highest) value that everybody is willing to have; one person's own ranges go into
        the ``preferences`` of :meth:`certify`.
    domain
        Column -> (lowest, highest) value after the action, acted on or not.
    cost
        ``l1``, ``l2-squared``, ``l2``, ``linf``, ``l0``, ``percentile``, ``percentile-max``,
        ``log-percentile``, ``log-percentile-max``, or a mixture such as ``{"l0": 0.1, "l1": 1}``; the
        formulas are in :mod:`milp_recourse.problem.cost`.
    scale
        What changes are divided by: ``spread``, ``range``, ``sd``, ``mad``, ``iqr``, ``unit``
        (:func:`milp_recourse.tables.columns.scale_of`), ``factual`` (the person's own value), or column ->
        number above 0, ``{"increase": s, "decrease": s}`` or ``"factual"``.
    weights
        Column -> weight above 0; 1 where not named.
    scm
        How changes flow: a :class:`~milp_recourse.problem.scm.StructuralCausalModel` over columns of X, or
        its JSON form; None: no column causes another.
    plausibility
        None, or one of three demands on the counterfactual.
        ``{"kind": "scm-density", "at_least": "factual" | number | {"quantile": q}, "offset": o}``: its log
        density is at least the factual's, or the number, or the quantile of X's log densities, plus o nats;
        ``"scm-density"`` alone means at least the factual's. ``"domain"``: every number stays in its range in
        X. ``{"kind": "near-data", "within": r, "rows": DataFrame, "prototypes": n, "features": [...]}``: it
        is within r ranges of some accepted row (default: of X).
    conditions
        Further conditions; all must hold. Lines such as ``"at most 2 actions"`` or ``"loan <= 5 * income"``
        (:mod:`milp_recourse.problem.conditions.text`), or objects as in files; also ``"age moves with months
        by 1 per 12"`` (:mod:`milp_recourse.tables.conditions_argument`).
    margin
        How far the logit must pass the threshold. None: for each person as far as the rounding of this
        model's own arithmetic can reach on what that person can become
        (:func:`milp_recourse.readers.rounding_margins`). Of trees, in units of their score: a probability for
        trees and forests (above 1/2, or above that of each other class), the raw score for boosting.
    confidence
        The least probability of the desired class: accepted means that predict_proba gives at least this much
        to it, and that it is predicted (:mod:`milp_recourse.readers.confidence` lists which models can be
        asked).
    steps
        Column -> s or ``{"step": s, "from": v}``: an action sets v plus a multiple of s (v is 0 if it is not
        given), counted in decimals. Not acting is allowed whatever the person's value.
    values
        Column -> the numbers or labels that an action may set; a number's bounds are the least and the
        largest of them unless ``bounds`` has the column.
    predict
        A function from a DataFrame like X to predicted labels; default: the model's own ``predict``.

    names, units
        Column -> words for it, and the unit of its numbers, for pages and letters.

    Raises
    ------
    BadInput
        An argument is not what is allowed, or the model cannot be read. The message is one line: the
        argument, what it got, what is allowed.
    """

    def __init__(
        self,
        model: Any,
        X: pd.DataFrame,
        desired: Desired = None,
        *,
        immutable: Sequence[Hashable] = (),
        increase: Sequence[Hashable] = (),
        decrease: Sequence[Hashable] = (),
        kinds: Mapping[Hashable, str] | None = None,
        categories: Mapping[Hashable, Sequence[object]] | None = None,
        bounds: Mapping[Hashable, Sequence[float]] | None = None,
        ranges: Mapping[Hashable, Sequence[float]] | None = None,
        domain: Mapping[Hashable, Sequence[float]] | None = None,
        cost: str | Mapping[str, float] = "l1",
        scale: str | Mapping[Hashable, Any] = "spread",
        weights: Mapping[Hashable, float] | None = None,
        scm: StructuralCausalModel | Mapping[str, Any] | None = None,
        plausibility: str | Mapping[str, Any] | None = None,
        conditions: Sequence[Any] | None = (),
        margin: float | None = None,
        predict: Predict | None = None,
        confidence: float | None = None,
        steps: Mapping[Hashable, Any] | None = None,
        values: Mapping[Hashable, Sequence[Any]] | None = None,
        names: Mapping[Hashable, str] | None = None,
        units: Mapping[Hashable, str] | None = None,
    ) -> None:
        given, X = X, as_frame(X)
        check_frame(X)
        if margin is not None and not (is_number(margin) and margin >= 0):
            raise BadInput("margin", margin, "None, or a finite number, 0 or more")
        if confidence is not None and not (is_number(confidence) and 0 < confidence <= 1):
            raise BadInput("confidence", confidence, "None, or a probability above 0 and at most 1")
        if predict is not None and not callable(predict):
            raise BadInput("predict", type(predict).__name__, "None, or a function of a DataFrame")
        ties, conditions = split_ties(conditions, X)
        following = followers(ties, X)
        scm = with_ties(scm, ties)
        kinds = {**dict.fromkeys(following, "continuous"), **(kinds or {})} if following else kinds
        arguments = ColumnArguments(
            immutable=some_columns("immutable", immutable, X.columns) | set(following),
            increase=some_columns("increase", increase, X.columns),
            decrease=some_columns("decrease", decrease, X.columns),
            kinds=by_column("kinds", kinds, X.columns),
            categories=by_column("categories", categories, X.columns),
            bounds=intervals("bounds", bounds, X.columns),
            domain=intervals("domain", domain, X.columns),
            steps=by_column("steps", steps, X.columns),
            values=by_column("values", values, X.columns),
        )
        labels = arguments.kinds, arguments.categories
        asks = asked_with(given, predict)
        if not hasattr(model, "predict") and callable(model) and is_polars(given):
            model = asked_with(given, model)
        self.reading, predict, self._refusal = read_or_ask(
            model, X, desired, confidence, margin, asks, *labels, arguments.immutable
        )
        self.X, self.margin = X, None if margin is None else float(margin)
        self.reading = with_codes(self.reading, X, arguments)
        wants = desires(self.reading)
        asked = own_predict(model, X, self.reading.classes) if predict is None else predict
        self._word = None if asked is None else OwnWord(in_types_of(X, asked), wants)
        self.confidence = None if confidence is None else float(confidence)
        if self._word is not None and self.confidence is not None and isinstance(self.reading.wish, Target):
            sure = own_probability(model, X, self.reading.wish)
            self._word = replace(self._word, probability=sure, least=self.confidence)
        self.columns = table_columns(self.reading, X, arguments, cause_columns(scm, X))
        said = {
            "desired": desired,
            "cost": cost,
            "scale": scale,
            "weights": weights,
            "ranges": ranges,
            "scm": scm,
        }
        said |= {"plausibility": plausibility, "margin": margin, "confidence": confidence}
        self._sources = sources_of(self.columns, arguments, said)
        self._words = own_words(names, units, self.columns, X.columns)
        self._plausibility = Plausibility.of(plausibility)
        self.columns = tuple(
            replace(c, feature=replace(c.feature, domain=self._plausibility.domain_of(c, X)))
            for c in self.columns
        )
        classifier = classifier_over(self.reading, self.columns)
        causes = causal_model(scm, self.columns)
        if isinstance(classifier, AskedModel) and asked is not None and self._word is not None:
            moved = causes.descendants({c.name for c in self.columns if c.feature.actionable})
            raw = replace(self._word, predict=asked)
            classifier, self._word = AskedTable(X, self.columns, moved).asked_by(raw)
        self._problem = Instance(
            features=tuple(c.feature for c in self.columns),
            scm=causes,
            classifier=classifier,
            factual={},
            preferences=self._common(weights, ranges),
            cost=cost_of(cost, scale, self.columns, X),
            accept=self.reading.unsure,
            plausible=self._plausibility.is_density,
            density_offset=self._plausibility.offset,
            conditions=conditions_of(conditions, self.columns),
        )
        if self._problem.plausible:
            check_density(self._problem.scm)
        accepts = None if self._word is None else self._word.accepts
        near = self._plausibility.condition(self._problem, self.columns, X, accepts)
        self._problem = replace(self._problem, conditions=(*self._problem.conditions, *near))
        self._cost = cost_in_words(self._problem.cost, scale)
        sized = self._problem.cost.uses_scale and self._problem.cost.lengths
        self.outlying = outlying_scales(scale, self.columns, X) if sized else {}

    def certify(
        self,
        people: pd.DataFrame | pd.Series,
        preferences: pd.DataFrame | Sequence[Any] | None = None,
        time_limit: float | None = None,
        jobs: int = 1,
        certificates: bool = False,
        backend: str | None = None,
        out: str | Path | None = None,
        threads: int = 1,
    ) -> Answers:
        """The proven answer for each person.

        Parameters
        ----------
        people
            Rows with X's columns, in any order; further columns are ignored. One row may be a Series or dict.
        preferences
            One per person: a list of ``{"actionable": [...], "weights": {...}, "ranges": {...},
            "conditions": [...]}`` (each key may be left out; None: as everybody), a DataFrame with these
            columns, or a DataFrame with a column per feature that holds its weight, empty where this person
            cannot change it.
        time_limit
            Seconds per person; None for no limit.
        jobs
            Processes.
        certificates
            Whether answers carry proofs that ``milp-recourse verify`` checks.
        backend
            Name of a back end; None takes the default.
        out
            A folder that gets what :meth:`Answers.save` writes, row by row as people are finished (nothing if
            nobody can be read). After an interruption, a kill too, the same call goes on: finished people are
            not solved again. Their actions are judged anew and certificates compared; the bound of a row
            without one is believed, so keep the folder where nobody else writes.
        threads
            How many search for one person, in each process, where that takes long.

        Raises
        ------
        BadInput
            An argument is not what is allowed, or ``out`` holds another run. A person who cannot be read
            raises nothing; the row in the answers has the status ``bad-input``.
        Unsupported
            The back end cannot solve the problem.
        BackendUnavailable
            The back end is unknown, or its solver is not installed.
        Interrupted
            Ctrl-C was pressed. It is a KeyboardInterrupt whose ``answers`` hold the people who were finished.
        """
        rows, own = self._with_preferences(self._read(people), preferences)
        rows, margins = self._margins(rows, own)
        starts = None if self._known_rows is None else self._known_rows.starts
        options = check_options(time_limit, jobs, certificates, starts, threads)
        results: list[Result | None] = [None] * len(rows)
        readable = [i for i in range(len(rows)) if i not in rows.faults]
        how = {"backend": backend, "time_limit": time_limit, "certificates": certificates}
        if not readable:
            return self._answers(rows, None, results, how, backend)
        population = self._population(rows, own, margins)
        try:
            name = backend_for(population, backend).name
        except Unsupported as error:
            raise self._way_forward(error, backend, population) from None
        how["backend"] = name
        options = replace(options, others=backend is None, explain=True)
        asked = self._word is not None
        folder = kept(
            out, population, rows, self.columns, how, asked, self._words, self._sources, self._compare
        )
        with folder as keeps:
            for i, result in keeps.known(readable).items():
                results[i] = result
            left = [i for i in readable if results[i] is None]
            try:
                with progress_bar("people", len(readable), len(readable) - len(left)) as bar:
                    for i, result in solve_as_finished(population, name, options, left, Workers(jobs)):
                        results[i] = result
                        keeps.add(i, result)
                        bar.advance()
            except KeyboardInterrupt:
                raise Interrupted(self._answers(rows, population, results, how, backend)) from None
        return self._answers(rows, population, results, how, backend)

    def studio(
        self,
        people: pd.DataFrame | pd.Series,
        preferences: pd.DataFrame | Sequence[Any] | None = None,
        port: int = 0,
        browser: bool = True,
    ) -> None:
        """Open a local page on which these people and an adviser find a way, with proof, until Ctrl-C.

        It is served to this machine alone; its address is printed first. The model's own ``predict`` has its
        say on every answer.

        Parameters
        ----------
        people, preferences
            As for :meth:`certify`.
        port
            Of this machine; 0: any that is free.
        browser
            Whether to open the page.

        Raises
        ------
        BadInput
            An argument is not what is allowed, or nobody can be read.
        BackendUnavailable
            The extra ``studio`` is not installed.
        MachineFailed
            The port is taken.
        """
        from milp_recourse.studio import studio

        rows, own = self._with_preferences(self._read(people), preferences)
        free = tuple(f.name for f in self._problem.features if f.actionable)
        anything = [replace(one, actionable=free, ranges={}) for one in own]  # limits are lifted on the page
        rows, margins = self._margins(rows, anything)
        population = self._population(rows, own, margins)

        def confirm(index: int, result: Result) -> tuple[Result, bool | None]:
            alone = OnePerson(population[index : index + 1], chosen(rows, [index]), *known)
            return alone.compared_and_confirmed(result)

        word = None if self._word is None else self._word.remembering()
        known = self.columns, word, self._doubt
        studio(population, self._words, port, browser, None if word is None else confirm)

    def margin_for(self, people: pd.DataFrame | pd.Series) -> pd.Series:
        """The margin that is demanded of each person, in units of the logit (of trees, see the argument
        ``margin``): the one that was given, else the one that the model's own arithmetic needs; 0 for trees
        whose sums are read bit for bit.
        nan for people who cannot be read, inf where the
        model's arithmetic has no bound.

        Where none was given, every row that an action can make of a person and whose exact logit passes the
        threshold by this much is given the desired class by the model's own floating-point arithmetic
        (:func:`milp_recourse.readers.rounding_margins`). A person's margin does not depend on who else is
        asked.
        """
        rows = self._read(people)
        own = people_preferences(None, self._problem.preferences, self.columns, rows.frame)
        rows = self._with_condition_faults(rows, own)
        margins = own_margins(self._problem, self.reading, self.margin, rows, own)
        return pd.Series(margins / self.reading.unit, rows.frame.index, name="margin")

    def one_person(self, person: pd.DataFrame | pd.Series, preferences: Any = None) -> OnePerson:
        """One person's problem, and the model's own word on what an action makes of their row.

        Parameters
        ----------
        person, preferences
            As for :meth:`certify`: a row, and the person's own preferences or None.

        Raises
        ------
        BadInput
            It is not exactly one row, or the row cannot be read.
        """
        rows = self._read(person)
        if len(rows) != 1:
            raise BadInput("person", f"{len(rows)} rows", "one row")
        rows, own = self._with_preferences(rows, None if preferences is None else [preferences])
        rows, margins = self._margins(rows, own)
        return OnePerson(self._population(rows, own, margins), rows, self.columns, self._word, self._doubt)

    @property
    def features(self) -> pd.DataFrame:
        """What was inferred, one row per column that the model reads or the causal model names: kind, whether
        it is a lever, the direction in which an action may move it, allowed values, scale of the cost (two
        where increases and decreases have their own; ``factual``: the person's own value), and how a missing
        value is treated."""
        return inferred(self._problem, self.columns)

    def to_json(self) -> str:
        """What was inferred, as JSON: features and cost as instance files have them, mask, desired class,
        margin, confidence."""
        problem = self._problem
        document = {
            "features": [feature_to_dict(f) for f in problem.features],
            "actionable": list(problem.preferences.actionable),
            "cost": cost_to_dict(problem.cost),
            "desired": self.reading.desired,
            "margin": self.margin,
            "confidence": self.confidence,
        }
        return json.dumps(document, indent=1)

    def __repr__(self) -> str:
        levers = len(self._problem.preferences.actionable)
        return (
            f"Recourse({self.reading.desired} wanted, {len(self.columns)} columns, {levers} of them levers)"
        )

    def __str__(self) -> str:
        notes = (
            f"scale of {key}: {inner:g}, 1st to 99th percentile, because outliers make the range {width:g}"
            for key, (width, inner) in self.outlying.items()
        )
        return "\n".join([repr(self), self.features.to_string(), *notes])

    def _repr_html_(self) -> str:
        return self.features.to_html()

    def _way_forward(self, error: Unsupported, backend: str | None, people: Population) -> Unsupported:
        """The reader's refusal of a model that could be asked if its levers had steps; any other error
        unchanged."""
        if self._refusal is None or backend is not None:
            return error
        readable = (people[k] for k in range(len(people)) if k not in people.unreadable)
        endless = ", ".join(dict.fromkeys(name for person in readable for name in endless_levers(person)))
        refusal = self._refusal.removesuffix(OR_ASK).rstrip(",; ")
        return Unsupported(f"{refusal}, or pass steps= for {endless} and it will be asked")

    def _common(self, weights: Any, ranges: Any) -> Preferences:
        """The mask, weights and ranges of whoever states none of their own."""
        actionable = tuple(c.name for c in self.columns if c.feature.actionable)
        names = {c.key: c.name for c in self.columns if c.feature.actionable}
        return Preferences(
            actionable,
            {names[k]: w for k, w in positive("weights", weights, self.X.columns).items() if k in names},
            {names[k]: r for k, r in intervals("ranges", ranges, self.X.columns).items() if k in names},
        )

    def _read(self, people: pd.DataFrame | pd.Series) -> Rows:
        """People as numbers. A value outside what the causal model allows is added to the rows' faults."""
        people = as_frame(people)
        if not isinstance(people, pd.DataFrame):
            allowed = "a DataFrame with the columns of X, or one row of it as a Series or dict"
            raise BadInput("people", type(people).__name__, allowed)
        rows = read_rows(people, self.columns, self.X.columns)
        if not (self._problem.scm.edges or self._problem.plausible):
            return rows
        faults = dict(rows.faults)
        for i, values in enumerate(rows.values.tolist()):
            try:
                if i not in faults:
                    named = dict(zip((c.name for c in self.columns), values, strict=True))
                    check_person(self._problem, named, "")
            except BadInput as error:
                faults[i] = error
        return replace(rows, faults=faults)

    def _with_preferences(self, rows: Rows, preferences: Any) -> tuple[Rows, Sequence[Preferences]]:
        """The rows and everybody's preferences, with a fault for each person to whom these, the conditions or
        the cost cannot be applied."""
        own = people_preferences(preferences, self._problem.preferences, self.columns, rows.frame)
        if self._plausibility.level is not None or self._plausibility.quantile is not None:
            rows, own = self._plausibility.offsets(self._problem, self.columns, self.X, rows, own)
        return self._with_condition_faults(rows, own), own

    def _margins(self, rows: Rows, own: Sequence[Preferences]) -> tuple[Rows, list[float]]:
        """The rows, with a fault for each person for whom rounding has no bound; and everybody's margin."""
        margins = own_margins(self._problem, self.reading, self.margin, rows, own).tolist()
        return without_unbounded(self._problem, rows, own, margins), margins

    def _with_condition_faults(self, rows: Rows, own: Sequence[Preferences]) -> Rows:
        """The rows, with a fault for each person for whom a condition or the cost is not defined."""
        features = self._problem.features
        factuals = FactualTable([f.name for f in features], rows.values)
        faults = undefined_values(
            features, self._problem.conditions, factuals, own, rows.faults, self._problem.cost, path=""
        )
        return replace(rows, faults={**rows.faults, **faults}) if faults else rows

    def _population(self, rows: Rows, own: Sequence[Preferences], margins: Sequence[float]) -> Population:
        """The people as one population, each with the margin that they need."""
        factuals = FactualTable([f.name for f in self._problem.features], rows.values)
        names = own_names(rows.frame.index)
        return Population.of(self._problem, factuals, own, rows.faults, names, margins)

    @cached_property
    def _known_rows(self) -> KnownRows | None:
        """The model's own predictions for rows of X; None if it has no ``predict``, or was not read."""
        unread = isinstance(self._problem.classifier, AskedModel)
        return None if unread or self._word is None else ask_model(self._word, self.X, self.columns)

    @cached_property
    def _doubt(self) -> str | None:
        """How ``predict`` differs from the model that was read; None if they agree."""
        return None if self._known_rows is None else self._known_rows.doubt(self._problem)

    @cached_property
    def _compare(self) -> Compare:
        """Compares results with the model's own word."""
        return partial(compared_with_model, columns=self.columns, word=self._word, doubt=self._doubt)

    def _answers(
        self,
        rows: Rows,
        population: Population | None,
        results: Sequence[Result | None],
        how: Mapping[str, Any],
        asked: str | None,
    ) -> Answers:
        compare = self._compare
        compared, confirmed = compare(rows=rows, results=results, population=population)
        asks, least = self._refusal is not None, (self.margin, self.confidence)
        facts = facts_of_answers(self.reading, self._cost, asks, *least, population)
        own = (rows, self.columns, population, compared, confirmed, facts, how)
        accepts = None if self._word is None else self._word.accepts_each
        return Answers(*own, compare, self.reading.unit, asked, accepts, self._words, self._sources)

"""The DataFrame door: a fitted model and a table in, proven answers as tables out.

>>> recourse = Recourse(model, X, immutable=["age"])           # doctest: +SKIP
>>> answers = recourse.certify(X[model.predict(X) == 0])       # doctest: +SKIP
>>> answers.table, answers.counterfactuals, answers.changes    # doctest: +SKIP
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from milp_recourse.domain.forest import TreeEnsemble
from milp_recourse.domain.network import ReluNetwork
from milp_recourse.domain.scm import StructuralCausalModel
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.formats.feature_json import features_to_list
from milp_recourse.frames.answers import Answers, Interrupted, asked
from milp_recourse.frames.arguments import (
    by_column,
    cost_in_words,
    cost_of,
    intervals,
    is_number,
    people_preferences,
    positive,
    some_columns,
)
from milp_recourse.frames.columns import printable
from milp_recourse.frames.problem import (
    Said,
    causal_model,
    cause_columns,
    classifier_over,
    column_range,
    table_columns,
)
from milp_recourse.frames.rows import Rows, read_rows
from milp_recourse.frames.verdict import Desired, Predict, desires, own_predict, verdicts
from milp_recourse.instance import FactualTable, Instance, Population, Preferences, of_one_model
from milp_recourse.program.lower import reachable
from milp_recourse.readers import read_model, rounding_margin
from milp_recourse.reports.progress import progress_bar
from milp_recourse.result import Result
from milp_recourse.solve import check_options, choose_backend, solve_as_finished
from milp_recourse.workers import Workers

PLAUSIBILITY = "scm-density"

SAMPLE, STARTS, CHECKED = 20_000, 2_000, 1_000
"""Rows of X that the model is asked about, accepted ones that searches may start from, and those on which its
own word is compared with what was read of it."""

NEAR = 1e-3
"""Scores this close to the threshold, in shares of their median distance, may be decided by rounding."""


class Recourse:
    """The least that refused people must change for a fitted model to accept them, with proof.

    What is minimised, subject to what, is said in :class:`~milp_recourse.instance.Instance`; this class
    makes it from a table.

    Parameters
    ----------
    model
        A fitted classifier or a whole Pipeline (:func:`milp_recourse.readers.read_model` lists what is read).
    X
        The DataFrame it was fitted on: kinds, labels, bounds and scales come from it.
    desired
        The class people want: a label, or ``{"not": label}``. Default ``classes_[1]``.
    immutable
        Columns nobody can act on. Of the others, those that the model reads are levers.
    increase, decrease
        Columns that an action may only raise, or only lower.
    kinds
        Column -> ``continuous``, ``integer``, ``binary``, ``categorical`` or ``ordinal``. Inferred: labels
        are categorical, numbers that are all 0 or 1 in X binary, all whole integer, else continuous.
    categories
        Column -> its labels in order; makes it ordinal.
    bounds
        Column -> (lowest, highest) value an action may set. Default: the least and the largest in X.
    ranges
        The same, as a wish of everybody's; a person's own go into ``preferences``.
    domain
        Column -> (lowest, highest) value after the action, acted on or not.
    cost
        ``l1``, ``l2-squared``, ``linf``, ``l0``, ``percentile``, ``percentile-max``, or a mixture as
        ``{"l0": 0.1, "l1": 1}``; the formulas are in :mod:`milp_recourse.domain.cost`.
    scale
        What changes are divided by: ``range``, ``sd``, ``mad``, ``unit``
        (:func:`milp_recourse.frames.columns.scale_of`), or column -> number above 0.
    weights
        Column -> weight above 0; 1 where not named.
    scm
        How changes flow: a :class:`~milp_recourse.domain.scm.StructuralCausalModel` over columns of X, or its
        JSON form; None: no column causes another.
    plausibility
        None, or ``"scm-density"``: the counterfactual is at least as dense as the factual.
    conditions
        Not supported yet: anything but an empty list is refused.
    margin
        How far the logit must pass the threshold. None: what this model's own arithmetic needs on the people
        asked about (:func:`milp_recourse.readers.rounding_margin`).
    predict
        A function from a DataFrame like X to predicted labels; default: the model's own ``predict``.

    Raises
    ------
    BadInput, Unsupported
        One line: the argument, what it got, what is allowed.
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
        scale: str | Mapping[Hashable, float] = "range",
        weights: Mapping[Hashable, float] | None = None,
        scm: StructuralCausalModel | Mapping[str, Any] | None = None,
        plausibility: str | None = None,
        conditions: Sequence[object] = (),
        margin: float | None = None,
        predict: Predict | None = None,
    ) -> None:
        _check_frame(X)
        if conditions is not None and len(conditions):
            raise Unsupported("conditions: not supported yet; allowed: an empty list")
        if margin is not None and not (is_number(margin) and margin >= 0):
            raise BadInput("margin", margin, "None, or a finite number, 0 or more")
        if predict is not None and not callable(predict):
            raise BadInput("predict", type(predict).__name__, "None, or a function of a DataFrame")
        said = Said(
            immutable=some_columns("immutable", immutable, X.columns),
            increase=some_columns("increase", increase, X.columns),
            decrease=some_columns("decrease", decrease, X.columns),
            kinds=by_column("kinds", kinds, X.columns),
            categories=by_column("categories", categories, X.columns),
            bounds=intervals("bounds", bounds, X.columns),
            domain=intervals("domain", domain, X.columns),
        )
        self.reading = read_model(model, X, desired)
        self.X, self.margin = X, margin
        self._wants = desires(desired, self.reading.classes)
        self._predict = own_predict(model, X, self.reading.classes) if predict is None else predict
        self.columns = table_columns(self.reading, X, said, cause_columns(scm, X))
        self._problem = Instance(
            features=tuple(c.feature for c in self.columns),
            scm=causal_model(scm, self.columns),
            classifier=classifier_over(self.reading, self.columns),
            factual={},
            preferences=self._common(weights, ranges),
            cost=cost_of(cost, scale, self.columns, X),
            accept=self.reading.accept,
            plausible=self._plausible(plausibility),
        )
        self._check_plausible()
        self._cost = cost_in_words(self._problem.cost, scale)

    def certify(
        self,
        people: pd.DataFrame | pd.Series,
        preferences: pd.DataFrame | Sequence[Any] | None = None,
        time_limit: float | None = None,
        jobs: int = 1,
        certificates: bool = False,
        backend: str | None = None,
    ) -> Answers:
        """The proven answer for each person.

        Parameters
        ----------
        people
            Rows with X's columns, in any order; further columns are ignored. One row may be a Series.
        preferences
            One per person: a list of ``{"actionable": [...], "weights": {...}, "ranges": {...}}`` (each key
            may be left out), a DataFrame with these columns, or a DataFrame with a column per feature that
            holds its weight, empty where this person cannot change it.
        time_limit
            Seconds per person; None for no limit.
        jobs
            Processes.
        certificates
            Whether answers carry proofs that ``milp-recourse verify`` checks.
        backend
            Name of a back end; None takes the default.

        Raises
        ------
        BadInput, Unsupported, BackendUnavailable
            One line. A single person who cannot be read raises nothing: that row says ``bad-input``.
        Interrupted
            Ctrl-C: a KeyboardInterrupt whose ``answers`` hold the people who were finished.
        """
        if isinstance(people, pd.Series):
            people = people.to_frame().T.infer_objects()
        if not isinstance(people, pd.DataFrame):
            raise BadInput("people", type(people).__name__, "a DataFrame with the columns of X")
        rows = read_rows(people, self.columns, self.X.columns)
        own = people_preferences(preferences, self._problem, self.columns, rows.frame)
        options = check_options(time_limit, jobs, certificates, self._starts)
        results: list[Result | None] = [None] * len(rows)
        readable = [i for i in range(len(rows)) if i not in rows.faults]
        how = {"backend": backend, "time_limit": time_limit, "certificates": certificates}
        if not readable:
            return self._answers(rows, None, results, how)
        population = self._population(rows, own, readable)
        name = choose_backend(population.template, backend).name
        how["backend"] = name
        try:
            with progress_bar("people", len(readable)) as bar:
                for i, result in solve_as_finished(population, name, options, readable, Workers(jobs)):
                    results[i] = result
                    bar.advance()
        except KeyboardInterrupt:
            raise Interrupted(self._answers(rows, population, results, how)) from None
        return self._answers(rows, population, results, how)

    def margin_for(self, people: pd.DataFrame) -> float:
        """The margin that the model's own arithmetic needs on these people, in logit units; 0 for trees.

        Every row that an action can make of them and whose exact logit passes the threshold by this much is
        given the desired class by the model's own floating-point arithmetic
        (:func:`milp_recourse.readers.rounding_margin`).
        """
        rows = read_rows(people, self.columns, self.X.columns)
        own = people_preferences(None, self._problem, self.columns, rows.frame)
        return self._margin(rows, own)

    @property
    def features(self) -> pd.DataFrame:
        """What was inferred, for review: kind, lever or not, bounds or labels, scale and direction."""
        problem, cost = self._problem, self._problem.cost
        rows = {
            c.key: {
                "kind": c.feature.kind,
                "lever": c.name in problem.preferences.actionable,
                "direction": c.feature.monotone or "",
                "values": ", ".join(c.feature.categories)
                if c.feature.categories
                else (f"{c.feature.bounds[0]:g} to {c.feature.bounds[1]:g}" if c.feature.bounds else ""),
                "scale": cost.scale.get(c.name, np.nan) if cost.uses_scale else np.nan,
                "missing": "own rule"
                if c.missing
                else ("not allowed" if c.imputed is None else f"read as {c.value(c.imputed)}"),
            }
            for c in self.columns
        }
        return pd.DataFrame.from_dict(rows, orient="index")

    def to_json(self) -> str:
        """The same as JSON: the features as an instance file has them, mask, cost scales and acceptance."""
        problem = self._problem
        said = {
            "features": features_to_list(problem.features),
            "actionable": list(problem.preferences.actionable),
            "cost": {"kind": problem.cost.kind, "scale": dict(problem.cost.scale)},
            "desired": self.reading.desired,
            "margin": self.margin,
        }
        return json.dumps(said, indent=1)

    def __repr__(self) -> str:
        levers = len(self._problem.preferences.actionable)
        return (
            f"Recourse({self.reading.desired} wanted, {len(self.columns)} columns, {levers} of them levers)"
        )

    def __str__(self) -> str:
        return f"{self!r}\n{self.features.to_string()}"

    def _repr_html_(self) -> str:
        return self.features.to_html()

    def _common(self, weights: Any, ranges: Any) -> Preferences:
        """What everybody can act on, and would rather."""
        actionable = tuple(c.name for c in self.columns if c.feature.actionable)
        names = {c.key: c.name for c in self.columns if c.feature.actionable}
        return Preferences(
            actionable,
            {names[k]: w for k, w in positive("weights", weights, self.X.columns).items() if k in names},
            {names[k]: r for k, r in intervals("ranges", ranges, self.X.columns).items() if k in names},
        )

    def _plausible(self, plausibility: str | None) -> bool:
        if plausibility not in (None, PLAUSIBILITY):
            raise BadInput("plausibility", str(plausibility), f"None or {PLAUSIBILITY!r}")
        return plausibility is not None

    def _check_plausible(self) -> None:
        scm = self._problem.scm
        if self._problem.plausible and not scm.has_density:
            silent = next(f for f, m in scm.mechanisms.items() if m.noise is None)
            raise BadInput(
                "plausibility", PLAUSIBILITY, f"None: the causal model states no noise for {silent!r}"
            )

    def _unlimited(self, rows: Rows, own: Sequence[Preferences]) -> list[Instance]:
        """The readable people's problems, without a margin."""
        names = [f.name for f in self._problem.features]
        return [
            replace(self._problem, factual=dict(zip(names, values.tolist(), strict=True)), preferences=one)
            for i, (values, one) in enumerate(zip(rows.values, own, strict=True))
            if i not in rows.faults
        ]

    def _margin(self, rows: Rows, own: Sequence[Preferences]) -> float:
        """What was given, or what rounding needs on the hull of everything these people can reach."""
        known = self.margin is not None or not isinstance(self.reading.classifier, ReluNetwork)
        people = [] if known else self._unlimited(rows, own)
        if not people:
            return self.margin or 0.0
        ranges = self._reach(people)
        ends = [column_range(ranges[printable(c.name)], c) for c in self.reading.columns]
        lower, upper = (np.concatenate(side) for side in zip(*ends, strict=True))
        margin = rounding_margin(self.reading, lower.tolist(), upper.tolist())
        if not np.isfinite(margin):
            raise BadInput("margin", "None, and no rounding bound is finite", "narrower bounds, or a number")
        return margin

    def _reach(self, people: Sequence[Instance]) -> dict[str, tuple[float, float]]:
        """The least and largest value of every feature under all actions of all people."""
        ranges: dict[str, tuple[float, float]] = {}
        for group in of_one_model(people):
            for name, ends in reachable(*(people[k] for k in group)).items():
                low, high = ranges.get(name, (np.inf, -np.inf))
                ranges[name] = min(low, float(ends.lower)), max(high, float(ends.upper))
        return ranges

    def _population(self, rows: Rows, own: Sequence[Preferences], readable: Sequence[int]) -> Population:
        """The people as one population, with the margin that they need."""
        accept = replace(self._problem.accept, margin=self._margin(rows, own))
        factuals = FactualTable([f.name for f in self._problem.features], rows.values)
        first = readable[0]
        template = replace(self._problem, accept=accept, factual=factuals[first], preferences=own[first])
        return Population(template, factuals, tuple(own), rows.faults)

    @cached_property
    def _starts(self) -> NDArray[np.float64] | None:
        """Rows of X that the model itself accepts, as numbers: searches may start from them."""
        if self._predict is None:
            return None
        some = self.X.sample(min(len(self.X), SAMPLE), random_state=0)
        accepted = verdicts(self._predict, some, self._wants)
        rows = read_rows(some[accepted].head(STARTS), self.columns, self.X.columns)
        return rows.values[[i not in rows.faults for i in range(len(rows))]]

    @cached_property
    def _doubt(self) -> str | None:
        """How ``predict`` and what was read of the model differ on rows of X; None where they agree.

        Two rows per person would not show a ``predict`` of its own, or categories in another order. Rows
        within rounding of the threshold are left out.
        """
        if self._predict is None:
            return None
        some = self.X.sample(min(len(self.X), CHECKED), random_state=0)
        rows = read_rows(some, self.columns, self.X.columns)
        known = np.array([i not in rows.faults for i in range(len(rows))])
        said = verdicts(self._predict, some[known], self._wants)
        classifier, accept = self._problem.classifier, self._problem.accept
        inputs = self._problem.model_rows(rows.values[known])
        if isinstance(classifier, ReluNetwork):
            scores = classifier.evaluate(inputs)[:, 0]
        else:
            scores = classifier.scores(inputs)
        distance = scores - accept.threshold
        sure = np.abs(distance) > NEAR * (np.median(np.abs(distance)) if len(distance) else 0.0)
        wrong = np.flatnonzero(sure & ((distance > 0) != said))
        if not len(wrong):
            return None
        row = some[known].index[wrong[0]]
        return (
            f"predict is not the model that was read: they differ on {len(wrong)} of {len(said)} rows of X, "
            f"such as {row!r} (a predict of its own, or categories that are not those of the fit)"
        )

    def _answers(
        self,
        rows: Rows,
        population: Population | None,
        results: Sequence[Result | None],
        how: Mapping[str, Any],
    ) -> Answers:
        judged, confirmed = asked(rows, self.columns, results, self._predict, self._wants, self._doubt)
        facts = {"desired": self.reading.desired, "cost": self._cost}
        if population is not None and population.template.accept.margin:
            margin = population.template.accept.margin
            facts["margin"] = (
                f"accepted means a logit of at least {margin:.3g}, which covers the model's rounding"
            )
        forest = self._problem.classifier
        if isinstance(forest, TreeEnsemble) and forest.aggregate == "mean":
            facts["ties"] = "an exact tie between the classes counts as refused"
        return Answers(rows, self.columns, population, judged, confirmed, facts, how)


def _check_frame(X: object) -> None:
    if not isinstance(X, pd.DataFrame):
        raise BadInput("X", type(X).__name__, "the pandas DataFrame that the model was fitted on")
    if not len(X) or not len(X.columns):
        raise BadInput("X", f"{len(X)} rows and {len(X.columns)} columns", "a table with both")
    if X.columns.has_duplicates:
        twice = X.columns[X.columns.duplicated()][0]
        raise BadInput("X", f"two columns called {twice!r}", "each name once")

"""Conditions as readable lines, printed by :func:`condition_text` and read by :func:`condition_from_text`.

::

    at most 2 actions
    amount <= 5 * income
    debt_ratio * income <= 2000   # the product of two features
    if savings rises then duration does not fall
    income change at most +20%
    job is not clerk, or: job in {skilled, "self-employed"}
    income before >= 3            # the factual value
    duration in {12, 24, 36}
    savings is acted on
    (income >= 4 or savings >= 2) and not (duration >= 5)

``NAME`` is the value after the action, ``NAME before`` the factual value, and ``NAME change`` the difference,
which is divided by the factual value's size if the limits are in percent. ``rises`` is "not (change at most
0)". Sums may stand on both sides of ``<=``, ``>=``, ``=``, ``at most`` and ``at least``.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import partial

from milp_recourse.errors import BadInput, nearest
from milp_recourse.problem.conditions.condition_kinds import (
    Acted,
    All,
    Any,
    AtMostActions,
    Condition,
    Factor,
    IfThen,
    LabelIn,
    Not,
    Sum,
    View,
    factors,
    one_of,
)
from milp_recourse.problem.conditions.words import Token, number_text, percent_text, quoted, tokens
from milp_recourse.problem.features import Feature

_SUFFIX: dict[View, str] = {
    "counterfactual": "",
    "factual": " before",
    "change": " change",
    "relative-change": " change",
}

_CHANGES = ("rises", "falls", "does")
"""Words that begin a statement about a change; categorical features have none."""


def condition_text(condition: Condition, features: Mapping[str, Feature]) -> str:
    """The condition as one line that :func:`condition_from_text` reads back."""

    def inner(part: Condition) -> str:
        text = condition_text(part, features)
        nested = isinstance(part, IfThen) or (isinstance(part, Any | All) and len(part.parts) > 0)
        return f"({text})" if nested else text

    match condition:
        case AtMostActions(count):
            return f"at most {count} action{'' if count == 1 else 's'}"
        case Acted(feature):
            return f"{quoted(feature)} is acted on"
        case LabelIn():
            return _label_text(condition, features, "")
        case Sum():
            return _sum_text(condition, features)
        case IfThen(first, then):
            consequence = condition_text(then, features) if isinstance(then, IfThen) else inner(then)
            return f"if {inner(first)} then {consequence}"
        case Any(parts) | All(parts):
            word = " or " if isinstance(condition, Any) else " and "
            if not parts:
                return "never" if isinstance(condition, Any) else "always"
            return word.join(map(inner, parts)) if len(parts) > 1 else condition_text(parts[0], features)
        case Not(Acted(feature)):
            return f"{quoted(feature)} is not acted on"
        case Not(LabelIn() as part):
            return _label_text(part, features, "not ")
        case Not(Sum(((name, 1.0),), "change", None, 0.0)):
            return f"{_multiplied(name)} rises"
        case Not(Sum(((name, 1.0),), "change", 0.0, None)):
            return f"{_multiplied(name)} falls"
        case Not(part):
            return f"not ({condition_text(part, features)})"
    raise TypeError(condition)  # pragma: no cover


def _multiplied(of: Factor) -> str:
    """A feature's name, or two with a sign between them."""
    return " * ".join(map(quoted, factors(of)))


def _label_text(condition: LabelIn, features: Mapping[str, Feature], negation: str) -> str:
    labels = features[condition.feature].categories or ()
    named = [quoted(labels[k]) for k in condition.labels]
    head = f"{quoted(condition.feature)}{_SUFFIX[condition.of]}"
    if len(named) == 1:
        return f"{head} is {negation}{named[0]}"
    return (
        f"{head} is {negation}in {{{', '.join(named)}}}" if negation else f"{head} in {{{', '.join(named)}}}"
    )


def _sum_text(condition: Sum, features: Mapping[str, Feature]) -> str:
    low, high, terms = condition.at_least, condition.at_most, condition.terms
    if condition.of == "change" and len(terms) == 1 and terms[0][1] == 1:
        verb = {(0.0, None): "fall", (None, 0.0): "rise", (0.0, 0.0): "change"}.get((low, high))
        if verb is not None:
            return f"{_multiplied(terms[0][0])} does not {verb}"
    only = terms[0][0] if len(terms) == 1 and terms[0][1] == 1 else None
    feature = features[only] if isinstance(only, str) else None

    def end(value: float) -> str:
        if condition.of == "relative-change":
            return percent_text(value)
        labels = feature.categories if feature is not None and condition.of != "change" else None
        if labels is not None and float(value).is_integer() and 0 <= value < len(labels):
            return quoted(labels[int(value)])
        return number_text(value)

    def side(some: tuple[tuple[Factor, float], ...]) -> str:
        text = ""
        for name, c in some:
            size = "" if abs(c) == 1 else f"{number_text(abs(c))} * "
            sign = (" - " if c < 0 else " + ") if text else ("-" if c < 0 else "")
            text += f"{sign}{size}{_multiplied(name)}{_SUFFIX[condition.of]}"
        return text

    split = next((k for k, (_, c) in enumerate(terms) if c < 0), len(terms))
    one_sided = (low is None) != (high is None)
    if one_sided and 0 < split < len(terms) and all(c < 0 for _, c in terms[split:]):
        value, sign = (low, ">=") if high is None else (high, "<=")
        assert value is not None
        right = side(tuple((name, -c) for name, c in terms[split:]))
        rest = "" if not value else f" {'-' if value < 0 else '+'} {end(abs(value)).removeprefix('+')}"
        return f"{side(terms[:split])} {sign} {right}{rest}"
    body, changing = side(terms), condition.of in ("change", "relative-change")
    if low is not None and high is not None:
        return f"{body} = {end(low)}" if low == high else f"{end(low)} <= {body} <= {end(high)}"
    if low is not None:
        return f"{body} {'at least' if changing else '>='} {end(low)}"
    assert high is not None
    return f"{body} {'at most' if changing else '<='} {end(high)}"


def condition_from_text(text: str, features: Mapping[str, Feature], where: str = "condition") -> Condition:
    """The condition that a line of text states.

    Raises
    ------
    BadInput
        The text names a feature or label that does not exist, or is no condition. The message quotes the text
        from the first word that does not fit.
    """
    reader = _Reader(text, features, where)
    condition = reader.condition()
    if reader.here is not None:
        raise reader.fault(reader.instead_of_more())
    return condition


class _Reader:
    """A recursive-descent parser; from the loosest binding: if-then, or, and, not, a single statement."""

    def __init__(self, text: str, features: Mapping[str, Feature], where: str) -> None:
        self.text, self.features, self.where = text, features, where
        labels = (label for f in features.values() for label in f.categories or ())
        self.tokens, self.at = tokens(text, where, {*features, *labels}), 0

    @property
    def here(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def fault(self, wanted: str) -> BadInput:
        rest = "nothing more" if self.here is None else repr(self.text[self.here.start :].strip()[:30])
        return BadInput(self.where, self.text, f"{wanted}, where it says {rest}")

    def instead_of_more(self) -> str:
        """For an error message, what is allowed where a condition is complete but the text goes on."""
        before, token = self.tokens[self.at - 1], self.here
        if before.kind in ("number", "percent") and token is not None and token.kind == "name":
            return (
                "the end or 'and', 'or', 'then': numbers are in the feature's own unit, which is not written"
            )
        return "the end"

    def take(self, *texts: str) -> bool:
        """Whether these words or signs come next; if so, the parser moves behind them."""
        coming = self.tokens[self.at : self.at + len(texts)]
        if [t.text for t in coming if t.kind in ("word", "sign")] != list(texts):
            return False
        self.at += len(texts)
        return True

    def need(self, *texts: str) -> None:
        if not self.take(*texts):
            raise self.fault(" ".join(texts))

    def condition(self) -> Condition:
        if self.take("if"):
            first = self.either()
            self.need("then")
            return IfThen(first, self.condition())
        return self.either()

    def either(self) -> Condition:
        parts = [self.both()]
        while self.take("or"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else Any(tuple(parts))

    def both(self) -> Condition:
        parts = [self.single()]
        while self.take("and"):
            parts.append(self.single())
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def single(self) -> Condition:
        if self.take("not"):
            return Not(self.single())
        if self.take("always"):
            return All(())
        if self.take("never"):
            return Any(())
        if self.take("("):
            inside = self.condition()
            self.need(")")
            return inside
        if self.take("at", "most"):
            count = self.here
            if count is None or count.kind != "number" or not count.text.isdecimal():
                raise self.fault("a whole number of actions")
            self.at += 1
            if not self.take("actions"):
                self.need("action")
            return AtMostActions(int(count.text))
        return self.statement()

    def statement(self) -> Condition:
        token = self.here
        following = self.tokens[self.at + 1 : self.at + 3]
        if token is not None and token.kind == "name" and following and following[0].kind == "word":
            found = self.about_one(token.text)
            if found is not None:
                return found
        return self.comparison()

    def about_one(self, name: str) -> Condition | None:
        """The statement about one feature in words, such as "savings rises"; None if it is a comparison."""
        start = self.at
        feature = self.feature(name)
        self.at += 1
        if self.here is not None and self.here.text in _CHANGES and feature.kind == "categorical":
            allowed = (
                f"a feature with numbers or order where it says {name!r}; of labels: is, in, is acted on"
            )
            raise BadInput(self.where, self.text, allowed)
        moves = self.moves(((name, 1.0),))
        if moves is not None:
            return moves
        if self.take("is", "acted", "on"):
            return Acted(name)
        if self.take("is", "not", "acted", "on"):
            return Not(Acted(name))
        of: View = "factual" if self.take("before") else "counterfactual"
        if self.take("in"):
            return self.listed(name, of)
        if self.take("is"):
            negated = self.take("not")
            found = self.listed(name, of) if self.take("in") else LabelIn(name, of, (self.label(name),))
            return Not(found) if negated else found
        self.at = start
        return None

    def moves(self, terms: tuple[tuple[Factor, float], ...]) -> Condition | None:
        """The statement that a sum rises, falls, or does not; None if none follows."""
        if self.take("rises"):
            return Not(Sum(terms, "change", None, 0.0))
        if self.take("falls"):
            return Not(Sum(terms, "change", 0.0, None))
        if not self.take("does", "not"):
            return None
        ends = {"rise": (None, 0.0), "fall": (0.0, None), "change": (0.0, 0.0)}
        for verb, (low, high) in ends.items():
            if self.take(verb):
                return Sum(terms, "change", low, high)
        raise self.fault("rise, fall or change")

    def listed(self, name: str, of: View) -> Condition:
        """One of some labels, or of some numbers of a numeric feature."""
        numeric = self.feature(name).categories is None
        read = self.number if numeric else partial(self.label, name)
        self.need("{")
        found = [read()]
        while self.take(","):
            found.append(read())
        self.need("}")
        if numeric:
            return one_of(name, of, found)
        return LabelIn(name, of, tuple(sorted({int(k) for k in found})))

    def number(self) -> float:
        """A number with its sign."""
        sign, token = -1 if self.take("-") else 1, self.here
        if token is None or token.kind != "number":
            raise self.fault("a number")
        self.at += 1
        return sign * float(token.text)

    def label(self, name: str) -> int:
        labels = self.feature(name).categories or ()
        token = self.here
        if token is None or token.text not in labels:
            close = nearest(token.text, labels) if token is not None else None
            meant = f" (did you mean {quoted(close)}?)" if close else ""
            raise self.fault(f"a label of {name}{meant}: {', '.join(labels) or 'it has none'}")
        self.at += 1
        return labels.index(token.text)

    def feature(self, name: str) -> Feature:
        if name not in self.features:
            close = nearest(name, self.features)
            meant = f" (did you mean {quoted(close)}?)" if close else ""
            allowed = f"a feature where it says {name!r}{meant}: {', '.join(self.features)}"
            raise BadInput(self.where, self.text, allowed)
        return self.features[name]

    def comparison(self) -> Condition:
        first = self.side()
        if first.views == {"counterfactual"} and not first.constant:
            moves = self.moves(tuple((of, float(c)) for of, c in first.terms.items()))
            if moves is not None:
                return moves
        sign = self.sign()
        second = self.side()
        if sign == "<=" and self.take("<="):
            third = self.side()
            if first.terms or third.terms:
                raise BadInput(self.where, self.text, "numbers at both ends of LOW <= SUM <= HIGH")
            return self.sum(second, first.constant, third.constant, (first, second, third))
        difference = _Side()
        difference.add(first, 1)
        difference.add(second, -1)
        end = -difference.constant
        low, high = (None if sign == "<=" else end), (None if sign == ">=" else end)
        return self.sum(difference, low, high, (first, second))

    def sign(self) -> str:
        for words, sign in ((("at", "most"), "<="), (("at", "least"), ">=")):
            if self.take(*words):
                return sign
        for sign in ("<=", ">=", "="):
            if self.take(sign):
                return sign
        raise self.fault("<=, >=, =, at most or at least")

    def sum(
        self, body: _Side, low: Decimal | None, high: Decimal | None, sides: tuple[_Side, ...]
    ) -> Condition:
        """The condition low <= body <= high, after checking that all features are in one view."""
        views = {view for side in sides for view in side.views}
        percent = any(side.percent for side in sides)
        if len(views) != 1 or (percent and views != {"change"}):
            allowed = "features in one view (after, before, or change); percent only of changes"
            raise BadInput(self.where, self.text, allowed)
        view: View = "relative-change" if percent else views.pop()
        low_, high_ = (None if end is None else float(end) for end in (low, high))
        return Sum(tuple((of, float(c)) for of, c in body.terms.items()), view, low_, high_)

    def side(self) -> _Side:
        total, sign = _Side(), -1 if self.take("-") else 1
        if sign == 1:
            self.take("+")
        while True:
            total.add(self.term(), sign)
            if self.take("+"):
                sign = 1
            elif self.take("-"):
                sign = -1
            else:
                return total

    def term(self) -> _Side:
        token = self.here
        if token is None or token.kind not in ("number", "percent", "name"):
            raise self.fault("a number or a feature")
        self.at += 1
        one = _Side()
        if token.kind == "percent":
            one.constant, one.percent = Decimal(token.text).scaleb(-2), True
            return one
        factor = Decimal(1)
        if token.kind == "number":
            if not self.take("*"):
                one.constant = Decimal(token.text)
                return one
            factor, token = Decimal(token.text), self.here
            if token is None or token.kind != "name":
                raise self.fault("a feature")
            self.at += 1
        if token.text not in self.features:
            label = self.known_label(token.text)
            if label is None:
                self.feature(token.text)
            one.constant = Decimal(label or 0)
            return one
        feature = self.features[token.text]
        if feature.kind == "categorical":
            raise BadInput(
                self.where, self.text, f"a feature with numbers or order where it says {token.text!r}"
            )
        of: Factor = token.text
        if self.take("*"):
            second = self.here
            if second is None or second.kind != "name":
                raise self.fault("a feature")
            self.at += 1
            if self.feature(second.text).kind == "categorical":
                allowed = f"a feature with numbers or order where it says {second.text!r}"
                raise BadInput(self.where, self.text, allowed)
            first, last = sorted((token.text, second.text))
            of = first, last
        one.terms[of] = factor
        one.views.add(
            "factual" if self.take("before") else "change" if self.take("change") else "counterfactual"
        )
        return one

    def known_label(self, text: str) -> int | None:
        """The index of a label of an ordinal feature named in the text; None if none has this label."""
        names = {t.text for t in self.tokens if t.kind == "name" and t.text in self.features}
        for name in names:
            feature = self.features[name]
            if feature.kind == "ordinal" and feature.categories is not None and text in feature.categories:
                return feature.categories.index(text)
        return None


class _Side:
    """One side of a comparison: terms, constant, and the views of its features."""

    def __init__(self) -> None:
        self.terms: dict[Factor, Decimal] = {}
        self.constant = Decimal(0)
        self.views: set[View] = set()
        self.percent = False

    def add(self, other: _Side, sign: int) -> None:
        for of, c in other.terms.items():
            self.terms[of] = self.terms.get(of, Decimal(0)) + sign * c
        self.constant += sign * other.constant
        self.views |= other.views
        self.percent = self.percent or other.percent

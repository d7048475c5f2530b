"""Sentences about one person's answer: what it is, how sure it is, and what it does not say."""

from __future__ import annotations

from collections.abc import Sequence

from milp_recourse.reports.answer_kinds import Outcome, outcome
from milp_recourse.reports.pages.values import shown
from milp_recourse.reports.view import Change, Person

NAMED = 3
"""The most features that a sentence names; more are counted."""


def headline(person: Person) -> str:
    """The answer in one sentence."""
    kind = outcome(person)
    if kind is Outcome.ACCEPTED:
        return "Accepted already: nothing has to change."
    if kind is Outcome.IMPOSSIBLE:
        return "No allowed change leads to acceptance."
    if kind is Outcome.UNREADABLE:
        return "This person's data could not be used."
    if kind is Outcome.UNREACHED:
        return "This person's turn never came."
    if kind is Outcome.CONTRADICTED:
        return "The model itself contradicts this answer."
    if kind is Outcome.OPEN:
        return "Not settled: no way to acceptance was found, but one may exist."
    acted, held = person.caused("action"), person.caused("held")
    if not acted and not held:
        return "Accepted already, as far as was found: nothing has to change."
    if not acted:
        return f"Holding {names(held)} is enough."
    subject = f"Changing {names(acted)}" + (f" and holding {names(held)}" if held else "")
    return f"{subject} is enough."


def assurance(person: Person) -> str:
    """How sure the answer is, in one or two sentences."""
    kind, bound = outcome(person), person.lower_bound
    if kind is Outcome.ACCEPTED:
        return "The model's rule accepts this person as they are."
    if kind is Outcome.PROVEN:
        return f"Proven{_by(person)}: no allowed action is cheaper{_slack(person)}."
    if kind is Outcome.IMPOSSIBLE:
        return f"Proven{_by(person)}: nothing within this person's limits is accepted."
    if not kind.answered:
        return "No answer was computed."
    if kind is Outcome.CONTRADICTED:
        return "Its own predict disagrees with what was computed. Do not rely on it until that is understood."
    found = kind is Outcome.UNPROVEN
    if bound is None or person.proof is None:
        return "Nothing is proven: " + (
            "a cheaper way may exist." if found else "the search ended without a claim."
        )
    if found:
        stopped, floor = "this was proven to be the cheapest way", f"none costs less than {shown(bound)}"
    elif bound:
        stopped, floor = "the answer was settled", f"no way costs less than {shown(bound)}"
    else:
        return "The search stopped before the answer was settled, and no cost is ruled out."
    return f"The search stopped before {stopped}. Proven{_by(person)}: {floor}."


def confirmation(person: Person) -> str:
    """Whether the model's own ``predict`` confirms the answer, in words."""
    if person.confirmed is None:
        return "not asked" if outcome(person).recourse else "nothing to confirm"
    return "yes, it agrees" if person.confirmed else "no, it contradicts this answer"


def proof(person: Person) -> str:
    """What the proof rests on, in words."""
    return {
        "rigorous": "rigorous: exact or outward-rounded arithmetic",
        "solver": "by a floating-point solver, whose own rounding is trusted",
        "asked": "the model was asked about every cheaper action, and refused",
    }.get(person.proof or "", "none")


def limits(person: Person) -> list[str]:
    """Sentences about what the answer does not say."""
    kind, sentences = outcome(person), []
    if kind in (Outcome.PROVEN, Outcome.UNPROVEN):
        sentences.append(
            "The cost is the stated formula's. It measures the size of the changes, not the person's effort."
        )
        sentences.append(
            "Acceptance means this model's rule with these values. It promises no later decision."
        )
        if person.caused("effect"):
            sentences.append("What follows by itself is the causal model's prediction, taken as given.")
    if kind in (Outcome.PROVEN, Outcome.IMPOSSIBLE):
        sentences.append(
            "The proof is about the problem as stated below: its allowed values, causal model, cost and "
            "margin. Other limits can give another answer."
        )
    if kind is Outcome.IMPOSSIBLE:
        sentences.append("Wider limits, or more features that may change, may open a way.")
    if kind is Outcome.CONTRADICTED:
        sentences.append(
            "Usual causes: columns in another order, other preprocessing, rounding near the threshold."
        )
    if kind in (Outcome.OPEN, Outcome.UNPROVEN):
        sentences.append("More time, or another back end, may settle it.")
    if person.proof == "solver":
        sentences.append(
            "The bound rests on a floating-point solver: it is not checked against its rounding."
        )
    if person.confirmed is None and kind.recourse:
        sentences.append("The model's own predict was not asked here.")
    return sentences


def names(changes: Sequence[Change]) -> str:
    """``income``, ``income and savings``, ``income, savings and amount``, or ``5 features``."""
    if len(changes) > NAMED:
        return f"{len(changes)} features"
    given = [change.called for change in changes]
    return " and ".join([", ".join(given[:-1]), given[-1]] if len(given) > 1 else given)


def _by(person: Person) -> str:
    words = {"rigorous": " rigorously", "solver": " by a floating-point solver", "asked": " by asking"}
    return words.get(person.proof or "", "")


def _slack(person: Person) -> str:
    return f" by more than {shown(person.gap)}" if person.gap else ""

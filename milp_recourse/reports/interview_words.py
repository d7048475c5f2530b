"""Questions and what was learned, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from milp_recourse.preferences import Interview, Question, Regret
from milp_recourse.problem.instance import Instance
from milp_recourse.reports.view import changes_of, in_words

NOTHING = 1e-5
"""A share of the cost that is not worth a number."""


def question_in_words(instance: Instance, question: Question) -> str:
    """A question as a few lines, with the answers it takes."""
    sides = [
        f"  {side:<6} {in_words(changes_of(instance, shown.action))}"
        for side, shown in (("left", question.left), ("right", question.right))
        if shown is not None
    ]
    asked = {
        "pair": "which is easier for you?",
        "one": "is this possible for you?",
        "lever": (
            "is this much possible for you, whatever else has to change?"
            if question.left
            else f"can you change {question.levers[0] if question.levers else ''}?"
        ),
        "levers": f"which is easier to change: {' (left) or '.join(question.levers)} (right)?",
    }[question.kind]
    if question.final:
        asked = "will this do?"
    if question.kind == "lever" and question.answers != ("yes", "no"):
        last = question.answers[-1]
        asked = f"how hard is it to change {question.levers[0]}, from 1 (easy) to {last} (not possible)?"
    return "\n".join([asked, *sides, f"  answers: {', '.join(question.answers)}"])


def meant(given: str, answers: Sequence[str]) -> str | None:
    """The answer that was typed, in full or by its first letters; None if it could be none or several."""
    word = given.strip().lower()
    if word in answers:
        return word
    begins = [answer for answer in answers if word and answer.startswith(word)]
    return begins[0] if len(begins) == 1 else None


def regret_in_words(interview: Interview, regret: Regret) -> str:
    """What is proven about the recommended action, in a sentence or two."""
    noise = interview.options["noise"]
    if math.isinf(regret.most):
        said = "Nothing is proven yet about other weights that your answers allow."
    else:
        more = f"more than {100 * regret.cheaper:.2g}% cheaper" if regret.cheaper > NOTHING else "cheaper"
        proof = f"proven by {len({o.weights for o in regret.rests_on if o})} optima"
        said = f"Whatever you meant within your answers, nothing is {more} for you ({proof})."
        if noise:
            said += " If errors are as assumed, this holds with probability 95%."
    aside = interview.set_aside
    if aside:
        numbers = ", ".join(str(k + 1) for k in aside)
        said += f" Contradictory, and not used: the answer to question {numbers}."
    return said

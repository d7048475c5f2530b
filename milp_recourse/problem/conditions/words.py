"""Words, numbers and signs of the readable text of conditions."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

from milp_recourse.errors import BadInput

RESERVED = frozenset(
    (
        *("at", "most", "least", "action", "actions", "if", "then", "and", "or", "not", "is", "acted", "on"),
        *("in", "before", "change", "does", "rises", "rise", "falls", "fall", "always", "never"),
    )
)
"""The words of the language. A feature whose name is one of them is put in double quotes."""

_PLAIN = re.compile(r"[^\W\d]\w*")
_JOINED = re.compile(r"[^\W\d]\w*(?:[-./&:'#?]+\w*)+")
_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>\"(?:[^\"\\]|\\.)*\")|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?P<percent>\s*%)?"
    r"|(?P<word>[^\W\d]\w*)|(?P<sign><=|>=|=|[-+*(){},]))"
)

_INSTEAD = {
    "<": "<= (a limit that cannot be reached has no cheapest action)",
    ">": ">= (a limit that cannot be reached has no cheapest action)",
    "!": "not (A = B), or NAME is not LABEL",
    "/": "sums of numbers times features (A <= 5 * B, not A / B <= 5)",
}
"""For signs of other languages, what to write instead."""


@dataclass(frozen=True)
class Token:
    """One token of a condition's text.

    Attributes
    ----------
    kind
        ``name`` (a word that is not reserved, or quoted text), ``word`` (reserved), ``number``,
        ``percent`` (a number of hundredths) or ``sign``.
    text
        The name without quotes, the word in small letters, the number's digits, the sign.
    start
        Position of its first character in the text.
    """

    kind: str
    text: str
    start: int


def tokens(text: str, where: str, names: Collection[str] = ()) -> list[Token]:
    """The tokens of a text.

    Parameters
    ----------
    names
        Names of features and labels. A name that contains signs, such as ``hours-per-week``, needs no quotes
        unless the part before its first sign (``hours``) is a name, too.

    Raises
    ------
    BadInput
        No token begins at some character; the message quotes the text from there.
    """
    found, place = [], 0
    joined = sorted((n for n in names if _JOINED.fullmatch(n) and _first(n) not in names), key=len)
    while place < len(text.rstrip()):
        start = place + len(text[place:]) - len(text[place:].lstrip())
        whole = [n for n in joined if text.startswith(n, start) and not _goes_on(text, start + len(n))]
        if whole:
            found.append(Token("name", whole[-1], place))
            place = start + len(whole[-1])
            continue
        match = _TOKEN.match(text, place)
        if match is None:
            rest = text[place:].strip()
            raise BadInput(
                where, text, f"{_INSTEAD.get(rest[0], 'text of a condition')}; not understood: {rest[:30]!r}"
            )
        start, place = place, match.end()
        if (quoted := match["quoted"]) is not None:
            found.append(Token("name", re.sub(r"\\(.)", r"\1", quoted[1:-1]), start))
        elif (number := match["number"]) is not None:
            found.append(Token("percent" if match["percent"] else "number", number, start))
        elif (word := match["word"]) is not None:
            reserved = word.lower() in RESERVED
            found.append(Token("word" if reserved else "name", word.lower() if reserved else word, start))
        else:
            found.append(Token("sign", match["sign"], start))
    return found


def _first(name: str) -> str:
    match = _PLAIN.match(name)
    assert match is not None
    return match[0]


def _goes_on(text: str, place: int) -> bool:
    """Whether the text at ``place`` continues the word or number that ends there."""
    return re.match(r"[-.]?\w", text[place:]) is not None


def quoted(name: str) -> str:
    """A name as conditions write it: in double quotes if it is a reserved word or contains signs."""
    if _PLAIN.fullmatch(name) and name.lower() not in RESERVED:
        return name
    return '"' + re.sub(r'(["\\])', r"\\\1", name) + '"'


def number_text(value: float) -> str:
    """The shortest digits that read back as the double."""
    text = repr(float(value))
    return text.removesuffix(".0")


def percent_text(share: float) -> str:
    """A share as signed percent, with the digits that read back as the same double."""
    hundredths = Decimal(repr(float(share))).scaleb(2)
    whole = hundredths == hundredths.to_integral_value() and abs(hundredths) < 10**15
    return f"{int(hundredths) if whole else hundredths:+}%"

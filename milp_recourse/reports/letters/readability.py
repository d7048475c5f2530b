"""How easy a letter is to read: the figure of Flesch for English, in Amstad's version for German."""

from __future__ import annotations

import re
from html.parser import HTMLParser

FORMULAS = {"en": (206.835, 1.015, 84.6), "de": (180.0, 1.0, 58.5)}
"""By language a, b and c of a - b (words per sentence) - c (syllables per word)."""

_VOWELS = "aeiouyäöü"
_GROUPS = {"en": re.compile(rf"[{_VOWELS}]+"), "de": re.compile(r"äu|au|ei|eu|ie|ai|ey|aa|ee|oo|[aeiouyäöü]")}


class _Prose(HTMLParser):
    """The language of a page, and the text of its paragraphs and list items, without times."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.language = ""
        self.texts: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the language; begin a text at each paragraph or item."""
        if tag == "html":
            self.language = (dict(attrs).get("lang") or "").partition("-")[0].lower()
        if tag in ("p", "li"):
            self.texts.append("")
        if tag in ("p", "li", "time"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """The end of a paragraph, an item or a time."""
        if self._open and self._open[-1] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        """Text counts inside a paragraph or an item, but not inside a time."""
        if self._open and self._open[-1] != "time":
            self.texts[-1] += data


def reading_ease(page: str) -> float | None:
    r"""The reading ease of a page's sentences: the higher, the easier; 60 and more is plain language.

    :math:`206.835 - 1.015\,w - 84.6\,s` for English (Flesch) and :math:`180 - w - 58.5\,s` for German
    (Amstad), with w words per sentence and s syllables per word. Syllables are counted as groups of vowels,
    which is wrong for some words. Tables and headings are not counted.

    Parameters
    ----------
    page
        HTML whose element ``html`` has the attribute ``lang``.

    Returns
    -------
    float
        None if there is no formula for the language, or no sentence.

    References
    ----------
    R. Flesch, A new readability yardstick, Journal of Applied Psychology 32 (1948).
    T. Amstad, Wie verständlich sind unsere Zeitungen?, dissertation, Zürich 1978.
    """
    prose = _Prose()
    prose.feed(page)
    formula = FORMULAS.get(prose.language)
    sentences = [s for text in prose.texts for s in re.split(r"[.!?:](?=\s|$)", text)]
    counted = [words for s in sentences if (words := re.findall(r"[^\W\d_]+", s))]
    if formula is None or not counted:
        return None
    words = [word.lower() for sentence in counted for word in sentence]
    syllables = sum(_syllables(word, prose.language) for word in words)
    a, b, c = formula
    return a - b * len(words) / len(counted) - c * syllables / len(words)


def _syllables(word: str, language: str) -> int:
    """Groups of vowels, one at least; in English without a silent e at the end."""
    count = len(_GROUPS[language].findall(word))
    silent = language == "en" and re.search(r"[^aeiouyl]e(d|s)?$", word) and not re.search("[dt]ed$", word)
    return max(1, count - bool(silent))

"""The HTML around a page's content: the file with its style and script, cards, and lists."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from milp_recourse.reports.pages.html import Html, el


def document(title: str, body: Html, script: str = "") -> str:
    """A whole HTML file.

    A content security policy forbids the browser to load anything, and to run any script other than
    ``script``, so that an error in escaping could not do so either.

    Parameters
    ----------
    script
        JavaScript of this package, which is not escaped.
    """
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    policy += f"; script-src 'sha256-{digest}'" if script else ""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", title),
        style(),
    )
    code = Html(f"<script>{script}</script>") if script else None
    page = el("html", head, el("body", el("main", body, class_="mr mr-page"), code), lang="en")
    return f"<!doctype html>\n{page}\n"


def fragment(body: Html) -> str:
    """HTML for a notebook's cell, with a style that applies to HTML of this package only."""
    return str(el("div", style(), body, class_="mr mr-fragment"))


def style() -> Html:
    """The style element, whose rules apply to elements of class ``mr``, what they hold, and the body of a
    whole page."""
    return Html(f"<style>\n{asset('page.css')}</style>")


@cache
def asset(name: str) -> str:
    """The text of a file in this folder."""
    return files("milp_recourse.reports.pages").joinpath(name).read_text(encoding="utf-8")


def facts_card(title: str, facts: dict[str, str]) -> Html | None:
    """A card with facts by name; None without any."""
    if not facts:
        return None
    return card(title, definitions(facts))


def card(title: str, *children: Html | None, class_: str = "") -> Html:
    """A section with a title."""
    return el("section", el("h2", title), *children, class_=f"card {class_}".strip())


def choice(label: str, id: str, options: Iterable[Html] = (), class_: str = "choice") -> Html:
    """A drop-down list with its label."""
    return el("label", label, el("select", *options, id=id), class_=class_)


def table_head(*names: str) -> Html:
    """The head of a table, with the columns' names."""
    return el("thead", el("tr", *(el("th", name, scope="col") if name else el("td") for name in names)))


def definitions(entries: dict[str, str] | dict[str, Html] | dict[str, str | Html]) -> Html:
    """A definition list."""
    return el("dl", *(el("div", el("dt", t), el("dd", text)) for t, text in entries.items()), class_="facts")

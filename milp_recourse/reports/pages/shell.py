"""The file around a page: style and script inside, nothing from elsewhere."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from milp_recourse.reports.pages.html import Html, el


def document(title: str, body: Html, script: str = "") -> str:
    """A whole HTML file.

    A policy inside the file forbids the browser to fetch anything, and to run any script but ``script``,
    so that not even a fault in escaping could.

    Parameters
    ----------
    script
        JavaScript of this package, put in as it is.
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
    """A piece for a notebook's cell: its style touches nothing outside."""
    return str(el("div", style(), body, class_="mr mr-fragment"))


def style() -> Html:
    """The style element; every rule is below the class ``mr``."""
    return Html(f"<style>\n{asset('page.css')}</style>")


@cache
def asset(name: str) -> str:
    """A file of this folder."""
    return files("milp_recourse.reports.pages").joinpath(name).read_text(encoding="utf-8")


def facts_card(title: str, facts: dict[str, str]) -> Html | None:
    """Terms and what they are; None without any."""
    if not facts:
        return None
    return card(title, definitions(facts))


def card(title: str, *children: Html | None, class_: str = "") -> Html:
    """A titled section."""
    return el("section", el("h2", title), *children, class_=f"card {class_}".strip())


def choice(label: str, id: str, options: Iterable[Html] = (), class_: str = "choice") -> Html:
    """A list to choose from, with its label."""
    return el("label", label, el("select", *options, id=id), class_=class_)


def table_head(*names: str) -> Html:
    """The row of column names."""
    return el("thead", el("tr", *(el("th", name, scope="col") for name in names)))


def definitions(entries: dict[str, str] | dict[str, Html] | dict[str, str | Html]) -> Html:
    """A list of terms with their meaning."""
    return el("dl", *(el("div", el("dt", t), el("dd", text)) for t, text in entries.items()), class_="facts")

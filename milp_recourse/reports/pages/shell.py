"""Renders the templates of this folder: whole files with their style and script, and parts of them.

Line ends and indentation of a template are left out. Every value is escaped, and a long name in it may go on
in a new line (:func:`~milp_recourse.reports.pages.values.breakable`); in attributes the filter ``quoted``
stands for both.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import BaseLoader, Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from milp_recourse.reports.answer_kinds import Outcome
from milp_recourse.reports.pages import wording
from milp_recourse.reports.pages.charts import binned, quartiles
from milp_recourse.reports.pages.values import (
    breakable,
    difference,
    exact,
    percent,
    quoted,
    shown,
    shown_beside,
)
from milp_recourse.reports.view import Change, plain


def document(template: str, heading: str, script: str = "", **content: Any) -> str:
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
    code = Markup(f"<script>{script}</script>") if script else None
    return f"{rendered(template, heading=heading, policy=policy, code=code, **content)}\n"


def rendered(template: str, **content: Any) -> str:
    """What a template makes of its content; ``style`` is the style element, whose rules apply to elements of
    class ``mr``, what they hold, and the body of a whole page."""
    style = Markup(f"<style>\n{asset('page.css')}</style>")
    return _templates().get_template(f"{template}.html.j2").render(style=style, **content)


def chart(name: str, *content: Any) -> Markup:
    """What a macro of ``charts.html.j2`` makes of its content, for a page with templates of its own."""
    made: Markup = getattr(_templates().get_template("charts.html.j2").module, name)(*content)
    return made


@cache
def asset(name: str) -> str:
    """The text of a file in this folder."""
    return files("milp_recourse.reports.pages").joinpath(name).read_text(encoding="utf-8")


@cache
def _templates() -> Environment:
    return templates(FunctionLoader(lambda name: "".join(map(str.strip, asset(name).splitlines()))))


def templates(loader: BaseLoader) -> Environment:
    """An environment for templates that a loader finds, with the functions and filters of this folder's."""
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, finalize=_escaped)
    made.filters["quoted"] = quoted
    made.filters["part"] = lambda share: f"{100 * share:.3f}%"
    made.globals |= {function.__name__: function for function in KNOWN} | {"wording": wording}
    return made


def _escaped(value: object) -> object:
    return value if isinstance(value, Markup) else "" if value is None else breakable(str(value))


def tone(kind: Outcome) -> str:
    """The CSS class that colours an outcome."""
    return kind.name.lower()


def with_unit(change: Change, given: object, text: str) -> str:
    """A value's text, with the feature's unit where the value is a number."""
    number = isinstance(plain(given), int | float)
    return f"{text}\u00a0{change.unit}" if change.unit and number else text


KNOWN = (
    *(binned, quartiles, tone, with_unit),
    *(difference, exact, percent, plain, shown, shown_beside),
)
"""The functions that templates call, beside those of :mod:`milp_recourse.reports.pages.wording`."""

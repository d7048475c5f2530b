"""People for the pages' tests, and readers of what the pages hold."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

from milp_recourse.reports.view import NOT_REACHED, Change, Person

HOSTILE = "</script><b onclick=\"alert('x')\">&lt;é\u2028☃</b><!--"
"""A label that would end a script, a tag, an attribute and a comment if it were not escaped."""
VOID = {"meta", "input", "br", "wbr"}
FACTS = {"Model": "3 decision trees", "Margin <m>": "none & nothing"}


def changes(before: float = 1000.5, after: float = 1200.25) -> list[Change]:
    """An action, a held feature, an effect, a free lever and an immovable."""
    return [
        Change("income", before, after, "action", True, "0 to 5000", 0.75),
        Change("degree", "bachelor", "master", "action", True, "bachelor, master", 0.25),
        Change("savings", 2.0, 2.0, "held", True, "0 to 10", 0.0),
        Change("debt", 1.5, 1.25, "effect", False),
        Change("cards", 3, 3, "unchanged", True, "0 to 5, only up"),
        Change("age", None, None),
    ]


def still(given: list[Change]) -> list[Change]:
    """The same features, nothing changed."""
    return [replace(c, after=c.before, cause="unchanged", share=None) for c in given]


def solved(id: str = "p1", **given: Any) -> Person:
    """A proven and confirmed answer."""
    fields: dict[str, Any] = {
        "status": "optimal",
        "cost": 0.5,
        "lower_bound": 0.4999999,
        "gap": 1e-7,
        "proof": "rigorous",
        "confirmed": True,
        "seconds": 0.25,
        "features": changes(),
        "group": {"sex": "f", "region": "north"},
    }
    return Person(id, **(fields | given))


def everybody() -> list[Person]:
    """One person per outcome, and one whose words are hostile."""
    none = {"cost": None, "lower_bound": None, "gap": None, "features": still(changes()), "confirmed": None}
    strange = [Change(HOSTILE, HOSTILE, f"{HOSTILE}2", "action", True, HOSTILE, 1.0)]
    return [
        solved("p1"),
        solved("p10", cost=0.0, lower_bound=0.0, gap=0.0, features=still(changes()), group={"sex": "m"}),
        solved("p2", **none | {"status": "infeasible", "proof": "solver"}),
        solved(
            "p3", status="limit", cost=2.5, lower_bound=1.0, gap=1.5, message="the time limit was reached"
        ),
        solved("p4", **none | {"status": "limit", "lower_bound": 0.25}),
        solved("p5", status="found", cost=3.5, lower_bound=None, gap=None, proof=None, confirmed=False),
        solved("p6", **none | {"status": "not-found", "proof": None}),
        solved("p8", status="found", cost=4.5, lower_bound=None, gap=None, proof=None, confirmed=None),
        Person("p7", "bad-input", message="age: got nothing; allowed: a number"),
        solved("p9", **none | {"status": NOT_REACHED, "proof": None, "seconds": None}),
        solved(HOSTILE, features=strange, message=HOSTILE, group={HOSTILE: HOSTILE}),
    ]


def crowd(count: int, seed: int = 0) -> list[Person]:
    """Many people, each cost a double of another size."""
    rng = random.Random(seed)
    people = []
    for k in range(count):
        cost = rng.choice([1, -1]) ** 2 * rng.random() * 10.0 ** rng.randint(-9, 9)
        before = (rng.random() - 0.5) * 10.0 ** rng.randint(-6, 12)
        after = before * (1 + 10.0 ** rng.randint(-14, 1))
        if rng.random() < 0.2:
            before, after = float(round(before)), float(round(before)) + rng.choice([0.25, 1.0, -3.0])
        group = {"sex": rng.choice("fm"), "town": f"town {rng.randint(1, 30)}"}
        people.append(solved(f"id-{k}", cost=cost, features=changes(before, after), group=group))
    return people


class Reader(HTMLParser):
    """Reads a page, insisting that every element is closed in turn.

    ``text`` is what a person sees, ``rows`` the cells' texts of table rows that are no headings.
    """

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in VOID:
            return
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "script" in self.open:
            self.scripts[-1] += data
        elif "style" not in self.open:
            self.text += data
            if self.open[-1:] and ("td" in self.open or "th" in self.open):
                self.rows[-1][-1] += data

    @property
    def data(self) -> Any:
        """What the page's script draws from."""
        return json.loads(self.scripts[0])

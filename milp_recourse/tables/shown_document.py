"""A document that shows itself as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd

from milp_recourse.formats.strict_json import dump


class ShownDocument(dict[str, Any]):
    """A document of this package's formats: a dict of what its file has, shown as lines and a table.

    Attributes
    ----------
    lines
        The answer in words.
    table
        A DataFrame of it; empty where the lines say everything.

    Examples
    --------
    >>> prices = [{"without": "range:x", "cost": 1.5}]
    >>> found = ShownDocument({"status": "optimal"}, ["optimal at cost 2"], prices)
    >>> found
    optimal at cost 2
    without  cost
    range:x   1.5
    >>> found["status"]
    'optimal'
    >>> print(found.to_json(), end="")
    {"status": "optimal"}
    """

    def __init__(
        self, content: Mapping[str, Any], lines: Sequence[str], rows: Sequence[Mapping[str, Any]]
    ) -> None:
        super().__init__(content)
        self.lines, self.table = tuple(lines), pd.DataFrame(list(rows))

    def to_json(self) -> str:
        """The document as text, as its file has it."""
        return dump(self)

    def __repr__(self) -> str:
        rows = [] if self.table.empty else [self.table.to_string(index=False)]
        return "\n".join([*self.lines, *rows])

    def _repr_html_(self) -> str:
        words = "".join(f"<p>{escape(line)}</p>" for line in self.lines)
        return words + ("" if self.table.empty else self.table.to_html(index=False))

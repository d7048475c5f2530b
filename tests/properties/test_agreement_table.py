"""The page of comparisons says what the results files say."""

from __future__ import annotations

from tests.properties.agreement_table import PAGE, lines


def test_the_page_is_written_from_the_files():
    """``python -m tests.properties.agreement_table`` brings it up to date."""
    assert PAGE.read_text() == "\n".join(lines()) + "\n"

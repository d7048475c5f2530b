"""A letter for the person: one page of HTML from a template, one file per language."""

from milp_recourse.reports.letters.letter import LANGUAGES, letter
from milp_recourse.reports.letters.readability import reading_ease

__all__ = ["LANGUAGES", "letter", "reading_ease"]

"""The dialogue with a person: what to ask next, what to recommend, and what that can cost them at most."""

from milp_recourse.preferences.candidates import Candidate, exact_candidates
from milp_recourse.preferences.interview import METHODS, Interview
from milp_recourse.preferences.question import Option, Question
from milp_recourse.preferences.regret import Regret

__all__ = ["METHODS", "Candidate", "Interview", "Option", "Question", "Regret", "exact_candidates"]

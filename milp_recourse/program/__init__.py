"""The neutral program: an instance is lowered to it once, and every back end solves it."""

from milp_recourse.program.equilibrate import equilibrate
from milp_recourse.program.forms import Action, Affine, Switch
from milp_recourse.program.lower import lower
from milp_recourse.program.neutral_program import Program

__all__ = [
    "Action",
    "Affine",
    "Program",
    "Switch",
    "equilibrate",
    "lower",
]

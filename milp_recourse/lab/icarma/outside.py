"""The shipped networks as a method that ``milp-recourse evaluate`` can judge.

milp-recourse evaluate milp_recourse.lab.icarma.outside:recommend
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from milp_recourse.lab.icarma.checkpoint import read_recommender
from milp_recourse.lab.icarma.predict import predict
from milp_recourse.lab.icarma.shipped import shipped
from milp_recourse.problem.population import Population

if TYPE_CHECKING:
    import pandas as pd


def recommend(applicants: pd.DataFrame, population: Population) -> pd.DataFrame:
    """Actions of a population's applicants: a column per lever, nan where it is not acted on.

    The networks are those for constant weights if all weights are 1, else those for ranks.
    """
    plain = all(set(p.weights.values()) <= {1.0} for p in population.preferences)
    model, _ = read_recommender(shipped("constant" if plain else "rank", population.template))
    table = predict(model, applicants, population.preferences)
    return table[[f"action_{f}" for f in model.levers]].set_axis(list(model.levers), axis="columns")

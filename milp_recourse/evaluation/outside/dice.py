"""DiCE (Mothilal et al. 2020, https://github.com/interpretml/DiCE), with one counterfactual per applicant.

Needs ``pip install dice-ml``. DiCE's method "random" changes features that the applicant can act on, within
their bounds, until the network accepts. It uses neither the causal model nor plausibility.
"""

from __future__ import annotations

import logging
import warnings
from contextlib import redirect_stderr
from io import StringIO
from typing import Any

import numpy as np

from milp_recourse.errors import BackendUnavailable, Unsupported
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.population import Population

SAMPLE, SEED = 2000, 0
METHOD = "random"
SAME = 1e-6  # features that DiCE does not vary are returned unchanged up to rounding


class _Model:
    """The network with the methods that DiCE calls."""

    def __init__(self, network: ReluNetwork) -> None:
        self.network = network

    def predict_proba(self, frame: Any) -> np.ndarray:
        """Probabilities of both classes, shape (n, 2)."""
        logit = self.network.evaluate(np.asarray(frame, dtype=np.float64))[:, 0]
        accepted = 1 / (1 + np.exp(-np.clip(logit, -500, 500)))
        return np.stack([1 - accepted, accepted], axis=1)

    def predict(self, frame: Any) -> np.ndarray:
        """Class of every row: 1 where the logit is at least 0, whatever the instance's threshold."""
        return (self.predict_proba(frame)[:, 1] >= 0.5).astype(int)


def actions(frame: Any, population: Population) -> Any:
    """Everybody's actions, without rows for applicants for whom DiCE finds none."""
    import pandas as pd

    try:
        import dice_ml
    except ImportError:
        raise BackendUnavailable("DiCE: not installed; pip install dice-ml") from None
    network = population.template.classifier
    if not isinstance(network, ReluNetwork):
        raise Unsupported("DiCE: only networks are wrapped here")
    names = [f.name for f in population.template.features]
    model = _Model(network)
    rng = np.random.default_rng(SEED)
    known = pd.DataFrame(population.template.scm.sample(SAMPLE, rng), columns=names)
    known["outcome"] = model.predict(known[names])
    for name in names:  # DiCE takes permitted values from its data
        known.loc[0, name], known.loc[1, name] = frame[name].min(), frame[name].max()
    data = dice_ml.Data(dataframe=known, continuous_features=names, outcome_name="outcome")
    explainer = dice_ml.Dice(
        data, dice_ml.Model(model=model, backend="sklearn", model_type="classifier"), method=METHOD
    )
    logging.disable(logging.WARNING)
    rows = {}
    for k, one in zip(frame.index, population, strict=True):
        levers = {name: list(interval) for name, interval in one.levers.items()}
        with warnings.catch_warnings(), redirect_stderr(StringIO()):  # a progress bar per applicant
            warnings.simplefilter("ignore")
            try:
                found = explainer.generate_counterfactuals(
                    frame.loc[[k], names],
                    total_CFs=1,
                    desired_class=1,
                    features_to_vary=list(levers),
                    permitted_range=levers,
                    random_seed=SEED,
                    verbose=False,
                )
            except Exception:  # DiCE raises errors of several kinds if it finds nothing
                continue
        ends = found.cf_examples_list[0].final_cfs_df
        if ends is None or not len(ends):
            continue
        end = ends.iloc[0]
        moved = {
            name: float(end[name])
            for name in levers
            if abs(float(end[name]) - float(frame.at[k, name])) > SAME
        }
        if moved:
            rows[k] = moved
    return pd.DataFrame.from_dict(rows, orient="index", columns=names)

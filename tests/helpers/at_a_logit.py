"""Problems whose threshold is the logit of a random counterfactual, as where it is a quantile of scores.

A network's logit is often the same on a whole face of a box, and then that face comes within rounding of the
threshold, or misses it by that much.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from milp_recourse.judge import already_good
from milp_recourse.problem.instance import Acceptance, Instance
from milp_recourse.problem.network import ReluNetwork
from tests.helpers.generators import SEVERAL_LEVERS, random_instance, sample_actions


def at_a_logit(seed: int) -> Instance | None:
    """A float64 network's problem, or None. Even seeds have the largest of 40 logits, odd ones any above the
    factual's."""
    instance = random_instance(seed, SEVERAL_LEVERS[seed % len(SEVERAL_LEVERS)])
    network = instance.classifier
    if not isinstance(network, ReluNetwork) or network.dtype != "float64" or not instance.levers:
        return None
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        rows = instance.scm.counterfactual(instance.factual_row, sample_actions(rng, instance, 40))
        logits = network.evaluate(instance.model_rows(rows))[:, 0]
    own = network.evaluate(instance.model_rows(instance.factual_row[None]))[0, 0]
    higher = logits[np.isfinite(logits) & (logits > own)]
    if not len(higher):
        return None
    threshold = rng.choice(higher) if seed % 2 else higher.max()
    instance = replace(instance, accept=Acceptance(float(threshold), 0.0))
    return None if already_good(instance) else instance

"""The data of a training: the problem (deployed model, bounds, scales), and refused rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from milp_recourse.elicitation.schemes import LOAN_ACTIONABLE
from milp_recourse.errors import BadInput
from milp_recourse.lab.arrays import FloatArray
from milp_recourse.lab.recipe.loan_rows import RELEASED_SIZES, sample_loan
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork

SAMPLED = 20_000, 5_000
"""Numbers of rows drawn for training and for validation."""

SAMPLED_STREAM = 8
"""Part of the seed of rows drawn for training, so that they differ from other draws with the same seed."""


@dataclass(frozen=True)
class Task:
    """A recourse problem without its applicants, and refused rows to learn from.

    Parameters
    ----------
    template
        Features, bounds, deployed network and an l2-squared cost.
    train, validation
        Refused rows, raw units, shape (n, d); none of them is used for testing.
    spread
        Standard deviation of the logit over all train rows, also those that are accepted.
    """

    template: Instance
    train: FloatArray
    validation: FloatArray
    spread: float

    @property
    def network(self) -> ReluNetwork:
        """The deployed classifier."""
        network = self.template.classifier
        assert isinstance(network, ReluNetwork)
        return network

    @property
    def levers(self) -> tuple[str, ...]:
        """The k globally actionable features in feature order, which are the columns of all (n, k) arrays."""
        return tuple(f.name for f in self.template.features if f.actionable)

    @cached_property
    def columns(self) -> list[int]:
        """The positions of the levers among the features."""
        names = [f.name for f in self.template.features]
        return [names.index(name) for name in self.levers]

    @cached_property
    def bounds(self) -> FloatArray:
        """Lowest and highest value an action may set, shape (2, k)."""
        return np.array([self.template.by_name[name].action_bounds for name in self.levers]).T

    @cached_property
    def scale(self) -> FloatArray:
        """s of the cost, shape (k,)."""
        return np.array([self.template.cost.lengths[name] for name in self.levers])


def sampled_task(template: Instance) -> Task:
    """The task of a problem; its refused rows are drawn from the problem's causal model.

    Raises
    ------
    BadInput
        The classifier is no ReLU network, the cost is not l2-squared, no feature is actionable, a mechanism
        states no noise, or no row drawn is refused.
    """
    network = template.classifier
    if not isinstance(network, ReluNetwork):
        raise BadInput("population: classifier", "trees", "a ReLU network, which has gradients")
    if template.cost.kind != "l2-squared":
        raise BadInput("population: cost", template.cost.kind, "l2-squared, the cost the networks minimise")
    if not template.scm.has_density:
        raise BadInput(
            "population: scm", "a feature without noise", "a model that states every feature's noise"
        )
    if not any(f.actionable for f in template.features):
        raise BadInput("population: features", "none is actionable", "at least one")
    rng = np.random.default_rng([0, SAMPLED_STREAM])
    parts, spread = [], 0.0
    for size in SAMPLED:
        rows = template.scm.sample(size, rng)
        logits = network.evaluate(rows)[:, 0]
        spread = spread or float(logits.std())
        parts.append(rows[logits < template.accept.threshold])
        if not len(parts[-1]):
            raise BadInput("population: classifier", f"none of {size} drawn rows is refused", "some refused")
    return Task(template, parts[0], parts[1], spread)


def loan_task(template: Instance) -> Task:
    """Loan's task: the refused train and validation rows of the split on which its classifier was trained.

    Raises
    ------
    BadInput
        As for :func:`check_loan`.
    """
    network = check_loan(template)
    data = sample_loan(0, RELEASED_SIZES)
    logits = [network.evaluate(split.rows)[:, 0] for split in (data.train, data.validation)]
    train, validation = (
        split.rows[logit < template.accept.threshold]
        for split, logit in zip((data.train, data.validation), logits, strict=True)
    )
    return Task(template, train, validation, float(logits[0].std()))


def check_loan(template: Instance) -> ReluNetwork:
    """The classifier of a Loan problem, after a check that the shipped networks fit the problem.

    Raises
    ------
    BadInput
        The causal model, classifier, cost or actionable features are not those of Loan.
    """
    if template.scm.name != "loan" or not isinstance(template.classifier, ReluNetwork):
        raise BadInput("population", template.scm.name, "Loan applicants of a ReLU network")
    if template.cost.kind != "l2-squared":
        raise BadInput("population: cost", template.cost.kind, "l2-squared, the cost the networks minimise")
    known = {f.name for f in template.features if f.actionable}
    if known != set(LOAN_ACTIONABLE):
        raise BadInput("population: actionable", ", ".join(sorted(known)), ", ".join(LOAN_ACTIONABLE))
    return template.classifier

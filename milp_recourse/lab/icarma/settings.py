"""Settings of the networks' training, and five recipes: named sets of settings."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from milp_recourse.elicitation.schemes import RankingDistribution
from milp_recourse.errors import BadInput
from milp_recourse.lab.icarma.sampling import Elicitation, PreferenceSampler, Profile, Wishes

SEEDS = tuple(range(1000, 10001, 1000))
"""The paper's ten seeds."""

DAMPING = 10.0
"""The damping of the dual ascent, as in the released code (Platt and Barr 1987)."""

LATENT_LIMIT = 5.0
"""Latent shifts are cut to plus or minus this number, the default of the released code."""

Recipe = Literal["plain", "paper", "best", "certified", "refined"]

AS_RELEASED: dict[str, Any] = {
    "decay": False,
    "weight_decay": 5e-4,
    "initial": "xavier",
    "keep": "last",
    "actions": "latent",
    "fallback": False,
    "hinge": "probability",
    "dual": True,
}
"""Settings that the paper does not state, as in the released code of its predecessor CARMA."""

BEST: dict[str, Any] = {
    "mask_hidden": (64, 64),
    "action_hidden": (128, 128, 128),
    "epochs": 120,
    "learning_rate": 2e-3,
    "divergence": 0.05,
    "plausibility": 1.0,
}
"""Settings of this project: wider networks, a small weight of the divergence, a large one of plausibility.
They were chosen by the share of validation rows whose recommendation is valid and plausible
(``docs/results/loan_smooth/recipes.py``)."""

CERTIFIED: dict[str, Any] = BEST | {
    "margin": 0.03,
    "density_margin": 0.1,
    "imitation": 10.0,
    "impossible": 0.0,
}
"""Learning from certified optima and failures (``docs/results/loan_smooth/optima.py``)."""

REFINED: dict[str, Any] = CERTIFIED | {"steps": 20}
"""The same, with recommendations refined by steps (:mod:`~milp_recourse.lab.icarma.refine`)."""

_CHOICES = {
    "initial": ("torch", "xavier"),
    "keep": ("best", "last"),
    "actions": ("shift", "latent"),
    "hinge": ("logit", "probability"),
    "prior_shape": ("weights", "exchanged"),
    "conditioning": ("both", "mask"),
}


@dataclass(frozen=True)
class Settings:
    """The settings of one training run (iCARMA paper, appendix C.2.4; defaults are those for ranks).

    Parameters
    ----------
    seed
        Seed of initial weights, batches, masks and preferences.
    elicitation, profile, hard, distribution
        The preferences drawn in training; see :class:`~milp_recourse.lab.icarma.sampling.PreferenceSampler`.
        The paper trains one model per profile; ``mixed``, which it does not have, trains one for all.
    individual
        Whether masks and preferences differ between people. If not, as in CARMA, all features are actionable
        with weights 1.
    mask_hidden, action_hidden, batch, epochs, learning_rate
        Units of the networks' hidden layers, and settings of Adam.
    decay
        Whether the learning rate falls to zero along a cosine over the epochs, which the paper does not do.
    weight_decay
        Weight decay of Adam.
    initial
        Initial weights: torch's uniform ones, or Glorot and Bengio's (``xavier``).
    keep
        The epoch that is kept: the one with the least validation loss (``best``), or the last.
    actions
        The meaning of the action network's outputs: a change of the feature in standard deviations
        (``shift``), or a shift of its latent, which gives the action's value under the flow (``latent``).
    fallback
        Whether a person for whom every probability to act is below 1/2 is told to use the likeliest feature,
        instead of none.
    hinge
        The number that must exceed ``margin``: the logit in units of its standard deviation on the train rows
        (``logit``), or 2 p - 1 with p = sigmoid(logit) (``probability``).
    dual
        Whether lambda, the weight of the hinge, starts at 0 and grows by the mean violation of each batch
        (damped dual ascent, :data:`DAMPING`), instead of staying at ``validity``.
    margin
        beta of the hinge.
    density_margin
        By how many nats the counterfactual's log density must exceed the factual's in equation 15; 0 in the
        paper.
    temperature
        tau of the Gumbel-softmax.
    cost, plausibility, feasibility, divergence
        Weights of equations 10, 15, 16 and 13.
    prior_high, prior_low
        The mask network's priors of the most and of the least preferred feature, which the paper does not
        publish.
    prior_shape
        Whether priors fall as the weights rise (``weights``, equation 14), or with the reciprocal exponent
        (``exchanged``: concave weights have priors that stay high).
    conditioning
        Which networks see the preferences: ``both``, or the one of the mask (``mask``), so that actions
        depend on the features acted on alone.
    validity
        lambda if it is constant, and the weight of the hinge in the validation loss; not from the paper.
    imitation
        Weight of the squared distance to the certified optimum
        (:func:`~milp_recourse.lab.icarma.losses.distance`); 0 for none. The optima are those of the problem
        whose two boundaries are tightened by ``margin`` and ``density_margin``.
    impossible
        Weight in the loss of rows for which it is proven that this problem has no recourse; 0 leaves them
        out.
    steps
        Steps by which a recommendation is refined after training (:mod:`~milp_recourse.lab.icarma.refine`).
    """

    seed: int = SEEDS[0]
    elicitation: Elicitation = "rank"
    profile: Profile = "mixed"
    hard: bool = True
    distribution: RankingDistribution = "uniform"
    individual: bool = True
    mask_hidden: tuple[int, ...] = (32, 32)
    action_hidden: tuple[int, ...] = (32, 32, 32)
    batch: int = 128
    epochs: int = 450
    learning_rate: float = 5e-3
    decay: bool = True
    weight_decay: float = 0.0
    initial: Literal["torch", "xavier"] = "torch"
    keep: Literal["best", "last"] = "best"
    actions: Literal["shift", "latent"] = "shift"
    fallback: bool = True
    hinge: Literal["logit", "probability"] = "logit"
    dual: bool = False
    margin: float = 0.013
    density_margin: float = 0.0
    temperature: float = 0.36
    cost: float = 1.1
    plausibility: float = 0.225
    feasibility: float = 0.1
    divergence: float = 1.5
    prior_high: float = 0.5
    prior_low: float = 0.1
    prior_shape: Literal["weights", "exchanged"] = "weights"
    conditioning: Literal["both", "mask"] = "both"
    validity: float = 10.0
    imitation: float = 0.0
    impossible: float = 1.0
    steps: int = 0

    def __post_init__(self) -> None:
        for name in ("batch", "epochs"):
            if getattr(self, name) < 1:
                raise BadInput(name, getattr(self, name), "a whole number, 1 or more")
        for name in ("learning_rate", "temperature"):
            if not getattr(self, name) > 0:
                raise BadInput(name, getattr(self, name), "a number above 0")
        for name in ("density_margin", "imitation", "impossible", "steps"):
            if not getattr(self, name) >= 0:
                raise BadInput(name, getattr(self, name), "0 or more")
        if self.learns and not self.individual:
            raise BadInput("imitation", self.imitation, "0, or networks that see preferences")
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise BadInput(name, getattr(self, name), ", ".join(known))
        if not 0 < self.prior_low <= self.prior_high < 1:
            got = (self.prior_low, self.prior_high)
            raise BadInput("prior_low, prior_high", got, "0 < prior_low <= prior_high < 1")
        _ = self.sampler  # checks elicitation and profile

    @staticmethod
    def of_recipe(recipe: Recipe, elicitation: Elicitation, **changes: Any) -> Settings:
        """One of the recipes, with changes.

        Parameters
        ----------
        recipe
            ``plain`` has the paper's best hyperparameters for ranks or for scores, and defaults for settings
            that the paper does not state. ``paper`` has the same hyperparameters, and the other settings as
            in the code that the CARMA authors released (:data:`AS_RELEASED`). ``best`` is :data:`BEST`,
            ``certified`` :data:`CERTIFIED`, ``refined`` :data:`REFINED`.
        """
        if recipe not in get_args(Recipe):
            raise BadInput("recipe", recipe, ", ".join(get_args(Recipe)))
        base = {"plain": {}, "paper": AS_RELEASED, "best": BEST, "certified": CERTIFIED, "refined": REFINED}
        return Settings.published(elicitation, **{**base[recipe], **changes})

    @staticmethod
    def published(elicitation: Elicitation, **changes: Any) -> Settings:
        """The best hyperparameters of the paper for ranks or for scores, with changes."""
        settings = Settings(elicitation=elicitation)
        if elicitation == "score":
            settings = replace(
                settings,
                action_hidden=(32, 32),
                epochs=900,
                learning_rate=1e-3,
                margin=0.004,
                temperature=0.49,
                cost=1.3,
                divergence=0.9,
                plausibility=0.125,
            )
        return replace(settings, **changes)

    @property
    def learns(self) -> bool:
        """Whether certified answers for the train rows are needed."""
        return self.imitation > 0 or self.impossible != 1

    @property
    def sampler(self) -> PreferenceSampler:
        """The sampler of the preferences of an epoch."""
        return PreferenceSampler(self.elicitation, self.profile, self.hard, distribution=self.distribution)

    def priors(self, wishes: Wishes) -> NDArray[np.float64]:
        """The mask network's priors (equation 14), shape (n, k); 0 where not actionable."""
        fallen = wishes.height if self.prior_shape == "weights" else wishes.reverse
        if fallen is None:
            raise BadInput("prior_shape", self.prior_shape, "weights, where the profile is not known")
        return np.where(wishes.actionable, self.prior_high - (self.prior_high - self.prior_low) * fallen, 0.0)

    def logit_margin(self, spread: float) -> float:
        """The logit above which the hinge is 0, given the logit's standard deviation on the train rows."""
        if self.hinge == "logit":
            return self.margin * spread
        return math.log((1 + self.margin) / (1 - self.margin))

    def as_json(self) -> dict[str, Any]:
        """As a JSON value."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @staticmethod
    def of_json(content: dict[str, Any]) -> Settings:
        """From :meth:`as_json`."""
        arguments: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in content.items()}
        return Settings(**arguments)

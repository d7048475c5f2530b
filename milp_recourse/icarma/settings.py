"""How a pair of networks is trained; the defaults are the published hyperparameters."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from milp_recourse.domain.elicitation import RankingDistribution
from milp_recourse.errors import BadInput
from milp_recourse.icarma.sampling import Elicitation, PreferenceSampler, Profile

SEEDS = tuple(range(1000, 10001, 1000))
"""The paper's ten seeds."""


@dataclass(frozen=True)
class Settings:
    """One training run (iCARMA paper, appendix C.2.4; defaults are those for ranks).

    Parameters
    ----------
    seed
        Of initial weights, batches, masks and preferences.
    elicitation, profile, hard, distribution
        What preferences are drawn in training; see
        :class:`~milp_recourse.icarma.sampling.PreferenceSampler`. The paper trains one model per
        profile; ``mixed``, ours, trains one for all.
    individual
        False: CARMA, one mask and no preferences.
    mask_hidden, action_hidden, batch, epochs, learning_rate
        Networks and Adam.
    decay
        Whether the rate falls to zero along a cosine over the epochs. Not in the paper: ours.
    margin
        beta of the hinge.
    temperature
        tau of the Gumbel-softmax.
    cost, plausibility, feasibility, divergence
        Weights of equations 10, 15, 16 and 13.
    validity
        lambda, the weight of the hinge. Not published: ours.
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
    margin: float = 0.013
    temperature: float = 0.36
    cost: float = 1.1
    plausibility: float = 0.225
    feasibility: float = 0.1
    divergence: float = 1.5
    validity: float = 10.0

    def __post_init__(self) -> None:
        for name in ("batch", "epochs"):
            if getattr(self, name) < 1:
                raise BadInput(name, getattr(self, name), "a whole number, 1 or more")
        for name in ("learning_rate", "temperature"):
            if not getattr(self, name) > 0:
                raise BadInput(name, getattr(self, name), "a number above 0")
        _ = self.sampler  # checks elicitation and profile

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
    def sampler(self) -> PreferenceSampler:
        """What draws the preferences of an epoch."""
        return PreferenceSampler(self.elicitation, self.profile, self.hard, distribution=self.distribution)

    def as_json(self) -> dict[str, Any]:
        """As JSON writes it."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @staticmethod
    def of_json(content: dict[str, Any]) -> Settings:
        """From :meth:`as_json`."""
        arguments: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in content.items()}
        return Settings(**arguments)

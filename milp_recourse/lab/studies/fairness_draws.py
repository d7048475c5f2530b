"""The fairness case study over many draws of race, profiles and rankings.

Race is drawn at random, so a single draw can show a gap by chance. Each draw gives every applicant a mask of
two features (all four in ``non-personalized``), and an applicant's answer depends on the mask alone. So every
applicant is answered once per mask, and a draw only looks answers up.

For each gap between groups the study reports: its mean over the draws; an interval that contains 95% of the
gaps over draws *and* samples of applicants (the applicants of each draw are resampled five times); and the
share of draws in which a permutation test calls the gap significant at 5%. If there is no gap, that share is
about 5%.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse.elicitation.schemes import LOAN_ACTIONABLE
from milp_recourse.lab.arrays import FloatArray
from milp_recourse.lab.means import mean
from milp_recourse.lab.run_table import write_table
from milp_recourse.lab.studies.amortised import Networks
from milp_recourse.lab.studies.fairness import GAPS
from milp_recourse.lab.studies.kept_answers import Answer, Answers
from milp_recourse.lab.studies.paper_cells import SCENARIOS, TABLES, Cell, Draws, Problem
from milp_recourse.lab.studies.report import write_page
from milp_recourse.lab.studies.tables import served
from milp_recourse.problem.population import Population

MASKS = (LOAN_ACTIONABLE, *combinations(LOAN_ACTIONABLE, 2))
"""All four features, then every pair."""

MEASURES = ("share with recourse", "mean cost", "mean log density")
PERMUTATIONS = 199
LEVEL = 0.05
RESAMPLES = 5


@dataclass(frozen=True)
class Offers:
    """A method's actions for every applicant under every mask; arrays of shape (n, masks).

    Attributes
    ----------
    served
        Whether there is an action: for the certified method a feasible one; for networks one whose outcome
        the deployed model accepts, plausible or not.
    cost, log_density
        The action's cost with weights 1, and the log density of the counterfactual under the true model; 0
        without an action.
    """

    name: str
    served: NDArray[np.bool_]
    cost: FloatArray
    log_density: FloatArray

    def of(self, mask: NDArray[np.int64]) -> FloatArray:
        """``served``, ``cost`` and ``log_density`` for each applicant's mask, shape (3, n)."""
        mine = np.arange(len(mask)), mask
        return np.stack([self.served[mine].astype(float), self.cost[mine], self.log_density[mine]])


def problems(population: Population) -> list[Problem]:
    """The problem of every applicant under every mask."""
    return [
        Problem(k, mask, (1.0,) * len(mask), plausible=True) for mask in MASKS for k in range(len(population))
    ]


def certified_offers(population: Population, known: Mapping[Problem, Answer]) -> Offers:
    """The certified method's actions, from the answers to all :func:`problems`."""
    draws, asked, n = Draws(0, population), problems(population), len(population)
    parts = [served(draws, TABLES["table1"][0], asked[k * n : (k + 1) * n], known) for k in range(len(MASKS))]
    return _offers("certified", [(one.served, one.unweighted, one.log_density) for one in parts])


def amortised_offers(population: Population, networks: Networks) -> Offers:
    """The actions of the first seed's networks whose outcome the deployed model accepts."""
    from milp_recourse.lab.icarma.sampling import Wishes
    from milp_recourse.lab.icarma.score import recommended

    scm, by_mask = population.template.scm, []
    for mask in MASKS:
        can = np.tile([name in mask for name in LOAN_ACTIONABLE], (len(population), 1))
        found = recommended(networks.models[0], population, Wishes(can, can.astype(float), can))
        density = scm.log_density(scm.counterfactual(found.rows, found.action))
        by_mask.append((found.scored.valid_deployed, found.scored.plain_cost, density))
    return _offers(f"iCARMA {networks.name}", by_mask)


def _offers(name: str, by_mask: Sequence[tuple[NDArray[np.bool_], FloatArray, FloatArray]]) -> Offers:
    """Offers from (served, cost, log density) of every mask; both numbers become 0 where not served."""
    given, cost, density = (np.array(part).T for part in zip(*by_mask, strict=True))
    return Offers(name, given, np.where(given, cost, 0.0), np.where(given, density, 0.0))


def masks_of(draws: Draws, cell: Cell) -> NDArray[np.int64]:
    """The number of each applicant's mask in :data:`MASKS`, shape (n,)."""
    can = draws.scores(cell).actionable
    known = {tuple(name in mask for name in LOAN_ACTIONABLE): k for k, mask in enumerate(MASKS)}
    return np.array([known[tuple(row)] for row in can.tolist()])


def differences(member: FloatArray, offered: FloatArray) -> FloatArray:
    """Gaps of the three measures between groups, shape (measures, gaps, draws).

    Parameters
    ----------
    member
        How often each applicant counts in the first and in the second group of each of :data:`GAPS`, shape
        (2, gaps, draws, n).
    offered
        What :meth:`Offers.of` returns, shape (3, n).
    """
    served = offered[0]
    size, count = member.sum(axis=-1), member @ served
    with np.errstate(invalid="ignore", divide="ignore"):
        means: FloatArray = np.stack([count / size, member @ offered[1] / count, member @ offered[2] / count])
    return means[:, 0] - means[:, 1]


def sides(female: NDArray[np.bool_], white: NDArray[np.bool_]) -> FloatArray:
    """Who is in the first and in the second group of each of :data:`GAPS`, as 0 and 1: shape (2, gaps, n)."""
    one = (female, ~white, female & ~white)
    other = (~female, white, ~female & white)
    return np.array([one, other], dtype=float)


@dataclass(frozen=True)
class Drawn:
    """The gaps in one draw of one scenario for one method.

    Attributes
    ----------
    gap, p
        The gaps, and their p-values by permutation, shape (measures, gaps).
    resampled
        The gaps of resampled applicants, shape (measures, gaps, resamples).
    """

    draw: int
    scenario: str
    method: str
    gap: FloatArray
    resampled: FloatArray
    p: FloatArray


def study(
    population: Population, offers: Sequence[Offers], draws: int, seed: int, advance: Callable[[], None]
) -> Iterator[Drawn]:
    """Compute the gaps of every draw, scenario and method.

    Draw d has the seed ``seed`` + d; draw 0 is that of ``figure4`` with the same seed.
    """
    female = np.array([one["gender"] for one in population.factuals]) == 0
    n = len(female)
    for d in range(draws):
        drawn = Draws(seed + d, population)
        white, rng = drawn.race(), np.random.default_rng([seed + d, 400])
        counts = rng.multinomial(n, np.full(n, 1 / n), RESAMPLES).astype(float)
        own = sides(female, white)
        others = _permuted(female, white, rng)
        for scenario, cell in zip(SCENARIOS, TABLES["figure4"], strict=True):
            mask = masks_of(drawn, cell)
            for one in offers:
                offered = one.of(mask)
                gap = differences(own[:, :, None], offered)[..., 0]
                resampled = differences(own[:, :, None] * counts, offered)
                chance = differences(others, offered)
                extreme = np.abs(chance) >= np.abs(gap)[..., None] - 1e-12
                p = (1 + extreme.sum(axis=-1)) / (1 + PERMUTATIONS)
                yield Drawn(d, scenario, one.name, gap, resampled, p)
        advance()


def _permuted(female: NDArray[np.bool_], white: NDArray[np.bool_], rng: np.random.Generator) -> FloatArray:
    """:func:`sides` with permuted labels, shape (2, gaps, permutations, n).

    For the gap by gender, gender is permuted among all; for the gap by race, race within each gender; for the
    third gap, both together among all.
    """
    n = len(female)
    found = np.empty((2, len(GAPS), PERMUTATIONS, n))
    for k in range(PERMUTATIONS):
        anyone = rng.permutation(n)
        race = white.copy()
        for members in (np.flatnonzero(female), np.flatnonzero(~female)):
            race[members] = white[rng.permutation(members)]
        found[:, 0, k] = sides(female[anyone], white)[:, 0]
        found[:, 1, k] = sides(female, race)[:, 1]
        found[:, 2, k] = sides(female[anyone], white[anyone])[:, 2]
    return found


SUMMARY = (
    "scenario", "method", "gap", "measure", "draws", "mean", "sd of draws", "low", "high",
    "share significant", "median p",
)  # fmt: skip


def summary(found: Sequence[Drawn]) -> list[dict[str, Any]]:
    """A row per scenario, method, gap and measure.

    ``low`` and ``high`` are the ends of the 95% interval over draws and resampled applicants.
    """
    rows = []
    groups: dict[tuple[str, str], list[Drawn]] = {}
    for one in found:
        groups.setdefault((one.scenario, one.method), []).append(one)
    for (scenario, method), mine in groups.items():
        gaps, resampled, p = (np.array([getattr(d, key) for d in mine]) for key in ("gap", "resampled", "p"))
        for g, gap in enumerate(GAPS):
            for m, measure in enumerate(MEASURES):
                low, high = np.nanquantile(resampled[:, m, g], (0.025, 0.975))  # over draws and resamples
                values, chances = gaps[:, m, g], p[:, m, g]
                numbers = (
                    values.mean(),
                    values.std(),
                    low,
                    high,
                    (chances <= LEVEL).mean(),
                    np.median(chances),
                )
                row = (scenario, method, gap, measure, len(mine), *map(float, numbers))
                rows.append(dict(zip(SUMMARY, row, strict=True)))
    return rows


def by_mask(population: Population, offers: Sequence[Offers]) -> list[dict[str, Any]]:
    """Share with recourse and mean cost under each mask, by gender.

    These bound the gap that an assignment of masks alone can cause: it is largest if one group always has the
    mask with the largest share, and the other the mask with the smallest.
    """
    female = np.array([one["gender"] for one in population.factuals]) == 0
    rows = []
    for one in offers:
        for k, mask in enumerate(MASKS):
            for name, who in (("female", female), ("male", ~female), ("all", female | ~female)):
                served = one.served[who, k]
                cost = one.cost[who, k][served]
                rows.append(
                    {
                        "method": one.name,
                        "actionable": " + ".join(mask),
                        "group": name,
                        "share with recourse": float(served.mean()),
                        "mean cost": mean(cost),
                    }
                )
    return rows


def run(
    population: Population,
    folder: Path,
    networks: Sequence[Networks],
    draws: int,
    seed: int,
    time_limit: float,
    jobs: int,
    expect: Callable[[int], None],
    advance: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Solve, draw, and write tables and figure. Certified answers are kept in FOLDER, as by ``reproduce``.

    Returns
    -------
    list
        The rows of FOLDER/fairness.csv; FOLDER/fairness_draws.csv.gz has every draw, fairness_masks.csv what
        each mask is worth, fairness.html all but the draws.
    """
    from milp_recourse.lab.studies.reproduce import claim

    claim(folder, population, seed, time_limit)
    answers, asked = Answers(folder, LOAN_ACTIONABLE), problems(population)
    left = answers.files["certified"].missing(asked)
    expect(len(left))
    answers.solve_certified(population, left, time_limit, jobs, lambda: advance("certified"))
    offers = [certified_offers(population, answers.known["certified"])]
    offers += [amortised_offers(population, one) for one in networks]
    expect(draws)
    found = list(study(population, offers, draws, seed, lambda: advance("draws")))
    rows, masks = summary(found), by_mask(population, offers)
    write_table(folder / "fairness.csv", rows)
    write_table(folder / "fairness_masks.csv", masks)
    write_table(folder / "fairness_draws.csv.gz", [row for one in found for row in _draws(one)])
    fairness_over_draws(found, rows, folder / "fairness.svg")
    write_page(
        folder / "fairness.html",
        "fairness_draws",
        {"fairness": rows, "fairness_masks": masks},
        ["fairness"],
    )
    return rows


def _draws(one: Drawn) -> Iterator[dict[str, Any]]:
    """A row for each measure and gap of a draw."""
    head = {"draw": one.draw, "scenario": one.scenario, "method": one.method}
    for m, measure in enumerate(MEASURES):
        for g, gap in enumerate(GAPS):
            numbers = {"value": f"{one.gap[m, g]:.5g}", "p": f"{one.p[m, g]:.3g}"}
            yield head | {"gap": gap, "measure": measure} | numbers


def fairness_over_draws(found: Sequence[Drawn], rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the gaps by race and gender of every draw, their means, and intervals over draws and samples."""
    from milp_recourse.lab.studies.figures import COLOURS, OTHERS
    from milp_recourse.reports.drawing import panels, save

    shown = ("non-white - white", "female - male")
    methods = list(dict.fromkeys(one.method for one in found))
    figure, axes = panels((11.5, 6.2), len(shown), len(MEASURES), sharex=True)
    colours = {"certified": COLOURS["certified"]} | dict(zip(methods[1:], OTHERS[1:], strict=False))
    for line, gap in zip(axes, shown, strict=True):
        g = list(GAPS).index(gap)
        for axis, (m, measure) in zip(line, enumerate(MEASURES), strict=True):
            for k, method in enumerate(methods):
                shift = 0.34 * (k - (len(methods) - 1) / 2)
                for at, scenario in enumerate(SCENARIOS):
                    mine = [d for d in found if d.method == method and d.scenario == scenario]
                    spots = np.random.default_rng(0).uniform(-0.09, 0.09, len(mine))
                    values = [one.gap[m, g] for one in mine]
                    dots = {"markersize": 2, "alpha": 0.35, "rasterized": True}  # thousands of them
                    axis.plot(at + shift + spots, values, ".", color=colours[method], **dots)
                    (row,) = (
                        r
                        for r in rows
                        if (r["method"], r["scenario"], r["gap"], r["measure"])
                        == (method, scenario, gap, measure)
                    )
                    ends = np.maximum(0.0, [[row["mean"] - row["low"]], [row["high"] - row["mean"]]])
                    axis.errorbar(
                        at + shift + 0.13,
                        row["mean"],
                        ends,
                        fmt="o",
                        capsize=2,
                        markersize=3.5,
                        color=colours[method],
                        label=method if at == 0 else None,
                    )
            axis.axhline(0, color="black", linewidth=0.8)
            axis.set(title=f"{gap}: {measure}", xticks=range(len(SCENARIOS)))
            axis.title.set_fontsize(9)
            axis.set_xticklabels([s.replace("-", "-\n") for s in SCENARIOS], fontsize=8)
    units = ("difference of shares", "difference of costs", "difference of log densities (nats)")
    for axis, unit in zip(axes.T, units, strict=True):
        for one in axis:
            one.set_ylabel(unit, fontsize=8)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    save(figure, path, path.with_suffix(".svg"))

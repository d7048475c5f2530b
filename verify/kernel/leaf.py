"""The rules that close a leaf (section 7). They may reject a leaf that is right, but accept no wrong one.

Each raises :class:`~verify.kernel.checks.Empty` where it finds that the box holds nothing, which closes it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf
from typing import Any

from verify.kernel.box import Budget, parts
from verify.kernel.checks import ZERO, Rejected, multipliers
from verify.kernel.feasible import row_form
from verify.kernel.forms import ONE, Configuration, Form, combined, constant, plus
from verify.kernel.prices import Exact
from verify.kernel.problem import Demand, Interval, Row
from verify.kernel.trees import Range, float64


@dataclass
class Region:
    """What the splits on the way to a node leave (section 6).

    Attributes
    ----------
    ends, signs, cells
        Intervals of the actions; the signs assumed for neurons; by feature, the least and the greatest
        double that splits on its value leave.
    case
        The rows of conditions that hold here, and the alternatives that are still open.
    removed
        The cells and leaves that tables of prices took out (section 7.5).
    """

    ends: list[Interval]
    case: tuple[Demand, ...]
    signs: dict[int, int] = field(default_factory=dict)
    cells: dict[str, Range] = field(default_factory=dict)
    removed: Any = frozenset()


def satisfied(box: Any, configuration: Configuration, region: Region) -> Iterator[bool]:
    """Of each row and open alternative of conditions, whether it surely holds on all of a region."""
    for one in region.case:
        yield isinstance(one, Row) and box.least(row_form(one, configuration)) >= 0


def closed(arithmetic: Exact, region: Region, target: Fraction) -> bool:
    """Whether a leaf ``["e"]`` is accepted (section 7.1)."""
    return arithmetic.configuration.costs(region.ends)[0] >= target or _nothing(arithmetic, region)


def _nothing(arithmetic: Exact, region: Region) -> bool:
    """Whether intervals alone show that a region holds nothing feasible."""
    configuration = arithmetic.configuration
    energy, values = configuration.energy, configuration.values
    box = arithmetic.box(region.ends, "", {})  # after the energy, whose logarithms it looks at
    rows = [row_form(row, configuration) for row in region.case if isinstance(row, Row)]
    if any(box.most(row) < 0 for row in [*rows, *configuration.domains(region.cells).values()]):
        return True
    if configuration.forests:
        ends = {f: box.interval(value) for f, value in values.items()}
        doubles: dict[str, Range] = {f: (float64(low), float64(high)) for f, (low, high) in ends.items()}
        for f, (least, most) in region.cells.items():
            doubles[f] = max(doubles[f][0], least), min(doubles[f][1], most)
        if any(low > high for low, high in doubles.values()) or not configuration.accepts(doubles, max):
            return True
    rest = box.least(energy.rest)
    for weight, residual in energy.squares:
        least, most = box.interval(residual)
        rest += weight * max(least, -most, ZERO) ** 2
    return rest > 0


def proven(arithmetic: Exact, region: Region, leaf: Any, target: Fraction) -> Fraction | float:
    """The lower bound that a leaf ``["d", slopes, terms, shares?, thetas?]`` proves (section 7.2).

    ``leaf`` is the list without its "d". Infinite where a neuron's interval shows that the box holds nothing.
    """
    (slopes, terms, *more), configuration = leaf, arithmetic.configuration
    shares = multipliers("shares", more[0] if more else None, len(region.ends), most=1)
    thetas = multipliers("thetas", more[1], 2 * sum(configuration.widths)) if more[1:] else []
    budget = Budget(target - configuration.fixed, list(zip(thetas[::2], thetas[1::2], strict=True)))
    read = [_term(configuration, region, one, slopes) for one in [{}, *terms]]
    box = arithmetic.box(region.ends, slopes, region.signs, budget)
    above = combined([1] * len(read), [box.above(*term) for term in read])
    moved, bound = parts(configuration, above), configuration.fixed - above.get(ONE, ZERO)
    bound -= sum(box.highest(k, moved.get(k, {}), Fraction(1), share) for k, share in enumerate(shares))
    return inf if bound < target and configuration.widths and box.empty else bound


def _term(
    configuration: Configuration, region: Region, given: dict[str, Any], slopes: str
) -> tuple[Form, str, Fraction, list[tuple[int, Fraction]]]:
    """Read a leaf's term: the arguments of :meth:`verify.kernel.box.Box.above`.

    These are the weighted sum of rows and ball, the slopes, the multiplier of the logit row, and (neuron,
    multiplier) for the sign rows.
    """
    model, energy = configuration.model, configuration.energy
    own, count = given.get("s", slopes), sum(configuration.widths)
    if len(own) != count or not set(own) <= {"0", "1"}:
        raise Rejected(f"slopes: got {own!r:.40}; allowed: {count} characters 0 or 1")
    if ("g" in given and not model.layers) or ("b" in given and not model.plausible):
        raise Rejected("got a term with g or b; allowed: g for a network, b under plausibility (section 7.2)")
    rows = [row_form(row, configuration) for row in region.case if isinstance(row, Row)]
    times = multipliers("q", given.get("q"), len(rows))
    domains = configuration.domains(region.cells) if "r" in given else {}
    own_rows = given.get("r", {}).items()
    pairs = {f: zip((1, -1), multipliers(f"r.{f}", pair, 2), strict=True) for f, pair in own_rows}
    named = {(f, side): m for f, pair in pairs.items() for side, m in pair if m}
    if unknown := named.keys() - domains.keys():
        raise Rejected(f"r.{min(unknown)[0][:40]}: allowed: 0 for an end that its domain does not have here")
    times, rows = [*times, *named.values()], [*rows, *(domains[end] for end in named)]
    if "b" in given:
        [mu], points = multipliers("b", given["b"][:1], 1), list(map(Fraction, given["b"][1:]))
        if len(points) != len(energy.squares):
            raise Rejected(f"b: got {1 + len(points)} numbers; allowed: mu and {len(energy.squares)} points")
        times += [-mu, *(-2 * mu * w * rho for (w, _), rho in zip(energy.squares, points, strict=True))]
        rows.append(energy.rest)
        rows += [plus(r, constant(-rho / 2)) for (_, r), rho in zip(energy.squares, points, strict=True)]
    own_signs = zip(region.signs.items(), multipliers("n", given.get("n"), len(region.signs)), strict=True)
    [g] = multipliers("g", [given.get("g", 0.0)], 1)
    return combined(times, rows), own, g, [(neuron, side * m) for (neuron, side), m in own_signs if m]

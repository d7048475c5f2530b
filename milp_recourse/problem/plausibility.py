r"""Plausibility: :math:`\log p(x_{cf}) \ge \log p(x) + o` under the SCM (iCARMA paper, section 3: o = 0).

The energy of a feature is :math:`-\log p_U(u_i) + \log |dx_i/du_i|`. Plausibility asks that the energies of
the counterfactual sum to no more than those of the factual, less the offset o. Terms of features whose value
and parents did not move cancel. With normal noise and identity links the residuals must lie in a ball,
:math:`\sum (u'_i/sd_i)^2 \le \sum (u_i/sd_i)^2 - 2 o`, which is decided exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

from milp_recourse.errors import Unsupported
from milp_recourse.problem.enclosure import Enclosure
from milp_recourse.problem.scm import Bernoulli, Gamma, Mechanism, Noise, Normal, StructuralCausalModel


class ZeroDensity(Exception):
    """A density is zero at a point, or its enclosure contains zero."""


def plausible_exact(
    scm: StructuralCausalModel,
    x: Mapping[str, float],
    counterfactual: Mapping[str, Enclosure],
    acted: frozenset[str],
    offset: float = 0.0,
) -> bool:
    """Whether the counterfactual's log density is proven to be at least the factual's plus the offset.

    Exact arithmetic is used only where doubles and their rounding errors leave the answer open. If even an
    enclosure is too wide to decide, the answer is no.
    """
    near = _nearly(scm, x, counterfactual, acted, offset)
    if near is not None:
        return near
    excess = excess_energy(scm, x, counterfactual, acted)
    return excess is not None and excess.upper <= -Fraction(offset)


def _nearly(
    scm: StructuralCausalModel,
    x: Mapping[str, float],
    counterfactual: Mapping[str, Enclosure],
    acted: frozenset[str],
    offset: float = 0.0,
) -> bool | None:
    r"""Whether :func:`excess_energy` is at most -offset, in float64; None if rounding leaves that open.

    With normal noise and identity links the excess energy is
    :math:`\sum ((a - e)^2 - (b - g)^2) / 2 sd^2` over the features acted on, with a and b the values after
    and before, and e and g the values of the equations. Each rounding after those in e and g changes the sum
    by at most 2^-53 of its absolute terms; the bound on the error is rounded in the same way.
    """
    roundings = _ROUNDINGS * max(1, len(acted))
    excess, size = offset, roundings * abs(offset)
    if len(acted) > _MOST_ACTED:
        return None
    try:
        after = {}
        for f, value in counterfactual.items():
            if not value.exact:
                return None
            after[f] = value.nearest
        for f in scm.features:
            m = scm.mechanisms[f]
            if f not in acted:
                if m.link.kind != "identity" and counterfactual[f] != Enclosure.of(x[f]):
                    return None
                continue
            near = scm.rounded(f)
            if near is None or m.link.kind != "identity" or not isinstance(m.noise, Normal):
                return None
            precision = 0.5 / (m.noise.sd * m.noise.sd)
            (e, error_after), (g, error_before) = near(after), near(x)
            a, b = after[f] - e, x[f] - g
            excess += precision * (a * a - b * b)
            # errors of a and b, then upper bounds of their absolute values
            error_after += roundings * (abs(after[f]) + abs(e)) + _LEAST
            error_before += roundings * (abs(x[f]) + abs(g)) + _LEAST
            a, b = abs(a) + error_after, abs(b) + error_before
            cross = a * error_after + b * error_before
            size += precision * (2.0 * cross + roundings * (a * a + b * b))
    except (OverflowError, ZeroDivisionError):
        return None
    doubt = 2.0 * size + _LEAST
    if not doubt < _MOST:
        return None
    return None if -doubt <= excess <= doubt else excess < 0.0


_MOST_ACTED = 64
_ROUNDINGS, _LEAST, _MOST = 2.0**-49, 2.0**-900, 2.0**900
"""Sixteen roundings for each of the features acted on; a bound on what underflow loses; and a limit of sums,
far below the largest double."""


def excess_energy(
    scm: StructuralCausalModel,
    x: Mapping[str, float],
    counterfactual: Mapping[str, Enclosure],
    acted: frozenset[str],
) -> Enclosure | None:
    """log p(x) - log p(x_cf), or None where the counterfactual has density zero.

    Raises
    ------
    Unsupported
        The mechanism of a feature that is acted on states no noise.
    """
    factual = {f: Enclosure.of(x[f]) for f in scm.features}
    unmoved = {f for f in scm.features if counterfactual[f] == factual[f]}
    total = Enclosure.of(0)
    for f in scm.features:
        m = scm.mechanisms[f]
        if f in unmoved and scm.parents(f) <= unmoved:
            continue
        if f not in acted and m.link.kind == "identity":
            continue  # same noise, constant Jacobian
        same_equation = scm.parents(f) <= unmoved
        try:
            total = total + _excess(m, f, factual, counterfactual, f not in acted, same_equation)
        except ZeroDensity:
            return None
    return total


def _excess(
    m: Mechanism,
    f: str,
    before: Mapping[str, Enclosure],
    after: Mapping[str, Enclosure],
    same_noise: bool,
    same_equation: bool,
) -> Enclosure:
    """How much one feature's energy grows.

    Parameters
    ----------
    same_noise
        Whether the feature is not acted on, so that its noise stays.
    same_equation
        Whether none of its parents has moved.

    Raises
    ------
    ZeroDensity
        A density is zero, or cannot be told from zero.
    """
    total, old, new = Enclosure.of(0), before[f], after[f]
    if m.link.kind == "sigmoid":
        old, new = ((v - Enclosure.of(m.link.offset)) / m.link.scale for v in (old, new))
        if old != new:
            shares = [_log(share) + _log(Enclosure.of(1) - share) for share in (old, new)]
            total = shares[1] - shares[0]
    if same_noise:
        return total
    equation = m.equation.enclose(before)
    equations = equation, equation if same_equation else m.equation.enclose(after)
    if old == new and equations[0] == equations[1] and equations[0].exact:
        return total  # the same noise
    if m.link.kind == "sigmoid":
        old, new = (_log(share) - _log(Enclosure.of(1) - share) for share in (old, new))
    return total + _noise_excess(m.noise, old - equations[0], new - equations[1])


def _noise_excess(noise: Noise | None, before: Enclosure, after: Enclosure) -> Enclosure:
    """log p_U(before) - log p_U(after)."""
    if isinstance(noise, Bernoulli) and noise.p == 0.5:
        for u in (before, after):
            _chance(noise, u)  # both outcomes have probability 1/2; anything else raises
        return Enclosure.of(0)
    if isinstance(noise, Normal):
        return (after.square() - before.square()) * _half_precision(noise.sd)
    return _noise_energy(noise, after) - _noise_energy(noise, before)


def _noise_energy(noise: Noise | None, u: Enclosure) -> Enclosure:
    """-log p_U(u) up to a constant, for noise that is not normal."""
    if isinstance(noise, Gamma):
        return u / noise.scale - Enclosure.of(Fraction(noise.shape) - 1) * _log(u)
    if isinstance(noise, Bernoulli):
        return -_log(Enclosure.of(_chance(noise, u)))
    stated = "mixture noise" if noise else "no noise"
    raise Unsupported(f"plausibility: the mechanism of a feature that is acted on states {stated}")


@lru_cache(maxsize=1024)
def _half_precision(sd: float) -> Enclosure:
    """1 / (2 sd^2), kept because it is the same for every applicant."""
    return Enclosure.of(1 / (2 * Fraction(sd) ** 2))


def _chance(noise: Bernoulli, u: Enclosure) -> Fraction:
    if u.exact and u.lower in (0, 1):
        return Fraction(noise.p) if u.lower == 1 else 1 - Fraction(noise.p)
    raise ZeroDensity("Bernoulli noise is 0 or 1")


def _log(u: Enclosure) -> Enclosure:
    """log u; raises :class:`ZeroDensity` if u may be 0 or less, outside the support of a density."""
    if u.lower <= 0:
        raise ZeroDensity(f"a density's argument may be {float(u.lower)!r}")
    return u.log()

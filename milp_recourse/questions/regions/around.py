"""Around an action, the box in which everything is accepted, with a certificate."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from milp_recourse.certificates import encode, instance_digest
from milp_recourse.errors import BadInput, Unsupported
from milp_recourse.formats.schema_answers import RegionsModel
from milp_recourse.formats.stated import document
from milp_recourse.judge import judge
from milp_recourse.problem.asked_model import AskedModel
from milp_recourse.problem.enclosure import round_up
from milp_recourse.problem.features import Feature
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.options import Clock
from milp_recourse.questions.regions.growing import RESOLUTION, Box, Growing, Growth, Point, Side, point_box
from milp_recourse.questions.robust.certify import none_refused
from milp_recourse.questions.robust.outcomes import to_refuse
from milp_recourse.questions.solve import as_instance, check_options, solve

CERTIFICATE_FORMAT = "milp-recourse/region-certificate-1"
EXACT = "in exact arithmetic, for there is no margin; of the network as deployed only corners were asked"


@dataclass(frozen=True)
class Region:
    """A box around an action: every value in it that an action may set is accepted, effects included.

    Attributes
    ----------
    action
        Feature -> value, labels by their numbers; empty if nothing is acted on, and then so is the box.
    growth
        The box, and what holds its sides. Without a proof it is the action alone.
    proven
        Whether there is a proof, and ``evidence`` is its certificate, gzipped.
    message
        Why it is not proven, or why some side is not known to be held.
    """

    instance: Instance = field(repr=False)
    action: Mapping[str, float]
    growth: Growth
    proven: bool
    evidence: bytes | None = field(default=None, repr=False)
    message: str | None = None
    seconds: float = 0.0

    @property
    def box(self) -> Box:
        """The box."""
        return self.growth.box

    def alone(self, message: str) -> Region:
        """The action alone, without a proof, with the reason."""
        own = point_box(self.instance, self.action)
        return replace(self, growth=Growth(own), proven=False, evidence=None, message=message)

    def held_by(self, side: Side) -> str | None:
        """What holds a side: ``refused``, the name of the limit that it has reached, or None if that is not
        known."""
        name, end = side
        at, up = self.box.ends[name][end == "high"], end == "high"
        if at == self.instance.levers[name][up]:
            return _limit(self.instance, name, up)
        return "refused" if self.growth.held.get(side) is not None else None

    def lines(self) -> list[str]:
        """The box in words, a line per lever; then the message."""
        said = [EXACT] if self.proven and self.action and _rounds(self.instance) else []
        for name, ends in boxed(self.instance, self.box).items():
            if "labels" in ends:
                said.append(f"{name}: {' or '.join(ends['labels'])}")
                continue
            low, high = (self.held_by((name, end)) or "not known" for end in ("low", "high"))
            said.append(f"{name}: {ends['low']!r} ({low}) to {ends['high']!r} ({high})")
        return [*(said or ["accepted without any action"]), *([self.message] if self.message else [])]

    def to_dict(self) -> dict[str, Any]:
        """As a ``regions-1`` document."""
        return document(
            RegionsModel,
            self,
            action=shown(self.instance, self.action),
            box=boxed(self.instance, self.box),
            held={f.name: self._held(f) for f in self.instance.features if f.name in self.action},
            resolution=list(RESOLUTION),
            certificate=None,
        )

    def _held(self, feature: Feature) -> dict[str, Any]:
        """What holds the sides of a lever, or keeps labels out."""
        name = feature.name
        if name in self.box.labels:
            kept_out = {label: point for (f, label), point in self.growth.refused.items() if f == name}
            return {str(feature.show(k)): self._holding("refused", point) for k, point in kept_out.items()}
        return {
            end: self._holding(self.held_by((name, end)), self.growth.held.get((name, end)))
            for end in ("low", "high")
        }

    def _holding(self, by: str | None, point: Point | None) -> dict[str, Any]:
        refused = by == "refused" and point is not None
        return {"by": by} | ({"refused": shown(self.instance, point or {})} if refused else {})


def region(
    problem: Instance | Mapping[str, Any] | str | Path,
    action: Mapping[str, float] | None = None,
    backend: str | None = None,
    time_limit: float | None = None,
    index: int | None = None,
) -> Region:
    """The box around an action in which everything is accepted, proven, and maximal side by side.

    For every action on the same features with values in the box that may be set (bounds, ranges, domains of
    what is acted on, directions, steps) the classifier accepts what follows. No side can be moved out alone
    by more than :data:`~milp_recourse.questions.regions.growing.RESOLUTION` says, unless a refused point gets
    in or it is at its limit. Conditions, plausibility and domains of what is not acted on are not looked at:
    the classifier accepts the whole box whether or not they hold.

    Parameters
    ----------
    problem, backend, index
        As for :func:`milp_recourse.solve`.
    action
        Feature -> number (labels by index), feasible; None: the cheapest action.
    time_limit
        Seconds, at most half of them for moving sides; None for no limit.

    Raises
    ------
    BadInput
        The action is not feasible, or there is none.
    Unsupported
        The model can only be asked, not read; or the back end cannot solve the problem.
    """
    check_options(time_limit)
    instance, start, clock = as_instance(problem), time.perf_counter(), Clock.start(time_limit)
    if isinstance(instance.classifier, AskedModel):
        raise Unsupported("regions: the model can only be asked; it has to be read to prove what it accepts")
    if action is None:
        result = solve(instance, backend, time_limit)
        if result.action is None:
            raise BadInput("action", f"none: {result.status.value}", "a problem that has one")
        action = instance.numbers(result.action)
    judgement = judge(instance, action)
    if judgement.faults:
        raise BadInput("action", judgement.faults[0], "a feasible action")
    if not action:
        return Region(instance, {}, Growth(Box()), True)
    half = None if time_limit is None else time_limit / 2
    growing = Growing(instance, action, backend, Clock.start(half))
    growth = growing.run()
    found = _proof(growing, clock)
    certificate = {
        "format": CERTIFICATE_FORMAT,
        "instance_sha256": instance_digest(instance),
        **({} if index is None else {"index": index}),
        "action": shown(instance, growing.action),
        "cost": round_up(judgement.cost),
        "box": listed(instance, growth.box),
        **(found or {}),
    }
    seconds = time.perf_counter() - start
    stopped = None in (*growth.held.values(), *growth.refused.values())
    message = (
        "the search stopped before everything around the box was known to be refused" if stopped else None
    )
    grown = Region(instance, growing.action, growth, True, encode(certificate), message, seconds)
    if found:
        return grown
    help_ = ": set a margin, without which rounding can refuse corners" if _rounds(instance) else ""
    return grown.alone(f"no proof was found that nothing around the action is refused{help_}")


def _rounds(instance: Instance) -> bool:
    """Whether a network as deployed may refuse what it accepts in exact arithmetic, for want of a margin."""
    return isinstance(instance.classifier, ReluNetwork) and not instance.accept.margin


def _proof(growing: Growing, clock: Clock) -> dict[str, Any] | None:
    """The proof that nothing in the box is refused, perhaps with its sides drawn in a little; or None.

    Without a margin a network's corners have to be accepted as deployed, too."""
    instance, box = growing.instance, growing.growth.box
    for smaller in (box, _drawn_in(growing, box)):
        corners = smaller.corners() if _rounds(instance) else ()
        if not all(judge(instance, corner).accepted_deployed for corner in corners):
            continue
        refusing = to_refuse(instance, growing.action, smaller.levers(instance), {})
        refusing = replace(refusing, classifier=growing.problem.classifier)  # what is known of it is kept
        found = none_refused(refusing, False, clock)
        if found is not None:
            growing.growth.box = smaller
            growing.hold()
            return found
    return None


def _drawn_in(growing: Growing, box: Box) -> Box:
    """The box with each continuous side that is held by a refused point a little nearer to the action."""
    for side in growing.sides():
        a, at = growing.action[side[0]], growing.at(side)
        if growing.instance.by_name[side[0]].lattice is None and not growing.at_limit(side):
            by = 0.75 * growing.tolerance(side[0], at)
            box = box.moved(side, max(at - by, a) if at > a else min(at + by, a))
    return box


def shown(instance: Instance, point: Mapping[str, float]) -> dict[str, Any]:
    """Values by feature as files have them."""
    return {name: instance.by_name[name].show(value) for name, value in point.items()}


def boxed(instance: Instance, box: Box) -> dict[str, Any]:
    """A box as files have it: by feature its lowest and highest value, or its labels."""
    found: dict[str, Any] = {}
    for f in instance.features:
        if f.name in box.labels:
            found[f.name] = {"labels": [f.show(k) for k in box.labels[f.name]]}
        elif f.name in box.ends:
            found[f.name] = dict(zip(("low", "high"), map(f.show, box.ends[f.name]), strict=True))
    return found


def listed(instance: Instance, box: Box) -> dict[str, Any]:
    """A box as certificates have it: by feature its labels, or its lowest and highest value."""
    return {
        name: ends["labels"] if "labels" in ends else [ends["low"], ends["high"]]
        for name, ends in boxed(instance, box).items()
    }


def _limit(instance: Instance, name: str, up: bool) -> str:
    """The name of the limit that a lever's interval ends at: the first of those that are narrowest."""
    f, x = instance.by_name[name], instance.factual[name]
    ends = {"bounds": f.action_bounds, "range": instance.preferences.ranges.get(name), "domain": f.domain}
    known = {word: pair[up] for word, pair in ends.items() if pair is not None}
    if f.monotone == ("decrease" if up else "increase") and not math.isnan(x):
        known["monotone"] = x
    return (min if up else max)(known, key=lambda word: known[word])

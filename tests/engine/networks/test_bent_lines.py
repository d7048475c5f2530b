"""Lines with kinks where levers rest are above their ReLUs wherever the node's budget reaches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.helpers.processes import uncompiled


def check(seeds: int) -> None:
    """At points of the node's box that its budget pays for, half of them with nothing left of it. Run where
    nothing is compiled."""
    from milp_recourse.engine.networks import bent_lines, node, propose
    from milp_recourse.engine.networks.linear_bounds import logit_at
    from milp_recourse.engine.networks.problem_arrays import why_not
    from tests.helpers.generators import Style, random_instance

    rng, bend, tried, tight = np.random.default_rng(0), node.bend, 0, 0

    def watched(p, w, k, j):
        nonlocal tried, tight
        bend(p, w, k, j)
        unit, d = w.unit, len(p.lever)
        for trial in range(8 if unit.bent[k, j] else 0):
            corner = np.array([bent_lines._corner(w.box, i) for i in range(d)])
            idle = np.array([w.box[i].mode == 2.0 for i in range(d)])
            away = rng.uniform(w.box["lo"], w.box["hi"]) * (rng.random(d) < 0.6)
            u = np.where(idle, 0.0, np.clip(away, np.minimum(w.box["lo"], 0.0), np.maximum(w.box["hi"], 0.0)))
            acted = (w.box["mode"] == 1.0) & ~idle
            u = np.where(acted, np.clip(u, w.box["lo"], w.box["hi"]), u)
            size = np.where(u > 0.0, u, -p.lever["down"] * u) - np.where(
                corner > 0.0, corner, -p.lever["down"] * corner
            )
            price, part = float(p.lever["linear"] @ size), rng.random() if trial % 2 else 1.0
            u = corner + (u - corner) * min(part, w.now.spare / price if price > 0.0 else 0.0)
            u *= trial > 0 or not np.all(corner == 0.0)
            logit_at(p, w, u)
            z, low, high, margin = unit.z, unit.low[:k], unit.high[:k], 1e-12 * unit.size[k, j]
            if np.all((z[:k] >= low - margin) & (z[:k] <= high + margin) | (p.widths[:k] == 0)[:, None]):
                line = unit.base[k, j] + unit.upper[k, j] @ np.append(u, abs(u))
                tried += 1
                tight += line <= max(z[k, j], 0.0) + margin
                assert line >= max(z[k, j], 0.0) - margin

    node.bend = watched
    style = Style(causes=False, discrete=False, levers=4, depth=3, plausible=0.0)
    for seed in range(seeds):
        instance = random_instance(seed, style)
        if why_not(instance) is None and instance.levers:
            cost = replace(instance.cost, l2_squared=0.0, l1=1.0, linf=0.0, l0=0.0, kind="mixture")
            propose.Run(replace(instance, cost=cost)).examine(12)
    assert tight > 100 and tried > 1000, (tight, tried)


def test_bent_lines_are_above_their_units() -> None:
    """In the nodes of short searches, of random networks with up to three layers."""
    uncompiled("from tests.engine.networks.test_bent_lines import check; check(60)")

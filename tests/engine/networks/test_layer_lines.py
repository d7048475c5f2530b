"""Lines that are put together at once are those of one after the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.helpers.processes import uncompiled


def check(seeds: int) -> None:
    """At the nodes of short searches, with bent lines and with causal units, four units at a time. Run where
    nothing is compiled."""
    from milp_recourse.engine.networks import layer_lines, node, propose, rows
    from milp_recourse.engine.networks.problem_arrays import why_not
    from tests.helpers.generators import Style, random_instance

    at_once, seen = rows.argument_line, {"line": 0, "later": 0, "bent": 0, "causes": 0}

    def watched(p, w, k, i, side, ahead):
        if k > 1:
            alone, size = rows.unit_line(p, w, k, i, side), 1e-12 * w.unit.size[k, i]
            line = w.columns.line.copy()
            const = at_once(p, w, k, i, side, ahead)
            assert abs(const - alone) <= size
            far = np.abs(np.append(w.box["lo"], w.box["hi"])).max()
            assert (np.abs(line - w.columns.line) * far <= size * max(1.0, far)).all()
            bent = w.unit.bent[1:k].any()
            for name, also in {"line": True, "later": k > 2, "bent": bent, "causes": p.widths[0] > 0}.items():
                seen[name] += bool(also)
            return const
        return at_once(p, w, k, i, side, ahead)

    rows.argument_line, node.AHEAD, layer_lines.AHEAD = watched, 8, 8
    for seed in range(seeds):
        style = Style(causes=bool(seed % 2), discrete=False, levers=4, depth=3, plausible=0.0)
        instance = random_instance(seed, style)
        if why_not(instance) is None and instance.levers:
            cost = replace(instance.cost, l2_squared=0.0, l1=1.0, linf=0.0, l0=0.0, kind="mixture")
            propose.Run(replace(instance, cost=cost)).examine(12)
    assert min(seen.values()) > 100, seen


def test_at_once_or_one_by_one() -> None:
    """Of random networks with up to three layers."""
    uncompiled("from tests.engine.networks.test_layer_lines import check; check(60)")

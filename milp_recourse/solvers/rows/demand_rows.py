r"""Rows and 0/1 columns for what conditions ask: alternatives, and which features are acted on.

An alternative gets a column :math:`z`, and what it demands holds where :math:`z = 1`: a row
:math:`\sum_i c_i x'_i - b \ge 0` whose left side is at least :math:`l` by derived bounds becomes
:math:`\sum_i c_i x'_i - b \ge \min(l, 0) (1 - z)`, which says nothing where z = 0. "Any
of" is :math:`\sum_j z_j \ge z`; counts are sums of the features' own 0/1 columns (Williams, Model Building in
Mathematical Programming, section 9.2).
"""

from __future__ import annotations

from collections.abc import Mapping

from milp_recourse.problem.conditions import AllOf, AnyOf, Counted, Demand, Row, Switched
from milp_recourse.solvers.rows.mixed_integer import Form, MixedInteger, combine


def demand_rows(
    model: MixedInteger,
    demand: Demand,
    forms: Mapping[Row, tuple[Form, float]],
    guard: int | None = None,
    name: str = "condition",
) -> None:
    """Add what a demand asks where the column ``guard`` is 1; everywhere without one.

    Parameters
    ----------
    forms
        sum c x' - b of every row over columns, and a lower bound of it.
    """
    one: Form = ({}, 1.0) if guard is None else ({guard: 1.0}, 0.0)
    off = combine((({}, 1.0), 1.0), (one, -1.0))  # 1 - guard
    match demand:
        case AllOf(parts):
            for k, part in enumerate(parts):
                demand_rows(model, part, forms, guard, f"{name}_{k}")
        case AnyOf(parts):
            chosen = [model.column(f"{name}_{k}_chosen", 0.0, 1.0, integer=True) for k in range(len(parts))]
            some: Form = (dict.fromkeys(chosen, 1.0), 0.0)
            model.row(f"{name}_some", combine((some, 1.0), (one, -1.0)), lower=0.0)
            for k, part in enumerate(parts):
                demand_rows(model, part, forms, chosen[k], f"{name}_{k}")
        case Row():
            form, low = forms[demand]
            model.row(name, combine((form, 1.0), (off, -min(low, 0.0))), lower=0.0)
        case Switched(feature, acted):
            flag: Form = ({model.flags[feature]: 1.0}, 0.0) if feature in model.flags else ({}, 0.0)
            wanted = flag if acted else combine((({}, 1.0), 1.0), (flag, -1.0))
            model.row(name, combine((wanted, 1.0), (one, -1.0)), lower=0.0)
        case Counted(low_count, high_count):
            acting: Form = (dict.fromkeys(model.flags.values(), 1.0), 0.0)
            if low_count:
                model.row(f"{name}_least", combine((acting, 1.0), (one, -float(low_count))), lower=0.0)
            if high_count is not None and high_count < len(model.flags):
                room = combine((acting, -1.0), (off, float(len(model.flags) - high_count)))
                model.row(f"{name}_most", room, lower=-float(high_count))

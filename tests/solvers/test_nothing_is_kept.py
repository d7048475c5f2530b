"""What applicants of one model share is kept as long as the model, and no longer."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import pytest

from milp_recourse.formats import instance_from_dict
from milp_recourse.problem.instance import Instance
from milp_recourse.questions.robust import robust
from milp_recourse.questions.solve import solve
from tests.conditions.test_missing_beside_conditions import _problem
from tests.helpers.generators import random_instance
from tests.helpers.tree_samples import random_tree_instance


@pytest.mark.parametrize(
    ("make", "ask"),
    [
        (lambda: random_instance(3), lambda one: solve(one, certificates=True)),
        (lambda: random_instance(3), lambda one: robust(one, dict.fromkeys(list(one.levers)[:1], 0.01))),
        (lambda: random_tree_instance.__wrapped__(4), lambda one: solve(one, certificates=True)),
        (lambda: instance_from_dict(_problem(5)), solve),
    ],
    ids=["network", "outcomes", "trees", "missing values"],
)
def test_a_model_is_let_go_of(make: Callable[[], Instance], ask: Callable[[Instance], object]) -> None:
    """Once nobody has it any more, with its texts, nodes, copies and limits."""
    instance = make()
    ask(instance)
    model, causes = weakref.ref(instance.classifier), weakref.ref(instance.scm)
    del instance
    gc.collect()
    assert model() is None and causes() is None

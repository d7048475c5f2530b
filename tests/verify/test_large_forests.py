"""Large forests: the clock is looked at while classes are worked out; the producer counts what files hold."""

from __future__ import annotations

import numpy as np
import pytest

from milp_recourse.certificates import limits
from milp_recourse.formats.write import write_instance
from tests.helpers.tree_samples import random_tree_instance, with_missing
from verify.files import reading
from verify.files.cells import Priced
from verify.files.check import within
from verify.files.instance import Source
from verify.kernel.checks import Rejected
from verify.kernel.forms import Configuration


def test_time_is_limited_while_classes_are_worked_out(tmp_path):
    """A box of all cells has a class per tree, action and cell: minutes in a forest of deep trees."""
    instance = random_tree_instance(0, trees=3, depth=4)
    file = tmp_path / "instance.json"
    write_instance(instance, file)
    problem = Source(file).applicant(None).problem
    listed = Priced([], "here", Configuration(problem, list(problem.levers)))
    assert any(listed.looked)
    with within(-1.0), pytest.raises(Rejected, match="time"):
        assert listed.classes


@pytest.mark.parametrize("missing", [False, True])
def test_an_instance_that_the_producer_takes_can_be_read(missing, tmp_path, monkeypatch):
    """A forest that just fits, also where each node says where missing values go."""
    instance = random_tree_instance(5, trees=8, depth=11)
    if missing:
        instance = with_missing(5, instance)
        assert all(tree.missing_left is not None for tree in instance.classifier.trees)
    nodes = int(np.sum([len(tree.value) for tree in instance.classifier.trees]))
    assert nodes > 500
    for most in range(nodes // 2, 2 * nodes):
        monkeypatch.setattr(limits, "MOST_ROOM", most)
        if limits._too_wide.__wrapped__(instance.classifier) is None:  # what it says is kept with a model
            break
    assert limits._too_wide(instance.classifier) is None and most > nodes // 2
    rest = 200 // limits.INSTANCE  # the features and what else the instance says
    monkeypatch.setattr(reading, "MOST_ROOM", most + rest)
    file = tmp_path / "instance.json"
    write_instance(instance, file)
    Source(file)

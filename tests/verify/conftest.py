"""The checker's view of a random problem."""

from __future__ import annotations

import json
import random

import pytest

from tests.helpers.random_problems import random_instance
from verify.files.instance import Source
from verify.kernel.problem import Problem


@pytest.fixture
def problem_of(tmp_path):
    """From a seed to the file's content and the checker's problem."""

    def make(seed: int) -> tuple[dict, Problem]:
        data = random_instance(random.Random(seed))
        (tmp_path / "instance.json").write_text(json.dumps(data))
        return data, Source(tmp_path / "instance.json").applicant(None).problem

    return make

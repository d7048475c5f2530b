"""What the studio's tests share: a visitor of a server with a few people."""

from __future__ import annotations

import pytest

from tests.studio.samples import visited


@pytest.fixture(scope="module")
def client():
    with visited() as found:
        yield found

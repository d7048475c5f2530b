"""Two of the files made to exhaust the checker; ``python -m tests.certificates.hostile`` runs all."""

from __future__ import annotations

import pytest

from tests.certificates.hostile import MOST_MEGABYTES, measured, written


@pytest.mark.parametrize("name", ["signs", "priced"])
def test_a_hostile_file_takes_little_room(name, tmp_path):
    """Splits below each other, and a tree as deep as fits: refused, within the memory that is stated."""
    certificate, instance = written(name, tmp_path)
    assert certificate.stat().st_size < 1.1 * 2**20 and instance.stat().st_size < 2**20
    line, _, megabytes = measured((certificate, instance))
    assert line.startswith("REJECTED")
    assert megabytes < MOST_MEGABYTES

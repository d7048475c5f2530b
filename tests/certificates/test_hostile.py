"""Two of the files made to exhaust the checker; ``python -m tests.certificates.hostile`` runs all."""

from __future__ import annotations

import pytest

from tests.certificates.hostile import HOSTILE, MOST_MEGABYTES, measured, written


@pytest.mark.parametrize("name", ["signs", "priced"])
def test_a_hostile_file_takes_little_room(name, tmp_path):
    """Splits below each other, and a tree as deep as fits: refused, within the memory that is stated."""
    line, _, megabytes = measured(written(name, tmp_path))
    assert line.startswith("REJECTED")
    assert megabytes < MOST_MEGABYTES


def test_every_hostile_file_is_within_a_megabyte(tmp_path):
    """Their limit is the one that is stated."""
    for name in HOSTILE:
        certificate, instance = written(name, tmp_path)
        assert certificate.stat().st_size < 1.1 * 2**20 and instance.stat().st_size < 2**20, name

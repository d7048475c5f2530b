"""Certificates that the fast path once judged otherwise than the kernel, in doubles: an adversary's."""

from __future__ import annotations

from pathlib import Path

import pytest

from verify.files.check import examine

FOUND = Path(__file__).with_name("doubles")
NAMES = sorted(path.name.removesuffix("_certificate.json") for path in FOUND.glob("*_certificate.json"))
TRUE = {"h_zero_division"}
"""Rejected once, and true; all others were verified. They claim more than is true, but for ``i_fast_only``,
which its own leaves do not prove."""


@pytest.mark.parametrize("slow", [False, True], ids=["fast", "kernel"])
@pytest.mark.parametrize("name", NAMES)
def test_the_fast_path_says_what_the_kernel_says(name: str, slow: bool) -> None:
    """Numbers whose products overflow or are lost, sizes that left a line out, bounds that settle nothing."""
    certificate, instance = (FOUND / f"{name}_{kind}.json" for kind in ("certificate", "instance"))
    line = examine(certificate, instance, 60.0, slow=slow).line
    assert line.startswith("VERIFIED" if name in TRUE else "REJECTED: configurations.0.tree"), line

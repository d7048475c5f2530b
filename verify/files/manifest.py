"""The manifest of an auditor's file: which files belong to it, and the SHA-256 of each."""

from __future__ import annotations

import hashlib
from pathlib import Path

from verify.files.reading import parse_json, read_raw
from verify.files.shapes import conform
from verify.kernel.checks import Rejected

MANIFEST = "manifest.json"
LARGE = 32
"""How many times as large as a certificate a listed file may be."""


def compared(folder: Path) -> str:
    """One line about a folder whose files are those of its manifest; raise :class:`Rejected` if they are
    not."""
    raw = read_raw(folder / MANIFEST)
    data = parse_json(raw, MANIFEST)
    conform(data, {"format": {"milp-recourse/audit-1"}, "date": str, "files": {str: str}}, MANIFEST)
    there = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir() or p.is_symlink()}
    for name in sorted(there - {MANIFEST} ^ data["files"].keys()):
        where = "not in the manifest" if name in there else "in the manifest, but not there"
        raise Rejected(f"{name:.80}: {where}")
    for name, stated in data["files"].items():
        if hashlib.sha256(read_raw(folder / name, LARGE)).hexdigest() != stated:
            raise Rejected(f"{name:.80}: not the file that the manifest names: another SHA-256")
    own = hashlib.sha256(raw).hexdigest()
    return f"{MANIFEST}: of {data['date']:.20}; its {len(there) - 1} files are as it says; its SHA-256 {own}"

"""Changes to an auditor's file, of which every one has to be found."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

Edit = Callable[[list[list[str]]], None]


def restated(folder: Path) -> None:
    """Make the manifest agree with the files again, as whoever hides a change would."""
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    there = sorted(p for p in folder.rglob("*") if p.is_file() and p != file)
    manifest["files"] = {
        p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in there
    }
    file.write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")


def table(folder: Path, name: str, edit: Edit) -> None:
    """Edit the rows of a CSV file."""
    file = folder / name
    rows = list(csv.reader(io.StringIO(file.read_text(encoding="utf-8"), newline="")))
    edit(rows)
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    file.write_text(buffer.getvalue(), encoding="utf-8")


def document(folder: Path, name: str, edit: Callable[[dict], object]) -> None:
    """Edit a JSON file."""
    file = folder / name
    value = json.loads(file.read_text(encoding="utf-8"))
    edit(value)
    file.write_text(json.dumps(value), encoding="utf-8")


def certificates(folder: Path) -> dict[str, bytes]:
    """Every certificate by name, from files and archives, which are removed."""
    found = {}
    for path in sorted((folder / "certificates").iterdir()):
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                found |= {name: archive.read(name) for name in archive.namelist()}
        else:
            found[path.name] = path.read_bytes()
        path.unlink()
    return found


def loose(folder: Path, found: dict[str, bytes]) -> None:
    """Write certificates as files."""
    for name, content in found.items():
        (folder / "certificates" / name).write_bytes(content)


def value(folder: Path) -> None:
    """A person's own value, the hash left as it was."""
    document(folder, "population.json", lambda d: d["factuals"][0].update(_other(d["factuals"][0])))


def value_restated(folder: Path) -> None:
    """The same, the hash made right."""
    value(folder)
    restated(folder)


def _other(person: dict) -> dict:
    name = next(n for n, v in person.items() if isinstance(v, int | float) and v > 1)
    return {name: person[name] + 1}


def a_hash(folder: Path) -> None:
    document(folder, "manifest.json", lambda d: d["files"].update({"people.csv": "0" * 64}))


def truncated(folder: Path) -> None:
    file = folder / "people.csv"
    file.write_bytes(file.read_bytes()[:-40])


def added_file(folder: Path) -> None:
    (folder / "note.txt").write_text("approved")


def lost_file(folder: Path) -> None:
    (folder / "groups.csv").unlink()
    restated(folder)


def counted(folder: Path) -> None:
    """Make results.json agree with the rows."""
    from statistics import fmean, median

    rows = list(csv.DictReader(io.StringIO((folder / "results.csv").read_text(), newline="")))
    costs = [float(row["cost"]) for row in rows if row["cost"]]
    counts = {s: sum(row["status"] == s for row in rows) for s in {row["status"] for row in rows}}
    about = {
        "applicants": len(rows),
        "counts": counts,
        "cost_mean": fmean(costs),
        "cost_median": median(costs),
    }
    document(folder, "results.json", lambda d: d.update(about))
    restated(folder)


def missing_person(folder: Path) -> None:
    """The last person's row, and certificate, everything else made right."""
    table(folder, "results.csv", lambda rows: rows.pop())
    found = certificates(folder)
    loose(folder, dict(sorted(found.items(), key=lambda item: int(item[0].split(".")[0]))[:-1]))
    counted(folder)


def added_person(folder: Path) -> None:
    def again(rows: list[list[str]]) -> None:
        rows.append([str(len(rows) - 1), *rows[-1][1:]])

    table(folder, "results.csv", again)
    counted(folder)


def swapped(folder: Path) -> None:
    """Two people's certificates, their index exchanged too."""
    found = certificates(folder)
    one, two = sorted(found, key=lambda name: int(name.split(".")[0]))[:2]
    for mine, other in ((one, two), (two, one)):
        inside = json.loads(gzip.decompress(found[other])) | {"index": int(mine.split(".")[0])}
        (folder / "certificates" / mine).write_bytes(gzip.compress(json.dumps(inside).encode(), mtime=0))
    loose(folder, {name: content for name, content in found.items() if name not in (one, two)})
    restated(folder)


def version(folder: Path) -> None:
    document(folder, "about.json", lambda d: d["versions"].update({"milp-recourse": "9.9"}))
    restated(folder)


def _halved(column: str) -> Edit:
    def edit(rows: list[list[str]]) -> None:
        k, gap = rows[0].index(column), rows[0].index("gap") if "gap" in rows[0] else None
        row = next(r for r in rows[1:] if r[k] and float(r[k]) > 0)
        row[k] = repr(float(row[k]) / 2)
        if gap is not None:
            row[gap] = repr(max(0.0, float(row[k]) - float(row[rows[0].index("lower_bound")])))

    return edit


def cost(folder: Path) -> None:
    """In the answers, with gap, sums and hashes made right."""
    table(folder, "results.csv", _halved("cost"))
    counted(folder)


def cost_said(folder: Path) -> None:
    """In the table for people, its hash made right."""
    table(folder, "people.csv", _halved("cost"))
    restated(folder)


def reason(folder: Path) -> None:
    table(folder, "reasons.csv", _halved("cost"))
    restated(folder)


def sheet(folder: Path) -> None:
    """A cell of the spreadsheet."""
    from openpyxl import load_workbook

    book = load_workbook(folder / "audit.xlsx")
    book["people"]["C2"] = "accepted already"
    book.save(folder / "audit.xlsx")
    restated(folder)


def source(folder: Path) -> None:
    """Who made an assumption, in the table."""
    table(folder, "assumptions.csv", lambda rows: rows[1].__setitem__(3, "decided by the board"))
    restated(folder)


CHANGES = (
    *(value, value_restated, a_hash, truncated, added_file, lost_file, missing_person, added_person),
    *(swapped, version, cost, cost_said, reason, sheet, source),
)

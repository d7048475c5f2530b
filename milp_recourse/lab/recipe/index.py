"""instances/index.csv: every shipped file, with checksum, known answer, and who found and confirmed that."""

from __future__ import annotations

import csv
from pathlib import Path

from milp_recourse.formats import instance_from_dict
from milp_recourse.formats.instances_path import is_instance
from milp_recourse.formats.strict_json import read_json
from milp_recourse.lab.recipe.files import sha256
from milp_recourse.problem.forest import TreeEnsemble
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork

COLUMNS = (
    "file",
    "sha256",
    "features",
    "actionable",
    "weights",
    "plausible",
    "classifier",
    "status",
    "cost",
    "lower_bound",
    "found_by",
    "confirmed_by",
    "seconds",
)
BY_HAND = "by hand"

Row = dict[str, str]


def read_index(folder: Path) -> dict[str, Row]:
    """Rows of FOLDER/index.csv by file; {} where there is none."""
    path = folder / "index.csv"
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {row["file"]: row for row in csv.DictReader(file)}


def write_index(folder: Path, rows: dict[str, Row]) -> None:
    """Write FOLDER/index.csv, sorted by file."""
    with (folder / "index.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[name] for name in sorted(rows))


def refreshed(folder: Path, rows: dict[str, Row]) -> dict[str, Row]:
    """The index of the .json, .csv and .gz files that are in ``folder`` now.

    ``found_by``, ``confirmed_by`` and ``seconds`` are taken from ``rows`` if the answer there is the one in
    the file. Any other answer in a file counts as found by hand.
    """
    fresh: dict[str, Row] = {}
    for path in _listed(folder):
        name = path.relative_to(folder).as_posix()
        row = {"file": name, "sha256": sha256(path)}
        content = read_json(path) if path.suffix == ".json" else None
        if is_instance(content):
            row |= describe(instance_from_dict(content, path.parent))
            old = rows.get(name, {})
            if row["status"] and all(old.get(k) == row[k] for k in ("status", "cost", "lower_bound")):
                row |= {k: old[k] for k in ("found_by", "confirmed_by", "seconds")}
            elif row["status"]:
                row["found_by"] = BY_HAND
        fresh[name] = row
    return fresh


def describe(instance: Instance) -> Row:
    """The columns of the index that follow from an instance."""
    weights, reference, classifier = instance.weights.values(), instance.reference, instance.classifier
    if isinstance(classifier, ReluNetwork):
        sizes = [classifier.inputs, *(len(b) for b in classifier.biases)]
        kind = f"relu-network {'-'.join(map(str, sizes))} {classifier.dtype}"
    else:
        assert isinstance(classifier, TreeEnsemble)
        kind = f"tree-ensemble {len(classifier.trees)}"
    return {
        "features": str(len(instance.features)),
        "actionable": str(len(instance.preferences.actionable)),
        "weights": "constant" if set(weights) <= {1.0} else "individual",
        "plausible": "yes" if instance.plausible else "no",
        "classifier": kind,
        "status": reference.status if reference else "",
        "cost": _number(reference.cost if reference else None),
        "lower_bound": _number(reference.lower_bound if reference else None),
    }


def checksum_faults(folder: Path) -> list[str]:
    """One sentence per file that is changed, missing or not listed; empty when all is well."""
    listed = read_index(folder)
    present = {path.relative_to(folder).as_posix(): path for path in _listed(folder)}
    faults = [f"{name}: listed but missing" for name in listed if name not in present]
    for name, path in present.items():
        if name not in listed:
            faults.append(f"{name}: not listed in index.csv")
        elif (actual := sha256(path)) != listed[name]["sha256"]:
            faults.append(f"{name}: sha256 is {actual}, index.csv says {listed[name]['sha256']}")
    return faults


def _listed(folder: Path) -> list[Path]:
    files = [p for p in folder.rglob("*") if p.suffix in {".json", ".csv", ".gz"} and p.name != "index.csv"]
    return sorted(files)


def _number(value: float | None) -> str:
    return "" if value is None else repr(float(value))

"""Boxes beside treecf's: ``python -m tests.properties.regions_beside_treecf --people 200 --json FILE``.

treecf 0.3.2 (``pip install treecf``) widens an action of a tree ensemble feature by feature, in its fast mode
while an interval bound allows it, in its maximal mode also where a search finds nothing refused. It is given
the same boosted trees, people, actions and limits as :mod:`milp_recourse.questions.regions`; features that
are not acted on are frozen. Volumes are shares of what the levers may be set to. People with missing values
are left out.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from milp_recourse.problem.instance import Instance
from milp_recourse.questions.regions import region
from tests.docs.test_dataframes import run

MODES = "fast", "maximal"


def volume(instance: Instance, box: dict[str, tuple[float, float]]) -> float:
    """The share of the levers' values that is in a box, whole numbers counted; a width of 0 as 1e-12."""
    share = 1.0
    for name, (low, high) in box.items():
        least, most = instance.levers[name]
        if instance.by_name[name].integral:
            share *= (math.floor(high) - math.ceil(low) + 1) / (most - least + 1)
        else:
            share *= max(high - low, 1e-12) / (most - least)
    return share


def measured(people: int) -> dict[str, Any]:
    """Ratios of volumes, ours over theirs, and seconds."""
    import treecf

    found = run("gmsc", people)
    answers, X = found["answers"], found["X"]
    names, background = list(X.columns), X.dropna().to_numpy(float)[:2000]
    ratios: dict[str, list[float]] = {mode: [] for mode in MODES}
    seconds: dict[str, list[float]] = {who: [] for who in ("ours", *MODES)}
    for i, result in enumerate(answers.results):
        row = found["people"].iloc[i].to_numpy(float)
        if result is None or not result.action or np.isnan(row).any():
            continue
        instance = answers.problem[i]
        ours = region(instance, instance.numbers(result.action))
        seconds["ours"].append(ours.seconds)
        places = {n: names.index(n) for n in ours.action}
        after = row.copy()
        after[list(places.values())] = list(ours.action.values())
        explainer = treecf.Explainer(
            found["model"],
            background=background,
            constraints=[
                *(treecf.Freeze(n) for n in names if n not in places),
                *(treecf.Range(n, *instance.levers[n]) for n in places),
            ],
            value_policy={n: "integer" for n in places if instance.by_name[n].integral},
        )
        for mode in MODES:
            start = time.perf_counter()
            wide = treecf.Target.probability(op=">=", value=0.5)
            theirs = explainer.recourse_region(row, after, wide, mode=mode)
            seconds[mode].append(time.perf_counter() - start)
            box = {n: (float(theirs.lo[k]), float(theirs.hi[k])) for n, k in places.items()}
            ratios[mode].append(volume(instance, ours.box.ends) / volume(instance, box))
    told: dict[str, Any] = {"people": len(seconds["ours"])}
    for mode in MODES:
        ratio = np.array(ratios[mode])
        told[mode] = {
            "ours larger": int((ratio > 1 + 1e-6).sum()),
            "equal": int((abs(ratio - 1) <= 1e-6).sum()),
            "ours smaller": int((ratio < 1 - 1e-6).sum()),
            "ours over theirs, geometric mean": round(float(np.exp(np.log(ratio).mean())), 3),
        }
    return told | {"seconds, median": {who: round(float(np.median(t)), 4) for who, t in seconds.items()}}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    text = json.dumps(measured(given.people), indent=1)
    print(text)
    if given.json is not None:
        given.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

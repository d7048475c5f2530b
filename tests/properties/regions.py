"""Does the model accept every point of people's regions? ``python -m tests.properties.regions --people 200``.

A quarter each of the people are those of ``docs/dataframes.md`` (a network on German Credit, a forest on
Adult, boosted trees on raw Give Me Some Credit) and of the shipped Loan instances, where actions have
effects. For each person 10 000 points are drawn from the box, many of them at its ends, and the deployed
model is asked. It is asked again about the refused points outside every held end. The checker reads the
certificate, and 60 certificates are forged, each of which it must reject. Exits with 1 if anything is wrong.
Run from the repository root.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from gzip import decompress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from milp_recourse import solve
from milp_recourse.formats import read_instance
from milp_recourse.formats.instances_path import instance_files
from milp_recourse.formats.write import write_instance
from milp_recourse.problem.instance import Instance
from milp_recourse.problem.network import ReluNetwork
from milp_recourse.problem.result import Result
from milp_recourse.questions.regions import Region, region
from milp_recourse.questions.regions.growing import Side
from milp_recourse.tables.people_rows import chosen, counterfactual_rows
from tests.docs.test_dataframes import FILES, run
from tests.properties.repeated import options
from tests.properties.repeated import told as tell
from verify.__main__ import examine

Deployed = Callable[[NDArray[np.float64]], NDArray[np.bool_]]
"""Whether the deployed model accepts, for rows of all features in the order of the instance."""

TIME_LIMIT, FARTHER = 60.0, 1e-3
MUST_BE_ZERO = "points refused", "ends not known to be held"


def table_people(name: str, count: int) -> Iterator[tuple[Instance, Result, Deployed]]:
    """People of a data set, with the model's own ``predict`` about their raw rows."""
    found = run(name, count)
    answers, model, wants = found["answers"], found["model"], found["recourse"]._word.wants
    for i, result in enumerate(answers.results):
        if result is None or not result.action:
            continue

        def deployed(rows: NDArray[np.float64], i: int = i) -> NDArray[np.bool_]:
            own = chosen(answers.rows, [i] * len(rows))
            names = [f.name for f in answers.problem[i].features]
            known = (
                {n: v for n, v in zip(names, row, strict=True) if not np.isnan(v)} for row in rows.tolist()
            )
            frame = counterfactual_rows(own, answers.columns, list(known))
            return np.array([wants(label) for label in model.predict(frame)])

        yield answers.problem[i], result, deployed


def loan_people(count: int) -> Iterator[tuple[Instance, Result, Deployed]]:
    """People of the Loan instances; the network is computed in float32, as it is deployed."""
    for file in instance_files("loan"):
        instance = read_instance(file)
        result = solve(instance)
        if not result.action:
            continue
        network = instance.classifier
        assert isinstance(network, ReluNetwork)
        layers = [
            (w.astype(np.float32), b.astype(np.float32))
            for w, b in zip(network.weights, network.biases, strict=True)
        ]
        least = instance.accept.threshold

        def deployed(rows: NDArray[np.float64], layers=layers, least=least) -> NDArray[np.bool_]:
            x = rows.astype(np.float32)
            for k, (weight, bias) in enumerate(layers):
                x = (np.maximum(x, 0) if k else x) @ weight.T + bias
            return x[:, 0] >= least

        yield instance, result, deployed
        count -= 1
        if not count:
            return


def points(found: Region, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Rows of all features after actions drawn from the box, of whose values one in five is at an end."""
    instance, box = found.instance, found.box
    rows = np.full((count, len(instance.features)), np.nan)
    for k, f in enumerate(instance.features):
        if f.name in box.labels:
            rows[:, k] = rng.choice(box.labels[f.name], count)
        elif f.name in box.ends:
            low, high = box.ends[f.name]
            values = rng.uniform(low, high, count)
            at = rng.random(count)
            values = np.where(at < 0.1, low, np.where(at > 0.9, high, values))
            if f.lattice is not None:
                values = np.clip(f.lattice.nearests(values), low, high)
            rows[:, k] = values
    return instance.scm.counterfactual(instance.factual_row, rows)


def steps_out(found: Region, deployed: Deployed, side: Side) -> float:
    """How much farther than the refused point outside an end the deployed model refuses, too: a margin is
    refused as the problem is stated, and accepted as deployed. In shares of what may be set."""
    point, (name, end) = found.growth.held[side], side
    low, high = found.instance.levers[name]
    for away in (0.0, *np.geomspace(1e-9, FARTHER, 25)):
        way = away * (high - low)
        value = min(point[name] + way, high) if end == "high" else max(point[name] - way, low)
        if not deployed(after(found, {**point, name: value}))[0]:
            return float(away)
    return np.inf


def after(found: Region, point: dict[str, float]) -> NDArray[np.float64]:
    """The row of all features after one action."""
    instance = found.instance
    action = np.array([[point.get(f.name, np.nan) for f in instance.features]])
    return instance.scm.counterfactual(instance.factual_row, action)


def verdict(certificate: dict[str, Any], instance: Instance) -> str:
    """What the checker says of a certificate."""
    with TemporaryDirectory() as folder:
        proof, problem = Path(folder) / "certificate.json", Path(folder) / "instance.json"
        proof.write_text(json.dumps(certificate))
        write_instance(instance, problem)
        return examine(proof, problem).line


def checked(found: Region, deployed: Deployed, draws: int, rng: np.random.Generator) -> Counter[str]:
    """The counts of one person."""
    counts = Counter({name: 0 for name in MUST_BE_ZERO} | {"people": 1, "proven": int(found.proven)})
    counts["points"] = draws
    counts["points refused"] = int((~deployed(points(found, draws, rng))).sum())
    for name in found.box.ends:
        for end in ("low", "high"):
            by = found.held_by((name, end))
            counts["ends"] += 1
            counts["ends at a limit"] += by not in ("refused", None)
            counts["ends not known to be held"] += by is None
            if by == "refused":
                counts["ends held by a refused point"] += 1
                away = steps_out(found, deployed, (name, end))
                counts["of these refused as deployed"] += away == 0
                counts["of these refused at most 0.1% of what may be set farther"] += 0 < away <= FARTHER
    for point in found.growth.refused.values():
        counts["labels kept out"] += 1
        counts["of these refused, as deployed"] += point is not None and not deployed(after(found, point))[0]
    return counts


def forgeries(
    found: Region, certificate: dict[str, Any], other: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Certificates that are false or do not prove what they say, each with what was done."""

    def changed(**more: Any) -> dict[str, Any]:
        return {**certificate, **more}

    box, action = certificate["box"], certificate["action"]
    for (name, end), point in found.growth.held.items():
        if point is not None and found.held_by((name, end)) == "refused":
            value = found.instance.by_name[name].show(point[name])
            ends = [value, box[name][1]] if end == "low" else [box[name][0], value]
            yield "an end moved out to a refused point", changed(box={**box, name: ends})
            break
    for (name, label), point in found.growth.refused.items():
        if point is not None:
            feature = found.instance.by_name[name]
            labels = [feature.show(k) for k in sorted((*found.box.labels[name], label))]
            yield "a refused label added", changed(box={**box, name: labels})
            break
    limits = {
        n: [found.instance.by_name[n].show(v) for v in found.instance.levers[n]] for n in found.box.ends
    }
    if any(limits[n] != box[n] for n in limits):
        yield "everything that may be set", changed(box={**box, **limits})
        whole = {k: v for k, v in certificate.items() if k not in ("tree", "prices", "cases")}
        yield "everything, without a proof", {**whole, "box": {**box, **limits}, "tree": [["e"]]}
    yield "the cost lowered", changed(cost=certificate["cost"] * 0.99)
    yield "the claim of another problem", changed(instance_sha256=other["instance_sha256"])
    yield "a lever left out of the box", changed(box={n: v for n, v in list(box.items())[1:]})
    if len(certificate.get("tree", ())) > 1:
        yield "a leaf left out", changed(tree=certificate["tree"][:-1])
    for name, ends in box.items():
        if name in found.box.ends and ends[0] < ends[1]:
            moved = found.instance.by_name[name]
            outside = moved.show(found.box.ends[name][1]) if action[name] == ends[0] else ends[0]
            inner = [outside, outside]
            yield "a box that the action is not in", changed(box={**box, name: inner})
            break


def main() -> int:
    """The command."""
    given = options(__doc__, people=200, points=10_000, forged=60)
    rng, told, wrong, accepted = np.random.default_rng(0), dict[str, Any](), 0, 0
    forged: Counter[str] = Counter()
    each = -(-given.people // 4)
    sources = {name: table_people(name, each) for name in FILES} | {"loan": loan_people(each)}
    for name, people in sources.items():
        counts, seconds, known = Counter[str](), list[float](), list[tuple[Region, dict[str, Any]]]()
        checks = list[float]()
        for instance, result, deployed in people:
            found = region(instance, instance.numbers(result.action or {}), time_limit=TIME_LIMIT)
            counts.update(checked(found, deployed, given.points, rng))
            seconds.append(found.seconds)
            if found.evidence is None:
                continue
            certificate = json.loads(decompress(found.evidence))
            start = time.perf_counter()
            counts["verified"] += verdict(certificate, instance).startswith("VERIFIED region")
            checks.append(time.perf_counter() - start)
            known.append((found, certificate))
        share = -(-given.forged // len(sources))
        pairs = zip(known, known[1:] + known[:1], strict=True)
        attacks = [(one[0], *attack) for one, other in pairs for attack in forgeries(*one, other[1])]
        order = rng.permutation(len(attacks))[:share]
        for found, what, certificate in (attacks[k] for k in order):
            line = verdict(certificate, found.instance)
            forged[what] += 1
            if not line.startswith("REJECTED"):
                accepted += 1
                print(f"accepted: {what}: {line}")
        told[name] = dict(counts) | {
            "seconds, median": round(float(np.median(seconds)), 3),
            "seconds, largest": round(max(seconds), 3),
            "check, median seconds": round(float(np.median(checks)), 3),
        }
        wrong += sum(counts[name] for name in MUST_BE_ZERO)
        wrong += counts["people"] - counts["verified"]
        print(name, json.dumps(told[name]), flush=True)
    told["forged"] = {"tried": sum(forged.values()), "rejected": sum(forged.values()) - accepted, **forged}
    tell(told, given.json)
    return int(wrong + accepted > 0)


if __name__ == "__main__":
    sys.exit(main())

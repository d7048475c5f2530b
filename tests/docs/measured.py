"""The measured tables of the pages, made from the results files: ``python -m tests.docs.measured``.

A table stands on its page between two comments, ``<!-- NAME -->`` and ``<!-- end of NAME -->``. Whoever runs
one of the commands that write ``docs/results`` runs this afterwards; a test compares pages and files.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

from milp_recourse.lab.benchmarks.growth import exponent
from tests.docs import measured_interviews as interviews
from tests.properties.agreement import BRUTE, TWO

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"


def content(name: str) -> Any:
    """A results file in JSON."""
    return json.loads((RESULTS / name).read_text(encoding="utf-8"))


def rows(name: str) -> list[dict[str, str]]:
    """A results file in CSV."""
    with (RESULTS / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table(head: str, lines: Iterable[Iterable[object]]) -> str:
    """Markdown with a head of names separated by ``|``."""
    names = [name.strip() for name in head.split("|")]
    shown = [names, ["---"] * len(names), *([str(cell) for cell in line] for line in lines)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in shown) + "\n"


def short(number: float | str, digits: int = 2) -> str:
    """A number with few significant digits and no exponent."""
    return f"{float(f'{float(number):.{digits}g}'):.10f}".rstrip("0").rstrip(".")


def milliseconds(seconds: float | str) -> str:
    """Seconds as milliseconds."""
    return short(1000 * float(seconds))


SPEED = {
    "bab": "`bab`, in a population",
    "bab-single": "`bab`, one at a time",
    "highs": "`highs`",
    "gurobi": "Gurobi",
    "gurobi-our-bounds": "Gurobi, boxes of cost at most the optimum's",
    "scip": "SCIP",
}


def speed() -> str:
    """Solvers on twenty Loan problems."""
    keys = ("unsolved", "off_by_the_gap", "not_exactly_feasible")
    return table(
        "solver | median ms | slowest ms | unsolved | cost off by > 1e-6 | point not exactly feasible",
        (
            [SPEED[row["solver"]], milliseconds(row["median_s"]), milliseconds(row["max_s"])]
            + [row[key] for key in keys]
            for row in content("speed/speed.json")["solvers"]
        ),
    )


def settings() -> str:
    """Everybody in the paper's settings."""
    found = {(row["actionable"], row["plausible"]): row for row in rows("settings/settings.csv")}
    lines = []
    for one in dict.fromkeys(actionable for actionable, _ in found):
        pair = [found[one, asked] for asked in ("True", "False")]
        shares = [f"{100 * float(row['validity']):.1f}%" for row in pair]
        costs = [f"{float(row['cost_mean']):.4f}" for row in pair]
        times = [max(float(row[f"seconds_{key}"]) for row in pair) for key in ("median", "max")]
        lines.append([one, ", ".join(shares), ", ".join(costs), *map(milliseconds, times)])
    head = "actionable | have recourse: plausible, any | mean cost: plausible, any | median ms | slowest ms"
    return table(head, lines)


GROWN = {
    "population": "people solved together",
    "width": "units in each of two layers",
    "depth": "layers of 16 units",
    "trees": "trees of depth 6",
    "actions": "actions, independent",
    "actions-chain": "actions in a causal chain",
}


def exponents() -> dict[str, float]:
    """By what is varied, b of the fit a size^b to the medians."""
    found = rows("growth/growth.csv")
    points = {panel: [row for row in found if row["panel"] == panel] for panel in GROWN}
    return {
        panel: exponent(*([float(row[key]) for row in mine] for key in ("value", "cpu_median")))
        for panel, mine in points.items()
    }


def growth() -> str:
    """Random problems that grow in one respect."""
    found, fitted = rows("growth/growth.csv"), exponents()
    lines = []
    for panel, name in GROWN.items():
        mine = [row for row in found if row["panel"] == panel]
        slowest = milliseconds(max(float(row["cpu_max"]) for row in mine))
        largest = max(mine, key=lambda row: float(row["cpu_median"]))
        told = [row for row in mine if row in (mine[0], largest, mine[-1])]
        ends = [f"{row['value']}: {milliseconds(row['cpu_median'])}" for row in told]
        lines.append([name, ", ".join(ends), f"{fitted[panel]:.1f}", slowest])
    return table("what grows | median ms: ends, largest | exponent | slowest ms", lines)


PEERS = {
    "bab": "`bab`",
    "highs": "`highs`",
    "cpsat": "`cpsat`",
    "gurobi": "Gurobi (licence limited in size)",
    "highs-milp": "HiGHS (linear costs)",
    "scip": "SCIP",
    "leaf-milp": "HiGHS on the leaf formulation",
    "ocean-cp": "OceanPy, its CP model",
}


def peers(name: str) -> str:
    """The solvers of ``bench real`` or ``bench trees``, a line each."""
    report = content(name)
    lines = []
    for solver in dict.fromkeys(line["solver"] for line in report["summary"]):
        mine = [line for line in report["summary"] if line["solver"] == solver]
        asked = sum(line["problems"] - line["refused"] for line in mine)
        ratio = [r for r in report["against"] if r["peer"] == solver and r["cost_kind"] == "all"]
        claims = {line.partition(":")[0] for line in report["false_claims"] if f" {solver}: " in line}
        proven = sum(line.get("proven", 0) for line in mine)
        times = short(ratio[0]["median_ratio"], 3) if ratio else ""
        lines.append([PEERS[solver], asked, proven, times, len(claims)])
    return table("solver | problems | proven in 60 s | its time over `bab`'s, median | false answers", lines)


TOOLS = {
    "bab": "milp-recourse",
    "treecf": "treecf",
    "ocean": "OceanPy",
    "reachml": "reachml",
    "dice": "DiCE",
    "alibi": "alibi",
}


def tools() -> str:
    """Tools for recourse, asked about the same people."""
    lines = []
    for line in content("peers/peers.json")["tools"]:
        some, ratios = line["with_recourse"], (line["ratio_median"], line["ratio_max"])
        shares = [f"{line[key]}/{some}" for key in ("answered", "valid", "proven") if line[key] is not None]
        lines.append(
            [
                TOOLS[line["tool"]],
                *(shares + ["-"] * (3 - len(shares))),
                ", ".join(short(ratio) for ratio in ratios if ratio is not None) or "-",
                f"{line['none_said']}/{line['without']}",
                line["wrong"],
                short(line["median_s"]),
            ]
        )
    head = "tool | answered | valid | called least | cost over the least: median, largest"
    return table(f"{head} | says that none exists | wrong claims | median s", lines)


def trees() -> str:
    """Ensembles of deployed size, a line per model."""
    report = content("trees/trees.json")
    own = {line["model"]: line for line in report["summary"] if line["solver"] == "bab"}
    lines = []
    for ratio in report["compared"]:
        mine = own[ratio["model"]]
        times = [short(ratio[key]) for key in ("best_peer_over_bab_median", "least")]
        lines.append([ratio["model"], short(mine["median_s"]), *times, short(mine["check_max_s"])])
    head = "model | `bab`: median s | fastest other over `bab`: median | least | slowest check s"
    return table(head, lines)


def grown() -> str:
    """Models as the libraries grow them."""
    return table(
        "model | median s | certificates | slowest check s",
        (
            [
                line["model"],
                short(line["median_s"]),
                f"{line['verified']} of {line['problems']}",
                short(line["check_max_s"]),
            ]
            for line in content("grown/trees.json")["summary"]
        ),
    )


GROUPS = {
    "conditions": ("conditions/networks.json", "conditions/trees.json"),
    "costs and plausibility": ("costs/networks.json", "costs/trees.json"),
    "fronts": ("choices/fronts_networks.json", "choices/fronts_trees.json"),
    "why not": ("why/networks.json", "why/trees.json"),
    "choices and certainty": ("choices/networks.json", "choices/trees.json"),
}
"""Questions, and the results of comparing the answers to them."""


def settled(row: dict[str, Any], name: str) -> int:
    """How many answers a back end settled."""
    old = row.get("happened", {})
    whole = sum(row.get(f"{name} {status}", 0) for status in ("optimal", "infeasible"))
    return whole + sum(
        n for said, n in old.items() if f"{name} optimal" in said or f"{name} infeasible" in said
    )


def decided(row: dict[str, Any], backends: list[str]) -> int:
    """How many draws two back ends settled, or at least did."""
    if TWO in row:
        return int(row[TWO])
    asked = sum(row["happened"].values()) if "happened" in row else row.get(BRUTE, row["draws"])
    own = sorted((settled(row, name) for name in backends), reverse=True)
    return max(0, own[0] + own[1] - asked)


def compared() -> str:
    """Every kind of question, two back ends and brute force."""
    lines = []
    for title, files in GROUPS.items():
        for file, which in zip(files, ("networks", "trees"), strict=True):
            kinds = content(file)["kinds"]
            force = (row.get(BRUTE, sum(row.get("happened", {}).values())) for row in kinds.values())
            two = (decided(row, row["asked"]["backends"].split(",")) for row in kinds.values())
            draws = sum(row["draws"] for row in kinds.values())
            wrong = sum(len(row["wrong"]) for row in kinds.values())
            lines.append([title, which, draws, sum(two), sum(force), wrong])
    head = "question | classifiers | draws | settled by two back ends | brute force asked | wrong"
    return table(head, lines)


def outside() -> str:
    """DiCE and a gradient method, judged."""
    shares = "share of given: accepted by the deployed model"
    lines = []
    for name in ("dice", "gradient"):
        for demand, asked in (("no-plausibility", "no"), ("plausibility", "yes")):
            found = content(f"evaluate/{name}-{demand}/evaluation.json")
            lines.append(
                [
                    name,
                    asked,
                    f"{100 * found[shares + ', causes left out']:.1f}%",
                    f"{100 * found[shares + ' on the true causal model']:.1f}%",
                    f"{found['feasible']} of {found['given']}",
                    f"{found['missed: recourse exists, none feasible given']} of "
                    f"{found['with recourse (proven)']}",
                    f"{100 * found['excess over the optimum, median over feasible']:.0f}%",
                ]
            )
    head = "method | plausibility asked | accepted without effects | accepted with effects | feasible"
    return table(f"{head} | recourse exists, none feasible | median excess over the optimum", lines)


def mean_sd(row: dict[str, str]) -> str:
    """A mean cost and its standard deviation."""
    return f"{float(row['cost mean']):.3f} ± {float(row['cost sd']):.3f}"


def oracle(folder: str) -> str:
    """Table 1 of the iCARMA paper: published, grid and certified."""
    found = {(row["actionable"], row["method"]): row for row in rows(f"{folder}/table1.csv")}
    lines = []
    for count in dict.fromkeys(count for count, _ in found):
        three = [found[count, method] for method in ("published", "grid", "certified")]
        validity = ", ".join(f"{float(row['validity']):.3f}" for row in three)
        costs = ", ".join(f"{float(row['cost mean']):.3f}" for row in three)
        grid = three[1]
        missed = f"{grid['missed']} ({100 * float(grid['missed share']):.1f}%)"
        excess = f"{100 * float(grid['excess of means']):.0f}%, {100 * float(grid['excess median']):.0f}%"
        lines.append([count, validity, missed, costs, excess])
    head = "actionable | validity: published, grid, certified | missed by the grid"
    return table(f"{head} | mean cost: the same | grid above the optimum: means, median", lines)


def networks() -> str:
    """Table 1 of the iCARMA paper, its networks: published and ours."""
    found = {(row["actionable"], row["method"]): row for row in rows("loan_smooth/table1.csv")}
    lines = []
    for count in dict.fromkeys(count for count, _ in found):
        printed, *ours = [found[count, f"iCARMA {name}"] for name in ("published", "plain", "best")]
        cells = []
        for key in ("validity", "plausibility"):
            values = [printed[key], *(row[f"{key} as printed"] for row in ours)]
            cells.append(", ".join(f"{float(value):.3f}" for value in values))
        cells.append(", ".join(f"{float(row['cost mean']):.3f}" for row in (printed, *ours)))
        cells.append(", ".join(f"{float(row['served']) / float(row['applicants']):.3f}" for row in ours))
        cells.append(", ".join(row["within"] for row in ours))
        lines.append([count, *cells])
    head = "actionable | valid: published, plain, best | plausible: the same | mean cost: the same"
    return table(f"{head} | served: plain, best | near: plain, best", lines)


def gap() -> str:
    """What the networks of loan-smooth lose, and by what."""
    lines = []
    for row in rows("loan_smooth/decomposition.csv"):
        served = [f"{float(row[f'served, {one}']):.3f}" for one in ("optimum", "mask", "networks")]
        missed = [
            f"{float(row[f'missed, {why}']):.3f}" for why in ("only implausible", "only invalid", "both")
        ]
        costs = [f"{float(row[f'cost, {one}']):.4f}" for one in ("optimum", "mask", "direction", "networks")]
        lines.append([row["actionable"], ", ".join(served), ", ".join(missed), ", ".join(costs)])
    head = "actionable | served: optimum, within the mask, networks | missed: implausible, invalid, both"
    return table(f"{head} | mean cost: optimum, mask, direction, networks", lines)


def optima() -> str:
    """Networks that learn from certified answers, and refinement: means over the seeds."""
    found: dict[tuple[str, str], dict[str, list[dict[str, str]]]] = {}
    shown = ("networks", "refined", "factual", "factual, every mask")
    for row in rows("loan_smooth/optima.csv"):
        if row["variant"] != "failures left out" and row["way"] in shown:
            of = found.setdefault((row["variant"], row["way"]), {})
            of.setdefault(row["setting"], []).append(row)

    def means(one: tuple[str, str], key: str) -> list[float]:
        return [fmean(float(row[key]) for row in own) for own in found[one].values()]

    def line(one: tuple[str, str], share: str, time: str) -> list[str]:
        return [", ".join(f"{x:.3f}" for x in means(one, share)), f"{fmean(means(one, time)):.2f}"]

    possible, took = line(next(iter(found)), "exists", "milliseconds to certify")
    lines = [["certified", "", possible, "1", took]]
    for one in found:
        served, took = line(one, "served", "milliseconds")
        lines.append([*one, served, ", ".join(f"{x:.2f}" for x in means(one, "median ratio")), took])
    head = "networks | way | served: 4 features, weights constant, linear; random features, the same"
    return table(f"{head} | cost over the optimum, median | ms", lines)


def fairness() -> str:
    """Gaps by race, drawn at random, over 200 draws."""
    found = {
        (row["scenario"], row["measure"], row["method"]): row
        for row in rows("loan_smooth/fairness.csv")
        if row["gap"] == "non-white - white"
    }
    lines = []
    for scenario in dict.fromkeys(scenario for scenario, *_ in found):
        cells = []
        for measure, digits in (("share with recourse", 3), ("mean cost", 4)):
            for method in ("certified", "iCARMA recommender"):
                row = found[scenario, measure, method]
                significant = 100 * float(row["share significant"])
                cells.append(f"{float(row['mean']):+.{digits}f} ({significant:.0f}%)")
        lines.append([scenario, *cells])
    head = "scenario | share with recourse: certified | networks | mean cost: certified | networks"
    return table(head, lines)


def sharp() -> str:
    """iCARMA's networks on loan-sharp against the optima, table 1 of the paper."""
    lines = []
    for row in rows("loan_sharp/gap.csv"):
        if row["table"] == "1" and row["plausible_demanded"] == "1":
            keys = ("recourse_exists", "served", "missed", "polished_served")
            shares = [f"{float(row[key]):.3f}" for key in keys]
            lines.append([row["setting"], *shares, f"{float(row['cost_ratio_median']):.2f}"])
    head = "actionable | recourse exists | served | missed | served within the masks"
    return table(f"{head} | cost over the optimum, median", lines)


def gmsc_proofs() -> str:
    """Give Me Some Credit: what is proven."""
    return table(
        "setting | people | optimal | infeasible | limit | median ms | 90% ms",
        (
            [row["setting"], row["applicants"], row["optimal"], row["infeasible"], row["limit"]]
            + [f"{1000 * float(row[key]):.0f}" for key in ("seconds_median", "seconds_p90")]
            for row in rows("gmsc/proofs.csv")
        ),
    )


def gmsc_networks() -> str:
    """Give Me Some Credit: networks beside the optima, table 1 of the paper."""
    lines = []
    for row in rows("gmsc/tables.csv"):
        if row["table"] == "1" and not row["method"].startswith("published"):
            shown = [f"{float(row[key]):.3f}" for key in ("valid", "plausible", "served", "cost")]
            lines.append([row["setting"], row["method"], *shown, f"{float(row['cost_ratio_median']):.1f}"])
    head = "actionable | method | valid | plausible | served | mean cost"
    return table(f"{head} | cost over the optimum, median", lines)


def start_up() -> str:
    """Whole processes, before and now: least processor seconds."""
    head, found = "process | before, s | now, s", content("engine/start_up.json")
    return table(
        head, ([name, *(short(one[v][0]) for v in ("before", "now"))] for name, one in found.items())
    )


def extension() -> str:
    """The time of a compiled extension, in numba's."""
    found = content("engine/extension.json")["microseconds"]
    return table(
        "time over numba's | built here | as a wheel",
        (
            [name, *(short(one[v] / one["numba"]) for v in ("native", "x86-64"))]
            for name, one in found.items()
        ),
    )


Table = Callable[[], str]
PAGES: dict[str, dict[str, Table]] = {
    "docs/benchmarks.md": {
        "speed": speed,
        "settings": settings,
        "growth": growth,
        "real": lambda: peers("real/real.json"),
        "tree solvers": lambda: peers("trees/trees.json"),
        "trees": trees,
        "peers": tools,
        "grown": grown,
    },
    "docs/agreement.md": {"compared": compared},
    "docs/engine_in_detail.md": {"start-up": start_up, "extension": extension},
    "docs/evaluate.md": {"outside": outside},
    "docs/results/loan_smooth/README.md": {
        "oracle": lambda: oracle("loan_smooth"),
        "networks": networks,
        "gap": gap,
        "optima": optima,
        "fairness": fairness,
    },
    "docs/results/loan_sharp/README.md": {
        "oracle": lambda: oracle("loan_sharp"),
        "sharp": sharp,
    },
    "docs/results/interviews/README.md": {
        "regret": interviews.regret,
        "soundness": interviews.soundness,
        "weights": interviews.weights,
        "choices": interviews.choices,
        "hare": interviews.hare,
        "hare causes": interviews.hare_causes,
    },
    "docs/results/gmsc/README.md": {"proofs": gmsc_proofs, "networks": gmsc_networks},
}


def placed(page: str, name: str, text: str) -> str:
    """The page with a text between the marks of a name."""
    pattern = rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)"
    found, count = re.subn(pattern, lambda marks: marks[1] + text + marks[2], page, flags=re.DOTALL)
    assert count == 1, f"{count} places for {name}"
    return found


def main() -> None:
    """Write every table into its page."""
    for name, tables in PAGES.items():
        path = ROOT / name
        page = path.read_text(encoding="utf-8")
        for mark, made in tables.items():
            page = placed(page, mark, made())
        path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

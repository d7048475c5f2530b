"""``python -m verify``: what it prints, its exit codes, and that it needs nothing but Python."""

from __future__ import annotations

import ast
import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.processes import check_unwritable
from verify.__main__ import examine

ROOT = Path(__file__).parent.parent.parent
ACCEPTED = ROOT / "tests/certificates/accepted"
TOY = ROOT / "docs/examples/toy_certificate.json", ROOT / "docs/examples/toy_instance.json"
POPULATION = ROOT / "tests/certificates/instances/toy_population.json"


TOY_LINE = 'VERIFIED optimal cost=2.25 lower_bound=2.25 relative_gap=0 action={"income": 1.5}\n'


def run(*arguments: object, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "verify", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("certificate", "instance", "printed"),
    [
        ("toy.json", "docs/examples/toy_instance.json", TOY_LINE),
        (
            "infeasible_plausible.json",
            "instances/smoke/infeasible_plausible.json",
            "VERIFIED infeasible\n",
        ),
    ],
)
def test_verified(certificate, instance, printed):
    """One line, exit code 0."""
    done = run(ACCEPTED / certificate, instance)
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")


def test_bounds(tmp_path):
    """A weaker bound is a claim of its own."""
    certificate = json.loads(TOY[0].read_text())
    certificate |= {"claim": "bounds", "lower_bound": 2}
    (tmp_path / "c.json").write_text(json.dumps(certificate))
    said = run(tmp_path / "c.json", TOY[1]).stdout
    assert said == 'VERIFIED bounds cost=2.25 lower_bound=2.0 relative_gap=0.11 action={"income": 1.5}\n'


def test_whose_it_is():
    """A certificate of a population says which applicant it speaks of: several may have the same cost."""
    said = run(ACCEPTED / "population_0.json", POPULATION).stdout
    assert re.search(r" index=0 action=\{\"income\": [0-9.]+\}\n$", said)
    assert run(ACCEPTED / "population_2.json", POPULATION).stdout == "VERIFIED infeasible index=2\n"


def test_rejected(tmp_path):
    """One line with the reason, exit code 4, no traceback."""
    certificate = json.loads(TOY[0].read_text())
    certificate["cost"] = 3
    (tmp_path / "c.json").write_text(json.dumps(certificate))
    wrong = tmp_path / "c.json"
    done = run(wrong, TOY[1])
    assert done.returncode == 4
    assert done.stdout.startswith("REJECTED: ") and done.stdout.count("\n") == 1
    assert done.stderr == ""


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("certificate", ["toy.json", "."])
def test_a_full_disk_is_exit_code_1_and_one_line(certificate, unbuffered, monkeypatch):
    """Nobody was told a verdict; a reader that has ended is no error to talk about."""
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    check_unwritable("-m", "verify", "--jobs=1", ACCEPTED / certificate, TOY[1])


def test_a_mistyped_path_is_no_rejection(tmp_path):
    """Nothing was checked: exit code 2 and one line that names the path, here and as milp-recourse verify."""
    none = tmp_path / "none"
    for arguments in ((none, TOY[1]), (TOY[0], none), (none, tmp_path)):
        for program in (["verify"], ["milp_recourse", "verify"]):
            command = [sys.executable, "-m", *program, *map(str, arguments)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stdout) == (2, "")
            assert done.stderr.count("\n") == 1 and "no such file or folder" in done.stderr


def test_a_folder_that_holds_its_population_needs_no_second_name(certified, tmp_path):
    """Else it must be named."""
    done = run(certified)
    assert done.returncode == 2 and "there is no " in done.stderr and done.stderr.count("\n") == 1
    folder = tmp_path / "out"
    shutil.copytree(certified, folder)
    shutil.copy(POPULATION, folder / "population.json")
    done = run(folder)
    assert done.returncode == 0 and done.stdout.startswith("VERIFIED 3 of 3")


def test_identifiers_beside_a_list_of_applicants(certified, tmp_path):
    """The column id of results.csv must be theirs."""
    folder, named = tmp_path / "out", tmp_path / "named.json"
    shutil.copytree(certified, folder)
    lines = (folder / "results.csv").read_text().splitlines()
    cells = ["id", "x", "y", "z"]
    parts = [line.partition(",") for line in lines]
    lines = [f"{first},{cell},{rest}" for (first, _, rest), cell in zip(parts, cells, strict=True)]
    (folder / "results.csv").write_text("\n".join(lines) + "\n")
    for ids, code in ((cells[1:], 0), (["x", "z", "y"], 4), (["x", "y"], 4), (None, 4)):
        data = json.loads(POPULATION.read_text()) | ({} if ids is None else {"ids": ids})
        named.write_text(json.dumps(data))
        assert run(folder, named).returncode == code, ids


def test_folder_of_a_population(tmp_path):
    """A folder is checked in parallel and summed up; one that fails makes the exit code 4."""
    folder = tmp_path / "certificates"
    folder.mkdir()
    for k in (0, 2):
        shutil.copy(ACCEPTED / f"population_{k}.json", folder / f"{k}.json")
    done = run(tmp_path, POPULATION, "--jobs", 2)
    assert done.returncode == 0
    assert done.stdout.startswith("VERIFIED 2 of 2 certificates (1 infeasible, 1 optimal); 2 of 3 app")
    assert "slowest" in done.stdout and "2 of 2 checked" in done.stderr
    shutil.copy(TOY[0], folder / "3.json")
    done = run(tmp_path, POPULATION, "--jobs", 1)
    assert done.returncode == 4
    assert done.stdout.startswith("3.json: REJECTED: index: needed for a population\nREJECTED 2 of 3")


@pytest.fixture(scope="module")
def certified(tmp_path_factory) -> Path:
    """Three applicants of a population, certified, with results.csv."""
    folder = tmp_path_factory.mktemp("run") / "out"
    done = subprocess.run(
        [sys.executable, "-m", "milp_recourse", "certify", str(POPULATION), "--out", str(folder)],
        cwd=ROOT,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_results_agree_with_their_certificates(certified):
    """The rows of results.csv are compared with what is proven."""
    done = run(certified, POPULATION, "--jobs", 1)
    assert done.returncode == 0, done.stdout
    assert "3 of 3 applicants; results.csv agrees, 3 of its 3 answers are certified; " in done.stdout


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("cost", lambda row: repr(float(row["cost"]) * 2), "cost is not what the certificate proves"),
        ("cost", lambda row: "", "cost: there, or not, against its status"),
        ("lower_bound", lambda row: row["cost"], "lower_bound is not what the certificate proves"),
        ("lower_bound", lambda row: repr(float(row["cost"]) * 2), "lower_bound is not what the certificate"),
        ("gap", lambda row: "0.0", "gap: not the cost less the lower_bound"),
        ("status", lambda row: "limit", "status is not what the certificate proves"),
        ("status", lambda row: "infeasible", "cost: there, or not, against its status"),
        ("proof", lambda row: "", "proof: there, or not, against its status"),
        ("proof", lambda row: "certain", "proof: got certain; allowed: one of "),
        ("action", None, "action is not what the certificate proves"),
    ],
)
def test_a_row_that_says_something_else(certified, tmp_path, column, value, reason):
    """Whoever edits results.csv is told which column is not proven."""
    folder = tmp_path / "out"
    shutil.copytree(certified, folder)
    rows = list(csv.DictReader((folder / "results.csv").read_text().splitlines()))
    row = next(r for r in rows if r["status"] == "optimal" and float(r["cost"]) > 0)
    if value is None:
        acted = next(key for key, cell in row.items() if key.startswith("action_") and cell)
        row[acted] = "0.125"
    else:
        row[column] = value(row)
    if column in ("cost", "lower_bound") and row["cost"]:
        row["gap"] = repr(max(0.0, float(row["cost"]) - float(row["lower_bound"])))
    with (folder / "results.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(row))
        writer.writeheader()
        writer.writerows(rows)
    (folder / "results.json").unlink()
    done = run(folder, POPULATION, "--jobs", 1)
    assert done.returncode == 4
    assert "REJECTED: results.csv: " in done.stdout and reason in done.stdout
    assert "results.csv agrees" not in done.stdout


def unreadable(text: str) -> dict[str, bytes]:
    """A table of false rows in forms that somebody might read otherwise than the checker."""
    false = text.replace("optimal", "infeasible")
    header, first, *rest = text.splitlines()
    return {
        "semicolons": false.replace(",", ";").encode(),
        "utf-16": false.encode("utf-16"),
        "header": false.replace("certificate,", "Certificate,", 1).encode(),
        "comment": ("# a comment\n" + false).encode(),
        "twice": "\n".join([header.replace("gap", "cost"), first, *rest]).encode(),
        "status": text.replace("optimal", "Optimal").replace("certificates/0.json.gz", "").encode(),
        "again": (text + first.replace("optimal", "limit").replace("certificates/0.json.gz", "")).encode(),
        "elsewhere": text.replace("certificates/0", "certificates/../0").encode(),
        "swapped": text.replace("certificates/0", "certificates/1", 1).encode(),
        "long": (text + '9,optimal,"' + "x" * 200_000 + '"').encode(),
        "number": text.replace("rigorous", "rigorous").replace(first.split(",")[2], '"5,0"', 1).encode(),
    }


@pytest.mark.parametrize("form", list(unreadable("a,b\nc,d,e\n")))
def test_a_table_that_can_be_read_otherwise(certified, tmp_path, form):
    """Nothing unusual about results.csv passes, and nothing about it is a traceback."""
    folder = tmp_path / "out"
    shutil.copytree(certified, folder)
    text = (folder / "results.csv").read_text()
    (folder / "results.csv").write_bytes(unreadable(text)[form])
    done = run(folder, POPULATION, "--jobs", 1)
    assert done.returncode == 4 and "REJECTED" in done.stdout and "results.csv" in done.stdout
    assert "Traceback" not in done.stderr and "agrees" not in done.stdout


def test_names_move_no_cursor(tmp_path):
    """Whatever a file is called, a rejection stays one line that says so."""
    (tmp_path / "x\nVERIFIED 2 of 2\x1b[2K.json").write_text("{}")
    done = run(tmp_path, POPULATION, "--jobs", 1)
    assert done.returncode == 4
    assert not any(line.startswith("VERIFIED") for line in done.stdout.splitlines())
    assert "\x1b" not in done.stdout


def test_a_file_that_changes_is_read_again(tmp_path):
    """The cache of instances is by state, not by path."""
    file = tmp_path / "instance.json"
    shutil.copy(TOY[1], file)
    assert examine(TOY[0], file, 60).claim == "optimal"
    file.write_text(file.read_text().replace('"name"', ' "name"').replace("2.0", "2.5"))
    other = json.loads(file.read_text())
    other["factual"] = {name: value + 0.5 for name, value in other["factual"].items()}
    file.write_text(json.dumps(other))
    assert examine(TOY[0], file, 60).claim is None


def test_a_certificate_that_is_missing(certified, tmp_path):
    """A row whose certificate is gone fails; one that never had any is counted."""
    folder = tmp_path / "out"
    shutil.copytree(certified, folder)
    (folder / "certificates" / "0.json.gz").unlink()
    done = run(folder, POPULATION, "--jobs", 1)
    assert done.returncode == 4 and "0.json.gz: REJECTED: results.csv has a row for it" in done.stdout
    text = (folder / "results.csv").read_text()
    (folder / "results.csv").write_text(text.replace("certificates/0.json.gz", ""))
    done = run(folder, POPULATION, "--jobs", 1)
    assert done.returncode == 0 and "2 of its 3 answers are certified, not 0; " in done.stdout


def test_a_certificate_whose_row_is_not_yet_there(certified, tmp_path):
    """A run that was killed between the two is checked as far as it is."""
    folder = tmp_path / "out"
    shutil.copytree(certified, folder)
    (folder / "results.json").unlink()
    lines = (folder / "results.csv").read_text().splitlines(keepends=True)
    (folder / "results.csv").write_text("".join(lines[:-1]))
    done = run(folder, POPULATION, "--jobs", 1)
    assert done.returncode == 0, done.stdout
    assert "VERIFIED 3 of 3" in done.stdout and "2 of its 2 answers are certified" in done.stdout


def first_row(text: str, **cells: str) -> str:
    """The table with other cells in its first row."""
    rows = list(csv.DictReader(text.splitlines()))
    rows[0] |= cells
    return "\n".join([",".join(rows[0]), *(",".join(f'"{cell}"' for cell in r.values()) for r in rows), ""])


EDITS = {
    "another optimum, no certificate": (
        "results.csv",
        lambda text: first_row(
            text, cost="1.0", lower_bound="1.0", gap="0.0", action_income="1.0", certificate=""
        ),
        "0.json.gz: REJECTED: results.csv: the row names no certificate, but here is one",
    ),
    "an action for somebody without any": (
        "results.csv",
        lambda text: text.replace("certificates/2.json.gz,,,", ",1.0,1.0,"),
        "an action or a counterfactual, but no cost",
    ),
    "a second row of the same number": (
        "results.csv",
        lambda text: text + "0" + text.splitlines()[1].replace("certificates/0.json.gz", "") + "\n",
        "row 4: index: got 00; allowed: digits, no leading 0",
    ),
    "a row of nobody": (
        "results.csv",
        lambda text: text + "7,limit,,0.0,,,bab,0.1,,,,\n",
        "index: got 7; allowed: below 3",
    ),
    "an optimum without a cost": (
        "results.csv",
        lambda text: re.sub(r"\n1,optimal,[^,]+,", "\n1,optimal,,", text),
        "cost: there, or not, against its status",
    ),
    "a summary of something else": (
        "results.json",
        lambda text: text.replace('"optimal": 2', '"optimal": 3'),
        "results.json: counts: allowed: {",
    ),
    "a count of its own, over what is proven": (
        "results.json",
        lambda text: text.replace("{", '{"optimal": 99, ', 1),
        "results.json: unknown key 'optimal'",
    ),
    "a mean of something else": (
        "results.json",
        lambda text: text.replace('"cost_mean": 1.', '"cost_mean": 0.'),
        "results.json: cost_mean: allowed: 1.",
    ),
    "a certificate under another's number": (
        "certificates/0.json.gz",
        lambda text: None,
        "index: got 1; allowed: 0, as the file is called",
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_tables_that_say_more_than_is_proven(certified, tmp_path, name):
    """Whatever stands beside certificates says what they prove, or is named as not looked at."""
    folder = tmp_path / "out"
    shutil.copytree(certified, folder)
    file, edit, reason = EDITS[name]
    if file.endswith(".gz"):
        shutil.copy(folder / "certificates" / "1.json.gz", folder / file)
    else:
        text = (folder / file).read_text()
        assert edit(text) != text
        (folder / file).write_text(edit(text))
        if file == "results.csv":
            (folder / "results.json").unlink()
    done = run(folder, POPULATION, "--jobs", 1)
    assert done.returncode == 4 and reason in done.stdout, done.stdout
    assert "agrees" not in done.stdout and "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["results.csv", "results.json", "certificates"])
def test_a_dangling_link_is_not_an_absent_file(certified, tmp_path, name):
    """A table that cannot be read now might be read later."""
    folder = tmp_path / "out"
    shutil.copytree(certified, folder)
    (folder / name).rename(tmp_path / name)
    (folder / name).symlink_to(tmp_path / "nowhere")
    done = run(folder, POPULATION, "--jobs", 1)
    assert done.returncode == 4 and "REJECTED" in done.stdout and "Traceback" not in done.stderr


def test_what_is_not_looked_at_is_named(certified, tmp_path):
    """Files that nothing checks are listed in the verdict."""
    folder = tmp_path / "out"
    shutil.copytree(certified, folder)
    (folder / "report.html").write_text("all is well")
    (folder / "certificates" / "0.txt").write_text("all is well")
    done = run(folder, POPULATION, "--jobs", 1)
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith("; not looked at: 0.txt, run.json, report.html\n")
    assert "; results.json agrees; " in done.stdout


def test_results_of_instances_agree(tmp_path):
    """results.json holds whole results where instances have files of their own; they are compared too."""
    out = tmp_path / "out"
    instance = ROOT / "instances/smoke/hold.json"
    command = [sys.executable, "-m", "milp_recourse", "certify", str(instance), "--out", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    assert "results.json agrees" in run(out, "instances/smoke").stdout
    text = (out / "results.json").read_text()
    for old, new in (('"duration": 1.0', '"duration": 2.0'), ('"name": "hold"', '"name": "l0"')):
        assert old in text
        (out / "results.json").write_text(text.replace(old, new))
        done = run(out, "instances/smoke")
        assert done.returncode == 4 and "results.json: results.0: " in done.stdout, done.stdout


@pytest.mark.parametrize("name", ["csv", "numpy"])
def test_shadowed_modules(name, tmp_path):
    """In a folder with a csv.py of its own the checker does not start; with -P it runs without that file."""
    (tmp_path / f"{name}.py").write_text("print('VERIFIED optimal')\nraise SystemExit(0)\n")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}

    def start(*arguments: str) -> tuple[int, str, str]:
        command = [sys.executable, *arguments, *map(str, TOY)]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stdout, done.stderr

    code, said, complaint = start("-m", "verify")
    assert (code, said) == (2, "") and f"{name}.py' would be imported in place of the module" in complaint
    assert start("-P", "-m", "verify")[:2] == (0, TOY_LINE)
    script = "import sys; from milp_recourse.cli import main; sys.exit(main())"  # as the console script does
    assert start("-P", "-c", script, "verify")[:2] == (0, TOY_LINE)


def test_folder_of_instances(tmp_path):
    """Certificates find their instances by digest."""
    for name in ("l0", "linf", "two_trees"):
        shutil.copy(ACCEPTED / f"{name}.json", tmp_path / f"{name}.json")
    done = run(tmp_path, "instances/smoke")
    assert done.returncode == 0
    assert done.stdout.startswith("VERIFIED 3 of 3 certificates (3 optimal); ")


def test_needs_only_python(tmp_path):
    """It runs isolated from every installed package, from a folder that holds nothing else."""
    shutil.copytree(ROOT / "verify", tmp_path / "verify", ignore=shutil.ignore_patterns("__pycache__"))
    start = (
        "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); "
        "runpy.run_module('verify', run_name='__main__', alter_sys=True)"
    )
    command = [sys.executable, "-I", "-S", "-c", start, str(tmp_path), *map(str, TOY)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, TOY_LINE), done.stderr


def test_imports_only_the_standard_library():
    """Nothing of the package, no solver; numpy in one file, which is not needed."""
    for file in (ROOT / "verify").glob("**/*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                names = [str(node.module)]
            for name in names:
                top = name.split(".")[0]
                allowed = {"verify", *sys.stdlib_module_names, *(["numpy"] * (file.name == "arrays.py"))}
                assert top in allowed, f"{file.name} imports {name}"


def test_numpy_is_not_needed(tmp_path):
    """Trees that are bounded all at once with numpy are bounded one by one without it."""
    folders = [ROOT / "tests/certificates" / kind for kind in ("accepted", "instances")]
    given = [str(folder / "taken_out_trees.json") for folder in folders]
    start = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import verify.fast.box; verify.fast.box.LARGE = 0; "
        "from verify.__main__ import main; code = main(sys.argv[1:]); "
        "print('verify.fast.arrays' in sys.modules, 'numpy' in sys.modules); sys.exit(code)"
    )
    for flags, loaded in (["-I", "-S"], "False False"), (["-I"], "True True"):
        command = [sys.executable, *flags, "-c", start, str(ROOT), *given]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        said, found = done.stdout.splitlines()
        assert said.startswith("VERIFIED optimal") and found == loaded, done.stderr


def test_where_there_is_nothing_to_check_nothing_is_rejected(certified, tmp_path):
    """Exit code 2 and one line: an empty folder, and rows that name no certificate; but a row that names one
    that is not there is rejected."""
    empty, bare, lost = (tmp_path / name for name in ("empty", "bare", "lost"))
    empty.mkdir()
    for folder in (bare, lost):
        shutil.copytree(certified, folder)
        shutil.rmtree(folder / "certificates")
    text = (bare / "results.csv").read_text()
    (bare / "results.csv").write_text(re.sub(r"certificates/\d+\.json\.gz", "", text))
    for folder, said in ((empty, ""), (bare, "; no row of 3 in results.csv names one")):
        done = run(folder, POPULATION)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"verify: {folder}: nothing to check: no certificates{said}\n"
    done = run(lost, POPULATION)
    assert done.returncode == 4 and "0.json.gz: REJECTED: results.csv has a row for it" in done.stdout

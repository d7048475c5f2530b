"""The wheel holds what the command line needs away from the repository."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from milp_recourse.formats.instances_path import instance_files, instances_path
from milp_recourse.questions.solve import solve

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built without network from a copy of the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    ignore = shutil.ignore_patterns("__pycache__", ".*")
    for name in ("milp_recourse", "verify", "instances"):
        shutil.copytree(ROOT / name, folder / "source" / name, ignore=ignore)
    for file in [*ROOT.glob("pyproject.toml"), *ROOT.glob("*.py"), *ROOT.glob("*.in"), *ROOT.glob("README*")]:
        shutil.copy(file, folder / "source")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--wheel-dir", str(folder)]
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, str(folder / "source")],
        check=True,
        capture_output=True,
    )
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_instances_and_schemas(wheel):
    """Every shipped instance, every JSON Schema, the type marker."""
    names = set(zipfile.ZipFile(wheel).namelist())
    shipped = {
        file.relative_to(ROOT / "instances").as_posix() for file in (ROOT / "instances").rglob("*.json")
    }
    assert {f"milp_recourse/_instances/{name}" for name in shipped} <= names
    assert {"milp_recourse/formats/schemas/instance-1.schema.json", "milp_recourse/py.typed"} <= names
    assert any(name.endswith("entry_points.txt") for name in names)


def test_the_wheel_holds_the_trained_networks(wheel):
    """Every checkpoint of icarma."""
    names = set(zipfile.ZipFile(wheel).namelist())
    shipped = {
        path.name for path in (ROOT / "milp_recourse" / "lab" / "icarma" / "checkpoints").glob("*.npz")
    }
    assert shipped
    assert {f"milp_recourse/lab/icarma/checkpoints/{name}" for name in shipped} <= names


def test_the_wheel_holds_the_data_of_experiments(wheel):
    """Printed numbers, columns of published tables, words and frames of reports."""
    names = set(zipfile.ZipFile(wheel).namelist())
    lab = ROOT / "milp_recourse" / "lab"
    shipped = {path.relative_to(ROOT).as_posix() for kind in ("csv", "j2") for path in lab.rglob(f"*.{kind}")}
    assert len(shipped) == 6 and shipped <= names


def test_the_wheel_holds_the_pages_style_and_script(wheel):
    """Every file beside the pages' modules."""
    names = set(zipfile.ZipFile(wheel).namelist())
    folder = ROOT / "milp_recourse" / "reports" / "pages"
    shipped = {path.name for path in folder.iterdir() if path.suffix in (".css", ".js", ".j2")}
    assert shipped > {"page.css", "population.js", "person.html.j2", "population.html.j2"}
    assert {f"milp_recourse/reports/pages/{name}" for name in shipped} <= names


def test_the_wheel_holds_the_letters(wheel):
    """The layout and a file per language."""
    names = set(zipfile.ZipFile(wheel).namelist())
    shipped = {path.name for path in (ROOT / "milp_recourse" / "reports" / "letters").glob("*.j2")}
    assert shipped == {"layout.html.j2", "en.html.j2", "de.html.j2"}
    assert {f"milp_recourse/reports/letters/{name}" for name in shipped} <= names


def test_the_wheel_holds_the_studio(wheel):
    """Templates, words, style and script."""
    names = set(zipfile.ZipFile(wheel).namelist())
    room = ROOT / "milp_recourse" / "studio"
    shipped = {
        path.relative_to(ROOT).as_posix()
        for kind in ("templates/*.j2", "words/*.json", "static/*")
        for path in room.glob(kind)
    }
    assert len(shipped) > 10 and shipped <= names


def test_the_installed_package_finds_its_instances(wheel, tmp_path):
    """Unpacked elsewhere, the command without arguments reads its own copies."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    module = "milp_recourse.formats.instances_path"
    script = f"from {module} import *; print(instances_path(), len(instance_files('smoke')))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "site")},
    )
    folder, count = done.stdout.split()
    assert Path(folder) == tmp_path / "site" / "milp_recourse" / "_instances"
    assert int(count) == len(instance_files("smoke"))


def test_the_installed_checker_checks(wheel, tmp_path):
    """Unpacked elsewhere: the command, and python -m verify with the checker's files alone."""
    certificate, instance = tmp_path / "hold.json.gz", ROOT / "instances" / "smoke" / "hold.json"
    certificate.write_bytes(solve(instance, certificates=True).evidence)
    for site, parts in (("whole", ("milp_recourse/", "verify/")), ("alone", ("verify/",))):
        with zipfile.ZipFile(wheel) as file:
            file.extractall(tmp_path / site, [n for n in file.namelist() if n.startswith(parts)])
    commands = {"whole": ["-m", "milp_recourse", "verify"], "alone": ["-m", "verify"]}

    def run(arguments, site):
        environment = {"PYTHONPATH": str(tmp_path / site)}
        return subprocess.run(
            arguments, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
        )

    for site, command in commands.items():
        python = [sys.executable, *(["-S"] if site == "alone" else [])]  # -S: the standard library alone
        done = run([*python, *command, str(certificate), str(instance)], site)
        assert (done.returncode, done.stdout[:17]) == (0, "VERIFIED optimal "), done.stderr
        done = run([*python, "-c", "import verify; print(verify.__file__)"], site)
        assert Path(done.stdout.strip()) == tmp_path / site / "verify" / "__init__.py"


def test_a_checkout_finds_the_repository_folder():
    """No copy is needed while developing."""
    assert instances_path() == ROOT / "instances"
    assert len(instance_files("loan", 3)) == 3

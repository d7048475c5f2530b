"""The wheel holds what the command line needs away from the repository."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from milp_recourse.formats.instances_path import instance_files, instances_path
from milp_recourse.questions.solve import solve
from tests.engine.test_shipped_code import SMALL
from tests.helpers.wheels import LISTS, build

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """Built without compiling."""
    built, _ = build(tmp_path_factory.mktemp("wheel"), MILP_RECOURSE_PURE="1")
    return built


USED = """
from numba.core import event
from milp_recourse.engine.networks import small
with event.install_recorder("numba:compile") as seen:
    print(small.increased(3.0), len(seen.buffer))
"""


def with_small_functions(sources: Path) -> None:
    """Put them in the engines' place."""
    for room in ("networks", "forests"):
        small = sources / "milp_recourse" / "engine" / room / "small.py"
        small.write_text(SMALL, encoding="utf-8")
    setup, lists = (
        sources / "setup.py",
        'NETWORKS = ("engine.networks.small",)\nTREES = ("engine.forests.small",)',
    )
    setup.write_text(LISTS.sub(lists, setup.read_text(encoding="utf-8")), encoding="utf-8")


@pytest.mark.long
def test_a_wheel_with_code_compiles_nothing(tmp_path: Path) -> None:
    """It is for this Python and machine, and no cache is made. ``.ci/bare`` looks at the whole engine, when
    wheels are released."""
    built, said = build(tmp_path, with_small_functions)
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    assert built.name.split("-")[2:4] == [python, python] and not built.name.endswith("-any.whl"), said
    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet"]
    subprocess.run([*install, "--target", str(site), str(built)], check=True, capture_output=True)
    known = os.environ | {"PYTHONPATH": str(site), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", USED]
    done = subprocess.run(command, env=known, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "4.0 0\n")
    assert not (tmp_path / "cache").exists()


def test_a_wheel_without_code_where_compiling_fails(tmp_path):
    """As where numba cannot be imported: one line says so, and it is a wheel for every machine."""
    (tmp_path / "before").mkdir()
    (tmp_path / "before" / "numba.py").write_text("raise ImportError('no numba here')\n")
    built, said = build(tmp_path, PYTHONPATH=str(tmp_path / "before"))
    assert built.name.endswith("-py3-none-any.whl")
    line = "milp_recourse: the wheel has no compiled code: ImportError: no numba here"
    assert [own.strip() for own in said.splitlines() if "compiled code" in own] == [line]
    assert not any("_compiled" in name for name in zipfile.ZipFile(built).namelist())


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

"""A back end that an installed package brings is found by its name."""

import sys
from pathlib import Path

import pytest

from milp_recourse.cli import main
from milp_recourse.errors import BackendUnavailable
from milp_recourse.formats.instances_path import instances_path
from milp_recourse.solvers import backend, listed

TOY = Path(__file__).parents[2] / "docs" / "examples" / "toy_backend.py"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a package whose entry point is as told, the way pip lays it out."""

    def install(target: str) -> None:
        (tmp_path / "brought_along.py").write_text(TOY.read_text())
        meta = tmp_path / "brought_along-1.dist-info"
        meta.mkdir()
        (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: brought-along\nVersion: 1\n")
        (meta / "entry_points.txt").write_text(f"[milp_recourse.backends]\ndivision = {target}\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "brought_along", raising=False)

    return install


def test_an_entry_point_is_a_back_end(installed, monkeypatch, capsys):
    """In Python and on the command line."""
    installed("brought_along:DivisionBackend")
    assert backend("division").name == "division"
    assert listed()["division"] is None
    file = instances_path() / "smoke" / "threshold.json"
    monkeypatch.setattr(sys, "argv", ["milp-recourse", "solve", str(file), "--backend", "division"])
    main()
    assert "optimal (proof: rigorous)" in capsys.readouterr().out


@pytest.mark.parametrize("target", ["no_such_module:Backend", "brought_along:NoSuchClass"])
def test_one_that_cannot_be_loaded_says_so_and_harms_no_other(target, installed):
    """One line where it is asked for; the list says why; other names work, unknown ones are refused."""
    installed(target)
    with pytest.raises(BackendUnavailable, match="'division' cannot be loaded"):
        backend("division")
    assert "cannot be loaded" in listed()["division"]
    assert backend("grid").name == "grid"
    with pytest.raises(BackendUnavailable, match=r"allowed: .*division"):
        backend("no such back end")

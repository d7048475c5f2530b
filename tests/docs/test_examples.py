"""What README and docs print is what the commands beside it print."""

from __future__ import annotations

import math
import multiprocessing
import os
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "instances/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "results").rglob("*.md")),
]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
COMPILING = "milp_recourse: compiling "  # printed by the first solve on a machine
SECONDS = re.compile(r"\d+\.\d+(?= s\b)|\d+\.\d+(?=\s+(?:agrees|contradicts)\s*$)")
NEEDS = {"from_torch.py": "torch", "certify_an_applicant.py": "sklearn", "picture.py": "sklearn"}


def blocks(page: Path) -> list[tuple[str, str]]:
    """(language, text) of every fenced block of a page."""
    return FENCE.findall(page.read_text(encoding="utf-8"))


def consoles() -> Iterator[tuple[str, str]]:
    """(where, text) of every block that shows commands and what they print."""
    for page in PAGES:
        for number, (language, text) in enumerate(blocks(page)):
            if language == "console":
                yield f"{page.relative_to(ROOT)}:{number}", text


CONSOLES = dict(consoles())


@pytest.fixture
def desk(tmp_path):
    """A folder that sees the repository's docs and instances, and takes what commands write."""
    for name in ("docs", "instances"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["tests.helpers.loaded"])  # two thirds of what most commands would take


def command(arguments: list[str], folder: Path, streams: list[Path]) -> None:
    """Do in a process of its own what Python does with these arguments."""
    for number, stream in enumerate(streams, 1):
        os.dup2(os.open(stream, os.O_WRONLY | os.O_CREAT), number)
    os.chdir(folder)
    os.environ |= {"PYTHONPATH": str(ROOT), "COLUMNS": "180"}
    first, *rest = arguments
    if first == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "-c", "exec"), {"__name__": "__main__"})
    elif first == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = arguments, str(Path(first).parent)
        runpy.run_path(first, run_name="__main__")


def run(arguments: list[str], folder: Path) -> str:
    """What a command prints on both streams; the exit code at the end unless it is 0."""
    with TemporaryDirectory() as place:
        streams = [Path(place) / "out", Path(place) / "err"]
        process = FORKED.Process(target=command, args=(arguments, folder, streams))
        process.start()
        process.join()
        code = f"exit code {process.exitcode}\n" if process.exitcode else ""
        return "".join(stream.read_text(encoding="utf-8") for stream in streams) + code


def python_arguments(command: str) -> list[str]:
    """``python X`` or ``milp-recourse X`` as arguments of this Python."""
    program, *rest = shlex.split(command)
    return {"python": [], "milp-recourse": ["-m", "milp_recourse"]}[program] + rest


def differences(expected: str, actual: str) -> list[str]:
    """Expected lines that are not there, in order; ``...`` stands for any lines, or any end of a line.

    Numbers may differ by a thousandth or by one unit in the last place shown: solver versions do.
    Times are not compared.
    """
    lines = [line for line in actual.splitlines() if line.strip() and not line.startswith(COMPILING)]
    wrong, at, anywhere = [], 0, False
    for line in (line for line in expected.splitlines() if line.strip()):
        if line.strip() == "...":
            anywhere = True
            continue
        places = range(at, len(lines)) if anywhere else range(at, min(at + 1, len(lines)))
        place = next((k for k in places if alike(line, lines[k])), None)
        if place is None:
            wrong.append(f"expected: {line}\nprinted:  {lines[at] if at < len(lines) else '(nothing)'}")
            break
        at, anywhere = place + 1, False
    if not wrong and not anywhere and at < len(lines):
        wrong.append(f"also printed: {lines[at]}")
    return wrong


def alike(expected: str, actual: str) -> bool:
    """One line against another."""
    expected, actual = SECONDS.sub("TIME", expected), SECONDS.sub("TIME", actual)
    expected, cut, _ = expected.partition("...")
    shape = [" ".join(NUMBER.sub("#", line).split()) for line in (expected, actual)]
    if not (shape[1].startswith(shape[0]) if cut else shape[0] == shape[1]):
        return False
    return all(
        math.isclose(float(e), float(a), rel_tol=1e-3, abs_tol=1.01 * last_place(e))
        for e, a in zip(NUMBER.findall(expected), NUMBER.findall(actual), strict=False)
    )


def last_place(number: str) -> float:
    """One unit of a number's last digit shown."""
    mantissa, _, exponent = number.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 0.0 if not decimals and not exponent else 10.0 ** (int(exponent or 0) - decimals)


@pytest.mark.parametrize("where", CONSOLES)
def test_a_command_prints_what_the_page_shows(where, desk):
    """Every console block: each ``$`` line is run and the lines below it are what it prints."""
    for part in re.split(r"^\$ ", CONSOLES[where], flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        for script, module in NEEDS.items():
            if script in command:
                pytest.importorskip(module, reason=f"{script} needs {module}")
        wrong = differences(expected, run(python_arguments(command), desk))
        assert not wrong, "\n".join([command, *wrong])


def test_readme_python_block_prints_the_text_block_after_it(tmp_path):
    """The ten lines of the README and their printed output, ``VERIFIED`` the last of it."""
    pytest.importorskip("sklearn")
    found = blocks(ROOT / "README.md")
    pairs = [(a[1], b[1]) for a, b in pairwise(found) if (a[0], b[0]) == ("python", "text")]
    assert any(expected.splitlines()[-1].startswith("VERIFIED") for _, expected in pairs)
    for code, expected in pairs:
        assert not differences(expected, run(["-c", code], tmp_path))


def test_every_example_is_shown_on_a_page():
    """No example script lies about unused, and so untested."""
    shown = "".join(CONSOLES.values())
    for script in (ROOT / "docs" / "examples").glob("*.py"):
        assert f"docs/examples/{script.name}" in shown, script.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """Relative links exist; a link whose text is ``name`` in code leads to a file that defines it."""
    for text, target in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in target or target.startswith("#"):
            continue
        file = page.parent / target.partition("#")[0]
        assert file.exists(), target
        name = re.fullmatch(r"`(?:\w+\.)?(\w+)`", text)
        if name and file.suffix == ".py":
            defined = rf"^\s*(?:def|class) {name[1]}\b|^{name[1]}\b.* ="
            assert re.search(defined, file.read_text(encoding="utf-8"), re.MULTILINE), f"{target}: {text}"


def test_the_comparison_itself():
    """Numbers are compared loosely, words strictly, ``...`` skips lines, times are ignored."""
    assert not differences("cost 1.23, 0.5 s\n...\nend", "cost 1.234, 99.5 s\nmiddle\nend")
    assert not differences("cost 1.23; ...", "cost 1.23; and more")
    assert not differences("one", f"one\n{COMPILING}the search")
    assert differences("cost 1.23", "cost 1.25")
    assert differences("cost 1", "price 1")
    assert differences("one", "one\ntwo")
    assert differences("one\ntwo", "one")

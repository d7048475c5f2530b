"""What the configuration of mypy exempts from having types is compiled by numba, which infers them."""

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMPILED = {"compiled", "counting", "counting_entry", "entry"}


def test_only_compiled_functions_have_no_types() -> None:
    """Of others in the exempted files mypy would not miss them. A file without such functions needs no
    exemption."""
    configured = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    [exempt] = [one["module"] for one in configured["overrides"] if "disallow_untyped_defs" in one]
    for module in exempt:
        nodes = ast.walk(ast.parse((ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")))
        untyped = [one for one in nodes if isinstance(one, ast.FunctionDef) and one.returns is None]
        assert untyped, module
        for one in untyped:
            assert COMPILED.intersection(map(ast.unparse, one.decorator_list)), f"{module}: {one.name}"

"""What the site needs beyond these pages: an API page per part, links that leave this folder, and roles."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import griffe
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "milp_recourse"
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+)([^)\s#]+)(#[^)\s]*)?\)")
ROLE = re.compile(r":(class|func|meth|mod|attr|data|exc|ref):`~?([^`<]+?)`")
BLOCK = re.compile(r"^( *)\.\. math:: *\n?((?:(?:\1 +\S.*)?\n?)+)", re.MULTILINE)


def parts() -> list[str]:
    """The parts of the package: its folders and modules."""
    found = {p.stem for p in PACKAGE.iterdir() if p.suffix == ".py" or (p / "__init__.py").is_file()}
    return sorted(found - {"__init__", "__main__"})


def modules(part: str) -> list[str]:
    """Dotted names of a part's modules, the part itself first."""
    folder = PACKAGE / part
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]
    return sorted(name.removesuffix(".__init__") for name in names)


def on_files(files: Any, config: Any) -> Any:
    """Add a page per part, the list of them, and the instances' own page."""
    listed = "\n".join(f"- [`{part}`]({part}.md)" for part in parts())
    pages = {"api/index.md": f"# API\n\nFrom the docstrings; one page per part.\n\n{listed}\n"}
    for part in parts():
        text = "\n\n".join(f"::: {module}" for module in modules(part))
        pages[f"api/{part}.md"] = f"# {part}\n\n{text}\n"
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to the package's files lead to the API; what is not on the site is named without a link."""
    here = Path(page.file.src_uri).parent

    def turned(found: re.Match[str]) -> str:
        text, up, target, _ = found.groups()
        path = (ROOT / "docs" / here / up / target).resolve()
        if (ROOT / "docs") in path.parents:
            return found[0]
        if PACKAGE in path.parents and path.suffix == ".py":
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            name = module.split(".")[1]
            back = "../" * len(here.parts)
            return f"[{text}]({back}api/{name}.md#{module})"
        return text if text.startswith("`") else f"{text} (`{path.relative_to(ROOT)}`)"

    return LINK.sub(turned, markdown)


class Roles(griffe.Extension):
    """Docstrings' roles and formulas, as Markdown has them."""

    def on_instance(self, *, obj: griffe.Object | griffe.Alias, **_: Any) -> None:
        """Rewrite one docstring."""
        if obj.docstring is not None and not obj.is_alias:
            text = BLOCK.sub(
                lambda m: f"\n{m[1]}$$\n{m[1]}{' '.join(m[2].split())}\n{m[1]}$$\n\n", obj.docstring.value
            )
            text = re.sub(r":math:`([^`]+)`", r"\\(\1\\)", text)
            obj.docstring.value = ROLE.sub(r"`\2`", text.replace("``", "`"))

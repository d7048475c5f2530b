"""Hooks for building the site: API pages, links to files outside this folder, and roles in docstrings."""

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
    """The names of the package's folders and modules, each of which gets an API page."""
    found = {p.stem for p in PACKAGE.iterdir() if p.suffix == ".py" or (p / "__init__.py").is_file()}
    return sorted(found - {"__init__", "__main__"})


def modules(part: str) -> list[str]:
    """The dotted names of a part's modules, the part itself first."""
    folder = PACKAGE / part
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]
    return sorted(name.removesuffix(".__init__") for name in names)


def on_files(files: Any, config: Any) -> Any:
    """Add an API page per part, and a page that lists them."""
    listed = "\n".join(f"- [`{part}`]({part}.md)" for part in parts())
    pages = {"api/index.md": f"# API\n\nFrom the docstrings; one page per part.\n\n{listed}\n"}
    for part in parts():
        text = "\n\n".join(f"::: {module}" for module in modules(part))
        pages[f"api/{part}.md"] = f"# {part}\n\n{text}\n"
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links to the package's files into links to API pages; remove links to other files outside docs."""
    here = Path(page.file.src_uri).parent

    def site_link(found: re.Match[str]) -> str:
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

    return LINK.sub(site_link, markdown)


class Roles(griffe.Extension):
    """Rewrites roles and formulas in docstrings, which are reStructuredText, as Markdown."""

    def on_instance(self, *, obj: griffe.Object | griffe.Alias, **_: Any) -> None:
        """Rewrite the docstring of an object that griffe has read."""
        if obj.docstring is not None and not obj.is_alias:
            text = BLOCK.sub(
                lambda m: f"\n{m[1]}$$\n{m[1]}{' '.join(m[2].split())}\n{m[1]}$$\n\n", obj.docstring.value
            )
            text = re.sub(r":math:`([^`]+)`", r"\\(\1\\)", text)
            obj.docstring.value = ROLE.sub(r"`\2`", text.replace("``", "`"))

"""The documentation site leaves no page out, and links to headings lead to headings."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def anchors(text: str) -> set[str]:
    """What links to a page's headings end in: lower case, spaces as hyphens, no other signs."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    found = set()
    for heading in re.findall(r"^#+ +(.+)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-"))
    return found


def test_every_page_is_in_the_navigation():
    """mkdocs.yml names each page of docs/, and none that is not there."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r"^ +- (?:API: )?([\w/]+\.md)$", text, re.MULTILINE))
    assert named == {page.name for page in DOCS.glob("*.md")} | {"api/index.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_headings_lead_to_headings(page):
    """[text](page.md#heading), also within the page."""
    for target, anchor in re.findall(r"\]\(([^)\s#:]*)#([^)\s]+)\)", page.read_text(encoding="utf-8")):
        file = page if not target else page.parent / target
        if file.suffix == ".md":
            assert anchor in anchors(file.read_text(encoding="utf-8")), f"{target}#{anchor}"


def test_the_check_of_headings_sees_what_it_should():
    """Signs fall away, code blocks hold no headings."""
    assert anchors("## 10. What they do: a `gallery`\n```\n# no\n```\n") == {"10-what-they-do-a-gallery"}

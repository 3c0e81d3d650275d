"""The hook of mkdocs.yml: adds the pages of the site that are in no file below docs/.

The documents at the top of the repository become pages, README.md the first one. The reference of commands, options,
profiles and documents is made from the code (tools/site_reference.py). A link between files is kept as it is on
GitHub, and changed here to one between pages.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # mkdocs loads a hook by its path

from tools.site_reference import reference_pages  # noqa: E402

_DOCUMENTS = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "DESIGN.md": "project/design.md",
    "SECURITY.md": "project/security.md",
    "LICENSE": "project/license.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "docs/how-to": "how-to/index.md",
}
"""A file or a folder of the repository -> its page."""
_FILE_OF_PAGE = {page: file for file, page in _DOCUMENTS.items() if file != "docs/how-to"}
_ITEM = re.compile(r"(?:[*-]|\d+\.) ")
_PARAGRAPH = re.compile(r"(?!(?:[*-]|\d+\.) )\S")
_LINK = re.compile(r'(\]\(|\bsrc=")([^)\s"#:]+)(?=[)"#])')


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are made here, and fill the folders of the nav with their pages."""
    for page, text in (*_documents(), *reference_pages()):
        files.append(File.generated(config, page, content=text))
    for path in sorted(path for path in (ROOT / "deploy").rglob("*") if path.is_file()):
        files.append(File.generated(config, str(path.relative_to(ROOT)), abs_src_path=str(path)))
    pages = sorted((file.src_uri for file in files.documentation_pages()), key=_index_first)
    config.nav = _filled(config.nav, pages, named=str(config.nav))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_given: object) -> str:
    """Change links between files of the repository to links between pages."""
    here = page.file.src_uri
    file = _FILE_OF_PAGE.get(here, f"docs/{here}")

    def changed(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(file), match[2]))
        there = _DOCUMENTS.get(target, target.removeprefix("docs/"))
        return match[1] + posixpath.relpath(there, posixpath.dirname(here) or ".")

    return _LINK.sub(changed, _with_lists(markdown))


def _with_lists(markdown: str) -> str:
    """Return the text with an empty line before each list, which Python-Markdown needs and GitHub does not."""
    lines: list[str] = []
    in_code = False
    for line in markdown.splitlines():
        in_code ^= line.lstrip().startswith("```")
        if not in_code and _ITEM.match(line) and lines and _PARAGRAPH.match(lines[-1]):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def _documents() -> Iterator[tuple[str, str]]:
    for file, page in _DOCUMENTS.items():
        if (ROOT / file).is_file():
            text = (ROOT / file).read_text(encoding="utf-8")
            yield page, text if file.endswith(".md") else f"# {file.capitalize()}\n\n```\n{text}```\n"
    pages = sorted((ROOT / "docs" / "how-to").glob("*.md"))
    lines = [f"* [{path.read_text(encoding='utf-8').splitlines()[0].lstrip('# ')}]({path.name})" for path in pages]
    yield "how-to/index.md", "\n".join(["# How-to\n", "One page a task.\n", *lines, ""])


def _index_first(page: str) -> tuple[str, bool, str]:
    return posixpath.dirname(page), not page.endswith("/index.md"), page


def _filled(item: Any, pages: list[str], named: str) -> Any:
    """Return an item of the nav; in a list `folder/` stands for the pages there, `*.md` for what is named nowhere."""
    if isinstance(item, dict):
        return {title: _filled(each, pages, named) for title, each in item.items()}
    if not isinstance(item, list):
        return item
    found: list[Any] = []
    for each in item:
        if str(each).endswith("/"):
            found += [page for page in pages if page.startswith(each)]
        elif each == "*.md":
            found += [page for page in pages if "/" not in page and f"'{page}'" not in named]
        else:
            found.append(_filled(each, pages, named))
    return found

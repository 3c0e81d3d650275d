"""The site that mkdocs.yml makes of README and docs/: it builds without a warning, is whole, and needs no network."""

from __future__ import annotations

import functools
import importlib
import json
import posixpath
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import click

from eosctl.explain.kinds import all_kinds
from eosctl.profiles.sources import PROFILE_KEYS
from tests.command_tree import leaves

ROOT = Path(__file__).resolve().parents[2]
GlobalOption: type[click.Option] = importlib.import_module("eosctl.commands.frame.help").GlobalOption
_LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


class _Links(HTMLParser):
    """The targets of a page's links, what it loads by itself, and the ids of its elements."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.ids: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids.add(given.get("id") or "")
        if tag == "a":
            self.links.add(unquote(given.get("href") or "").partition("#")[0])
        elif tag in _LOADS and given.get("rel") not in ("next", "prev", "canonical"):
            self.loads.add(given.get(_LOADS[tag]) or "")


@functools.cache
def _read(page: Path) -> _Links:
    return _Links(page)


def _pages(site: Path) -> set[str]:
    return {str(path.relative_to(site)) for path in site.rglob("*.html")} - {"404.html"}


def test_each_page_is_reached_in_two_clicks(site: Path) -> None:
    reached = {"index.html"}
    for _click in range(2):
        for page in list(reached):
            folder = posixpath.dirname(page)
            reached |= {posixpath.normpath(posixpath.join(folder, link)) for link in _read(site / page).links} & _pages(
                site
            )
    assert _pages(site) - reached == set()
    wanted = {str(path.relative_to(ROOT / "docs").with_suffix(".html")) for path in (ROOT / "docs").rglob("*.md")}
    assert wanted <= reached


def test_lists_are_lists(site: Path) -> None:
    """Python-Markdown takes a list right behind a paragraph for more of it: `Said by: * kafka-clients`."""
    texts = {page: (site / page).read_text(encoding="utf-8") for page in _pages(site)}
    paragraphs = {page: re.findall(r"<p>(.*?)</p>", text, re.DOTALL) for page, text in texts.items()}
    assert [
        page for page, found in paragraphs.items() if any(re.search(r"\n(?:[*-]|\d+\.) ", each) for each in found)
    ] == []


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    """The `offline` plugin of the theme would have each page load a script from a CDN."""
    loaded = {each for page in _pages(site) for each in _read(site / page).loads}
    assert len(loaded) > 5
    assert [each for each in loaded if "//" in each] == []
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert "url(http" not in styles
    assert "@import" not in styles


def test_the_search_knows_every_page(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    assert {each["location"].partition("#")[0] or "index.html" for each in index["docs"]} >= _pages(site)


def test_the_reference_has_every_command_and_option(site: Path) -> None:
    for leaf, command in leaves().items():
        page = site / "reference" / "commands" / f"{leaf.split()[0]}.html"
        text = page.read_text(encoding="utf-8")
        assert f"eosctl-{leaf.replace(' ', '-')}" in _read(page).ids, leaf
        own = [param for param in command.params if not isinstance(param, GlobalOption)]
        names = {name for param in own for name in param.opts if name.startswith("-")}
        assert [name for name in names if name not in text] == [], leaf
    root: click.Command = importlib.import_module("eosctl.commands.frame.root").root
    options = (site / "reference" / "options.html").read_text(encoding="utf-8")
    shared = [param for param in root.params if isinstance(param, GlobalOption)]
    assert len(shared) > 15
    assert [name for param in shared for name in param.opts if name not in options] == []


def test_the_reference_has_every_kind_and_setting(site: Path) -> None:
    assert set(all_kinds()) <= _read(site / "reference" / "kinds.html").ids
    settings = (site / "reference" / "profiles.html").read_text(encoding="utf-8")
    assert [key for key in PROFILE_KEYS if f"<code>{key}" not in settings] == []

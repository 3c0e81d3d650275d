"""The pictures of the README show what eosctl can print now: their codes and fixes are those of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest

from eosctl.explain.entries import known_entries
from tests.docs_site.pictures import PICTURES, ROOT
from tests.source_trees import nodes_of

NAMES = ("doctor", "watch")
_CHARACTER = 12.2  # the width of one, as rich draws it
CODES = {str(entry): entry for entry in known_entries()}


def _lines(name: str) -> list[str]:
    """Return the lines of a picture from the top; a line is several texts, each at its column."""
    tree = ElementTree.parse(PICTURES / f"{name}.svg")  # noqa: S314 - our own file
    rows: dict[float, list[tuple[float, str]]] = {}
    for element in tree.iter("{http://www.w3.org/2000/svg}text"):
        text = "".join(element.itertext()).replace("\N{NO-BREAK SPACE}", " ")
        rows.setdefault(float(element.attrib["y"]), []).append((float(element.attrib["x"]), text))
    return [_line(sorted(row)) for _y, row in sorted(rows.items())]


def _line(texts: list[tuple[float, str]]) -> str:
    line = ""
    for left, text in texts:
        line = line.ljust(round(left / _CHARACTER)) + text
    return line.rstrip()


def _findings(name: str) -> Iterator[tuple[str, str]]:
    """Yield the code of each finding and the first line of its fix, which may be cut."""
    lines = [line for line in _lines(name) if not line.strip().startswith("follows: ")]
    for number, line in enumerate(lines):
        found = re.match(r"^[> ]? ?(?:error|warning|info|gone)\b.*?\b(?:[a-z]+/)?([a-z]+(?:_[a-z]+)+)\b", line)
        if found:
            fixes = (later.partition("fix: ") for later in lines[number + 1 :])
            yield found[1], next((fix for _before, sign, fix in fixes if sign), "")


@pytest.mark.parametrize("name", NAMES)
def test_codes_and_fixes_are_those_of_the_code(name: str) -> None:
    """A picture of text that is no longer printed would stay for ever: draw it anew."""
    found = list(_findings(name))
    assert len(found) > 4
    assert [code for code, _fix in found if code not in CODES] == []
    written = _beginnings()
    assert [fix for _code, fix in found if not any(_is_begun(fix, each) for each in written)] == []


def _beginnings() -> set[str]:
    """Return the texts in the source, up to the first value that is put in."""
    nodes = (node for path in sorted((ROOT / "eosctl").rglob("*.py")) for node in nodes_of(path))
    firsts = (node.values[0] if isinstance(node, ast.JoinedStr) else node for node in nodes)
    texts = {node.value for node in firsts if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {" ".join(text.split()) for text in texts if len(text) > 10}


def _is_begun(fix: str, written: str) -> bool:
    """Compare up to the end of the shorter one; a fix may be cut, or go on in the next line."""
    shown = fix.partition("…")[0].replace("`", "")
    written = written.replace("`", "")
    return bool(shown) and shown[: len(written)] == written[: len(shown)]


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_loads_nothing(name: str) -> None:
    """rich's own frame names a font on a CDN."""
    text = (PICTURES / f"{name}.svg").read_text(encoding="utf-8")
    assert not re.search(r"\burl\((?!#)|\bhref=|@import|<image", text)

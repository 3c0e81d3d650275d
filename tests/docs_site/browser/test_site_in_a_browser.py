"""Pages of the site as a browser shows them: in the dark as in the light, and nothing is cut off in a narrow window.

They are opened as files, where the search has no index: it needs a server.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit.browser.chromium import Shown, show

LIGHT, DARK = (0xFF, 0xFF, 0xFF), (0x1E, 0x21, 0x29)


def _complaints(shown: Shown) -> list[str]:
    return [line for line in shown.said if "search_index.js" not in line]


@pytest.mark.parametrize("page", ["reference/commands/offsets", "reference/kinds", "codes"])
def test_a_narrow_window_has_nothing_at_its_right_edge(site: Path, tmp_path: Path, page: str) -> None:
    """Tables of codes were cut off, and had words broken in the middle."""
    shown = show(site / f"{page}.html", tmp_path, width=500, height=900)
    assert _complaints(shown) == []
    width, height = shown.picture.size
    below_the_header = shown.picture.crop((width - 1, 100, width, height))
    assert {color for _count, color in below_the_header.getcolors() or ()} <= {LIGHT, (0xF5, 0xF5, 0xF5)}


def test_a_page_is_dark_where_the_browser_is(site: Path, tmp_path: Path) -> None:
    shown = show(site / "codes.html", tmp_path, dark=True, width=1280, height=700)
    assert _complaints(shown) == []
    _count, most = max(shown.picture.getcolors(shown.picture.width * shown.picture.height) or ())
    assert most == DARK

"""The effect of keys: the chosen line, the shown screen, and the scroll position. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from eosctl.output.screen import keys
from eosctl.output.screen.rows import ScreenRow
from eosctl.watch.layout import Heading, Size, help_screen, line_screen, table_screen
from eosctl.watch.rules import LineKey, WatchLine, WatchState

_STEPS = {
    keys.UP: -1,
    keys.DOWN: 1,
    keys.PAGE_UP: -10,
    keys.PAGE_DOWN: 10,
    keys.FIRST: -1_000_000,
    keys.LAST: 1_000_000,
}


class WatchView(Struct, frozen=True):
    """The view of the user: the table, a line or the help.

    `chosen` is a line that stays chosen while others come and go. `line` is shown in its last state, even if it is
    gone.
    """

    chosen: LineKey | None = None
    position: int = 0
    line: WatchLine | None = None
    helps: bool = False
    scrolled: int = 0
    quits: bool = False


def lines_of(watch: WatchState) -> Sequence[WatchLine]:
    """Return every line that can be chosen."""
    return [*watch.lines, *watch.gone]


def follow_lines(view: WatchView, watch: WatchState) -> WatchView:
    """Update the view after a change of the lines: the choice follows a moved line, and stays in place otherwise."""
    lines = lines_of(watch)
    found = {line.key: number for number, line in enumerate(lines)}
    at = found.get(view.chosen, min(view.position, max(len(lines) - 1, 0))) if view.chosen else 0
    line = view.line
    if line is not None and line.key in found:
        line = lines[found[line.key]]
    return replace(view, position=at, line=line)


def press_key(view: WatchView, key: str, watch: WatchState) -> WatchView:
    """Return the view after a key."""
    if key == keys.QUIT:
        return replace(view, quits=True)
    if key == keys.HELP:
        return replace(view, helps=not view.helps, scrolled=0)
    if view.helps or view.line is not None:
        if key in (keys.BACK, keys.CHOOSE):
            return replace(view, helps=False, line=None, scrolled=0)
        return replace(view, scrolled=max(0, view.scrolled + _STEPS.get(key, 0)))
    return _in_the_table(view, key, lines_of(watch))


def _in_the_table(view: WatchView, key: str, lines: Sequence[WatchLine]) -> WatchView:
    if not lines:
        return view
    if key == keys.CHOOSE:
        return replace(view, line=lines[view.position], chosen=lines[view.position].key, scrolled=0)
    at = max(0, min(view.position + _STEPS.get(key, 0), len(lines) - 1))
    return replace(view, position=at, chosen=lines[at].key if key in _STEPS else view.chosen)


def render(
    view: WatchView, watch: WatchState, heading: Heading, *, size: Size, now_s: float
) -> tuple[WatchView, list[ScreenRow]]:
    """Return the rows to show, and the view with its scroll position limited."""
    if view.helps:
        rows, most = help_screen(watch, scrolled=view.scrolled, size=size, now_s=now_s)
    elif view.line is not None:
        rows, most = line_screen(view.line, scrolled=view.scrolled, size=size, now_s=now_s)
    else:
        return view, table_screen(watch, heading, chosen=view.position, size=size, now_s=now_s)
    return replace(view, scrolled=min(view.scrolled, most)), rows

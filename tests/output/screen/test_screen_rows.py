"""Rows of a screen, the painter that puts them there, and keys."""

from __future__ import annotations

import pyte
import pytest

from eosctl.output.screen import (
    Painter,
    ScreenRow,
    TextSpan,
    copyable_rows,
    cut,
    fit,
    folded,
    keys_of,
    left_and_right,
    row_of,
    width_of,
)


def texts(rows: list[ScreenRow]) -> list[str]:
    return [row.text for row in rows]


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("ab", 0, ""),
    ],
)
def test_text_is_cut_by_its_cells(text: str, width: int, shown: str) -> None:
    assert cut(text, width).replace(" ", "") == shown
    assert width_of(cut(text, width)) <= width
    assert width_of(fit(text, width)) == width


def test_sentences_break_between_words_and_words_where_they_must() -> None:
    assert texts(folded("the quick brown fox", 10)) == ["the quick", "brown fox"]
    assert texts(folded("日本語日本語 ab", 6, indent="  ")) == ["  日本", "  語日", "  本語", "  ab"]
    assert texts(folded("a\nb\x1b[2J", 80)) == ["a\\nb\\x1b[2J"]


def test_a_command_is_one_line_on_several_rows() -> None:
    assert copyable_rows("abcdef", 4) == [ScreenRow((TextSpan("abcd"),), flows=True), ScreenRow((TextSpan("ef"),))]


def test_the_right_side_is_whole_or_left_out() -> None:
    assert left_and_right([TextSpan("left " * 5)], [TextSpan("right")], 20).text == "left left le…  right"
    assert left_and_right([TextSpan("left")], [TextSpan("right")], 13).text == "left"
    assert row_of([TextSpan("abc"), TextSpan("def", "bold")], 4).text == "abc…"


def test_colours_go_and_the_rest_stays_without_them() -> None:
    row = ScreenRow((TextSpan("e", "red bold"), TextSpan("x", "yellow"))).styled("reverse")
    assert row.encoded(color=True) == "\x1b[31;1;7me\x1b[m\x1b[33;7mx\x1b[m"
    assert row.encoded(color=False) == "\x1b[1;7me\x1b[m\x1b[7mx\x1b[m"


def emulated(columns: int, rows: int) -> tuple[pyte.Screen, Painter, list[str]]:
    """A terminal emulator, a painter on it, and what it wrote each time."""
    screen, written = pyte.Screen(columns, rows), list[str]()
    stream = pyte.Stream(screen)

    def write(codes: str) -> None:
        written.append(codes)
        stream.feed(codes)

    return screen, Painter(write, color=True), written


def test_only_what_changed_is_painted_and_the_screen_is_right_each_time() -> None:
    """The painter against a terminal emulator: each step's screen is what was asked for, however it got there."""
    screen, painter, written = emulated(10, 4)
    frames = [
        ["one", "two", "three"],
        ["one", "TWO", "three"],
        ["one", "TWO", "three"],
        ["0123456789", "two", "three", "four"],
        ["x"],
        [],
    ]
    for frame in frames:
        painter.paint([row_of([TextSpan(text)], 10) for text in frame], width=10, height=4)
        assert [line.rstrip() for line in screen.display] == [*frame, *[""] * (4 - len(frame))]
    assert len(written) == 5, "nothing is written where nothing changed"
    assert "three" not in written[1]
    assert all(codes.startswith("\x1b[?2026h") and codes.endswith("\x1b[?2026l") for codes in written)


def test_a_command_of_several_rows_is_left_to_the_terminal_to_break() -> None:
    screen, painter, written = emulated(10, 4)
    rows = [ScreenRow((TextSpan("top"),)), *copyable_rows("abcdefghijKLMNOPQRSTuv", 10)]
    painter.paint(rows, width=10, height=4)
    assert [line.rstrip() for line in screen.display] == ["top", "abcdefghij", "KLMNOPQRST", "uv"]
    assert "abcdefghijKLMNOPQRSTuv" in written[0]
    painter.paint([ScreenRow((TextSpan("a"),))], width=10, height=4)
    assert [line.rstrip() for line in screen.display] == ["a", "", "", ""]


@pytest.mark.parametrize(
    ("read", "keys"),
    [
        ("jk", ["down", "up"]),
        ("\x1b[A\x1bOB", ["up", "down"]),
        ("\x1b", ["back"]),
        ("\x1b?", ["back", "help"]),
        ("\x1b[5~\x1b[6~", ["page up", "page down"]),
        ("\r\n", ["enter", "enter"]),
        ("\x1b[200~q", ["quit"]),
        ("\x1b[1;5Aé", []),
        ("xyz", []),
    ],
)
def test_keys(read: str, keys: list[str]) -> None:
    assert keys_of(read) == keys

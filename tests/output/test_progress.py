"""Progress: nothing for short work, a line every ten seconds where nothing can redraw, rates of the job itself."""

from __future__ import annotations

import io

import pytest

from eosctl.deadline import Event
from eosctl.output.progress import ProgressMessages
from tests.fakes.clock import FakeTime


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_sentences_come_at_once_and_cannot_steer_the_terminal() -> None:
    out = io.StringIO()
    messages = ProgressMessages(out, FakeTime().clock(), live=False)
    messages(Event("starting"))
    messages(Event("bad \x1b[2J name", warning=True))
    assert out.getvalue() == "starting\nwarning: bad \\x1b[2J name\n"


def test_a_line_every_ten_seconds_with_the_rate_of_this_job() -> None:
    """The rate was counted from the start of the program: 1,000 of 1,000 records (9/s, 0 s left)."""
    time, out = FakeTime(), io.StringIO()
    messages = ProgressMessages(out, time.clock(), live=False)
    time.now_s += 500
    for second in range(21):
        messages(Event("reading t", done=second * 100, total=4000, unit="records"))
        time.now_s += 1
    assert out.getvalue() == (
        "reading t: 1,000 of 4,000 records (100/s, 30 s left)\nreading t: 2,000 of 4,000 records (100/s, 20 s left)\n"
    )


def test_short_work_is_not_spoken_of() -> None:
    time, out = FakeTime(), io.StringIO()
    messages = ProgressMessages(out, time.clock(), live=True)
    messages(Event("reading t", done=0, total=10))
    time.now_s += 1.9
    messages(Event("reading t", done=10, total=10))
    messages.close()
    assert out.getvalue() == ""


def test_the_live_display_leaves_sentences_whole_and_goes_away() -> None:
    time, out = FakeTime(), io.StringIO()
    messages = ProgressMessages(out, time.clock(), live=True)
    messages(Event("reading t", done=0, total=10))
    time.now_s += 5
    messages(Event("reading t", done=5, total=10))
    messages(Event("retrying [b]x[/b]"))
    messages.close()
    messages.close()
    assert "retrying [b]x[/b]" in out.getvalue()


def test_a_long_way_to_go_is_told_in_minutes_and_hours() -> None:
    time, out = FakeTime(), io.StringIO()
    messages = ProgressMessages(out, time.clock(), live=False)
    messages(Event("reading t", done=0, total=1_000_000, unit="records"))
    time.now_s += 10
    messages(Event("reading t", done=100, total=1_000_000, unit="records"))
    time.now_s += 10
    messages(Event("reading t", done=100_000, total=1_000_000, unit="records"))
    assert [line.split(", ")[-1] for line in out.getvalue().splitlines()] == ["27h left)", "3m left)"]


def test_without_a_total_there_is_a_rate() -> None:
    time, out = FakeTime(), io.StringIO()
    messages = ProgressMessages(out, time.clock(), live=False, verbose=True)
    messages(Event("writing t", done=0, unit="records"))
    time.now_s += 10
    messages(Event("writing t", done=50, unit="records"))
    assert out.getvalue() == "writing t: 50 records (5/s)\n"


def test_what_is_over_goes_from_the_terminal_and_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bars of finished reads stayed until the command ended, and the next read of the topic had the rate of both."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    time, out = FakeTime(), _Terminal()
    messages = ProgressMessages(out, time.clock(), live=True)
    for _read in range(2):
        out.truncate(0)
        messages(Event("reading t", done=0, total=100, unit="records"))
        time.now_s += 5
        messages(Event("reading t", done=50, total=100, unit="records"))
        assert "50 of 100 records (10/s, 5 s left)" in out.getvalue()
        messages(Event("reading t", done=100, total=100, unit="records"))
        time.now_s += 60
    assert "100 of 100" not in out.getvalue()
    shown_before = out.getvalue()
    messages.close()
    assert out.getvalue() == shown_before


def test_slow_work_has_a_rate_too() -> None:
    """It was 0/s below one in two seconds."""
    time, out = FakeTime(), io.StringIO()
    messages = ProgressMessages(out, time.clock(), live=False, verbose=True)
    messages(Event("deciding", done=0, unit="of 9 tasks so far"))
    time.now_s += 20
    messages(Event("deciding", done=5, unit="of 9 tasks so far"))
    assert out.getvalue() == "deciding: 5 of 9 tasks so far (0.2/s)\n"


@pytest.mark.parametrize(("live", "text"), [(False, "title\nsaid\n"), (True, "\x1b[1mtitle\x1b[0m\nsaid\n")])
def test_a_narration_has_colours_on_a_terminal_alone(live: bool, text: str) -> None:
    out = io.StringIO()
    messages = ProgressMessages(out, FakeTime().clock(), live=live)
    messages(Event("title", style="heading"))
    messages(Event("said"))
    assert out.getvalue() == text


def test_a_narration_beside_a_bar_is_whole() -> None:
    time, out = FakeTime(), io.StringIO()
    messages = ProgressMessages(out, time.clock(), live=True)
    messages(Event("waiting", done=0, total=10))
    time.now_s += 5
    messages(Event("waiting", done=5, total=10))
    messages(Event("proved: \x1b[2J", style="good"))
    messages.close()
    assert "proved: \\x1b[2J" in out.getvalue()

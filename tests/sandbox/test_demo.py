"""The demo's story without a sandbox: what it cuts, what it proves, and how it ends where a claim is wrong."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from eosctl.deadline import Event
from eosctl.demo.answers import WIDTH, columns, lines_with, shortened
from eosctl.demo.run import play
from eosctl.demo.scenes import SCENES
from eosctl.demo.walk import Walk
from eosctl.errors import DeadlineError, ExitCode
from tests.fakes.world import World

TABLE = (
    "CONNECTOR  GLOBAL         DEDICATED  FLAGS",
    'clicks     {"n":14000}    -          -',
    'orders     {"n": 1, "m":  2}  x      -',
    "connectors: 2, source partitions: 2",
    "undo: eosctl something",
)


def test_some_columns_of_a_table_without_its_closing_lines() -> None:
    table = (TABLE[0], TABLE[1], "orders     -              {}         ", *TABLE[3:])
    assert columns("CONNECTOR", "DEDICATED", "NOSUCH")(table) == [
        "CONNECTOR  DEDICATED  [...] 2 more columns",
        "clicks     -",
        "orders     {}",
    ]
    assert columns("CONNECTOR", most=1)(table) == ["CONNECTOR  [...] 3 more columns", "clicks"]


def test_some_lines_with_a_mark_for_the_others() -> None:
    lines = ("first", "a 1", "", "b", "c", "a 2", "end")
    assert lines_with("a ")(lines) == ["[...]", "a 1", "[...]", "a 2", "[...]"]


def test_lines_that_are_too_long_are_cut_with_a_mark() -> None:
    [line] = shortened(["x" * 200])
    assert len(f"   {line}") == WIDTH
    assert line.endswith("x...")


def test_the_story_fits_its_width() -> None:
    assert max(len(f"   {line}") for _name, title, why, _scene in SCENES for line in (*why, title)) <= WIDTH
    assert len(SCENES) == 6


@pytest.fixture
def told() -> list[Event]:
    return []


@pytest.fixture
def walk(told: list[Event], tmp_path: Path) -> Walk:
    return Walk(replace(World().app(tmp_path), on_event=told.append), Mock(), {})


def test_a_wrong_claim_ends_the_story_and_is_named(walk: Walk, told: list[Event]) -> None:
    def wrong(walk: Walk) -> None:
        walk.prove("sheep", expected=2, actual=1)

    def never(_walk: Walk) -> None:
        raise AssertionError

    report = play(walk, [("count", "Counting sheep", (), wrong), ("sleep", "Sleeping", (), never)])
    assert report.exit_code is ExitCode.FINDINGS
    assert [(row.step, row.ok) for row in report.rows] == [("count", False)]
    assert (report.summary.proved, report.summary.wrong) == (0, 1)
    assert "Scene 1 failed: Counting sheep" in told[-1].message


def test_an_error_names_its_scene(walk: Walk, told: list[Event]) -> None:
    def slow(_walk: Walk) -> None:
        raise DeadlineError("too slow")

    with pytest.raises(DeadlineError):
        play(walk, [("wait", "Waiting", (), slow)])
    assert "Scene 1 failed: Waiting" in told[-1].message


def test_claims_that_hold_end_with_zero(walk: Walk) -> None:
    report = play(walk, [("a", "A", ("why",), lambda walk: walk.prove("sheep", expected=1, actual=1))])
    assert (report.exit_code, report.summary.proved) == (ExitCode.OK, 1)

"""Offsets that are written once more, as they are: what was there before is no evidence of that."""

from __future__ import annotations

import json

import pytest

from eosctl.app import App
from eosctl.errors import BrokerError, EosctlError, UnauthorizedError
from eosctl.offsets.apply import apply_plan
from eosctl.offsets.files.importing import ImportRequest, plan_offsets_import
from eosctl.offsets.files.offsets_file import parse_offsets_file
from eosctl.offsets.writes import OffsetWritePlan
from tests.core.offsets.stores import NO_SPOOL
from tests.fakes.offset_topics import GLOBAL, A, B, OffsetWorld, merge_world
from tests.reports import codes

C = b'["c",{"f":"c"}]'


@pytest.fixture
def world() -> OffsetWorld:
    world = merge_world()
    world.topics.put(GLOBAL, C, b"3")
    return world


def imported(app: App, *lines: tuple[bytes, bytes | None]) -> OffsetWritePlan:
    """A file with these keys and values, each written once more where the topic has it so."""
    text = [
        json.dumps({"topic": GLOBAL, "partition": 0, "key": key.decode(), "value": value and value.decode()}).encode()
        for key, value in lines
    ]
    file = parse_offsets_file(iter(text), NO_SPOOL, name="f")
    return plan_offsets_import(app, ImportRequest(file, GLOBAL, rewrite=True))


@pytest.mark.parametrize("done", [False, True], ids=["nothing sent", "sent and aborted"])
@pytest.mark.parametrize(
    ("error", "exit_code"), [(BrokerError("another producer took over"), 1), (UnauthorizedError("not authorized"), 5)]
)
def test_a_rewrite_that_failed_is_not_written(
    app: App, world: OffsetWorld, error: EosctlError, exit_code: int, done: bool
) -> None:
    """The value that was there before counted as the one that was written: exit 0, on the repair of aborted offsets.

    It counted as aborted, too, where nothing was.
    """
    plan = imported(app, (A, b"1"), (C, b"5"), (B, None))
    assert [write.reason for write in plan.sends()] == ["rewritten", "rewritten", "differs"]
    world.topics.fail_next("record", error, done=done)
    report = apply_plan(app, plan, lambda: plan)
    assert (int(report.exit_code), report.summary.written) == (exit_code, 0)
    assert {row.outcome for row in report.rows} == {"failed"}
    assert codes(report) == [error.code, *(["aborted_but_visible"] if done else [])]

"""Where windows begin and end in the log of a partition, however far the next marker is."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from eosctl.audit.log.segments import PartitionFold
from eosctl.audit.reading.window import (
    BehindTheStop,
    WindowGate,
    begin_behind_a_marker,
    first_marker_ms,
    read_past_the_stop,
)
from eosctl.core.records import OutRecord, ScanPlan, Span, Window
from tests.audit.log_scene import OUT, START_MS, LogScene
from tests.audit.test_segments import Told, marker

MINUTE_MS = 60_000


def scene_of(*places: str) -> LogScene:
    """`m` is a marker, a minute after the one before, `r` a record; of partition 0, then of 1."""
    scene = LogScene()
    for number, letters in enumerate(places):
        log = scene.state.log(OUT, number)
        markers = 0
        for letter in letters:
            if letter == "r":
                scene.state.append(OutRecord(OUT, b"k", b"v"), number, (1000 + number, 0), transactional=True)
            else:
                log.mark((1000 + number, 1 << 14), commit=True)
                at_ms = START_MS + markers * MINUTE_MS
                log.batches[-1] = log.batches[-1]._replace(first_timestamp_ms=at_ms, max_timestamp_ms=at_ms)
                markers += 1
    return scene


def spans(scene: LogScene, first: int = 0) -> tuple[Span, ...]:
    return tuple(replace(span, first=min(first, span.stop)) for span in scene.batches.plan([OUT], Window()).spans)


@pytest.mark.parametrize("records", [1, 511, 512, 513, 5_000])
def test_the_first_marker_may_be_far_away(records: int) -> None:
    scene = scene_of("r" * records + "mm", "rmm")
    found = first_marker_ms(scene.batches, spans(scene))
    assert found == {(OUT, 0): START_MS, (OUT, 1): START_MS}
    behind = first_marker_ms(scene.batches, spans(scene, records + 1))
    assert behind == {(OUT, 0): START_MS + MINUTE_MS} | ({(OUT, 1): START_MS + MINUTE_MS} if records == 1 else {})


def test_without_a_marker_there_is_no_time() -> None:
    assert first_marker_ms(scene_of("r").batches, spans(scene_of("r"))) == {}
    assert first_marker_ms(scene_of("rm").batches, ()) == {}


@pytest.mark.parametrize("records", [1, 511, 512, 513, 5_000])
def test_a_window_begins_at_the_last_marker_before_it(records: int) -> None:
    scene = scene_of("rmm" + "r" * records + "m")
    plan = scene.batches.plan([OUT], Window())
    narrow = ScanPlan(tuple(replace(span, first=span.stop) for span in plan.spans))
    firsts = [
        begin_behind_a_marker(scene.batches, narrow, START_MS + minutes * MINUTE_MS).spans[0].first
        for minutes in (0, 1, 2, 3)
    ]
    assert firsts == [0, 1, 2, records + 3]


def test_what_lies_behind_the_stop_is_read_up_to_the_end_of_the_window() -> None:
    scene = scene_of("rrmrrmrr", "r")
    plan = scene.batches.plan([OUT], Window(until_offset=1))
    folds = {(span.topic, span.partition): PartitionFold(Told()) for span in plan.spans}
    gates = {place: WindowGate(fold) for place, fold in folds.items()}
    extended, lost, undated = read_past_the_stop(scene.batches, plan, START_MS + MINUTE_MS, gates)
    assert ([span.stop for span in extended.spans], lost, undated) == ([5, 1], (), 0)
    everything = scene.batches.plan([OUT], Window())
    assert read_past_the_stop(scene.batches, everything, START_MS, gates) == (everything, (), 0)


def test_of_plain_batches_behind_the_last_marker_their_own_time_is_all_there_is() -> None:
    told = Told()
    gate = WindowGate(PartitionFold(told))
    behind = BehindTheStop(START_MS, {(OUT, 0): gate})
    plain = marker(0)._replace(is_control=False, commit=None, is_transactional=False, records=1)
    behind.take(plain._replace(max_timestamp_ms=START_MS - 1))
    behind.take(plain._replace(base_offset=1, last_offset=1, max_timestamp_ms=START_MS))
    behind.finish()
    assert (told.words, behind.undated, behind.stops) == (["data 0"], 1, {(OUT, 0): 1})

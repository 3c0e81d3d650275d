"""A window of time is positions in the log, which markers bound: a record's own time decides nothing."""

from __future__ import annotations

import pytest

from eosctl.audit.log.segments import PartitionFold
from eosctl.audit.reading.window import WindowGate, begin_behind_a_marker, first_marker_ms
from eosctl.core.records import Batch, Place, ScanPlan, Span
from tests.audit.happenings import codes, connector
from tests.audit.log_scene import OUT, LogScene, batch, run_on
from tests.audit.test_segments import Told, marker, plain
from tests.audit.test_unjudged import HOUR_MS, START, shift
from tests.conftest import Invoke
from tests.fakes.world import OFFSETS

EXACT, WRONG, UNPROVEN = "exactly_once", "not_exactly_once", "unproven"
AN_HOUR_LATER = "2023-11-14T23:13:20Z"
YEARS_MS = 10**12


def test_a_plain_record_of_the_future_lies_before_a_marker_of_the_window(invoke: Invoke) -> None:
    """It was skipped in silence: exactly_once."""
    scene = LogScene()
    task = scene.task()
    task.commit()
    scene.plain(OUT, b"k", b"plain")
    task.commit()
    log = scene.state.log(OUT, 0)
    at = next(number for number, each in enumerate(log.batches) if not each.is_transactional)
    shift(log, YEARS_MS, first=at, stop=at + 1)
    done = run_on(scene, invoke)("-o", "json", "--until", AN_HOUR_LATER)
    assert (codes(done), connector(done)["verdict"]) == ({"batch_not_transactional"}, WRONG)


def test_plain_records_of_long_ago_lie_behind_the_last_marker_before_the_window(invoke: Invoke) -> None:
    """They were not read."""
    scene = LogScene()
    task = scene.task()
    task.commit()
    task.commit()
    for topic in (OUT, OFFSETS):
        shift(scene.state.log(topic, 0), -2 * HOUR_MS)
    number = len(scene.state.log(OUT, 0).batches)
    scene.plain(OUT, b"k", b"plain")
    shift(scene.state.log(OUT, 0), -5 * HOUR_MS, first=number)
    task.commit()
    done = run_on(scene, invoke)("-o", "json", "--since", START)
    assert (codes(done), connector(done)["verdict"]) == ({"batch_not_transactional"}, WRONG)


def test_plain_records_that_no_marker_dates_prove_and_accuse_nothing(invoke: Invoke) -> None:
    """No marker lies before them, and they claim to be older than the window."""
    scene = LogScene()
    scene.plain(OUT, b"k", b"plain")
    shift(scene.state.log(OUT, 0), -5 * HOUR_MS)
    scene.task().commit()
    done = run_on(scene, invoke)("-o", "json", "--since", START)
    assert (codes(done), connector(done)["verdict"]) == (set(), UNPROVEN)


def test_plain_records_of_before_the_window_with_times_in_it_are_no_finding(invoke: Invoke) -> None:
    """A marker behind them is older than the window."""
    scene = LogScene()
    for _ in range(3):
        scene.plain(OUT, b"k", b"plain")
    task = scene.task()
    task.commit()
    for topic in (OUT, OFFSETS):
        shift(scene.state.log(topic, 0), -2 * HOUR_MS)
    shift(scene.state.log(OUT, 0), 3 * HOUR_MS, first=0, stop=3)
    for _ in range(2):
        task.commit()
    done = run_on(scene, invoke)("-o", "json", "--since", START)
    assert (codes(done), connector(done)["verdict"]) == (set(), EXACT)


def test_one_offset_of_the_future_hides_no_other(invoke: Invoke) -> None:
    """The clock of another connector's worker was a day ahead: each later transaction was one without offsets."""
    scene = LogScene()
    task = scene.task()
    task.commit()
    scene.plain(OFFSETS, b'["d",{}]', b'{"n":1}')
    log = scene.state.log(OFFSETS, 0)
    shift(log, 24 * HOUR_MS, first=len(log.batches) - 1)
    for _ in range(3):
        task.commit()
    for each in range(len(log.batches)):
        if log.batches[each].is_control:  # a broker does not follow a worker's clock
            at_ms = min(log.batches[each].max_timestamp_ms, 1_700_000_060_000)
            log.batches[each] = log.batches[each]._replace(first_timestamp_ms=at_ms, max_timestamp_ms=at_ms)
    done = run_on(scene, invoke)("-o", "json", "--until", AN_HOUR_LATER)
    assert (codes(done), connector(done)["verdict"]) == (set(), EXACT)


def test_what_is_proven_begins_at_a_marker(invoke: Invoke) -> None:
    """It began at the time of a record, which its source had given it: years before the hole."""
    scene = LogScene()
    task = scene.task()
    for _ in range(4):
        task.commit()
    shift(scene.state.log(OUT, 0), -YEARS_MS // 10, records_only=True)
    log = scene.state.log(OUT, 0)
    log.delete_before(3)
    found = connector(run_on(scene, invoke)("-o", "json"))
    first = next(each for each in log.batches if each.is_control)
    assert found["window"]["proven_since_ms"] == first.max_timestamp_ms


def test_what_is_proven_of_a_window_of_offsets_begins_at_its_first_marker(invoke: Invoke) -> None:
    """It was said to be all from the beginning."""
    scene = LogScene()
    task = scene.task()
    for _ in range(4):
        task.commit()
    found = connector(run_on(scene, invoke)("-o", "json", "--since", "4"))
    marked = [each.max_timestamp_ms for each in scene.state.log(OUT, 0).batches if each.is_control]
    assert (found["window"]["since_ms"], found["window"]["proven_since_ms"]) == (None, marked[2])


def test_behind_a_hole_without_a_marker_nothing_is_proven(invoke: Invoke) -> None:
    scene = LogScene()
    task = scene.task()
    task.commit()
    task.commit()
    log = scene.state.log(OUT, 0)
    log.batches = [each for each in log.batches if each.base_offset in (0, 1)]
    log.end = 2
    for _ in range(4):
        scene.plain(OUT, b"k", b"v")
    log.batches = [each for each in log.batches if each.base_offset not in (2, 3)]
    assert connector(run_on(scene, invoke)("-o", "json"))["window"]["proven_until_ms"] is None


# -- the gate


def passed(since_ms: int, *batches: Batch) -> tuple[list[str], int]:
    told = Told()
    gate = WindowGate(PartitionFold(told, next_offset=0), since_ms)
    for each in batches:
        gate.take(each)
    gate.finish()
    return told.words, gate.undated


@pytest.mark.parametrize(
    ("batches", "words", "undated"),
    [
        ([plain(0, first_timestamp_ms=500), marker(1, first_timestamp_ms=999)], [], 0),
        ([plain(0, first_timestamp_ms=5000), marker(1, first_timestamp_ms=999)], [], 0),
        ([plain(0, first_timestamp_ms=500), marker(1, first_timestamp_ms=1000)], ["bare 7/0 cut"], 1),
        ([plain(0, first_timestamp_ms=5000), marker(1, first_timestamp_ms=1000)], ["data 0", "bare 7/0"], 0),
        (
            [marker(0, first_timestamp_ms=999), plain(1, first_timestamp_ms=5), marker(2, first_timestamp_ms=1000)],
            ["data 1", "bare 7/0"],
            0,
        ),
        ([batch(first_timestamp_ms=5), marker(1, first_timestamp_ms=1000)], ["data 0", "commit 7/0 0-0"], 0),
        ([marker(0, first_timestamp_ms=999), batch(base_offset=1, first_timestamp_ms=5)], ["data 1"], 0),
        ([plain(0, first_timestamp_ms=5), plain(1, first_timestamp_ms=1000)], ["data 1"], 1),
    ],
)
def test_a_gate_lets_in_what_lies_behind_the_last_older_marker(
    batches: list[Batch], words: list[str], undated: int
) -> None:
    assert passed(1000, *batches) == (words, undated)


def test_what_a_gate_leaves_out_is_no_hole() -> None:
    told = Told()
    fold = PartitionFold(told, next_offset=0)
    gate = WindowGate(fold, 1000)
    for each in (plain(0, first_timestamp_ms=5), plain(1, first_timestamp_ms=2000), marker(2, first_timestamp_ms=3000)):
        gate.take(each)
    assert (fold.removed, fold.starts_inside) == (0, True)


# -- where it begins


def begins(scene: LogScene, since_ms: int, first: int) -> int:
    log = scene.state.log(OUT, 0)
    with scene.batches as batches:
        plan = ScanPlan((Span(OUT, 0, first, log.end, log.begin, log.lso, log.end),))
        return begin_behind_a_marker(batches, plan, since_ms).spans[0].first


@pytest.mark.parametrize("plain_ones", [1, 600, 5000])
def test_a_window_begins_at_the_last_older_marker_however_far_back(plain_ones: int) -> None:
    scene = LogScene()
    scene.task().commit()
    for _ in range(plain_ones):
        scene.plain(OUT, b"k", b"v")
    log = scene.state.log(OUT, 0)
    at_ms = next(each.max_timestamp_ms for each in log.batches if each.is_control)
    assert begins(scene, at_ms + 1, log.end) == 1
    assert begins(scene, at_ms, log.end) == 0, "no marker is older: all of it"


def test_the_time_of_a_window_of_offsets_is_that_of_its_first_marker() -> None:
    scene = LogScene()
    task = scene.task()
    task.commit(*[b"v"] * 2000)
    log = scene.state.log(OUT, 0)
    spans = [
        Span(OUT, 0, 0, log.end, 0, log.end, log.end),
        Span(OUT, 1, 0, 0, 0, 0, 0),
    ]
    place: Place = (OUT, 0)
    assert first_marker_ms(scene.batches, spans) == {place: log.batches[-1].max_timestamp_ms}

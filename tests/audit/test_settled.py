"""What a first reading leaves open: ends behind a window, markers on their way, offsets whose records are nowhere."""

from __future__ import annotations

import pytest

from eosctl.core.wording import rfc3339
from tests.audit.happenings import a_marker_that_is_missing, codes, connector
from tests.audit.log_scene import KEY, OUT, OWN, START_MS, LogScene, run_on
from tests.audit.test_unjudged import shift, verdict
from tests.conftest import Invoke
from tests.fakes.world import OFFSETS

UNTIL = rfc3339(START_MS + 3_600_000) or ""
UNREAD, YEAR_2100_MS = "unread", 4_102_444_800_000


@pytest.mark.parametrize("is_behind_all", [False, True])
def test_a_record_of_the_future_hides_no_marker_that_is_missing(invoke: Invoke, is_behind_all: bool) -> None:
    """The window seemed to end before it, and what it cuts off has its end behind it."""
    scene = LogScene()
    a_marker_that_is_missing(scene)
    if not is_behind_all:
        scene.task(1).commit(topic=OUT)
    log = scene.state.log(OUT, 1)
    shift(log, YEAR_2100_MS - START_MS, records_only=True)
    done = run_on(scene, invoke)("-o", "json", "--until", UNTIL)
    assert (verdict(done), codes(done)) == ("not_exactly_once", {"commit_markers_missing"})


def test_a_marker_behind_the_window_is_no_missing_one(invoke: Invoke) -> None:
    """Of a transaction whose other markers lie before the end."""
    scene = LogScene()
    a_marker_that_is_missing(scene)
    log = scene.state.log(OUT, 1)
    log.mark((1000, 2), commit=True)
    log.batches[-1] = log.batches[-1]._replace(
        first_timestamp_ms=START_MS + 7_200_000, max_timestamp_ms=START_MS + 7_200_000
    )
    done = run_on(scene, invoke)("-o", "json", "--until", UNTIL)
    assert (verdict(done), codes(done)) == ("exactly_once", set())


@pytest.mark.parametrize("is_known", [True, False])
def test_a_marker_that_is_on_its_way_is_not_missing(invoke: Invoke, is_known: bool) -> None:
    """A leader may be away for minutes: its coordinator says so, and where nobody can be asked, nobody can say."""
    scene = LogScene()
    a_marker_that_is_missing(scene)
    known = scene.state.transactions["g-c-0"]
    known.state, known.looks_left, known.partitions = "PrepareCommit", 1 << 30, {(OUT, 1)}
    if not is_known:
        del scene.state.transactions["g-c-0"]
    done = run_on(scene, invoke)("-o", "json")
    assert "commit_markers_missing" not in codes(done)
    assert verdict(done) == ("exactly_once" if is_known else "unproven")


@pytest.mark.parametrize("words", [(), ("--until", UNTIL)])
def test_offsets_without_records_in_a_topic_that_is_read(invoke: Invoke, words: tuple[str, ...]) -> None:
    """Of the last eight transactions of a window with an end, none was looked for."""
    scene = LogScene()
    scene.topics.add_topic(UNREAD, 1, {})
    task = scene.task()
    task.commit()
    task.commit(topic=UNREAD)
    task.commit()
    done = run_on(scene, invoke)("-o", "json", *words)
    assert verdict(done) == "unproven"
    assert "1 transaction committed offsets and may have no record" in connector(done)["why"]


def test_what_is_proven_begins_behind_what_retention_may_have_taken(invoke: Invoke) -> None:
    """A transaction that has offsets only, seconds behind what was removed: its records may have been there, too."""
    scene = LogScene()
    scene.topics.add_topic(UNREAD, 1, {})
    task = scene.task()
    task.commit()
    task.commit()
    task.commit(topic=UNREAD)
    ended_ms = scene.state.log(OFFSETS, 0).batches[-1].max_timestamp_ms
    task.commit()
    scene.state.log(OUT, 0).delete_before(2)
    done = run_on(scene, invoke)("-o", "json")
    assert (verdict(done), connector(done)["window"]["proven_since_ms"]) == ("exactly_once", ended_ms)


def test_a_window_that_begins_at_offset_0_is_that_from_the_beginning(invoke: Invoke) -> None:
    """Plain offsets before the first marker were not of it."""
    scene = LogScene()
    scene.plain(OFFSETS, KEY, b'{"n":1}')
    scene.task().commit()
    assert codes(run_on(scene, invoke)("-o", "json", "--since", "0")) == {"offsets_without_transaction"}


def test_offsets_that_end_in_a_topic_that_no_task_reads(invoke: Invoke) -> None:
    """It was a warning only: the next start reads all again."""
    scene = LogScene()
    scene.topics.add_topic(OWN, 1, {"cleanup.policy": "delete"})
    task = scene.task()
    task.commit()
    scene.offsets_topic = OWN
    task.commit()
    done = run_on(scene, invoke)("-o", "json", "--offsets-topic", OWN)
    assert verdict(done) == "unproven"
    assert "the last offsets of 1 source partition are not in the offsets topic in use" in connector(done)["why"]
    scene.offsets_topic = OFFSETS
    task.commit()
    assert verdict(run_on(scene, invoke)("-o", "json", "--offsets-topic", OWN)) == "exactly_once"


def test_a_commit_marker_without_records_shows_an_abort_before(invoke: Invoke) -> None:
    """Epochs are shared: an administrator aborted the part, and its coordinator committed the transaction then."""
    scene = LogScene(bumps=False)
    task = scene.task()
    task.commit()
    task.write(OUT, b"k", b"v", partition=1)
    scene.state.log(OUT, 1).mark((task.producer_id, task.epoch), commit=False)
    task.commit()
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), verdict(done)) == ({"transaction_torn"}, "not_exactly_once")


def test_offsets_without_records_are_those_of_the_last_transaction_of_an_epoch(invoke: Invoke) -> None:
    """Those of a transaction before, which shared the epoch, were taken for them."""
    scene = LogScene(bumps=False)
    task = scene.task()
    task.commit()
    scene.bumps = True
    task.commit()
    log = scene.state.log(OUT, 0)
    del log.batches[2], log.records[1]
    for number, each in enumerate(log.batches[2:], 2):
        log.batches[number] = each._replace(base_offset=number, last_offset=number)
    log.end -= 1
    done = run_on(scene, invoke)("-o", "json")
    found = [(row["code"], row["first_offset"]) for row in done.json()["data"]["rows"] if row["severity"] == "error"]
    assert found == [("offsets_without_records", 2)]

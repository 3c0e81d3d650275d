"""`eosctl audit` of a window: what lies at its edges, and what is gone, narrows what is proven and accuses nobody."""

from __future__ import annotations

import pytest

from eosctl.core.wording import rfc3339
from tests.audit.happenings import (
    a_disabled_worker,
    codes,
    connector,
    honest,
    offsets_back_in_the_global_topic,
)
from tests.audit.log_scene import KEY, OTHER_OUT, OUT, OWN, START_MS, LogScene, run_on
from tests.conftest import Invoke
from tests.fakes.world import OFFSETS


def test_a_transaction_that_began_before_the_window_is_no_finding_and_no_proof(invoke: Invoke) -> None:
    """The first transaction in each partition was never judged: all of them without offsets were exactly_once."""
    scene = LogScene()
    task = scene.task()
    task.write(OUT, b"k", b"first")
    task.write(OUT, b"k", b"second")
    task.end()
    task.commit()
    run = run_on(scene, invoke)
    assert codes(run("-o", "json")) == {"transaction_without_offsets"}
    assert codes(run("-o", "json", "--since", "1")) == set()
    done = run("--since", "1")
    assert (done.exit_code, "1 transaction without offsets may have begun before what was read" in done.stdout) == (
        7,
        True,
    )


def test_what_a_window_cuts_off_is_not_open(invoke: Invoke) -> None:
    scene = LogScene()
    task = scene.task()
    task.commit()
    task.commit(b"a", b"b")
    assert codes(run_on(scene, invoke)("-o", "json", "--until", "3")) == set()


def test_a_window_of_time(invoke: Invoke) -> None:
    """Only what is wrong within the window counts against it."""
    scene = LogScene()
    task = scene.task()
    task.commit(key=b"")
    for _ in range(4):
        task.commit()
    run = run_on(scene, invoke)
    assert run().exit_code == 3
    after = run("--since", "2023-11-14T22:13:25Z", "-o", "json")
    assert (codes(after), after.exit_code, connector(after)["records"]) == (set(), 0, 2)
    none = run("--since", "1m", "-o", "json")
    assert (connector(none)["verdict"], none.exit_code) == ("unproven", 7)
    assert run("--since", "yesterday").exit_code == 2
    assert run("--since", "1m", "--until", "2m").exit_code == 2


YEAR_2100_MS = 4_102_444_800_000


@pytest.mark.parametrize("until", ["2023-11-14T22:13:32Z", "2023-11-15T00:00:00Z"])
def test_a_record_of_the_future_does_not_end_the_window(invoke: Invoke, until: str) -> None:
    """All behind the first record that is as young as --until was left out: what was wrong there, nobody said."""
    scene = LogScene()
    task = scene.task()
    task.commit()
    for number in range(4):
        task.commit(key=b"" if number == 2 else KEY)
    log = scene.state.log(OUT, 0)
    log.batches[2] = log.batches[2]._replace(first_timestamp_ms=YEAR_2100_MS, max_timestamp_ms=YEAR_2100_MS)
    done = run_on(scene, invoke)("-o", "json", "--until", until)
    assert (codes(done), done.exit_code) == ({"transaction_without_offsets"}, 3)
    newest_marker_ms = max(each.max_timestamp_ms for each in log.batches if each.is_control)
    window = connector(done)["window"]
    assert window["proven_until_ms"] <= newest_marker_ms, "a marker has the broker's time"
    assert window["unseen"] == []


def test_what_is_written_without_a_transaction_behind_a_record_of_the_future_is_seen(invoke: Invoke) -> None:
    scene = LogScene()
    task = scene.task()
    task.commit()
    task.commit()
    scene.plain(OUT, b"k", b"v")
    log = scene.state.log(OUT, 0)
    log.batches[2] = log.batches[2]._replace(first_timestamp_ms=YEAR_2100_MS, max_timestamp_ms=YEAR_2100_MS)
    log.batches[3] = log.batches[3]._replace(max_timestamp_ms=log.batches[4].max_timestamp_ms)
    done = run_on(scene, invoke)("-o", "json", "--until", "2023-11-15T00:00:00Z")
    assert (codes(done), done.exit_code) == ({"batch_not_transactional"}, 3)


def test_what_ended_after_the_window_is_not_in_it(invoke: Invoke) -> None:
    scene = LogScene()
    task = scene.task()
    task.commit()
    task.commit(key=b"")
    log = scene.state.log(OUT, 0)
    until = rfc3339(log.batches[2].max_timestamp_ms)
    assert until is not None
    done = run_on(scene, invoke)("-o", "json", "--until", until)
    assert (codes(done), done.exit_code, connector(done)["records"]) == (set(), 0, 1)


def test_what_was_deleted_narrows_the_proven_window(invoke: Invoke) -> None:
    scene = LogScene()
    honest(scene)
    scene.state.log(OUT, 0).delete_before(3)
    window = connector(run_on(scene, invoke)("-o", "json"))["window"]
    assert window["proven_since_ms"] == START_MS + 5_000, "the time of the first marker behind it"
    assert window["unseen"] == [f"{OUT}-0, offsets 0 to 2: 3 offsets removed by retention or DeleteRecords"]


def test_a_compacted_output_topic_is_judged_by_what_is_left(invoke: Invoke) -> None:
    scene = LogScene()
    honest(scene)
    scene.state.log(OUT, 0).compact()
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), done.exit_code) == (set(), 0)
    assert "removed by compaction" in connector(done)["window"]["unseen"][0]
    assert connector(done)["window"]["proven_since_ms"] is not None


def test_offsets_that_were_compacted_away_accuse_nobody(invoke: Invoke) -> None:
    """The offsets topic is compacted: of all but the newest offset of a source partition, the record is gone."""
    scene = LogScene()
    honest(scene)
    scene.state.log(OFFSETS, 0).compact()
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), connector(done)["verdict"]) == (set(), "unproven")
    assert "from a time of which the offsets topic has lost records" in connector(done)["why"]


def test_several_topics_and_one_that_is_named(invoke: Invoke) -> None:
    scene = LogScene()
    scene.task().commit()
    scene.plain(OTHER_OUT, b"k", b"v")
    scene.connect.connectors["c"].topics.add(OTHER_OUT)
    run = run_on(scene, invoke)
    assert run().exit_code == 3
    assert run("--topic", OUT).exit_code == 0
    assert connector(run("-o", "json"))["topics"] == [OUT, OTHER_OUT]


def test_offsets_that_are_where_nobody_looks(invoke: Invoke) -> None:
    """After a switch to the global topic, the former offsets are in a topic that no config names any more."""
    scene = LogScene(offsets_topic=OWN)
    scene.topics.add_topic(OWN, 1, {"cleanup.policy": "delete"})
    scene.task().commit()
    run = run_on(scene, invoke)
    done = run("-o", "json")
    assert (codes(done), done.exit_code) == (set(), 7), "an accusation, for a topic that is not read"
    assert codes(run("-o", "json", "--offsets-topic", OWN)) == {"offsets_elsewhere"}


def test_the_copies_of_a_worker_accuse_nobody(invoke: Invoke) -> None:
    """After a switch there and back, the copies that Connect had kept in the global topic were errors."""
    scene = LogScene()
    offsets_back_in_the_global_topic(scene)
    done = run_on(scene, invoke)("-o", "json", "--offsets-topic", OWN)
    assert (codes(done), done.exit_code) == ({"offsets_elsewhere"}, 0)
    task = scene.task()
    for _ in range(15):  # each is two seconds later
        task.commit()
    scene.plain(OFFSETS, KEY, b'{"n":1}')
    again = run_on(scene, invoke)("-o", "json", "--offsets-topic", OWN)
    assert (codes(again), again.exit_code) == ({"offsets_elsewhere", "offsets_without_transaction"}, 3)


def test_what_a_disabled_worker_wrote_before_the_window_accuses_nobody(invoke: Invoke) -> None:
    """An audit of the time since an upgrade said not_exactly_once for what was written before it."""
    scene = LogScene()
    a_disabled_worker(scene)
    task = scene.task()
    for _ in range(4):
        task.commit()
    run = run_on(scene, invoke)
    assert "offsets_without_transaction" in codes(run("-o", "json"))
    since = run("-o", "json", "--since", "2023-11-14T22:13:25Z")
    assert (codes(since), since.exit_code) == (set(), 0)

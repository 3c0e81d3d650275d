"""What the internal topics show: whether a fault hit, which source partitions go on, whether a snapshot runs."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from eosctl.app import App
from eosctl.core.ids import WorkerId
from eosctl.core.workers.connector_entry import ConnectorEntry, PartStatus, TaskStatus
from eosctl.errors import DeadlineError, EosctlError
from eosctl.rehearse.ground import Ground
from eosctl.rehearse.log import read_source_offsets, read_transaction_counts
from eosctl.sandbox.servers.process import Node
from tests.audit.log_scene import LogScene, Task
from tests.fakes.world import OFFSETS

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT = 0, 1, 2, 3
LOG = "__transaction_state"


def logged(scene: LogScene, *states: int, task: str = "g-c-0") -> None:
    """Records of the coordinator of a task's transactional id."""
    if LOG not in scene.topics.topics:
        scene.topics.add_topic(LOG, 1)
    for state in states:
        value = struct.pack(">hqhib", 0, 7, 4, 60_000, state) + struct.pack(">iqq", -1, 1_700_000_000_000, -1)
        scene.topics.put(LOG, struct.pack(">hh", 0, len(task)) + task.encode(), value, partition=0)


class OnWorld(Ground):
    """A ground whose workers and status are a test's."""

    seen: ConnectorEntry | None = None

    def app_now(self, *, timeout_s: float | None = None) -> App:
        del timeout_s
        return self.app

    def status(self) -> ConnectorEntry | None:
        return self.seen

    def workers(self) -> list[Node]:
        return []


def ground_on(scene: LogScene) -> OnWorld:
    app = scene.app(connect_urls=("http://w0:8083",), offset_topic=OFFSETS, timeout_s=30.0)
    return OnWorld(app, Path("/nowhere"), "c", {}, group="g")


def test_what_coordinators_logged_of_the_tasks_of_a_connector() -> None:
    scene = LogScene()
    app = ground_on(scene).app
    assert not read_transaction_counts(app, "g", "c").initialized
    logged(scene, EMPTY, ONGOING, PREPARE_COMMIT, 4, ONGOING, PREPARE_ABORT, 5, EMPTY)
    logged(scene, EMPTY, task="g-c-1")
    logged(scene, EMPTY, PREPARE_ABORT, task="g-other-0")
    found = read_transaction_counts(app, "g", "c")
    assert (dict(found.initialized), dict(found.aborted)) == ({0: 2, 1: 1}, {0: 1})


@pytest.mark.parametrize(
    ("states", "aborted", "missed"),
    [
        ((PREPARE_ABORT, 5, EMPTY), True, 0),
        ((EMPTY,), False, 0),
        ((EMPTY,), True, 1),
        ((ONGOING, PREPARE_COMMIT, 4), False, 1),
        ((), True, 2),
    ],
)
def test_a_fault_that_the_log_does_not_show_did_not_hit(states: tuple[int, ...], aborted: bool, missed: int) -> None:
    """A look before the kill was enough, and a config that was put."""
    scene = LogScene()
    logged(scene, EMPTY, ONGOING, PREPARE_ABORT, 5, EMPTY)
    ground = ground_on(scene)
    ground.begin_fault()
    logged(scene, *states)
    ground.require_traces([0], aborted=aborted)
    assert len(ground.missed) == missed


def test_a_fault_without_a_task_did_not_hit() -> None:
    ground = ground_on(LogScene())
    ground.require_traces(ground.all_tasks())
    assert len(ground.missed) == 1


def test_a_log_that_can_not_be_read_shows_nothing() -> None:
    """And nothing that the connector did wrong."""
    scene = LogScene()
    logged(scene, EMPTY)
    ground = ground_on(scene)
    ground.begin_fault()
    scene.state.leaderless.add((LOG, 0))
    ground.require_traces([0])
    assert len(ground.missed) == 1


def commit(task: Task, partition: object, offset: dict[str, Any] | None, *, committed: bool = True) -> None:
    task.write(OFFSETS, json.dumps(["c", partition]).encode(), None if offset is None else json.dumps(offset).encode())
    task.end(commit=committed)


def test_source_partitions_and_how_often_each_committed() -> None:
    scene = LogScene()
    task, app = scene.task(), ground_on(scene).app
    for number in (1, 2):
        commit(task, {"file": "a"}, {"n": number})
    commit(task, {"file": "b"}, {"n": 1})
    commit(task, {"file": "gone"}, {"n": 1})
    commit(task, {"file": "gone"}, None)
    before = read_source_offsets(app, "c")
    assert before.commits == {'{"file": "a"}': 2, '{"file": "b"}': 1}
    commit(task, {"file": "a"}, {"n": 3})
    commit(task, {"file": "b"}, {"n": 2}, committed=False)
    assert read_source_offsets(app, "c").commits == {'{"file": "a"}': 3, '{"file": "b"}': 1}


@pytest.mark.parametrize(
    ("partition", "offsets", "back", "repeated", "returned"),
    [
        ({"x": 1}, [{"n": 1}, {"n": 2}, {"n": 2}, {"n": 3}], 0, 1, 0),
        ({"x": 1}, [{"n": 1}, {"n": 2}, {"n": 1}], 0, 1, 1),
        ({"x": 1}, [{"n": 2}, {"n": 1}], 0, 0, 0),
        ({"x": 1}, [{"n": 1}, {"n": 2}, None, {"n": 1}], 0, 0, 0),
        ({"filename": "f"}, [{"position": 9}, {"position": 5}], 1, 0, 0),
        ({"filename": "f"}, [{"position": 5}, {"position": 9}], 0, 0, 0),
    ],
)
def test_offsets_that_come_again_or_go_back(
    partition: object, offsets: list[Any], back: int, repeated: int, returned: int
) -> None:
    """Which way an offset goes is known of sources that are known; of others, that it was there before."""
    scene = LogScene()
    task = scene.task()
    for each in offsets:
        commit(task, partition, each)
    found = read_source_offsets(ground_on(scene).app, "c")
    assert (len(found.went_back), found.repeated, found.returned) == (back, repeated, returned)


@pytest.mark.parametrize(
    ("offset", "is_under_way"),
    [
        ({"file": "b.1", "pos": 4, "snapshot": True}, True),
        ({"lsn": 4, "snapshot": "INITIAL"}, True),
        ({"file": "b.1", "pos": 4, "snapshot": True, "snapshot_completed": True}, False),
        ({"lsn": 4, "snapshot": "INITIAL", "last_snapshot_record": True}, False),
        ({"lsn": 4, "snapshot": "INCREMENTAL", "snapshot_completed": False}, False),  # it goes on where it was
        ({"sec": 4, "ord": 1, "initsync": True}, True),  # MongoDB's
        ({"file": "b.1", "pos": 4}, False),
        ({"file": "b.1", "pos": 4, "snapshot": "false"}, False),
    ],
)
def test_no_fault_begins_while_a_snapshot_is_under_way(offset: dict[str, Any], is_under_way: bool) -> None:
    """RUNNING was well enough: a snapshot that is interrupted begins again, with all its rows."""
    scene = LogScene()
    commit(scene.task(), {"server": "s"}, offset)
    ground = ground_on(scene)
    if not is_under_way:
        ground.await_snapshot()
        return
    with pytest.raises(DeadlineError, match="a snapshot of"):
        ground.await_snapshot()


def test_offsets_that_can_not_be_read_are_no_sign_that_all_is_well() -> None:
    scene = LogScene()
    commit(scene.task(), {"server": "s"}, {"n": 1})
    scene.state.leaderless.add((OFFSETS, 0))
    with pytest.raises(DeadlineError, match="can't be read"):
        ground_on(scene).await_snapshot()


@dataclass(frozen=True)
class Died:
    trace: str
    ends_at_once: bool


@pytest.mark.parametrize(
    "died",
    [
        Died("java.lang.NoClassDefFoundError: org/apache/kafka/common/utils/AppInfoParser\n\tat x", True),
        Died("org.apache.kafka.connect.errors.ConnectException: no\nCaused by: java.lang.NoSuchMethodError: f()", True),
        Died("java.sql.SQLException: no such table", False),
    ],
)
def test_a_plugin_that_can_not_run_here_ends_the_wait_at_once(died: Died) -> None:
    """It was waited for until the timeout, and unproven."""
    ground = ground_on(LogScene())
    worker = WorkerId("w0:8083")
    ground.seen = ConnectorEntry(
        "source",
        itself=PartStatus("RUNNING", worker),
        tasks=(TaskStatus(0, "FAILED", worker, died.trace),),
        wanted=(0,),
    )
    began_s = ground.app.clock.monotonic_s()
    with pytest.raises(EosctlError) as caught:
        ground.await_well(within_s=20, ready=lambda: True)
    assert isinstance(caught.value, DeadlineError) is not died.ends_at_once
    assert (ground.app.clock.monotonic_s() - began_s < 1) is died.ends_at_once


def test_where_the_logs_end() -> None:
    scene = LogScene()
    scene.task().commit(b"1")
    ends = ground_on(scene).log_ends()
    assert {place: end for place, end in ends.items() if end} == {("out", 0): 2, (OFFSETS, 0): 2}

"""Who commits the offsets of a source partition, what they say, and whose a producer is: by evidence only."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eosctl.audit.log.ledger import SourcePartitions
from eosctl.audit.log.segments import Part
from eosctl.core.ids import ProducerId, TransactionalId
from tests.audit.happenings import codes, connector
from tests.audit.log_scene import OUT, OWN, LogScene, Task, mirror, mirror_scene, run_on
from tests.audit.test_segments import marker
from tests.conftest import Invoke
from tests.fakes.world import OFFSETS

EXACT, WRONG, UNPROVEN = "exactly_once", "not_exactly_once", "unproven"
SHARED = b'["c",{"task":"1"}]'
FILE = b'["c",{"filename":"/a"}]'


# -- source partitions


def a_task_of_before(scene: LogScene) -> None:
    """tasks.max was 2: task 1 was not fenced, and its source partition went to task 0."""
    zombie, heir = scene.task(1), scene.task(0)
    for number, task in enumerate((zombie, zombie, heir, zombie, heir, zombie)):
        task.commit(b"%d" % number, offset=b'{"n":%d}' % number, key=SHARED)


def the_same_connector_in_another_group(scene: LogScene) -> None:
    ours, theirs = scene.task(), Task(scene, "h-c-0").start()
    for number in range(3):
        ours.commit(offset=b'{"n":%d}' % number)
        theirs.commit(offset=b'{"n":%d}' % number)


def a_connector_that_moved_here(scene: LogScene) -> None:
    Task(scene, "h-c-0").start().commit()
    scene.task().commit()


def a_source_partition_that_was_given_back(scene: LogScene) -> None:
    """Each time the task was started again: two rebalances."""
    for number in (0, 1, 0, 1):
        task = scene.task(number)
        task.commit(key=SHARED)
        task.commit(key=SHARED)


def read_again(scene: LogScene) -> None:
    task = scene.task()
    for position in (100, 200, 300, 100, 200, 300):
        task.commit(b"%d" % position, offset=b'{"position":%d}' % position, key=FILE)


def an_abort_in_between(scene: LogScene) -> None:
    """What was aborted is no offset: the next one may lie before it."""
    task = scene.task()
    task.commit(offset=b'{"position":200}', key=FILE)
    task.write(OUT, b"k", b"x")
    task.write(OFFSETS, FILE, b'{"position":300}')
    task.end(commit=False)
    task.commit(offset=b'{"position":250}', key=FILE)


def put_back_by_an_operator(scene: LogScene) -> None:
    task = scene.task()
    task.commit(offset=b'{"position":200}', key=FILE)
    operator = Task(scene, "eosctl-offsets-g-writer").start()
    operator.write(OFFSETS, FILE, b'{"position":100}')
    operator.end()
    scene.task().commit(offset=b'{"position":150}', key=FILE)


def put_back_by_a_worker(scene: LogScene) -> None:
    """PATCH /connectors/c/offsets: the worker takes the id of task 0."""
    scene.task().commit(offset=b'{"position":200}', key=FILE)
    worker = scene.task()
    worker.write(OFFSETS, FILE, b'{"position":100}')
    worker.end()
    scene.task().commit(offset=b'{"position":150}', key=FILE)


def reset_by_an_operator(scene: LogScene) -> None:
    scene.task().commit(offset=b'{"position":200}', key=FILE)
    operator = Task(scene, "eosctl-offsets-g-writer").start()
    operator.write(OFFSETS, FILE, None)
    operator.end()
    scene.task().commit(offset=b'{"position":100}', key=FILE)


@pytest.mark.parametrize("bumps", [True, False])
@pytest.mark.parametrize(
    ("happens", "found", "verdict"),
    [
        (a_task_of_before, {"source_partition_shared"}, WRONG),
        (
            the_same_connector_in_another_group,
            {"source_partition_shared", "foreign_offsets", "foreign_producer"},
            WRONG,
        ),
        (a_connector_that_moved_here, {"foreign_offsets", "foreign_producer"}, UNPROVEN),
        (a_source_partition_that_was_given_back, set(), EXACT),
        (read_again, {"source_offset_went_back"}, WRONG),
        (an_abort_in_between, {"transaction_aborted"}, EXACT),
        (put_back_by_an_operator, {"source_offset_went_back"}, UNPROVEN),
        (put_back_by_a_worker, {"source_offset_went_back"}, UNPROVEN),
        (reset_by_an_operator, {"source_offset_went_back"}, UNPROVEN),
    ],
)
def test_who_commits_a_source_partition_and_what(
    invoke: Invoke, happens: Callable[[LogScene], None], bumps: bool, found: set[str], verdict: str
) -> None:
    """Keys and values of the offsets were read and thrown away: rows that came twice were exactly_once."""
    scene = LogScene(bumps=bumps)
    happens(scene)
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), connector(done)["verdict"]) == (found, verdict)


def test_the_source_partitions_are_told(invoke: Invoke) -> None:
    scene = LogScene()
    task = scene.task()
    task.commit()
    task.commit()
    scene.task(1).commit(key=SHARED)
    found = connector(run_on(scene, invoke)("-o", "json"))
    assert found["source_partition_count"] == 2
    assert [
        (each["source_partition"], each["commits"], each["transactional_id"]) for each in found["source_partitions"]
    ] == [({"task": "0"}, 2, "g-c-0"), ({"task": "1"}, 1, "g-c-1")]


def test_a_shard_of_a_mirror_may_have_its_own_task(invoke: Invoke) -> None:
    scene = mirror_scene()
    for _ in range(4):
        scene.plain("src", b"k", b"v")
    mirror(scene.task(0, "m"), 1, 2)
    mirror(scene.task(0, "m"), 3, 2)
    done = run_on(scene, invoke)("-o", "json", "--connector", "m")
    assert (codes(done), connector(done)["verdict"]) == (set(), EXACT)


# -- whose an id is


@pytest.mark.parametrize("name", ["g-eu-c-0", "g-tx-0", "g-sink-0-17", "g-enricher-1_0"])
def test_an_id_that_begins_like_the_groups_is_nobodys(invoke: Invoke, name: str) -> None:
    """It was taken for the one of a connector that is gone: a warning, and exactly_once."""
    scene = LogScene()
    scene.task().commit()
    Task(scene, name).start().commit(b"x", key=b"")
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), connector(done)["verdict"]) == ({"foreign_producer"}, UNPROVEN)


def test_a_connector_that_the_config_topic_still_shows_is_the_groups(invoke: Invoke) -> None:
    """Its records were written before it was deleted; it committed no offset in the window."""
    scene = LogScene()
    scene.topics.add_topic("connect-configs", 1)
    scene.topics.put("connect-configs", b"connector-gone", None, partition=0)
    scene.task().commit()
    Task(scene, str(TransactionalId("g-gone-0"))).start().commit(b"x", key=b"")
    done = run_on(scene, invoke)("-o", "json")
    assert (codes(done), connector(done)["verdict"]) == ({"foreign_producer"}, EXACT)


def test_what_was_elsewhere_before_the_window_is_no_finding(invoke: Invoke) -> None:
    """Each audit within fifteen minutes of a switch showed it."""
    scene = LogScene()
    task = scene.task()
    for _ in range(3):
        task.commit()
    scene.topics.add_topic(OWN, 1, {"cleanup.policy": "delete"})
    scene.offsets_topic = OWN
    scene.connect.connectors["c"].config["offsets.storage.topic"] = OWN
    for _ in range(6):
        task.commit()
    done = run_on(scene, invoke)("-o", "json", "--since", "2023-11-14T22:13:34Z")
    assert (codes(done), connector(done)["verdict"]) == (set(), EXACT)


def test_offsets_that_no_task_reads(invoke: Invoke) -> None:
    """The next start reads all of it again: it was exactly_once."""
    scene = LogScene(offsets_topic=OWN)
    scene.topics.add_topic(OWN, 1, {"cleanup.policy": "delete"})
    scene.task().commit()
    run = run_on(scene, invoke)
    done = run("-o", "json", "--offsets-topic", OWN)
    assert (codes(done), connector(done)["verdict"]) == ({"offsets_elsewhere"}, UNPROVEN)
    scene.offsets_topic = OFFSETS
    scene.task().commit()
    assert connector(run("-o", "json", "--offsets-topic", OWN))["verdict"] == EXACT


def test_another_producer_under_the_id_of_a_task(invoke: Invoke) -> None:
    """The author of the connector was blamed, though its other transactions have offsets."""
    scene = LogScene()
    scene.task().commit()
    scene.task().commit(b"stolen", key=b"")
    (row,) = run_on(scene, invoke)("-o", "json").json()["data"]["rows"]
    assert (row["code"], row["count"]) == ("transaction_without_offsets", 1)
    assert "another producer may use this id" in row["fix"]


# -- the histories


def commits(*times: tuple[int, int, int]) -> SourcePartitions:
    """Of one source partition: producer id, epoch and time of each commit, in order."""
    made = SourcePartitions()
    for producer_id, epoch, ended_ms in times:
        one = Part(OFFSETS, 0, ProducerId(producer_id), epoch, 0, 0, ended_ms, ended_ms, 1, is_cut=False)
        one.end(marker(1, first_timestamp_ms=ended_ms), raises_epoch=True)
        made.commit(SHARED, one)
    return made


@pytest.mark.parametrize(
    ("later", "earlier", "is_certain"),
    [
        ((7, 5, 0), (7, 4, 90_000), True),
        ((7, 4, 90_000), (7, 5, 0), False),
        ((7, 4, 5_001), (7, 4, 0), True),
        ((7, 4, 5_000), (7, 4, 0), False),
        ((8, 5, 5_001), (7, 9, 0), True),
        ((8, 9, 5_000), (7, 5, 0), False),
        ((8, 5, 0), (7, 4, 4_999), False),
    ],
)
def test_a_commit_is_later_by_its_epoch_else_by_clocks_that_may_be_apart(
    later: tuple[int, int, int], earlier: tuple[int, int, int], is_certain: bool
) -> None:
    (one,), (other,) = commits(later).of.values(), commits(earlier).of.values()
    assert one.is_certainly_after(other) is is_certain


def test_returns_that_are_too_many_are_counted() -> None:
    """Each commit but the first of each producer is a return; what is not kept leaves the verdict unproven."""
    found = commits(*((7 + number % 2, number, number) for number in range(10_005)))
    (history,) = found.of.values()
    assert (len(found._returns), found.unkept, history.commits) == (10_000, 3, 10_005)

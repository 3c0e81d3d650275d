"""What happens in the log of a connector: honest ways and wrong ones, each a function over a LogScene."""

from __future__ import annotations

from typing import Any

from eosctl.core.records import OutRecord
from tests.audit.log_scene import KEY, OUT, OWN, START_MS, LogScene
from tests.conftest import Outcome
from tests.fakes.world import OFFSETS


def honest(scene: LogScene) -> None:
    task = scene.task()
    for _ in range(3):
        task.commit(b"a", b"b")


def a_task_that_moved(scene: LogScene) -> None:
    """Its worker was killed in a transaction, which its successor's start aborts."""
    before = scene.task()
    before.commit()
    before.write(OUT, b"k", b"lost")
    scene.state.expire("g-c-0")
    scene.task().commit()


def nothing_written(scene: LogScene) -> None:
    scene.task()


def plain_writes(scene: LogScene) -> None:
    scene.task().commit()
    scene.plain(OUT, b"k", b"v")


def null_offsets(scene: LogScene) -> None:
    """Connect writes a tombstone whose key has no source partition, in the same transaction."""
    task = scene.task()
    task.commit()
    task.commit(b"x", offset=None, key=b'["c",null]')


def no_offsets_at_all(scene: LogScene) -> None:
    task = scene.task()
    task.commit()
    task.commit(b"x", key=b"")
    task.commit()


def offsets_of_another_only(scene: LogScene) -> None:
    task = scene.task()
    task.commit()
    task.commit(b"x", key=b'["cc",{"task":"0"}]')


def a_disabled_worker(scene: LogScene) -> None:
    scene.plain(OUT, b"k", b"v")
    scene.plain(OFFSETS, KEY, b'{"n":1}')


def an_aborted_transaction(scene: LogScene) -> None:
    task = scene.task()
    task.commit()
    task.write(OUT, b"k", b"x")
    task.end(commit=False)


def an_open_transaction(scene: LogScene) -> None:
    task = scene.task()
    task.commit()
    task.write(OUT, b"k", b"x")


def a_young_open_transaction(scene: LogScene) -> None:
    an_open_transaction(scene)
    scene.time.now_s = (START_MS + 5_000) / 1000


def another_connector(scene: LogScene) -> None:
    scene.connect.add("d", {"topic": OUT})
    scene.task().commit()
    scene.task(0, "d").commit(key=b'["d",{}]')


def a_connector_that_is_gone(scene: LogScene) -> None:
    """Its records stay, and its id says whose they are."""
    scene.task().commit()
    scene.task(0, "gone").commit(key=b'["gone",{}]')


def an_application(scene: LogScene) -> None:
    scene.task().commit()
    application = scene.task()
    application.transactional_id = "my-application"
    application.start().commit(key=b"")


def forgotten_by_everybody(scene: LogScene) -> None:
    """A producer with offsets of nobody, whose id the coordinators do not know any more."""
    scene.task().commit()
    application = scene.task()
    application.transactional_id = "old"
    application.start().commit(key=b"")
    del scene.state.transactions["old"]


def forgotten_but_with_offsets(scene: LogScene) -> None:
    scene.task().commit()
    del scene.state.transactions["g-c-0"]


def a_zombie_that_a_fence_stopped(scene: LogScene) -> None:
    zombie = scene.task()
    zombie.commit()
    zombie.write(OUT, b"k", b"x")
    scene.state.expire("g-c-0")
    scene.task().commit()
    record = OutRecord(OUT, b"k", b"zombie")
    assert scene.state.write_in("g-c-0", (zombie.producer_id, zombie.epoch), record, 0) < 0


def a_zombie_that_nobody_stopped(scene: LogScene) -> None:
    """Brokers refuse its epoch: no log has this unless one of them is broken."""
    zombie = scene.task()
    zombie.commit()
    successor = scene.task()
    successor.commit()
    zombie.commit(b"again")


def a_marker_that_is_missing(scene: LogScene) -> None:
    task = scene.task()
    task.commit()
    task.write(OUT, b"k", b"x", partition=1)
    task.write(OUT, b"k", b"x", partition=0)
    task.write(OFFSETS, KEY, b'{"n":2}')
    scene.end(task, commit=True, but=(OUT, 1))


def offsets_in_the_former_topic(scene: LogScene) -> None:
    """The connector was moved to a topic of its own in the window."""
    scene.topics.add_topic(OWN, 1, {"cleanup.policy": "delete"})
    scene.task().commit()
    scene.connect.connectors["c"].config["offsets.storage.topic"] = OWN
    scene.offsets_topic = OWN
    task = scene.task()
    task.commit()
    scene.plain(OFFSETS, KEY, b'{"n":1}')  # the copy that Connect keeps in the global topic


def offsets_back_in_the_global_topic(scene: LogScene) -> None:
    """The connector had a topic of its own for a while; its worker kept copies in the global one."""
    scene.task().commit()
    scene.topics.add_topic(OWN, 1, {"cleanup.policy": "delete"})
    scene.offsets_topic = OWN
    task = scene.task()
    task.commit()
    scene.plain(OFFSETS, KEY, b'{"n":1}')
    task.commit()
    scene.offsets_topic = OFFSETS
    scene.task().commit()


def codes(done: Outcome) -> set[str]:
    return {row["code"] for row in done.json()["data"]["rows"]}


def connector(done: Outcome) -> Any:
    (found,) = done.json()["data"]["connectors"]
    return found


def numbered(scene: LogScene, *numbers: int) -> None:
    task = scene.task()
    for number in numbers:
        task.commit(b'{"id":%d,"name":"n"}' % number)

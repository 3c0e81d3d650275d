"""The config topic, followed: always what reading it anew would give, and read on from where the last look ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eosctl.collect import followed
from eosctl.collect.followed import FollowedConfigs, TooLargeError, following
from eosctl.core.configs.fold import fold_config_topic
from eosctl.core.records import OutRecord
from tests.collect.scene import CONFIG_TOPIC, app_of, group
from tests.fakes.doctor_scene import OFFSETS

TASK = b'{"properties":{"task.class":"T","password":"p"}}'
ISOLATIONS = ("read_committed", "read_uncommitted")


class Scene:
    """A group's topics, and a store that follows its config topic."""

    def __init__(self, tmp_path: Path) -> None:
        self.world = group()
        self.app = app_of(self.world, tmp_path)
        self.configs = FollowedConfigs(self.app.clock)
        self.store = following(self.configs)(self.app)

    def put(self, key: str, value: bytes | None) -> None:
        self.world.topics.put(CONFIG_TOPIC, key.encode(), value)

    def agree(self) -> None:
        """What is followed folds to the same as what is read anew."""
        for isolation in ISOLATIONS:
            anew = self.world.topics.read(CONFIG_TOPIC, isolation=isolation)
            kept = self.store.read(CONFIG_TOPIC, isolation=isolation)
            assert fold_config_topic(kept.records) == fold_config_topic(anew.records)
            assert (kept.bounds, [r.offset for r in kept.records]) == (anew.bounds, [r.offset for r in anew.records])


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def read_from(scene: Scene) -> list[Any]:
    """What each read of the store behind it was to begin at."""
    seen: list[Any] = []
    real = scene.world.topics.read

    def noted(topic: str, **options: Any) -> Any:
        seen.append(dict(options.get("since") or {}))
        return real(topic, **options)

    scene.world.topics.read = noted  # type: ignore[method-assign]  # the fake's own, watched
    return seen


def test_it_is_read_on_and_not_again(scene: Scene) -> None:
    scene.agree()
    scene.put("task-orders-0", TASK)
    scene.put("commit-orders", b'{"tasks":1}')
    begins = read_from(scene)
    first = scene.store.read(CONFIG_TOPIC)
    scene.put("tasks-fencing-orders", b'{"task-count":1}')
    second = scene.store.read(CONFIG_TOPIC)
    assert len(second.records) == len(first.records) + 1
    assert begins[1] == {0: first.bounds[0].lso} != {}
    del scene.world.topics.read
    scene.agree()


def test_an_open_transaction_and_aborted_records(scene: Scene) -> None:
    """Its records are seen once it has ended, and by the other view before."""
    scene.agree()
    scene.world.topics.open_transaction(CONFIG_TOPIC, 0)
    scene.put("connector-late", b'{"properties":{"a":"b"}}')
    scene.agree()
    scene.world.topics.close_transaction(CONFIG_TOPIC, 0)
    scene.world.topics.write_aborted([OutRecord(CONFIG_TOPIC, b"connector-gone", b'{"properties":{}}', 0)])
    scene.put("connector-late", None)
    scene.agree()


def test_nothing_of_a_tasks_config_is_kept(scene: Scene) -> None:
    """They are most of the topic, and may have passwords in them; odd ones are kept for what is said of them."""
    scene.put("task-orders-0", TASK)
    scene.put("task-orders-1", b"[1]")
    scene.put("task-orders-2", b"{")
    kept = {record.key: record.value for record in scene.store.read(CONFIG_TOPIC).records}
    assert kept[b"task-orders-0"] == b'{"properties":{}}'
    assert (kept[b"task-orders-1"], kept[b"task-orders-2"]) == (b"[1]", b"{")
    scene.agree()


def test_a_topic_made_anew_is_read_from_its_beginning(scene: Scene) -> None:
    scene.agree()
    topics = scene.world.topics
    del topics.topics[CONFIG_TOPIC]
    topics.add_topic(CONFIG_TOPIC)
    scene.put("connector-other", b'{"properties":{}}')
    scene.agree()
    assert scene.configs.restarts == len(ISOLATIONS)


def test_after_an_hour_it_is_read_from_its_beginning(scene: Scene) -> None:
    """What compaction has removed since is not seen before: a worker that starts then would not read it."""
    scene.put("connector-orders", b'{"properties":{"again":"1"}}')
    scene.agree()
    scene.world.brokers.state.clean(CONFIG_TOPIC)
    scene.world.time.pass_until(scene.world.time.now_s + followed.READ_AGAIN_S)
    scene.agree()
    assert scene.configs.restarts == 0


def test_newest_per_key_and_a_sieve(scene: Scene) -> None:
    scene.put("connector-orders", b'{"properties":{"again":"1"}}')
    scene.world.topics.put(CONFIG_TOPIC, None, b"1")
    kept, real = (each.read(CONFIG_TOPIC, newest_per_key=True) for each in (scene.store, scene.world.topics))
    assert [each.offset for each in kept.records] == [each.offset for each in real.records]
    assert len(scene.store.read(CONFIG_TOPIC, keep=lambda records: records[:1]).records) == 1


def test_a_large_topic_is_not_read_as_a_whole(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed, "MOST_OFFSETS", 3)
    for number in range(4):
        scene.world.topics.put(OFFSETS, f'["orders",{{"n":{number}}}]'.encode(), b"{}")
    with pytest.raises(TooLargeError, match="4 offsets"):
        scene.store.read(OFFSETS, newest_per_key=True)
    assert scene.store.read(OFFSETS, since={}).records_read == 4

"""The one reader of a group's config topic, and connectors and tasks as the config and the status topic record them.

The config topic's absence may be an error or not.

If no worker can be asked (a dedicated MirrorMaker), these topics have the same facts: REST reads its states there, too
(`KafkaStatusBackingStore`, 2.3 to 4.3). Taking them from records is pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from eosctl.app import App
from eosctl.core.configs.fold import ConfigState, fold_config_topic
from eosctl.core.configs.records import MAX_INT
from eosctl.core.ids import WorkerId
from eosctl.core.java.properties import whole_number
from eosctl.core.records import Record, TopicDescription, TopicRead
from eosctl.core.workers.connector_entry import ConnectorEntry, TaskStatus, plugin_type, read_part, read_task
from eosctl.errors import EosctlError
from eosctl.group.protocol import CONNECTOR_ITSELF, Work
from eosctl.ports import TopicReader


class ConfigTopic(Struct, frozen=True):
    """A config topic as read; `state` is the state of workers that read committed records."""

    cluster_id: str
    read: TopicRead
    state: ConfigState
    description: TopicDescription


def find_config_topic(
    app: App, store: TopicReader, *, isolation: str = "read_committed", strict: bool = False
) -> ConfigTopic | None:
    """Read and fold the target's config topic, whatever it contains; return None if there is none.

    With `strict`, raises EosctlError if it can't be a config topic.
    """
    topic = app.target.config_topic
    description = store.describe([topic]).get(topic)
    if description is None:
        return None
    if strict and description.partitions != 1:
        raise EosctlError(
            f"topic {topic} has {description.partitions} partitions; workers refuse a config topic with more than one",
            hint="Is it the config.storage.topic of this group? If so, no worker can start on it: `eosctl doctor` has "
            "the commands that lead to one with a single partition.",
        )
    read = store.read(topic, isolation=isolation)
    return ConfigTopic(store.cluster_id(), read, fold_config_topic(read.records), description)


_CONNECTOR = "status-connector-"
_TASK = re.compile(r"status-task-(?P<name>.+)-(?P<number>[0-9]+)", re.DOTALL)
_NO_STATUS: Mapping[str, object] = {"state": "UNASSIGNED"}
"""REST's status of a connector without a record."""


def read_statuses(records: Iterable[Record]) -> dict[Work, Mapping[str, object]]:
    """Return the newest state of each connector and task: `state`, `worker_id`, `trace` and, since 4.1, `version`."""
    found: dict[Work, Mapping[str, object]] = {}
    for work, _at_ms, value in _read_records(records):
        if value is None:
            found.pop(work, None)
        else:
            found[work] = value
    return found


def _read_records(records: Iterable[Record]) -> Iterator[tuple[Work, int, Mapping[str, object] | None]]:
    """Yield the subject, the timestamp and the status of each record; the status of a tombstone is None."""
    for record in records:
        work = _work_of(record.key)
        if work is not None:
            yield work, record.timestamp_ms, _json_object(record.value)


class WrittenStatus(Struct, frozen=True):
    """One record about a connector or task: its timestamp and its status."""

    at_ms: int
    state: str
    worker_id: WorkerId
    trace: str


def status_history(records: Iterable[Record]) -> dict[Work, list[WrittenStatus]]:
    """Return the records of each connector and task since its last deletion, in the order of the log.

    Compaction removes all but the newest record of a key, except in the active segment.
    """
    found: dict[Work, list[WrittenStatus]] = {}
    for work, at_ms, value in _read_records(records):
        if value is None:
            found.pop(work, None)
        else:
            status = read_part(value)
            found.setdefault(work, []).append(WrittenStatus(at_ms, status.state, status.worker_id, status.trace))
    return found


class Departure(Struct, frozen=True):
    """A worker that is no member, and left without recording that its work has ended: it was killed or cut off.

    `left` is the work whose status is still RUNNING on it, `moved` the amount that runs on other workers since, the
    last of it at `moved_ms`.
    """

    worker: WorkerId
    left: tuple[Work, ...]
    moved: int
    moved_ms: int


def departures(
    history: Mapping[Work, Sequence[WrittenStatus]],
    *,
    members: Collection[WorkerId],
    connectors: Collection[str],
    since_ms: int,
) -> list[Departure]:
    """Return the workers that left that way, unless their work was taken over before `since_ms`.

    A worker that is stopped writes UNASSIGNED for its work. Statuses of deleted connectors do not count.
    """
    left: dict[WorkerId, list[Work]] = {}
    moved: dict[WorkerId, list[int]] = {}
    for work, statuses in sorted(history.items()):
        if work[0] not in connectors:
            continue
        running = WorkerId("")
        for each in statuses:
            worker = each.worker_id
            if running and worker and worker != running:
                moved.setdefault(running, []).append(each.at_ms)
            running = WorkerId(worker if each.state == "RUNNING" else "")
        if running:
            left.setdefault(running, []).append(work)
    gone = sorted((left.keys() | moved.keys()) - set(members))
    found = [Departure(each, tuple(left.get(each, ())), *_newest(moved.get(each, ()))) for each in gone]
    return [each for each in found if each.left or each.moved_ms >= since_ms]


def _newest(times_ms: Sequence[int]) -> tuple[int, int]:
    return len(times_ms), max(times_ms, default=-1)


def _work_of(key: bytes | None) -> Work | None:
    text = (key or b"").decode("utf-8", "replace")
    task = _TASK.fullmatch(text)
    number = None if task is None else whole_number(task["number"], most=MAX_INT)
    if task is not None and number is not None:
        return task["name"], number
    return (text.removeprefix(_CONNECTOR), CONNECTOR_ITSELF) if text.startswith(_CONNECTOR) else None


def _json_object(value: bytes | None) -> Mapping[str, object] | None:
    try:
        read = json.loads(value or b"null")
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def connectors_as_written(
    state: ConfigState, statuses: Mapping[Work, Mapping[str, object]] | None
) -> dict[str, ConnectorEntry]:
    """Return the connectors as a worker's REST interface shows them; without `statuses` their states are unknown."""
    return {
        name: ConnectorEntry(
            type=plugin_type(each.config),
            config={key: str(value) for key, value in each.config.items() if value is not None},
            itself=None if statuses is None else read_part(statuses.get((name, CONNECTOR_ITSELF), _NO_STATUS)),
            tasks=tuple(_tasks(name, each.task_ids, statuses or {})),
            wanted=tuple(sorted(each.task_ids)),
        )
        for name, each in state.connectors.items()
        if each.config is not None
    }


def _tasks(name: str, numbers: Iterable[int], statuses: Mapping[Work, Mapping[str, object]]) -> Iterator[TaskStatus]:
    found = ((number, statuses.get((name, number))) for number in sorted(numbers))
    return (read_task(number, status) for number, status in found if status is not None)


def version_at(owned: Iterable[Work], statuses: Mapping[Work, Mapping[str, object]]) -> str | None:
    """Return the version that MirrorMaker's own connectors report where they run: its Kafka's (4.1 and newer).

    Return None if no status has a version, or if they differ.
    """
    versions = {str(each["version"]) for work in owned if (each := statuses.get(work, {})).get("version")}
    return versions.pop() if len(versions) == 1 else None

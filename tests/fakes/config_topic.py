"""What Connect's herder writes into the config topic, as records."""

from __future__ import annotations

import json
from collections.abc import Mapping

from eosctl.core.records import Record

CONFIG_TOPIC = "connect-configs"


def config_records(*pairs: tuple[str, object]) -> list[Record]:
    """Config-topic records at offsets 0, 1, 2, …; a value that is not bytes is spelled as JSON, None is a tombstone."""

    def encoded(value: object) -> bytes | None:
        if value is None or isinstance(value, bytes):
            return value
        return json.dumps(value).encode()

    return [Record(CONFIG_TOPIC, 0, at, -1, key.encode(), encoded(value)) for at, (key, value) in enumerate(pairs)]


def created(
    connector: str, tasks: int, *, record: int | None = None, config: Mapping[str, str] | None = None
) -> list[tuple[str, object]]:
    """What a leader writes for a new connector; `record` None leaves the task-count record out."""
    properties = {"name": connector, "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector"}
    pairs: list[tuple[str, object]] = [(f"connector-{connector}", {"properties": {**properties, **(config or {})}})]
    pairs += [(f"task-{connector}-{task}", {"properties": {"task.class": "T"}}) for task in range(tasks)]
    pairs.append((f"commit-{connector}", {"tasks": tasks}))
    return pairs if record is None else [*pairs, (f"tasks-fencing-{connector}", {"task-count": record})]

"""Snapshots on a real broker and worker: a connector returns to an offset that the log cleaner has removed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from eosctl.core.wording import rfc3339
from eosctl.kafka.topics.store import KafkaTopicClient
from tests.conftest import Invoke
from tests.sandbox_fixtures import FileSource, once_there, wait_until

pytestmark = pytest.mark.live

CLEANED_SOON = {
    "cleanup.policy": "compact",
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.0",
    "delete.retention.ms": "0",
}
"""The cleaner takes closed segments at its next look; a record that comes later closes one."""


def test_a_connector_returns_to_what_compaction_has_removed(
    topics: KafkaTopicClient, file_source: FileSource, invoke: Invoke, target_flags: list[str], tmp_path: Path
) -> None:
    name, own, folder = file_source.name, f"offsets-{file_source.name}", tmp_path / "kept"

    def eosctl(*words: str, exit_code: int = 0) -> Any:
        done = invoke(*target_flags, "offsets", *words, "-o", "json")
        assert done.exit_code == exit_code, done.stderr
        return done.json()["data"]

    def positions(*more: str) -> list[tuple[int, bool]]:
        rows = eosctl("log", "--connector", name, "--snapshots", str(folder), "--store", own, *more)["rows"]
        return [(row["value"]["position"], "file" in row) for row in rows]

    def delivered(count: int) -> Counter[bytes | None]:
        return once_there(count, lambda: Counter(each.value for each in topics.read(file_source.topic).records))

    topics.create(own, partitions=1, replication_factor=1, config=CLEANED_SOON)
    file_source.append("one", "two")
    file_source.put(**{"offsets.storage.topic": own})
    file_source.wait_position(8)
    first = eosctl("snapshot", str(folder), "--connector", name)["rows"][0]
    assert (first["outcome"], own in first["topics"]) == ("written", True)
    assert eosctl("snapshot", str(folder), "--store", own)["rows"][0]["records"] == 1

    file_source.append("three")
    file_source.wait_position(14)
    missed_ms = topics.read(own).records[-1].timestamp_ms
    file_source.append("four")
    file_source.wait_position(19)

    def cleaned() -> bool:
        """A round of the cleaner may end between the two: it keeps the last offset that it has come to."""
        file_source.append("more")
        seen = positions()
        return (8, True) in seen and (14, False) not in seen

    wait_until(cleaned, what="the log cleaner to remove both offsets; no snapshot has the second")
    file_source.stop_and_wait()
    lines = delivered(4).total()

    command = ["set", "--connector", name, "--snapshots", str(folder), "--yes", "--as-of"]
    eosctl(*command, str(rfc3339(missed_ms)), exit_code=6)
    done = eosctl(*command, first["file"])
    assert [row["file"] for row in done["as_of"]] == [first["file"]]
    file_source.set_state("resume")
    again = delivered(lines + 2)
    assert (again[b"one"], again[b"two"], again[b"three"]) == (1, 1, 2)

"""Offsets on a real broker and a real worker: KIP-618's own example, and a switch with and without a merge."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from eosctl.core.offsets.names import partition_for
from eosctl.core.records import OutRecord
from eosctl.kafka.topics.store import KafkaTopicClient
from tests.conftest import Invoke
from tests.sandbox_fixtures import FileSource, once_there, rest

pytestmark = pytest.mark.live

Eosctl = Callable[..., Any]
PATTERN = ("--dedicated-topic", "offsets-{connector}")


@pytest.fixture
def eosctl(invoke: Invoke, target_flags: list[str]) -> Eosctl:
    """Runs `eosctl offsets …` against the stack and returns the JSON envelope."""
    return lambda *words: invoke(*target_flags, "offsets", *words, "-o", "json").json()


def test_the_example_of_kip_618(topics: KafkaTopicClient, eosctl: Eosctl, unique: str) -> None:
    """Three subreddits: one only in the global topic, one in both, one only in the connector's own."""
    own, which = f"offsets-{unique}", ("--connector", unique, *PATTERN)

    def put(topic: str, subreddit: str, timestamp: str) -> OutRecord:
        key = f'["{unique}",{{"subreddit":"{subreddit}"}}]'.encode()
        return OutRecord(topic, key, f'{{"timestamp":"{timestamp}"}}'.encode())

    def effective(view: str) -> dict[str, str | None]:
        rows = eosctl("list", *which)["data"]["rows"]
        return {r["source_partition"]["subreddit"]: (r["effective"][view] or {}).get("timestamp") for r in rows}

    promised = {"CatsStandingUp": "2169", "apachekafka": "4761", "grilledcheese": "489"}
    topics.create(own, partitions=7, replication_factor=1, config={"cleanup.policy": "compact"})
    topics.write([put("connect-offsets", "apachekafka", "4761"), put("connect-offsets", "CatsStandingUp", "2112")])
    topics.write([put(own, "CatsStandingUp", "2169"), put(own, "grilledcheese", "489")])
    assert effective("documented") == promised
    assert effective("runtime") == {**promised, "apachekafka": None}
    assert eosctl("diff", *which)["exit_code"] == 3

    merged = eosctl("merge", *which, "--into", "dedicated", "--yes")
    assert merged["exit_code"] == 0
    assert merged["data"]["summary"]["counts"] == {"write": 1, "delete": 0, "keep": 2, "conflict": 0}
    assert effective("runtime") == effective("documented") == promised
    key = f'["{unique}",{{"subreddit":"apachekafka"}}]'.encode()
    copied = next(record for record in topics.read(own).records if record.key == key)
    assert copied.partition == partition_for(key, 7)

    undone = eosctl(*shlex.split(merged["data"]["undo"])[2:], "--yes")
    assert undone["exit_code"] == 0
    assert effective("runtime") == {**promised, "apachekafka": None}


def test_a_large_topic_is_listed_as_a_small_one(
    topics: KafkaTopicClient, invoke: Invoke, target_flags: list[str], unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = [*target_flags, "--offset-topic", unique, "offsets", "list", "-o", "ndjson"]
    keys = [f'["{unique}-{number % 3}",{{"f":"{number}"}}]'.encode() for number in range(3000)]
    topics.create(unique, partitions=7, replication_factor=1, config={"cleanup.policy": "compact"})
    topics.write([OutRecord(unique, key, b'{"lsn":%d}' % number) for number, key in enumerate(keys)])
    topics.write([OutRecord(unique, key, None if number else b"{ }") for number, key in enumerate(keys[:10])])
    small = [json.loads(line) for line in invoke(*where).stdout.splitlines()]
    monkeypatch.setattr("eosctl.offsets.stores.gather.MANY_OFFSETS", 1)
    large = [json.loads(line) for line in invoke(*where).stdout.splitlines()]
    monkeypatch.setattr("eosctl.offsets.stores.gather.AT_ONCE", 900)
    in_parts = [json.loads(line) for line in invoke(*where).stdout.splitlines()]
    for row in (*small, *large, *in_parts):
        row.pop("age_ms")
    assert (len(large), large) == (3000, small)
    assert in_parts == small


def delivered(topics: KafkaTopicClient, source: FileSource, count: int) -> Counter[bytes | None]:
    """How often each line was delivered, once `count` of them are there."""
    return once_there(count, lambda: Counter(record.value for record in topics.read(source.topic).records))


def deliver_ten_lines(topics: KafkaTopicClient, source: FileSource) -> None:
    """Ten lines of eleven bytes each, and the offset that says so."""
    source.append(*(f"line {number:05d}" for number in range(10)))
    source.put()
    source.wait_position(110)
    assert delivered(topics, source, 10).total() == 10


def test_a_switch_without_a_merge_delivers_everything_again(topics: KafkaTopicClient, file_source: FileSource) -> None:
    """What Kafka does, against its documentation: the reason why `merge` is there."""
    deliver_ten_lines(topics, file_source)
    file_source.put(**{"offsets.storage.topic": f"offsets-{file_source.name}"})
    lines = delivered(topics, file_source, 20)
    assert (len(lines), set(lines.values())) == (10, {2})


def test_a_merge_before_the_switch_loses_nothing_and_repeats_nothing(
    topics: KafkaTopicClient, eosctl: Eosctl, file_source: FileSource
) -> None:
    """Stop, merge, switch, look for a null, resume: the connector goes on where it was."""
    own, which = f"offsets-{file_source.name}", ("--connector", file_source.name)
    deliver_ten_lines(topics, file_source)
    merge = ("merge", *which, *PATTERN, "--into", "dedicated")
    running = eosctl(*merge, "--yes")
    assert (running["exit_code"], running["status"]) == (6, "refused")
    assert own not in topics.describe([own])

    file_source.stop_and_wait()
    merged = eosctl(*merge, "--yes")
    assert merged["exit_code"] == 0, merged["errors"]
    assert [new["topic"] for new in merged["data"]["creates"]] == [own]
    assert topics.describe([own])[own].partitions == topics.describe(["connect-offsets"])["connect-offsets"].partitions

    file_source.put(**{"offsets.storage.topic": own})
    [entry] = rest(f"{file_source.url}/connectors/{file_source.name}/offsets")["offsets"]
    assert entry["offset"] == {"position": 110}
    assert eosctl("diff", *which)["exit_code"] == 0
    file_source.append("line 00010", "line 00011")
    file_source.set_state("resume")
    file_source.wait_position(132)
    lines = delivered(topics, file_source, 12)
    assert (len(lines), set(lines.values())) == (12, {1})

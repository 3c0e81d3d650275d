"""Frames of real brokers (captured/): decoded to the last byte, and encoded again to the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eosctl.wire.api import decode_request, decode_request_header, decode_response, encode_request, encode_response
from eosctl.wire.group_listing_messages import LIST_GROUPS
from tests.wire.samples import APIS

CAPTURED = Path(__file__).parent / "captured"
BY_NAME = {api.name: api for api in APIS}
BY_KEY = {api.key: api for api in APIS}


def exchanges() -> Iterator[tuple[str, Any]]:
    """(Kafka version, line) of all files."""
    for path in sorted(CAPTURED.glob("*.ndjson")):
        for line in path.read_text(encoding="utf-8").splitlines():
            yield path.stem, json.loads(line)


def answer_of(kafka: str, name: str, version: int) -> Any:
    """The decoded response of one captured exchange."""
    item = next(item for found, item in exchanges() if (found, item["api"], item["version"]) == (kafka, name, version))
    frame = bytes.fromhex(item["response"])
    return decode_response(BY_NAME[name], frame, version=version, correlation_id=int.from_bytes(frame[:4], "big"))


@pytest.mark.parametrize(
    "item",
    [pytest.param(item, id=f"{kafka}-{item['api']}-v{item['version']}") for kafka, item in exchanges()],
)
def test_captured_frames_survive_the_round_trip(item: Any) -> None:
    api, version = BY_NAME[item["api"]], item["version"]
    asked, answered = bytes.fromhex(item["request"]), bytes.fromhex(item["response"])
    header = decode_request_header(asked, BY_KEY)
    request = decode_request(api, asked, header)
    number = header.correlation_id
    assert encode_request(api, request, version=version, correlation_id=number, client_id="capture")[4:] == asked
    response = decode_response(api, answered, version=version, correlation_id=number)
    assert encode_response(api, response, version=version, correlation_id=number)[4:] == answered


@pytest.mark.parametrize(("kafka", "list_version"), [("3.5.1", 0), ("3.9.2", 1), ("4.3.1", 1)])
def test_what_the_captured_answers_say(kafka: str, list_version: int) -> None:
    states = {item.transactional_id: item for item in answer_of(kafka, "DescribeTransactions", 0).transaction_states}
    assert states["captured-open"].transaction_state == "Ongoing"
    assert states["captured-open"].topics == (("captured-topic", (0,)),)
    assert states["captured-id"].transaction_timeout_ms == 30_000
    assert states["captured-unknown"].error_code == 105
    found = answer_of(kafka, "ListTransactions", list_version)[3]
    listed = {item.transactional_id: item.transaction_state for item in found if "captured" in item.transactional_id}
    assert listed == {"captured-open": "Ongoing", "captured-id": "Empty"}
    (topic,) = answer_of(kafka, "DescribeProducers", 0).topics
    assert [(item.partition_index, item.error_code) for item in topic.partitions] == [(0, 0), (7, 3)]
    assert topic.partitions[0].active_producers[0].current_txn_start_offset == 0
    group, unknown = answer_of(kafka, "DescribeGroups", 5).groups
    assert (group.group_state, group.protocol_type, len(group.members)) == ("Stable", "consumer", 1)
    assert group.members[0].member_assignment
    assert (unknown.group_state, unknown.members) == ("Dead", ())


@pytest.mark.parametrize(("kafka", "newest"), [("3.5.1", 4), ("3.9.2", 5), ("4.3.1", 5)])
def test_groups_are_listed_with_their_protocol_by_every_broker(kafka: str, newest: int) -> None:
    """Which groups are Connect's is read from `protocol_type`; the state is told from version 4 on."""
    versions = [item["version"] for found, item in exchanges() if (found, item["api"]) == (kafka, "ListGroups")]
    assert (versions[0], versions[-1]) == (LIST_GROUPS.oldest, newest)
    for version in versions:
        answer = answer_of(kafka, "ListGroups", version)
        assert [(group.group_id, group.protocol_type) for group in answer.groups] == [("captured-group", "consumer")]
        assert [group.group_state for group in answer.groups] == ["Stable" if version >= 4 else ""]
        assert answer.error_code == 0


@pytest.mark.parametrize(("kafka", "names_topics"), [("3.5.1", True), ("3.9.2", False), ("4.3.1", False)])
def test_log_directories_are_reported_without_the_sizes_of_topics(kafka: str, *, names_topics: bool) -> None:
    """Older brokers name topics that were not asked for, none with a partition; the volume is in version 4."""
    for version in range(1, 5):
        answer = answer_of(kafka, "DescribeLogDirs", version)
        [found] = answer.results
        assert (answer.error_code, found.error_code, found.log_dir[:1]) == (0, 0, "/")
        assert bool(found.topics) == names_topics
        assert not any(topic.partitions for topic in found.topics)
        sizes = (found.total_bytes, found.usable_bytes)
        assert 0 < found.usable_bytes < found.total_bytes if version >= 4 else sizes == (-1, -1)


def test_features_of_the_newest_broker_are_read_from_tags() -> None:
    features = {item.name: item.max_version_level for item in answer_of("4.3.1", "ApiVersions", 3).finalized_features}
    assert features["transaction.version"] == 2

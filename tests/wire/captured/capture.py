"""Captures frames from a real broker: `python -m tests.wire.captured.capture HOST:PORT KAFKA-VERSION [API…]`.

Writes <version>.ndjson here: one request and its response per API and version that the broker and eosctl share, the
size bytes cut off; where APIs are named, the file keeps its lines of the others. The broker should be fresh; needs
confluent-kafka for transactions, batches and a consumer group.
"""

from __future__ import annotations

import json
import socket
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from eosctl.wire import cluster_messages as cluster_api
from eosctl.wire import group_listing_messages as group_listings
from eosctl.wire import group_messages as groups
from eosctl.wire import log_dir_messages as disks
from eosctl.wire import primitives
from eosctl.wire import producer_messages as leaders
from eosctl.wire import transaction_listing_messages as listings
from eosctl.wire import transaction_messages as txn
from eosctl.wire.api import Api, decode_response, encode_request
from eosctl.wire.frames import FrameBuffer
from eosctl.wire.log import fetch_messages as fetching
from eosctl.wire.log import fetch_messages as offsets

TOPIC, GROUP, OPEN, SEEN = "captured-topic", "captured-group", "captured-open", "captured-id"
LOG = "captured-log"


def request_of(api: Api[Any, Any], version: int, producer_id: int, topic_id: uuid.UUID) -> Any:
    """A request whose answer has something in it; `topic_id` is that of LOG."""
    if api is cluster_api.FIND_COORDINATOR and version < cluster_api.FIND_COORDINATOR_BATCHED_FROM:
        return cluster_api.FindCoordinatorRequest(SEEN, cluster_api.KeyType.TRANSACTION)
    partitions = (leaders.TopicPartitions(TOPIC, (0, 7)),)
    queries = tuple(offsets.OffsetLookup(number, timestamp=offsets.EARLIEST) for number in (0, 7))
    fetches = tuple(fetching.PartitionFetch(number, partition_max_bytes=1 << 20) for number in (0, 7))
    return {
        "ApiVersions": cluster_api.ApiVersionsRequest("eosctl", "1"),
        "Metadata": cluster_api.MetadataRequest(
            (cluster_api.TopicQuery(name=TOPIC), cluster_api.TopicQuery(name=LOG)), False
        ),
        "FindCoordinator": cluster_api.FindCoordinatorRequest(
            key_type=cluster_api.KeyType.TRANSACTION, coordinator_keys=(SEEN, OPEN)
        ),
        "InitProducerId": txn.InitProducerIdRequest(SEEN, 30_000),
        "ListTransactions": listings.ListTransactionsRequest(),
        "DescribeTransactions": txn.DescribeTransactionsRequest((OPEN, SEEN, "captured-unknown")),
        "DescribeProducers": leaders.DescribeProducersRequest(partitions),
        "WriteTxnMarkers": leaders.WriteTxnMarkersRequest((leaders.TxnMarker(producer_id, 0, False, partitions, 0),)),
        "ListGroups": group_listings.ListGroupsRequest(),
        "ListOffsets": offsets.ListOffsetsRequest(topics=(offsets.TopicOffsetLookups(LOG, queries),)),
        "Fetch": fetching.FetchRequest(max_bytes=1 << 20, topics=(fetching.TopicFetch(LOG, topic_id, fetches),)),
        "DescribeLogDirs": disks.DescribeLogDirsRequest(),
        "DescribeGroups": groups.DescribeGroupsRequest((GROUP, "captured-none")),
    }[api.name]


def main(address: str, kafka_version: str, *only: str) -> None:
    """Prepares the broker, asks everything, writes the file."""
    producer = Producer({"bootstrap.servers": address, "transactional.id": OPEN})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(TOPIC, b"value")
    producer.flush(30)
    _fill_log(address)
    consumer = Consumer({"bootstrap.servers": address, "group.id": GROUP})
    consumer.subscribe([TOPIC])
    while not consumer.assignment():
        consumer.poll(0.1)
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), 30) as connection:
        lines = [line for line in _exchange(connection) if not only or line["api"] in only]
    consumer.close()
    target = Path(__file__).parent / f"{kafka_version}.ndjson"
    if only:
        kept = map(json.loads, target.read_text(encoding="utf-8").splitlines())
        lines = [line for line in kept if line["api"] not in only] + lines
    target.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def _fill_log(address: str) -> None:
    """Two records in a batch, compressed, and one more; then a transaction that is committed, and one aborted."""
    settings = {"bootstrap.servers": address, "linger.ms": 500, "compression.type": "lz4"}
    plain = Producer(settings)
    for text in (b"a" * 100, b"b" * 100):
        plain.produce(LOG, text, b"key", partition=0)
    plain.flush(30)
    writer = Producer({**settings, "transactional.id": "captured-log-id"})
    writer.init_transactions(30)
    for end in (writer.commit_transaction, writer.abort_transaction):
        writer.begin_transaction()
        writer.produce(LOG, b"in a transaction", b"key", partition=0)
        writer.flush(30)
        end(30)
    reader = Consumer({"bootstrap.servers": address, "group.id": "unused", "isolation.level": "read_committed"})
    while reader.get_watermark_offsets(TopicPartition(LOG, 0), 30)[1] < 6:  # brokers answer before markers are written
        time.sleep(0.1)
    reader.close()


def _exchange(connection: socket.socket) -> Any:
    apis: list[Api[Any, Any]] = [
        cluster_api.API_VERSIONS,
        cluster_api.METADATA,
        cluster_api.FIND_COORDINATOR,
        txn.INIT_PRODUCER_ID,
        listings.LIST_TRANSACTIONS,
        txn.DESCRIBE_TRANSACTIONS,
        leaders.DESCRIBE_PRODUCERS,
        leaders.WRITE_TXN_MARKERS,
        group_listings.LIST_GROUPS,
        groups.DESCRIBE_GROUPS,
        offsets.LIST_OFFSETS,
        fetching.FETCH,
        disks.DESCRIBE_LOG_DIRS,
    ]
    frames, number, offered, producer_id, topic_id = FrameBuffer(), 0, {18: (0, 4)}, 0, primitives.NO_ID
    for api in apis:
        oldest, newest = offered[api.key]
        for version in range(max(oldest, api.oldest), min(newest, api.newest) + 1):
            if version > offered[api.key][1]:  # ApiVersions itself, whose first answer tells
                break
            number += 1
            request = request_of(api, version, producer_id, topic_id)
            asked = encode_request(api, request, version=version, correlation_id=number, client_id="capture")
            connection.sendall(asked)
            while (frame := frames.next_frame()) is None:
                frames.feed(connection.recv(1 << 16))
            yield {"api": api.name, "version": version, "request": asked[4:].hex(), "response": frame.hex()}
            answer = decode_response(api, frame, version=version, correlation_id=number)
            if api is cluster_api.API_VERSIONS:
                offered = {item.api_key: (item.min_version, item.max_version) for item in answer.api_keys}
            if api is txn.DESCRIBE_TRANSACTIONS:
                producer_id = answer.transaction_states[0].producer_id
            if api is cluster_api.METADATA:
                topic_id = answer.topics[-1].topic_id


if __name__ == "__main__":
    main(*sys.argv[1:])

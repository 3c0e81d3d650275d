"""Who answers on a node's port: the node, or somebody who took the port before it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from confluent_kafka import Producer

from eosctl.sandbox.readiness import broker_answers, worker_answers
from tests.fakes.http_server import serving


def test_a_broker_of_another_cluster_is_not_ours() -> None:
    """A stack was called ready because another one's broker answered where its own could not listen."""
    silent = logging.Logger("broker")
    silent.addHandler(logging.NullHandler())
    broker = Producer({"test.mock.num.brokers": 1}, logger=silent)  # runs as long as the producer is there
    metadata = broker.list_topics(timeout=10)
    address = f"127.0.0.1:{metadata.brokers[1].port}"
    assert broker_answers(address, brokers=1, cluster_id=str(metadata.cluster_id))
    assert broker_answers(address, brokers=1, cluster_id="")
    assert not broker_answers(address, brokers=1, cluster_id="another")
    assert not broker_answers(address, brokers=2, cluster_id=str(metadata.cluster_id))


@contextmanager
def _worker(connectors_status: int, root: object) -> Iterator[str]:
    """The URL of a worker that answers /connectors with a status, and / with a document."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(connectors_status if self.path == "/connectors" else 200)
            self.end_headers()
            self.wfile.write(json.dumps(root).encode())

        def log_message(self, *_words: object) -> None:
            """Says nothing."""

    server = HTTPServer(("127.0.0.1", 0), Answers)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}"


OURS = {"version": "4.3.1", "kafka_cluster_id": "ours"}


@pytest.mark.parametrize(
    ("status", "root", "cluster_id", "ready"),
    [
        (200, OURS, "ours", True),
        (200, OURS, "", True),
        (200, OURS, "other", False),
        (200, ["no worker"], "ours", False),
        (404, OURS, "ours", False),  # before its REST resources are there
        (503, OURS, "ours", False),  # before it has joined
        (401, OURS, "ours", True),  # wants a password
    ],
)
def test_a_worker_of_another_cluster_is_not_ours(status: int, root: object, cluster_id: str, ready: bool) -> None:
    with _worker(status, root) as url:
        assert worker_answers(url, cluster_id=cluster_id) is ready


def test_nobody_answers(closed_port: int) -> None:
    assert not broker_answers(f"127.0.0.1:{closed_port}", brokers=1, cluster_id="")
    assert not worker_answers(f"http://127.0.0.1:{closed_port}", cluster_id="")
